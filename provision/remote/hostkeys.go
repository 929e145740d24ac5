package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// hostKeys are the known host keys of one or more known_hosts files.
type hostKeys struct {
	db *knownhosts.HostKeyDB
	// read and absent are the files that were there and those that were not.
	read, absent []string
	// complaints are the malformed lines, as "file:line: what is wrong".
	complaints []string
	// names maps the copies that were parsed to the files they came from.
	names map[string]string
}

// parserLine finds the line number in the parser's own error.
var parserLine = regexp.MustCompile(`:(\d+): (.*)$`)

// maxLine is the longest line that the parser takes.
const maxLine = 60 << 10

// readHostKeys reads known_hosts files. A malformed line is left out and
// reported. The parser gives up at the first such line, so it works on a
// copy in which that line was emptied, which keeps all line numbers.
func readHostKeys(files []string) (*hostKeys, error) {
	keys := &hostKeys{names: map[string]string{}}
	dir, err := os.MkdirTemp("", "benchctl-known-hosts-")
	if err != nil {
		return nil, fmt.Errorf("make a folder to read known_hosts in: %w", err)
	}
	defer os.RemoveAll(dir)
	var copies []string
	for i, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			keys.absent = append(keys.absent, file)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the known host keys: %w", err)
		}
		name := filepath.Join(dir, strconv.Itoa(i))
		complaints, err := writeParsable(name, text)
		if err != nil {
			return nil, fmt.Errorf("read the known host keys of %s: %w", file, err)
		}
		for _, c := range complaints {
			keys.complaints = append(keys.complaints, fmt.Sprintf("%s:%d: %s", file, c.line, c.what))
		}
		keys.read = append(keys.read, file)
		keys.names[name] = file
		copies = append(copies, name)
	}
	if keys.db, err = knownhosts.NewDB(copies...); err != nil {
		return nil, fmt.Errorf("read the known host keys of %s: %w", strings.Join(keys.read, ", "), err)
	}
	return keys, nil
}

type complaint struct {
	line int
	what string
}

// writeParsable writes text to the file name, with those lines emptied that
// the parser does not take.
func writeParsable(name string, text []byte) ([]complaint, error) {
	lines := bytes.Split(text, []byte("\n"))
	var complaints []complaint
	for i, line := range lines {
		if len(line) > maxLine {
			complaints = append(complaints, complaint{i + 1, fmt.Sprintf("line of %d bytes, at most %d are read", len(line), maxLine)})
			lines[i] = nil
		}
	}
	for range len(lines) + 1 {
		if err := os.WriteFile(name, bytes.Join(lines, []byte("\n")), 0o600); err != nil {
			return nil, err
		}
		_, err := xknownhosts.New(name)
		if err == nil {
			return complaints, nil
		}
		found := parserLine.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
		if found == nil {
			return nil, err
		}
		n, convErr := strconv.Atoi(found[1])
		if convErr != nil || n < 1 || n > len(lines) {
			return nil, err
		}
		complaints = append(complaints, complaint{n, strings.TrimPrefix(found[2], "knownhosts: ")})
		lines[n-1] = nil
	}
	return nil, errors.New("no end of malformed lines")
}

// algorithms are the host-key algorithms to ask the server for, so that it
// shows a key of a kind that is known; none where the host is not known.
func (k *hostKeys) algorithms(address string) []string {
	var usable []string
	offered := map[string]bool{}
	supported := ssh.SupportedAlgorithms()
	for _, a := range append(supported.HostKeys, ssh.InsecureAlgorithms().HostKeys...) {
		offered[a] = true
	}
	for _, a := range k.db.HostKeyAlgorithms(address) {
		if offered[a] {
			usable = append(usable, a)
		}
	}
	return usable
}

