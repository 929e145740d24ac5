package loadtest

import (
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
)

// tlsServer is a server with a certificate that nobody trusts yet, and a file
// with what would have to be trusted.
func tlsServer(t *testing.T) (url, cacert string) {
	t.Helper()
	s, err := idp.New(idp.Options{Accounts: dataset.Accounts{Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewUnstartedServer(s)
	h.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of refused handshakes
	h.StartTLS()
	t.Cleanup(h.Close)
	cacert = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(cacert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return h.URL, cacert
}

// TestTLS trusts a server's certificate by an authority of one's own, or not at
// all when told so, and measures the handshakes.
func TestTLS(t *testing.T) {
	url, cacert := tlsServer(t)
	for _, tt := range []struct {
		name   string
		change func(*Settings)
	}{
		{"own authority", func(s *Settings) { s.CACert = cacert }},
		{"not checked", func(s *Settings) { s.Insecure = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := testSettings(url, "login")
			s.NewConns = true
			tt.change(&s)
			r := mustRun(t, s, Options{})
			if r.Iterations.Requests == 0 || r.Iterations.Failures > 0 {
				t.Fatalf("%s %q: %+v", r.Verdict, r.Reasons, r.Iterations)
			}
			if l := r.Operations["auth"].PhasesMS["tls_handshaking"]; l.P50 <= 0 {
				t.Errorf("no handshake was measured: %+v", l)
			}
		})
	}
}

// TestTLSRefusals tell of a certificate that is not trusted, and of a file of
// authorities that is none, before any load.
func TestTLSRefusals(t *testing.T) {
	url, _ := tlsServer(t)
	none := filepath.Join(t.TempDir(), "none.pem")
	if err := os.WriteFile(none, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, cacert, want string
	}{
		{"not trusted", "", "certificate"},
		{"no such file", none + "x", "none.pemx"},
		{"no certificate in it", none, "none.pem"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := testSettings(url, "login")
			s.CACert = tt.cacert
			r, err := Run(t.Context(), s, Options{OwnUse: idle})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("want an error with %q, got %v and %+v", tt.want, err, r)
			}
		})
	}
}
