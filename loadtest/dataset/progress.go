package dataset

import "time"

// Progress is how far an import is.
type Progress struct {
	// What is done now: "realms", "clients" or "users".
	What string
	// Realm it is done in.
	Realm string
	// Done and Total count What over all realms.
	Done, Total int
	// Rate is What per second of the time spent on it; 0 while it isn't known.
	Rate float64
	// Left is how long the whole import may still take; 0 while it isn't
	// known.
	Left time.Duration
}

// meter counts what was done and knows from it how fast it went.
type meter struct {
	started      time.Time
	total, done  map[string]int
	begun        map[string]time.Time
	spent        map[string]time.Duration
	work, worked int // in users
}

func (m *meter) start(now time.Time) {
	m.started = now
	m.total, m.done = map[string]int{}, map[string]int{}
	m.begun, m.spent = map[string]time.Time{}, map[string]time.Duration{}
}

// expect sets what there is to do.
func (m *meter) expect(actions []action) {
	clear(m.total)
	for _, a := range actions {
		m.total["clients"] += a.clients
		m.total["users"] += a.users
		if a.create || a.made {
			m.total["realms"]++
		}
	}
	m.work = weight(actions)
}

// clock starts and stops the watch of one kind of work.
func (m *meter) clock(what string, begins bool, now time.Time) {
	if begins {
		m.begun[what] = now
		return
	}
	m.spent[what] += now.Sub(m.begun[what])
	delete(m.begun, what)
}

// rate is how many were done per second of the time spent on them.
func (m *meter) rate(what string, now time.Time) float64 {
	spent := m.spent[what]
	if begun, ok := m.begun[what]; ok {
		spent += now.Sub(begun)
	}
	if spent <= 0 {
		return 0
	}
	return float64(m.done[what]) / spent.Seconds()
}

// add counts n more and says how far that is.
func (m *meter) add(what string, n, weight int, now time.Time) Progress {
	m.done[what] += n
	m.worked += weight
	p := Progress{What: what, Done: m.done[what], Total: max(m.total[what], m.done[what]), Rate: m.rate(what, now)}
	if passed := now.Sub(m.started); passed > 0 && m.worked > 0 {
		p.Left = time.Duration(float64(passed) / float64(m.worked) * float64(max(m.work-m.worked, 0)))
	}
	return p
}