// check is the answer to the key that a server showed: nil, or an error that
// says what is known, where, and what to do.
func (k *hostKeys) check(h hop, remote net.Addr, key ssh.PublicKey) error {
	err := k.db.HostKeyCallback()(h.keyName, remote, key)
	if err == nil {
		return nil
	}
	shown := fmt.Sprintf("%s %s", key.Type(), ssh.FingerprintSHA256(key))
	var revoked *xknownhosts.RevokedError
	var mismatch *xknownhosts.KeyError
	switch {
	case errors.As(err, &revoked):
		return fmt.Errorf("the host key of %s (%s) is marked @revoked in %s:%d: do not connect; ask the machine's administrator for the new key: %w",
			h.address(), shown, k.names[revoked.Revoked.Filename], revoked.Revoked.Line, ErrHostKeyChanged)
	case errors.As(err, &mismatch) && len(mismatch.Want) > 0:
		var known []string
		for _, w := range mismatch.Want {
			known = append(known, fmt.Sprintf("%s:%d (%s %s)", k.names[w.Filename], w.Line, w.Key.Type(), ssh.FingerprintSHA256(w.Key)))
		}
		return fmt.Errorf("THE HOST KEY OF %s HAS CHANGED: it shows %s, but known is %s. Someone may be listening in, or the machine was set up anew. "+
			"Ask its administrator; if the new key is right, remove the old one with: ssh-keygen -R %s -f %s: %w",
			h.address(), shown, strings.Join(known, ", "), quote(knownhosts.Normalize(h.keyName)), quote(k.names[mismatch.Want[0].Filename]), ErrHostKeyChanged)
	case errors.As(err, &mismatch):
		return &unknownHostError{text: fmt.Sprintf("the host key of %s is not known: it shows %s; files read: %s. "+
			"If that fingerprint is the machine's (on it: ssh-keygen -lf /etc/ssh/ssh_host_%s_key.pub), add it with: %s, or set host_key_policy = \"accept-new\" for the first connection",
			h.address(), shown, k.files(), keyFileWord(key.Type()), k.scanCommand(h)), key: key}
	}
	return fmt.Errorf("the host key of %s (%s) is not accepted: %w", h.address(), shown, err)
}

// unknownHostError carries the key, so that accept-new can add it.
type unknownHostError struct {
	text string
	key  ssh.PublicKey
}

func (e *unknownHostError) Error() string { return e.text + ": " + ErrHostKeyUnknown.Error() }
func (e *unknownHostError) Unwrap() error { return ErrHostKeyUnknown }

func (k *hostKeys) files() string {
	var list []string
	list = append(list, k.read...)
	for _, file := range k.absent {
		list = append(list, file+" (not there)")
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

func (k *hostKeys) scanCommand(h hop) string {
	port := ""
	if h.port != "22" {
		port = "-p " + h.port + " "
	}
	return fmt.Sprintf("ssh-keyscan %s%s >> %s", port, quote(h.host), quote(h.knownHosts[0]))
}

// keyFileWord is the part of sshd's key file name for a key type.
func keyFileWord(keyType string) string {
	for part, word := range map[string]string{"ed25519": "ed25519", "ecdsa": "ecdsa", "rsa": "rsa"} {
		if strings.Contains(keyType, part) {
			return word
		}
	}
	return "ed25519"
}

// addHostKey appends a key to the first of the known_hosts files.
func addHostKey(h hop, remote net.Addr, key ssh.PublicKey) (string, error) {
	file := h.knownHosts[0]
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("add the host key of %s: %w", h.address(), err)
	}
	var line bytes.Buffer
	// A last line without a newline must not swallow ours.
	if text, err := os.ReadFile(file); err == nil && len(text) > 0 && text[len(text)-1] != '\n' {
		line.WriteByte('\n')
	}
	if err := knownhosts.WriteKnownHost(&line, h.keyName, remote, key); err != nil {
		return "", fmt.Errorf("add the host key of %s to %s: %w", h.address(), file, err)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("add the host key of %s: %w", h.address(), err)
	}
	_, err = f.Write(line.Bytes())
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return "", fmt.Errorf("add the host key of %s to %s: %w", h.address(), file, err)
	}
	return file, nil
}
