package report

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// How figures are written follows k6's summary, so that its lines and ours
// can be compared: cut off, not rounded, in the unit that fits.

// durationText writes milliseconds as k6 does: 0s, 812ns, 315.48µs, 35.3ms,
// 1.04s, 1m40s, 1h0m5s.
func durationText(ms float64) string {
	switch {
	case ms <= 0:
		return "0s"
	case ms < 0.001:
		return strconv.FormatFloat(math.Trunc(ms*1e6), 'f', -1, 64) + "ns"
	case ms < 1:
		return cut(ms*1000) + "µs"
	case ms < 1000:
		return cut(ms) + "ms"
	case ms < 60_000:
		return cut(ms/1000) + "s"
	}
	seconds := math.Trunc(ms / 1000)
	minutes := math.Trunc(seconds / 60)
	hours := math.Trunc(minutes / 60)
	text := number(seconds-60*minutes) + "s"
	if hours < 1 {
		return number(minutes) + "m" + text
	}
	return number(hours) + "h" + number(minutes-60*hours) + "m" + text
}

// cut drops all but two decimals, and zeros at the end. The tiny addition
// keeps 4.35, which binary stores as 4.3499…, from becoming 4.34.
func cut(v float64) string {
	return number(math.Trunc(v*100+1e-7) / 100)
}

// number writes a number in the fewest digits.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// bytesText writes bytes in decimal units as k6 does: 7 B, 1.2 kB, 122 MB.
func bytesText(b float64) string {
	if b < 10 {
		return strconv.FormatFloat(math.Round(max(b, 0)), 'f', -1, 64) + " B"
	}
	units := [...]string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	i := 0
	for math.Floor(b*10+0.5)/10 >= 1000 && i < len(units)-1 {
		b /= 1000
		i++
	}
	b = math.Floor(b*10+0.5) / 10
	if b < 10 && i > 0 {
		return strconv.FormatFloat(b, 'f', 1, 64) + " " + units[i]
	}
	return strconv.FormatFloat(b, 'f', 0, 64) + " " + units[i]
}

// rateText writes a rate with k6's six decimals at most: 18.142857/s.
func rateText(perSecond float64) string {
	return number(math.Round(perSecond*1e6)/1e6) + "/s"
}

// shortRate writes a rate in about four digits, for tables.
func shortRate(perSecond float64) string {
	switch {
	case perSecond >= 1000:
		return strconv.FormatFloat(perSecond, 'f', 0, 64)
	case perSecond >= 100:
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return strconv.FormatFloat(perSecond, 'f', 2, 64)
}

// targetText writes a rate that was asked for: as it was written where it is
// round, in about four digits in the midst of a ramp.
func targetText(perSecond float64) string {
	if perSecond >= 1000 {
		return number(math.Round(perSecond))
	}
	return number(math.Round(perSecond*10) / 10)
}

// shortDuration writes milliseconds in about three digits, for tables.
func shortDuration(ms float64) string {
	switch {
	case ms <= 0:
		return "0"
	case ms < 1:
		return strconv.FormatFloat(ms*1000, 'f', 0, 64) + "µs"
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 2, 64) + "ms"
	case ms < 100:
		return strconv.FormatFloat(ms, 'f', 1, 64) + "ms"
	case ms < 1000:
		return strconv.FormatFloat(ms, 'f', 0, 64) + "ms"
	case ms < 10_000:
		return strconv.FormatFloat(ms/1000, 'f', 2, 64) + "s"
	case ms < 60_000:
		return strconv.FormatFloat(ms/1000, 'f', 1, 64) + "s"
	}
	return durationText(ms)
}

// percentText writes part of whole as k6 writes rates: cut to two decimals.
func percentText(part, whole int64) string {
	if whole == 0 {
		return "0.00%"
	}
	return percent(100 * float64(part) / float64(whole))
}

func percent(v float64) string {
	return strconv.FormatFloat(math.Trunc(v*100+1e-7)/100, 'f', 2, 64) + "%"
}

// count writes a whole number with commas: 1,234,567.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, text = "-", text[1:]
	}
	var b strings.Builder
	for i, c := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return sign + b.String()
}

// spanText writes a length of time for people: 20s, 10m, 1h30m, 1.5s.
func spanText(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Second)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// seconds turns a number of seconds into a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
