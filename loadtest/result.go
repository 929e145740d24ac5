package loadtest

import "time"

// Schema names the shape of Result as JSON. Fields are added, never renamed.
const Schema = "benchctl.run/1"

// Verdict says what a run is worth.
type Verdict string

// The four verdicts.
const (
	// Passed: every threshold held and nothing cast doubt on the figures.
	Passed Verdict = "passed"
	// Failed: the figures are good, a threshold was missed.
	Failed Verdict = "failed"
	// Invalid: the figures can't be trusted (generator-limited, cluster or
	// lab not as expected).
	Invalid Verdict = "invalid"
	// Interrupted: cut short; what was measured until then is kept.
	Interrupted Verdict = "interrupted"
)

// Result is one run of one test as a machine reads it. Times are
// milliseconds, sizes bytes, rates per second. In models of several steps the
// figures at the top are those of the highest step that was sustained, or of
// the first one where none was.
type Result struct {
	Schema     string                `json:"schema"`
	Verdict    Verdict               `json:"verdict"`
	Reasons    []string              `json:"reasons"`
	Test       Settings              `json:"test"`
	Started    time.Time             `json:"started"`
	MeasuredS  float64               `json:"measured_s"`
	Rate       Rate                  `json:"rate"`
	Operations map[string]*Operation `json:"operations"`
	Iterations *Operation            `json:"iterations"`
	Steps      []Step                `json:"steps,omitempty"`
	SUT        map[string]Usage      `json:"sut"`
	Scenario   string                `json:"scenario"`
	Repeat     int                   `json:"repeat"`
	StandIn    bool                  `json:"stand_in"`
	Thresholds []ThresholdResult     `json:"thresholds"`
	Engine     EngineUse             `json:"engine"`
	// Extra figures for the text summary, whole run and steady window apart.
	Checks   Checks                   `json:"checks"`
	VUs      VUs                      `json:"vus"`
	Samples  map[string]FailureSample `json:"failure_samples,omitempty"`
	Sessions *SessionSetup            `json:"sessions,omitempty"`
	Series   []Second                 `json:"series,omitempty"`
	// HTTP is all requests of the measured window together.
	HTTP *Operation `json:"http,omitempty"`
	// Whole is the whole run, ramps and warm-up included.
	Whole *Totals `json:"whole,omitempty"`
	// Warnings are what a reader should know and what cast no doubt.
	Warnings []string `json:"warnings,omitempty"`
	// Histograms of the measured window, to be merged with other runs': HDR
	// V2 encodings of nanoseconds by "<operation>/<figure>", where operation
	// may be "iterations" and figure is response, service or a phase. They
	// are kept beside the JSON.
	Histograms map[string][]byte `json:"-"`
}

// Totals are the figures of a whole run, which lasted Seconds.
type Totals struct {
	Seconds    float64               `json:"seconds"`
	Operations map[string]*Operation `json:"operations"`
	Iterations *Operation            `json:"iterations"`
	HTTP       *Operation            `json:"http"`
}

// Rate compares what was asked for with what happened, in iterations per
// second of the measured window. Target is 0 in closed models. Started are
// those that were meant to start in it, dropped ones (EngineUse.Dropped)
// included; Completed those that ended in it, failures included.
type Rate struct {
	Target    float64 `json:"target"`
	Started   float64 `json:"started"`
	Completed float64 `json:"completed"`
}

// Operation holds the figures of one kind of request, or of iterations, that
// were meant to start in the measured window. Requests are successes and
// failures; what the end of the run cut off is in neither, and in Errors as
// "cancelled". Starts that were dropped were never made and are in neither as
// well: EngineUse.Dropped counts them, and thresholds on the errors of
// iterations take each for a failure. Latencies are those of successes only.
type Operation struct {
	Requests int64 `json:"requests"`
	Failures int64 `json:"failures"`
	// Completed are those that ended within the measured window, whenever they
	// were meant to start: what was served, where Requests is what was asked.
	Completed  int64            `json:"completed"`
	Errors     map[string]int64 `json:"errors"`
	BytesIn    int64            `json:"bytes_in"`
	BytesOut   int64            `json:"bytes_out"`
	ResponseMS Latency          `json:"response_ms"`
	ServiceMS  Latency          `json:"service_ms"`
	// PhasesMS has blocked (from asking for a connection until one is ready;
	// of it dns, connecting, tls_handshaking), sending, waiting, receiving. Of
	// iterations each is the sum over its requests.
	PhasesMS map[string]Latency `json:"phases_ms"`
}

