package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// defaultIdentities are tried below ~/.ssh where no key was named.
var defaultIdentities = []string{"id_ed25519", "id_ecdsa", "id_rsa"}

// credentials are what one host can be offered, and a record of it that an
// error can tell.
type credentials struct {
	signers  []ssh.Signer
	offered  []string // "~/.ssh/id_ed25519 (ssh-ed25519 SHA256:…)"
	left     []string // what could not be offered, and why
	password string
	agent    net.Conn
	// allowed and tried are what the server takes and what it was given.
	allowed, tried []string
}

func (c *credentials) close() {
	if c.agent != nil {
		_ = c.agent.Close()
	}
}

// gatherCredentials collects the keys for one host: the named identity files
// only, or else those of the agent and the usual ones of ~/.ssh.
func gatherCredentials(ctx context.Context, h hop, opts Options) *credentials {
	c := &credentials{password: h.password.Reveal()}
	agentKeys := c.openAgent(ctx, opts)
	files := h.identities
	if !h.explicit {
		for _, s := range agentKeys {
			c.offer(s, "agent")
		}
		for _, name := range defaultIdentities {
			files = append(files, filepath.Join(opts.Home, ".ssh", name))
		}
	}
	for _, file := range files {
		c.addFile(ctx, file, h, agentKeys, opts)
	}
	return c
}

func (c *credentials) openAgent(ctx context.Context, opts Options) []ssh.Signer {
	if opts.AgentSocket == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", opts.AgentSocket)
	if err != nil {
		c.left = append(c.left, fmt.Sprintf("the agent does not answer: %v", err))
		return nil
	}
	c.agent = conn
	// An agent that hangs must not hang us.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	signers, err := agent.NewClient(conn).Signers()
	stop()
	if err != nil {
		c.left = append(c.left, fmt.Sprintf("the agent %s lists no keys: %v", opts.AgentSocket, err))
		return nil
	}
	return signers
}

func (c *credentials) offer(s ssh.Signer, from string) {
	for _, have := range c.signers {
		if bytes.Equal(have.PublicKey().Marshal(), s.PublicKey().Marshal()) {
			return
		}
	}
	c.signers = append(c.signers, s)
	c.offered = append(c.offered, fmt.Sprintf("%s (%s %s)", from, s.PublicKey().Type(), ssh.FingerprintSHA256(s.PublicKey())))
}

func (c *credentials) addFile(ctx context.Context, file string, h hop, agentKeys []ssh.Signer, opts Options) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if h.explicit {
			c.left = append(c.left, file+": there is no such file")
		}
		return
	}
	if err != nil {
		c.left = append(c.left, fmt.Sprintf("%s: %v", file, err))
		return
	}
	signer, err := parseKey(ctx, file, text, h, opts)
	var missing *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &missing):
		// The agent may hold the very key, unlocked.
		if s := matching(agentKeys, missing.PublicKey, file); s != nil {
			c.offer(s, file+" through the agent")
			return
		}
		c.left = append(c.left, file+": it has a passphrase: set passphrase in the inventory (env or file), or load the key into an agent")
		return
	case err != nil:
		c.left = append(c.left, fmt.Sprintf("%s: %v", file, err))
		return
	}
	if cert := certificate(file, signer); cert != nil {
		c.offer(cert, file+" with its certificate")
	}
	c.offer(signer, file)
}

func parseKey(ctx context.Context, file string, text []byte, h hop, opts Options) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(text)
	var missing *ssh.PassphraseMissingError
	if !errors.As(err, &missing) {
		if err != nil {
			return nil, fmt.Errorf("it is not a private key that can be read (ed25519, ecdsa or rsa is): %w", err)
		}
		return signer, nil
	}
	passphrase := h.passphrase
	if !passphrase.IsSet() && opts.Ask != nil && h.explicit {
		asked, askErr := opts.Ask(ctx, "Passphrase of "+file)
		if askErr != nil {
			return nil, fmt.Errorf("ask for its passphrase: %w", askErr)
		}
		passphrase = asked
	}
	if !passphrase.IsSet() {
		return nil, missing
	}
	signer, err = ssh.ParsePrivateKeyWithPassphrase(text, []byte(passphrase.Reveal()))
	if err != nil {
		return nil, fmt.Errorf("the passphrase does not open it: %w", err)
	}
	return signer, nil
}

