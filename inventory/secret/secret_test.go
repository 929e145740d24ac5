package secret_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/inventory/secret"
)

func TestNoVerbShowsTheText(t *testing.T) {
	s := secret.New("hunter2")
	holder := struct {
		Name string
		Pass secret.String
	}{"db", s}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for name, value := range map[string]any{"itself": s, "in a struct": holder, "pointer": &holder, "in a slice": []secret.String{s}} {
			if got := fmt.Sprintf(verb, value); strings.Contains(got, "hunter2") || strings.Contains(got, "68756e746572") {
				t.Errorf("%s of %s shows the secret: %s", verb, name, got)
			}
		}
	}
	out, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"Name":"db","Pass":"(sensitive)"}`; string(out) != want {
		t.Errorf("JSON: got %s, want %s", out, want)
	}
	if s.Reveal() != "hunter2" || !s.IsSet() || (secret.String{}).IsSet() {
		t.Error("Reveal or IsSet is wrong")
	}
}

func TestReadBack(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"redacted":    {`"(sensitive)"`, ""},
		"not set":     {`""`, ""},
		"plain value": {`"pw"`, "pw"},
	} {
		var s secret.String
		if err := json.Unmarshal([]byte(c.in), &s); err != nil || s.Reveal() != c.want {
			t.Errorf("%s: got %q, %v", name, s.Reveal(), err)
		}
	}
	var s secret.String
	if err := json.Unmarshal([]byte("7"), &s); err == nil {
		t.Error("a number was taken as a secret")
	}
}
