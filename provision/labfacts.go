package provision

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"sync"

	"github.com/benchctl/benchctl/provision/lab"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
)

// labFacts gathers what the components of the lab depend on beside their
// scenario: from the target, and from files on this machine.
func (l *Lab) labFacts(ctx context.Context, facts remote.Facts, layout reconcile.Layout) (lab.Facts, error) {
	out := lab.Facts{Target: l.machine.Name(), CPUs: facts.CPUs, Layout: layout}
	var err error
	if lab.NeedsCertificate(*l.scenario) {
		if out.Certificate, err = l.certificate(ctx, layout); err != nil {
			return out, err
		}
	}
	for _, file := range l.scenario.Keycloak.Providers {
		p, err := readProvider(file)
		if err != nil {
			return out, fmt.Errorf("scenario %s: %w", l.scenario.Name, err)
		}
		out.Providers = append(out.Providers, p)
	}
	return out, nil
}

// issued keeps a new certificate from the plan that shows it to the step that
// writes it.
type issued struct {
	mu sync.Mutex
	lab.Certificate
	// there is the authority of the certificate that the lab shows until the
	// new one is written.
	there []byte
}

// trusted are the authorities (PEM) that the lab may be known by: the wanted
// one, and that of before.
func (i *issued) trusted(wanted []byte) []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(wanted) == 0 || bytes.Equal(i.there, wanted) {
		return wanted
	}
	return slices.Concat(wanted, i.there)
}

// certificate is the one that lies on the target, as long as it serves, and a
// new one otherwise.
func (l *Lab) certificate(ctx context.Context, layout reconcile.Layout) (lab.Certificate, error) {
	at, err := url.Parse(l.Endpoint())
	if err != nil {
		return lab.Certificate{}, fmt.Errorf("the address of the lab: %w", err)
	}
	hosts, now := lab.CertificateHosts(at.Hostname()), l.opts.Now()
	there, err := l.readCertificate(ctx, layout)
	if err != nil {
		return lab.Certificate{}, err
	}
	l.issued.mu.Lock()
	defer l.issued.mu.Unlock()
	l.issued.there = there.CA
	if there.Valid(hosts, now) {
		return there, nil
	}
	if !l.issued.Valid(hosts, now) {
		if l.issued.Certificate, err = lab.IssueCertificate(l.scenario.Name, hosts, now); err != nil {
			return lab.Certificate{}, err
		}
	}
	return l.issued.Certificate, nil
}

// readCertificate reads what lies on the target; parts that are not there are
// empty.
func (l *Lab) readCertificate(ctx context.Context, layout reconcile.Layout) (lab.Certificate, error) {
	var c lab.Certificate
	ca, chain, key := lab.CertificatePaths(layout)
	for _, part := range []struct {
		path string
		text *[]byte
	}{{ca, &c.CA}, {chain, &c.Chain}, {key, &c.Key}} {
		text, err := l.machine.Files().ReadFile(ctx, part.path)
		if errors.Is(err, fs.ErrNotExist) {
			return c, nil
		}
		if err != nil {
			return c, fmt.Errorf("read the certificate of the lab on %s: %w", l.machine.Name(), err)
		}
		*part.text = text
	}
	return c, nil
}

// Authority is the certificate (PEM) that a client must trust to reach the lab
// at its Endpoint; nil for a lab that answers over plain HTTP. What this very
// Lab would put there when it is provisioned is among it.
func (l *Lab) Authority(ctx context.Context) ([]byte, error) {
	if l.scenario == nil || !lab.NeedsCertificate(*l.scenario) {
		return nil, nil
	}
	facts, err := l.machine.Facts(ctx)
	if err != nil {
		return nil, err
	}
	c, err := l.certificate(ctx, l.layout(facts))
	if err != nil {
		return nil, err
	}
	return l.issued.trusted(c.CA), nil
}

// readProvider looks at a provider's file, whose content is read again when it
// is uploaded.
func readProvider(file string) (lab.ProviderFile, error) {
	f, err := os.Open(file)
	if err != nil {
		return lab.ProviderFile{}, fmt.Errorf("a provider of keycloak: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return lab.ProviderFile{}, fmt.Errorf("a provider of keycloak: %w", err)
	}
	return lab.ProviderFile{Name: lab.ProviderName(file), Later: reconcile.Later{
		Content: func() ([]byte, error) { return os.ReadFile(file) },
		Digest:  hex.EncodeToString(sum.Sum(nil)), Size: size,
	}}, nil
}
