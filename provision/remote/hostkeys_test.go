package remote

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

func rsaSigner(t *testing.T) ssh.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return signerOf(t, key)
}

func ecdsaSigner(t *testing.T) ssh.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signerOf(t, key)
}

// hostLine is a line of known_hosts.
func hostLine(address string, key ssh.PublicKey) string {
	return xknownhosts.Line([]string{address}, key) + "\n"
}

func TestHostKeyIsKnown(t *testing.T) {
	other := newSigner(t)
	for name, content := range map[string]func(c *client, x *standInServer) map[string]string{
		"plain": func(c *client, x *standInServer) map[string]string {
			return map[string]string{"known": hostLine(x.address, x.hostKey.PublicKey())}
		},
		"hashed": func(c *client, x *standInServer) map[string]string {
			hashed := xknownhosts.HashHostname(xknownhosts.Normalize(x.address))
			return map[string]string{"known": hashed + " " + string(ssh.MarshalAuthorizedKey(x.hostKey.PublicKey()))}
		},
		"in the second file": func(c *client, x *standInServer) map[string]string {
			return map[string]string{"known": hostLine("other.example.org:22", other.PublicKey()), "more": hostLine(x.address, x.hostKey.PublicKey())}
		},
		"the first file is not there": func(c *client, x *standInServer) map[string]string {
			return map[string]string{"more": hostLine(x.address, x.hostKey.PublicKey())}
		},
		"comments, blank lines, carriage returns": func(c *client, x *standInServer) map[string]string {
			return map[string]string{"known": "# ours\r\n\r\n" + strings.TrimSpace(hostLine(x.address, x.hostKey.PublicKey())) + " root@sut\r\n"}
		},
		"wildcard": func(c *client, x *standInServer) map[string]string {
			return map[string]string{"known": "127.0.0.* " + string(ssh.MarshalAuthorizedKey(x.hostKey.PublicKey()))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, x := newClient(t)
			dir := t.TempDir()
			c.target.KnownHosts = []string{filepath.Join(dir, "known"), filepath.Join(dir, "more")}
			for file, text := range content(c, x) {
				writeFile(t, filepath.Join(dir, file), []byte(text), 0o600)
			}
			if _, err := c.connect(t); err != nil {
				t.Error(err)
			}
			if c.noticed() != "" {
				t.Errorf("noticed: %s", c.noticed())
			}
		})
	}
}

func TestHostKeyUnknown(t *testing.T) {
	c, x := newClient(t)
	absent := filepath.Join(c.home, "absent")
	c.target.KnownHosts = []string{c.knownHosts(), absent}
	writeFile(t, c.knownHosts(), []byte(hostLine("other.example.org:22", newSigner(t).PublicKey())), 0o600)
	_, err := c.connect(t)
	if !errors.Is(err, ErrHostKeyUnknown) {
		t.Fatalf("got %v", err)
	}
	_, port, _ := net.SplitHostPort(x.address)
	for _, want := range []string{
		ssh.FingerprintSHA256(x.hostKey.PublicKey()), "ssh-ed25519", c.knownHosts(), absent + " (not there)",
		"ssh-keyscan -p " + port + " 127.0.0.1 >> " + c.knownHosts(), `host_key_policy = "accept-new"`, "/etc/ssh/ssh_host_ed25519_key.pub",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if text, _ := os.ReadFile(c.knownHosts()); bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("something was written to known_hosts:\n%s", text)
	}
}

