package export

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metricsPath is where Prometheus looks by default.
const metricsPath = "/metrics"

// scrapeOutput answers Prometheus.
type scrapeOutput struct {
	address string
	server  *http.Server
	done    chan error
}

func openScrape(ctx context.Context, listen string, registry *prometheus.Registry) (*scrapeOutput, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("serving figures for Prometheus on %s: %w; choose another address", listen, reasonOf(err))
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsPath, promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		// The processor is needed for the load; a scrape is a few KB.
		DisableCompression: true, MaxRequestsInFlight: 4, Timeout: 5 * time.Second,
	}))
	s := &scrapeOutput{address: l.Addr().String(), done: make(chan error, 1), server: &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}}
	go func() { s.done <- s.server.Serve(l) }()
	return s, nil
}

// close lets scrapes that are under way end, within ctx, and then ends all.
func (s *scrapeOutput) close(ctx context.Context) error {
	err := s.server.Shutdown(ctx)
	if err != nil {
		err = s.server.Close()
	}
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("figures for Prometheus on %s: %w", s.address, err)
	}
	return nil
}

// reasonOf is the cause below what net says of the operation and the address,
// which our own text names.
func reasonOf(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
