package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/benchctl/benchctl/provision"
	"github.com/benchctl/benchctl/scenarios"
)

// authorities is the folder below the user's cache that keeps the certificates
// of the authorities of labs. They are no secret.
const authorities = "benchctl/authorities"

// keepAuthority writes down what a client must trust to reach the lab and
// gives the file; "" for a lab that answers over plain HTTP. The file is named
// after what is in it, so that it is never stale.
func keepAuthority(ctx context.Context, lab *provision.Lab) (string, error) {
	pem, err := lab.Authority(ctx)
	if err != nil || len(pem) == 0 {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("keep the certificate that the lab is trusted by: %w", err)
	}
	return writeAuthority(filepath.Join(cache, filepath.FromSlash(authorities)), pem)
}

func writeAuthority(folder string, pem []byte) (string, error) {
	sum := sha256.Sum256(pem)
	file := filepath.Join(folder, hex.EncodeToString(sum[:8])+".pem")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("keep the certificate that the lab is trusted by: %w", err)
	}
	if err := os.WriteFile(file, pem, 0o644); err != nil {
		return "", fmt.Errorf("keep the certificate that the lab is trusted by: %w", err)
	}
	return file, nil
}

// trustLab lets the tests of a scenario trust the lab's own authority, unless
// they name another or check none.
func trustLab(ctx context.Context, lab *provision.Lab, s *scenarios.Scenario) error {
	file, err := keepAuthority(ctx, lab)
	if err != nil || file == "" {
		return err
	}
	for i := range s.Tests {
		if t := &s.Tests[i]; t.CACert == "" && !t.Insecure {
			t.CACert = file
		}
	}
	return nil
}

// trusting is a transport that trusts the authority (PEM), and no other; the
// usual one where there is none.
func trusting(pem []byte) http.RoundTripper {
	if len(pem) == 0 {
		return nil
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem)
	return t
}

// sayEndpoint tells where the lab answers, and what a client must trust.
func (a *app) sayEndpoint(ctx context.Context, lab *provision.Lab) error {
	fmt.Fprintf(a.stdout, "Keycloak answers at %s\n", lab.Endpoint())
	file, err := keepAuthority(ctx, lab)
	if err == nil && file != "" {
		fmt.Fprintf(a.stdout, "benchctl trusts its certificate; others do with %s\n", file)
	}
	return err
}