// matching finds the agent's signer for a key file that is locked; older
// formats hide the public key, but usually have it beside them.
func matching(signers []ssh.Signer, public ssh.PublicKey, file string) ssh.Signer {
	if public == nil {
		if text, err := os.ReadFile(file + ".pub"); err == nil {
			public, _, _, _, _ = ssh.ParseAuthorizedKey(text)
		}
	}
	if public == nil {
		return nil
	}
	for _, s := range signers {
		if bytes.Equal(s.PublicKey().Marshal(), public.Marshal()) {
			return s
		}
	}
	return nil
}

// certificate joins a key with the certificate that OpenSSH looks for beside
// it; nil where there is none.
func certificate(file string, signer ssh.Signer) ssh.Signer {
	text, err := os.ReadFile(file + "-cert.pub")
	if err != nil {
		return nil
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil {
		return nil
	}
	cert, ok := public.(*ssh.Certificate)
	if !ok {
		return nil
	}
	joined, err := ssh.NewCertSigner(cert, signer)
	if err != nil {
		return nil
	}
	return joined
}

func (c *credentials) methods() []ssh.AuthMethod {
	var methods []ssh.AuthMethod
	if len(c.signers) > 0 {
		methods = append(methods, ssh.PublicKeys(c.signers...))
	}
	if c.password != "" {
		methods = append(methods,
			ssh.Password(c.password),
			ssh.KeyboardInteractive(func(_, _ string, questions []string, echos []bool) ([]string, error) {
				answers := make([]string, len(questions))
				for i := range questions {
					if !echos[i] {
						answers[i] = c.password
					}
				}
				return answers, nil
			}))
	}
	return methods
}

// watch notes what the server takes and what it was given, for explain.
func (c *credentials) watch(state *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	c.allowed, c.tried = state.AllowedMethods, state.TriedMethods
	return nil, nil
}

// explain turns a refused login into what was offered and what to do.
func (c *credentials) explain(h hop, cause error) error {
	var text strings.Builder
	fmt.Fprintf(&text, "log in as %s on %s: ", h.user, h.address())
	var offers []string
	if len(c.offered) > 0 {
		offers = append(offers, "the keys "+strings.Join(c.offered, ", "))
	}
	if c.password != "" {
		offers = append(offers, "the password")
	}
	if len(offers) == 0 {
		text.WriteString("there was nothing to offer")
	} else {
		text.WriteString("the server refused " + strings.Join(offers, " and "))
	}
	if len(c.left) > 0 {
		text.WriteString("; not offered: " + strings.Join(c.left, "; "))
	}
	if len(c.allowed) > 0 {
		fmt.Fprintf(&text, "; it takes %s", strings.Join(c.allowed, ", "))
	}
	fmt.Fprintf(&text, ". %s (%v)", c.advice(h, cause), cause)
	return fmt.Errorf("%s: %w", text.String(), ErrAuth)
}

func (c *credentials) advice(h hop, cause error) string {
	takes := func(method string) bool {
		for _, a := range c.allowed {
			if a == method {
				return true
			}
		}
		return false
	}
	switch {
	case tooManyKeys(cause):
		return "Too many keys were offered: name the right one with identity_file"
	case strings.Contains(cause.Error(), "no common public key signature algorithm"):
		return "The server is too old or too new for this kind of key: use an ed25519 key"
	case len(c.offered) == 0 && c.password == "" && takes("publickey"):
		return "Name a key with identity_file, load one into an agent, or make one with: ssh-keygen -t ed25519"
	case len(c.allowed) > 0 && !takes("publickey") && c.password == "":
		return "The server takes no keys: set password in the inventory (env or file)"
	case len(c.offered) > 0:
		return fmt.Sprintf("Is one of these keys in ~%s/.ssh/authorized_keys there, and is the user right? Add one with: ssh-copy-id", h.user)
	}
	return "Check user, identity_file and password in the inventory"
}

// tooManyKeys tells sshd's disconnect after MaxAuthTries.
func tooManyKeys(err error) bool {
	return strings.Contains(strings.ToLower(err.Error()), "too many authentication failures")
}