func TestHostKeyChanged(t *testing.T) {
	for _, policy := range []string{"", "strict", "accept-new"} {
		t.Run("policy "+policy, func(t *testing.T) {
			c, x := newClient(t)
			c.target.HostKeyPolicy = policy
			old := newSigner(t)
			writeFile(t, c.knownHosts(), []byte("# first line\n"+hostLine(x.address, old.PublicKey())), 0o600)
			_, err := c.connect(t)
			if !errors.Is(err, ErrHostKeyChanged) {
				t.Fatalf("got %v", err)
			}
			for _, want := range []string{"HAS CHANGED", c.knownHosts() + ":2", ssh.FingerprintSHA256(old.PublicKey()), ssh.FingerprintSHA256(x.hostKey.PublicKey()), "ssh-keygen -R"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

func TestHostKeyRevoked(t *testing.T) {
	c, x := newClient(t)
	line := hostLine(x.address, x.hostKey.PublicKey())
	writeFile(t, c.knownHosts(), []byte(line+"@revoked "+line), 0o600)
	if _, err := c.connect(t); !errors.Is(err, ErrHostKeyChanged) || !strings.Contains(err.Error(), c.knownHosts()+":2") {
		t.Errorf("got %v", err)
	}
}

func TestAcceptNew(t *testing.T) {
	c, x := newClient(t)
	c.target.HostKeyPolicy = "accept-new"
	file := filepath.Join(c.home, "new", "known_hosts")
	c.target.KnownHosts = []string{file}
	c.mustConnect(t)
	if !strings.Contains(c.noticed(), ssh.FingerprintSHA256(x.hostKey.PublicKey())) || !strings.Contains(c.noticed(), file) {
		t.Errorf("noticed: %q", c.noticed())
	}
	c.mustConnect(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := hostLine(x.address, x.hostKey.PublicKey()); string(text) != want {
		t.Errorf("known_hosts:\n got %q\nwant %q", text, want)
	}
	// What was accepted is strict from then on.
	c.target.HostKeyPolicy = "strict"
	c.mustConnect(t)
}

func TestAcceptNewKeepsTheLastLine(t *testing.T) {
	c, x := newClient(t)
	c.target.HostKeyPolicy = "accept-new"
	other := strings.TrimSpace(hostLine("other.example.org:22", newSigner(t).PublicKey()))
	writeFile(t, c.knownHosts(), []byte(other), 0o600)
	c.mustConnect(t)
	text, err := os.ReadFile(c.knownHosts())
	if err != nil {
		t.Fatal(err)
	}
	if want := other + "\n" + hostLine(x.address, x.hostKey.PublicKey()); string(text) != want {
		t.Errorf("known_hosts:\n got %q\nwant %q", text, want)
	}
}

func TestMalformedKnownHosts(t *testing.T) {
	c, x := newClient(t)
	good := hostLine(x.address, x.hostKey.PublicKey())
	writeFile(t, c.knownHosts(), []byte("nonsense\nhost ssh-ed25519 notbase64!\n@unknown a b c\n"+strings.Repeat("x", maxLine+1)+"\n|1|bad|hash ssh-ed25519 AAAA\n"+good), 0o600)
	c.mustConnect(t)
	for n := 1; n <= 5; n++ {
		if !strings.Contains(c.noticed(), fmt.Sprintf("%s:%d: ", c.knownHosts(), n)) {
			t.Errorf("line %d was not reported: %s", n, c.noticed())
		}
	}
	if strings.Contains(c.noticed(), c.knownHosts()+":6") {
		t.Errorf("a good line was reported: %s", c.noticed())
	}
}

// A server with several keys must show the one that is known.
func TestHostKeyAlgorithmFollowsKnownHosts(t *testing.T) {
	keys := map[string]ssh.Signer{"ed25519": newSigner(t), "ecdsa": ecdsaSigner(t), "rsa": rsaSigner(t)}
	for name, known := range keys {
		t.Run(name, func(t *testing.T) {
			c, x := newClient(t, withHostKey(keys["ed25519"]), func(x *standInServer) {
				x.config.AddHostKey(keys["ecdsa"])
				x.config.AddHostKey(keys["rsa"])
			})
			writeFile(t, c.knownHosts(), []byte(hostLine(x.address, known.PublicKey())), 0o600)
			if _, err := c.connect(t); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("none of them", func(t *testing.T) {
		c, x := newClient(t, withHostKey(keys["ed25519"]))
		writeFile(t, c.knownHosts(), []byte(hostLine(x.address, keys["rsa"].PublicKey())), 0o600)
		_, err := c.connect(t)
		if !errors.Is(err, ErrHostKeyUnknown) || !strings.Contains(err.Error(), "ssh-keyscan") || !strings.Contains(err.Error(), "rsa-sha2") {
			t.Errorf("got %v", err)
		}
	})
}

func TestCertAuthority(t *testing.T) {
	authority, host := newSigner(t), newSigner(t)
	certificate := func(principal string) ssh.Signer {
		cert := &ssh.Certificate{Key: host.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{principal}, ValidBefore: ssh.CertTimeInfinity}
		if err := cert.SignCert(rand.Reader, authority); err != nil {
			t.Fatal(err)
		}
		signer, err := ssh.NewCertSigner(cert, host)
		if err != nil {
			t.Fatal(err)
		}
		return signer
	}
	for name, c := range map[string]struct {
		principal string
		authority ssh.PublicKey
		ok        bool
	}{
		"ours":              {"127.0.0.1", authority.PublicKey(), true},
		"for another host":  {"other.example.org", authority.PublicKey(), false},
		"another authority": {"127.0.0.1", newSigner(t).PublicKey(), false},
	} {
		t.Run(name, func(t *testing.T) {
			cl, _ := newClient(t, withHostKey(certificate(c.principal)))
			writeFile(t, cl.knownHosts(), []byte("@cert-authority * "+string(ssh.MarshalAuthorizedKey(c.authority))), 0o600)
			if _, err := cl.connect(t); (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

// FuzzKnownHosts: whatever a file holds, reading it ends, every line it gives
// up is reported by its own number, and a good line at its end is understood.
func FuzzKnownHosts(f *testing.F) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		f.Fatal(err)
	}
	good := xknownhosts.Line([]string{"good.example.org"}, signer.PublicKey())
	for _, seed := range []string{
		"", "#\n", "nonsense", "a b c\n", "@cert-authority * ssh-ed25519 AAAA", "|1|x|y ssh-rsa AAAA\n", "@revoked\n", "! ssh-ed25519 AAAA", "[ ssh-rsa AAAA", "\x00", "a,,b ssh-ed25519 AAAA\r\n",
		"[h]:22 " + good[strings.Index(good, " ")+1:], "!,h " + good[strings.Index(good, " ")+1:],
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "known_hosts")
		text = append(append(bytes.Clone(text), '\n'), good...)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := readHostKeys([]string{file})
		if err != nil {
			t.Fatal(err)
		}
		last := bytes.Count(text, []byte("\n")) + 1
		seen := map[string]bool{}
		for _, c := range keys.complaints {
			var n int
			if _, err := fmt.Sscanf(strings.TrimPrefix(c, file+":"), "%d: ", &n); err != nil || n < 1 || n >= last {
				t.Errorf("complaint %q does not name one of the lines 1 to %d", c, last-1)
			}
			if seen[fmt.Sprint(n)] {
				t.Errorf("line %d is reported twice", n)
			}
			seen[fmt.Sprint(n)] = true
		}
		h := hop{host: "good.example.org", port: "22", keyName: "good.example.org:22", knownHosts: []string{file}}
		err = keys.check(h, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 22}, signer.PublicKey())
		if err != nil && !bytes.Contains(text, []byte("@revoked")) {
			t.Errorf("the good line was not understood: %v", err)
		}
	})
}

func TestConnectObeysContextInTheHandshake(t *testing.T) {
	noLeak(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c, _ := newClient(t)
	c.target.Address = listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			defer conn.Close()
			cancel()
			<-t.Context().Done()
		}
	}()
	if _, err := Connect(ctx, c.target, c.opts); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
