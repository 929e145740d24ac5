package remote

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/benchctl/benchctl/inventory/secret"
)

// newKeys makes one private key of each kind that is supported.
func newKeys(t *testing.T) map[string]any {
	t.Helper()
	_, ed, err1 := ed25519.GenerateKey(rand.Reader)
	ec, err2 := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	rs, err3 := rsa.GenerateKey(rand.Reader, 2048)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"ed25519": ed, "ecdsa": ec, "rsa": rs}
}

func TestIdentityFile(t *testing.T) {
	for kind, key := range newKeys(t) {
		for _, passphrase := range []string{"", "open sesame"} {
			t.Run(kind+" passphrase "+passphrase, func(t *testing.T) {
				c, _ := newClient(t, withKeys(signerOf(t, key).PublicKey()))
				c.target.IdentityFile = "~/keys/bench"
				c.target.Passphrase = secret.New(passphrase)
				writeKey(t, filepath.Join(c.home, "keys", "bench"), key, passphrase)
				c.mustConnect(t)
			})
		}
	}
}

func TestDefaultIdentities(t *testing.T) {
	for kind, key := range newKeys(t) {
		t.Run(kind, func(t *testing.T) {
			c, _ := newClient(t, withKeys(signerOf(t, key).PublicKey()))
			writeKey(t, filepath.Join(c.home, ".ssh", "id_"+kind), key, "")
			c.mustConnect(t)
		})
	}
}

func TestUserCertificate(t *testing.T) {
	key := newKeys(t)["ed25519"]
	signer := signerOf(t, key)
	cert := &ssh.Certificate{Key: signer.PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"bench"}, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, newSigner(t)); err != nil {
		t.Fatal(err)
	}
	c, _ := newClient(t, withKeys(cert)) // the key alone is not let in
	c.target.IdentityFile = filepath.Join(c.home, "bench")
	writeKey(t, c.target.IdentityFile, key, "")
	writeFile(t, c.target.IdentityFile+"-cert.pub", ssh.MarshalAuthorizedKey(cert), 0o644)
	c.mustConnect(t)
}

// startAgent stands in for ssh-agent and gives its socket.
func startAgent(t *testing.T, keys ...any) string {
	t.Helper()
	ring := agent.NewKeyring()
	for _, k := range keys {
		if err := ring.Add(agent.AddedKey{PrivateKey: k}); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "agent-")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = listener.Close()
		_ = os.RemoveAll(dir)
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = agent.ServeAgent(ring, conn)
			}()
		}
	}()
	return socket
}

