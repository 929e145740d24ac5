// Package secret promises one thing: a value that was marked as secret never
// shows itself. It prints, marshals and logs as [Redacted]; only Reveal gives
// the text, so that every place where a secret leaves the process can be found
// by its name. It is not a vault: the text is kept in memory as it is.
package secret

import (
	"encoding/json"
	"fmt"
)

// Redacted is what a set secret shows instead of its text.
const Redacted = "(sensitive)"

// String is a text that must not be shown. The zero value is "not set".
type String struct{ text string }

// New marks text as secret.
func New(text string) String { return String{text} }

// Reveal gives the text itself, for the one who needs it to authenticate.
func (s String) Reveal() string { return s.text }

// IsSet tells whether there is a text at all.
func (s String) IsSet() bool { return s.text != "" }

// String implements fmt.Stringer without giving the text away.
func (s String) String() string {
	if s.text == "" {
		return ""
	}
	return Redacted
}

// GoString keeps %#v from showing the text.
func (s String) GoString() string { return fmt.Sprintf("secret.New(%q)", s.String()) }

// Format keeps every other verb from reaching the field.
func (s String) Format(f fmt.State, verb rune) {
	if verb == 'v' && f.Flag('#') {
		_, _ = fmt.Fprint(f, s.GoString())
		return
	}
	_, _ = fmt.Fprint(f, s.String())
}

// MarshalJSON writes the redacted form.
func (s String) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// MarshalText writes the redacted form.
func (s String) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalJSON reads what MarshalJSON wrote: an empty or redacted text gives
// the unset value, any other text is kept as a secret.
func (s *String) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	if text == Redacted {
		text = ""
	}
	*s = New(text)
	return nil
}
