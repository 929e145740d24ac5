package main

import (
	"bytes"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

func TestTrusting(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for _, tt := range []struct {
		name string
		pem  []byte
		want bool
	}{{"its authority", own, true}, {"another", []byte("none"), false}, {"the usual ones", nil, false}} {
		c := http.Client{Transport: trusting(tt.pem)}
		res, err := c.Get(server.URL)
		if err == nil {
			res.Body.Close()
		}
		if (err == nil) != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestWriteAuthority(t *testing.T) {
	folder := t.TempDir() + "/a/b"
	one, err := writeAuthority(folder, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := writeAuthority(folder, []byte("two"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := writeAuthority(folder, []byte("one")); err != nil || again != one || one == two {
		t.Errorf("%s, %s, %s, %v", one, two, again, err)
	}
	if got, err := os.ReadFile(one); err != nil || !bytes.Equal(got, []byte("one")) {
		t.Errorf("%q, %v", got, err)
	}
}
