package export

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// BenchmarkProgress is what the engine spends each second on a mix of five
// operations at some thousand requests a second, all outputs open.
func BenchmarkProgress(b *testing.B) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer h.Close()
	e, err := Start(b.Context(), Config{
		StatsD: StatsD{Address: "127.0.0.1:9", Format: DogStatsD}, Prometheus: Prometheus{Listen: "127.0.0.1:0"}, RemoteWrite: RemoteWrite{URL: h.URL},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = e.Close(b.Context()) }() // nobody takes the datagrams
	var last stats.Histogram
	for i := range 5000 {
		last.Record(time.Millisecond + time.Duration(i)*10*time.Microsecond)
	}
	p := second(1, 5000, 10)
	one := p.Operations["userinfo"]
	one.Last = last.Snapshot()
	p.Operations = map[string]loadtest.OperationProgress{"auth": one, "authenticate": one, "token": one, "refresh": one, "userinfo": one}
	e.BeginTest("mix")
	b.ReportAllocs()
	for b.Loop() {
		e.Progress(p)
	}
}
