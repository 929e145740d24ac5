package lab

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"path"
	"slices"
	"time"

	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

const (
	// certificateLife is what browsers take of a certificate, and as much as a
	// lab needs.
	certificateLife = 397 * 24 * time.Hour
	// renewBefore its end a certificate is made anew.
	renewBefore = 30 * 24 * time.Hour
	// clockSkew is how far behind ours a clock may be that is to trust a new
	// certificate.
	clockSkew = 24 * time.Hour
)

// Certificate is what the proxy of a lab shows that answers over HTTPS, as PEM.
// The authority signed this one certificate, and its key is gone since: who
// trusts it trusts the lab and nothing else.
type Certificate struct {
	// CA is what a client trusts.
	CA []byte
	// Chain is what the server shows, Key its private key.
	Chain, Key []byte
}

// Files of a Certificate in the proxy's folder of configuration.
const (
	caFile    = "ca.crt"
	chainFile = "server.crt"
	keyFile   = "server.key"
)

// NeedsCertificate tells whether a scenario's lab answers over HTTPS.
func NeedsCertificate(s scenarios.Scenario) bool { return s.Proxy != nil && s.Proxy.TLS }

// CertificatePaths are where a lab keeps the authority's certificate, its own
// and its key on the target.
func CertificatePaths(l reconcile.Layout) (ca, chain, key string) {
	folder := l.Config(Traefik)
	return folder + "/" + caFile, folder + "/" + chainFile, folder + "/" + keyFile
}

// Valid tells whether the certificate still serves for the hosts (names and
// addresses), for longer than the time in which it would be renewed.
func (c Certificate) Valid(hosts []string, now time.Time) bool {
	leaf, ok := decode(c.Chain)
	if !ok {
		return false
	}
	key, err := privateKey(c.Key)
	if err != nil || !key.PublicKey.Equal(leaf.PublicKey) {
		return false
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.CA) {
		return false
	}
	for _, host := range hosts {
		if leaf.VerifyHostname(host) != nil {
			return false
		}
	}
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now.Add(renewBefore)})
	return err == nil && !now.Before(leaf.NotBefore)
}

func decode(text []byte) (*x509.Certificate, bool) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	return cert, err == nil
}

func privateKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("no PEM block in the private key")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

// IssueCertificate makes an authority and a certificate of it for the hosts
// (names and addresses) of a lab.
func IssueCertificate(lab string, hosts []string, now time.Time) (Certificate, error) {
	return issue(rand.Reader, lab, hosts, now)
}

func issue(random io.Reader, lab string, hosts []string, now time.Time) (Certificate, error) {
	fail := func(err error) (Certificate, error) {
		return Certificate{}, fmt.Errorf("make a certificate for the lab of scenario %s: %w", lab, err)
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return fail(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return fail(err)
	}
	ca, err := template(random, "benchctl lab "+lab+" CA", now)
	if err != nil {
		return fail(err)
	}
	ca.IsCA, ca.BasicConstraintsValid, ca.MaxPathLenZero = true, true, true
	ca.KeyUsage = x509.KeyUsageCertSign
	caDER, err := x509.CreateCertificate(random, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return fail(err)
	}
	leaf, err := template(random, "benchctl lab "+lab, now)
	if err != nil {
		return fail(err)
	}
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, host)
		}
	}
	leafDER, err := x509.CreateCertificate(random, leaf, ca, &key.PublicKey, caKey)
	if err != nil {
		return fail(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fail(err)
	}
	return Certificate{
		CA:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
		Chain: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leafDER}),
		Key:   pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

func template(random io.Reader, name string, now time.Time) (*x509.Certificate, error) {
	// Serial numbers have 20 bytes at most and are positive (RFC 5280, 4.1.2.2).
	const serialBytes = 16
	serial := make([]byte, serialBytes)
	if _, err := io.ReadFull(random, serial); err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial),
		Subject:      pkix.Name{CommonName: name[:min(len(name), maxCommonName)]},
		NotBefore:    now.Add(-clockSkew), NotAfter: now.Add(certificateLife),
	}, nil
}

// maxCommonName is ub-common-name of RFC 5280.
const maxCommonName = 64

// CertificateHosts are the names and addresses that a lab is reached under,
// each once: as the generator calls it, and from the target itself.
func CertificateHosts(published string) []string {
	hosts := []string{published}
	for _, own := range []string{"localhost", loopback, "::1"} {
		if !slices.Contains(hosts, own) {
			hosts = append(hosts, own)
		}
	}
	return hosts
}

// Authority is what a client of the components' lab trusts, as PEM; nil for a
// lab that answers over plain HTTP.
func Authority(components []reconcile.Component) []byte {
	for _, c := range components {
		for _, f := range c.Files {
			if c.Kind == reconcile.KindProxy && path.Base(f.Path) == caFile {
				return f.Content
			}
		}
	}
	return nil
}

// files are the certificate's files in the proxy's folder.
func (c Certificate) files(l reconcile.Layout) []reconcile.File {
	ca, chain, key := CertificatePaths(l)
	return []reconcile.File{
		{Path: ca, Content: c.CA, Mode: 0o644, Random: true},
		{Path: chain, Content: c.Chain, Mode: 0o644, Random: true},
		{Path: key, Content: c.Key, Mode: 0o600, Random: true},
	}
}

// whole tells that nothing of it is missing.
func (c Certificate) whole() bool {
	return !slices.ContainsFunc([][]byte{c.CA, c.Chain, c.Key}, func(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 })
}