func TestAgent(t *testing.T) {
	keys := newKeys(t)
	t.Run("its keys", func(t *testing.T) {
		c, _ := newClient(t, withKeys(signerOf(t, keys["rsa"]).PublicKey()))
		c.opts.AgentSocket = startAgent(t, keys["ecdsa"], keys["rsa"])
		c.mustConnect(t)
	})
	t.Run("only the named key is offered", func(t *testing.T) {
		c, _ := newClient(t, withKeys(signerOf(t, keys["rsa"]).PublicKey()))
		c.opts.AgentSocket = startAgent(t, keys["rsa"])
		c.target.IdentityFile = filepath.Join(c.home, ".ssh", "id_ed25519")
		if _, err := c.connect(t); !errors.Is(err, ErrAuth) || strings.Contains(err.Error(), "ssh-rsa") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("opens a locked identity file", func(t *testing.T) {
		c, _ := newClient(t, withKeys(signerOf(t, keys["ed25519"]).PublicKey()))
		c.opts.AgentSocket = startAgent(t, keys["ecdsa"], keys["ed25519"])
		c.target.IdentityFile = filepath.Join(c.home, "locked")
		writeKey(t, c.target.IdentityFile, keys["ed25519"], "unknown to us")
		c.mustConnect(t)
	})
	t.Run("absent", func(t *testing.T) {
		c, _ := newClient(t)
		c.opts.AgentSocket = filepath.Join(c.home, "no-agent")
		c.mustConnect(t) // the key of ~/.ssh does it
	})
}

func TestPassword(t *testing.T) {
	password := secret.New(`p "w' $@`)
	for name, option := range map[string]standInOption{"password": withPassword(password.Reveal()), "keyboard-interactive": withQuestion(password.Reveal())} {
		t.Run(name, func(t *testing.T) {
			c, _ := newClient(t, withKeys(), option)
			c.target.Password = password
			c.mustConnect(t)
			c.target.Password = secret.New("wrong " + password.Reveal())
			_, err := c.connect(t)
			if !errors.Is(err, ErrAuth) || !strings.Contains(err.Error(), "the password") || strings.Contains(err.Error(), password.Reveal()) {
				t.Errorf("got %v", err)
			}
			c.target.Password = secret.String{}
			if _, err := c.connect(t); !errors.Is(err, ErrAuth) || strings.Contains(err.Error(), "the password;") {
				t.Errorf("without: %v", err)
			}
		})
	}
}

func TestAskForPassphrase(t *testing.T) {
	key := newKeys(t)["ed25519"]
	c, _ := newClient(t, withKeys(signerOf(t, key).PublicKey()))
	c.target.IdentityFile = filepath.Join(c.home, "locked")
	writeKey(t, c.target.IdentityFile, key, "asked for")
	var question string
	c.opts.Ask = func(_ context.Context, q string) (secret.String, error) {
		question = q
		return secret.New("asked for"), nil
	}
	c.mustConnect(t)
	if question != "Passphrase of "+c.target.IdentityFile {
		t.Errorf("asked: %q", question)
	}
}

// Whoever types a passphrase may take longer than the network may.
func TestAskOutsideOfTheTimeout(t *testing.T) {
	key := newKeys(t)["ed25519"]
	c, _ := newClient(t, withKeys(signerOf(t, key).PublicKey()))
	c.target.IdentityFile = filepath.Join(c.home, "locked")
	writeKey(t, c.target.IdentityFile, key, "asked for")
	var dialled atomic.Bool
	c.opts.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Store(true)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	c.opts.Ask = func(ctx context.Context, _ string) (secret.String, error) {
		if _, limited := ctx.Deadline(); limited {
			t.Error("the question has a time limit")
		}
		if dialled.Load() {
			t.Error("a connection is open while the question is asked")
		}
		return secret.New("asked for"), nil
	}
	m, err := Connect(t.Context(), c.target, c.opts)
	if err != nil {
		t.Fatal(err)
	}
	_ = m.Close()
}

// An agent that never answers must not hang the connecting.
func TestSilentAgent(t *testing.T) {
	listener, err := net.Listen("unix", filepath.Join(shortDir(t), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c, _ := newClient(t)
	c.opts.AgentSocket, c.opts.Timeout = listener.Addr().String(), time.Second
	ended := make(chan error, 1)
	go func() {
		m, err := Connect(t.Context(), c.target, c.opts)
		if err == nil {
			_ = m.Close() // the key of ~/.ssh did it
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it hangs")
	}
}

func TestRefusedLogin(t *testing.T) {
	key := newKeys(t)["ed25519"]
	fingerprint := ssh.FingerprintSHA256(signerOf(t, key).PublicKey())
	for name, c := range map[string]struct {
		options []standInOption
		prepare func(t *testing.T, c *client)
		want    []string
	}{
		"wrong key": {nil, func(t *testing.T, c *client) {
			c.target.IdentityFile = filepath.Join(c.home, "other")
			writeKey(t, c.target.IdentityFile, key, "")
		}, []string{"log in as bench on 127.0.0.1:", "other (ssh-ed25519 " + fingerprint, "it takes publickey", "authorized_keys"}},
		"no key at all": {nil, func(t *testing.T, c *client) {
			_ = os.Remove(filepath.Join(c.home, ".ssh", "id_ed25519"))
		}, []string{"there was nothing to offer", "it takes publickey", "identity_file"}},
		"identity file absent": {nil, func(_ *testing.T, c *client) {
			c.target.IdentityFile = "~/absent"
		}, []string{"/absent: there is no such file"}},
		"identity file is no key": {nil, func(t *testing.T, c *client) {
			c.target.IdentityFile = filepath.Join(c.home, "text")
			writeFile(t, c.target.IdentityFile, []byte("no key"), 0o600)
		}, []string{"text: it is not a private key"}},
		"passphrase missing": {nil, func(t *testing.T, c *client) {
			c.target.IdentityFile = filepath.Join(c.home, "locked")
			writeKey(t, c.target.IdentityFile, key, "x")
		}, []string{"locked: it has a passphrase: set passphrase"}},
		"passphrase wrong": {nil, func(t *testing.T, c *client) {
			c.target.IdentityFile = filepath.Join(c.home, "locked")
			writeKey(t, c.target.IdentityFile, key, "x")
			c.target.Passphrase = secret.New("not-x-not-x")
		}, []string{"locked: the passphrase does not open it"}},
		"only passwords are taken": {[]standInOption{func(x *standInServer) { x.config.PublicKeyCallback = nil }, withPassword("p")}, func(*testing.T, *client) {},
			[]string{"it takes password", "set password in the inventory"}},
		"too many keys": {[]standInOption{withKeys()}, func(t *testing.T, c *client) {
			var keys []any
			for range 8 {
				_, k, err := ed25519.GenerateKey(rand.Reader)
				if err != nil {
					t.Fatal(err)
				}
				keys = append(keys, k)
			}
			c.opts.AgentSocket = startAgent(t, keys...)
		}, []string{"Too many keys were offered: name the right one with identity_file"}},
	} {
		t.Run(name, func(t *testing.T) {
			cl, _ := newClient(t, c.options...)
			c.prepare(t, cl)
			_, err := cl.connect(t)
			if !errors.Is(err, ErrAuth) {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "not-x-not-x") {
				t.Errorf("the passphrase shows: %v", err)
			}
		})
	}
}
