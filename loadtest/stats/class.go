package stats

// Class says how a request or an iteration ended. It is a closed set, so that
// figures by class never grow with what a server answers.
type Class uint8

// The classes, as results name them.
const (
	// OK is a success: the answer was the right one.
	OK Class = iota
	// Connect is a connection that could not be had: refused, unreachable,
	// name unknown.
	Connect
	// TLS is a handshake or certificate that failed.
	TLS
	// Timeout is no complete answer within the test's time-out.
	Timeout
	// Reset is a connection that broke with the request on its way.
	Reset
	// Status4xx is a client error other than 429.
	Status4xx
	// Status429 is "too many requests".
	Status429
	// Status5xx is a server error other than 503.
	Status5xx
	// Status503 is "service unavailable", which a full queue answers.
	Status503
	// WrongAnswer is an answer whose status was good and whose content was not.
	WrongAnswer
	// LostCookie is a login that the server could not match with its cookies.
	LostCookie
	// Expired is a token or session that was too old.
	Expired
	// Cancelled is what was under way when the run was cut short. It is
	// neither success nor failure.
	Cancelled

	// NumClasses is how many there are.
	NumClasses = int(Cancelled) + 1
)

var classNames = [NumClasses]string{
	"ok", "connect", "tls", "timeout", "reset",
	"status_4xx", "status_429", "status_5xx", "status_503",
	"wrong_answer", "lost_cookie", "expired", "cancelled",
}

// String is the class's name in results.
func (c Class) String() string {
	if int(c) < NumClasses {
		return classNames[c]
	}
	return "unknown"
}

// Failure tells whether c counts against the server: neither a success nor
// what the end of the run cut off.
func (c Class) Failure() bool { return c != OK && c != Cancelled }

// OfStatus is the class of an HTTP status that was not the one hoped for.
func OfStatus(status int) Class {
	switch {
	case status == 429:
		return Status429
	case status == 503:
		return Status503
	case status >= 500:
		return Status5xx
	case status >= 400:
		return Status4xx
	}
	return WrongAnswer
}