// Latency is a distribution in milliseconds.
type Latency struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// Step is one step of a ladder, a capacity search or a connection ladder. Its
// height is TargetRate in ladders of rates and searches, Connections in
// connection ladders; VUs is kept for models that climb virtual users. Exactly
// one of the three is there. Rate is what happened, with the same target in it
// (0 for connections), which is never a height by itself.
// Sustained tells that the test's thresholds held (where it names none: errors
// < 1 %, rate >= 95 %, p95 < 250 ms) and that the generator was not the limit.
type Step struct {
	TargetRate  float64               `json:"target_rate,omitempty"`
	VUs         int                   `json:"vus,omitempty"`
	Connections int                   `json:"connections,omitempty"`
	MeasuredS   float64               `json:"measured_s"`
	Rate        Rate                  `json:"rate"`
	Operations  map[string]*Operation `json:"operations"`
	Iterations  *Operation            `json:"iterations"`
	SUT         map[string]Usage      `json:"sut,omitempty"`
	Sustained   bool                  `json:"sustained"`
	// Reasons tell why it was not.
	Reasons    []string          `json:"reasons,omitempty"`
	Thresholds []ThresholdResult `json:"thresholds,omitempty"`
	Engine     EngineUse         `json:"engine"`
	HTTP       *Operation        `json:"http,omitempty"`
}

// Usage is what one container of the target took during the measured window.
type Usage struct {
	CPUCores    MeanMax `json:"cpu_cores"`
	MemoryBytes MeanMax `json:"memory_bytes"`
}

// MeanMax is the mean and the highest one-second value.
type MeanMax struct {
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

// ThresholdResult is one objective and how it came out.
type ThresholdResult struct {
	Expression string  `json:"expression"`
	Value      float64 `json:"value"`
	OK         bool    `json:"ok"`
	// NoData tells that there was nothing to measure it by: Value is no figure.
	NoData bool `json:"no_data,omitempty"`
}

// EngineUse is what the generator itself took while it measured. LatenessMS is
// how long after their intended times starts happened, as far as that was the
// generator's own doing; in closed models, where no start is intended, how late
// the generator was woken from waits of 10 ms that it made only to see that.
// MaxRSSBytes is the process's largest size so far. Dropped counts starts that
// were not made because too many were waiting already; Limited tells that the
// generator, not the target, was the limit.
type EngineUse struct {
	CPUSeconds  float64 `json:"cpu_s"`
	MaxRSSBytes int64   `json:"max_rss_bytes"`
	LatenessMS  Latency `json:"lateness_ms"`
	Dropped     int64   `json:"dropped"`
	Limited     bool    `json:"limited"`
	// GCPauseMS is how long garbage collection stopped the generator, all
	// pauses together.
	GCPauseMS float64 `json:"gc_pause_ms"`
	// OpenFiles is how many files, sockets among them, the generator had open
	// at most, read each second; 0 where the system does not tell.
	OpenFiles int `json:"open_files,omitempty"`
}

// Checks counts semantic checks of answers.
type Checks struct {
	Passed int64 `json:"passed"`
	Failed int64 `json:"failed"`
}

// VUs are the virtual users at work in the measured window.
type VUs struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// FailureSample is the first answer of a class of failures, shortened and
// without secrets.
type FailureSample struct {
	Operation string `json:"operation"`
	Status    int    `json:"status,omitempty"`
	Text      string `json:"text"`
}

// SessionSetup is what opening sessions took, before a test in Seconds, and what
// keeping them usable took while load was sent: Refreshed by their refresh
// tokens, Reopened by another login, Refused in vain. None of it is among the
// test's own requests. Failures are tries before and meanwhile.
type SessionSetup struct {
	Wanted    int     `json:"wanted"`
	Opened    int     `json:"opened"`
	Failures  int     `json:"failures"`
	Reopened  int     `json:"reopened"`
	Refreshed int     `json:"refreshed"`
	Refused   int     `json:"refused"`
	Seconds   float64 `json:"seconds"`
}

// Second is one point of the series of iterations: a second of a run of up to an
// hour; of a longer one Length seconds, since a series has at most 3,600 points.
// T is when it begins, in seconds from the start of the load. Started (without
// what was dropped), Completed (failures too), Failed and Dropped are counts of
// its whole length. VUs are those there at its end, P50, P95 and P99 response
// times of what succeeded in it; of a point of several seconds they are those of
// the highest second.
type Second struct {
	T         float64 `json:"t"`
	Length    float64 `json:"length_s"`
	Phase     string  `json:"phase"` // ramp-up, warm-up, steady, ramp-down, cool-down, drain
	Started   int64   `json:"started"`
	Completed int64   `json:"completed"`
	Failed    int64   `json:"failed"`
	Dropped   int64   `json:"dropped,omitempty"`
	VUs       int     `json:"vus"`
	P50       float64 `json:"p50_ms"`
	P95       float64 `json:"p95_ms"`
	P99       float64 `json:"p99_ms"`
}

// PerSecond is one of s's counts as a rate. Series from before Length was there
// have a point each second.
func (s Second) PerSecond(count int64) float64 {
	if s.Length <= 0 {
		return float64(count)
	}
	return float64(count) / s.Length
}
