package oidc

import (
	"encoding/json"
	"testing"
)

var documents = []string{
	`{}`, ` { "a" : "b" } `, `{"active":true,"exp":1.5e3,"aud":["a","b{"],"x":{"y":"}"},"s":"q\"u\\o"}`, "{\"a\":null,\n\t\"b\":-1}",
	`{"a":"\\"}`, `{"a":"\\\""}`, `{"a":"€ü"}`,
	``, `[]`, `"a"`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{"a" 1}`, `{"a":"}`, `{"a":[1,{}`, `{a:1}`, `{"a":1} x`, `{"a":}`,
}

func FuzzEachField(f *testing.F) {
	for _, d := range documents {
		f.Add(d)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		got := map[string][]byte{}
		err := eachField([]byte(doc), func(k, v []byte) { got[string(k)] = v })
		var want map[string]json.RawMessage
		if json.Unmarshal([]byte(doc), &want) != nil || want == nil {
			return // it may take more than is right, never less
		}
		if err != nil {
			t.Fatalf("%q was refused", doc)
		}
		for k, v := range got {
			var key string
			if json.Unmarshal([]byte(`"`+k+`"`), &key) != nil {
				continue
			}
			if w, ok := want[key]; ok && string(w) != string(v) && len(got) == len(want) {
				t.Errorf("%q: %s is %s, wanted %s", doc, k, v, w)
			}
			var s string
			if len(v) > 0 && v[0] == '"' && json.Unmarshal(v, &s) == nil && text(v) != s && !containsInvalid(v) {
				t.Errorf("text of %s is %q, wanted %q", v, text(v), s)
			}
			var n float64
			if json.Unmarshal(v, &n) == nil && string(v) != "null" && number(v) != n {
				t.Errorf("number of %s is %g", v, number(v))
			}
		}
	})
}

// containsInvalid tells whether encoding/json would replace bytes.
func containsInvalid(v []byte) bool {
	var s string
	b, err := json.Marshal(string(v))
	return err != nil || json.Unmarshal(b, &s) != nil || s != string(v)
}

func TestEachFieldRefusesWhatIsCutOff(t *testing.T) {
	for _, doc := range documents[7:] {
		if err := eachField([]byte(doc), func(_, _ []byte) {}); err == nil {
			t.Errorf("%q was taken", doc)
		}
	}
}
