//go:build lab

package report

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is a Chromium without a window, spoken to by the DevTools protocol
// over a pair of pipes: https://chromedevtools.github.io/devtools-protocol/.
// The few methods that the tests use need no library.
type browser struct {
	t       *testing.T
	ctx     context.Context
	session string
	*pipes
}

// pipes are what all tests of one browser share.
type pipes struct {
	to    *os.File
	woken chan struct{}

	mu      sync.Mutex
	last    int
	waiting map[int]chan message
	events  []message
	gone    error
}

type message struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// openBrowser starts one for the length of the test. That there is none is a
// failure: nobody would notice a page that is no longer looked at.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("looking for a browser to open reports in: %v\nInstall the package chromium", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	commands, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	c := exec.CommandContext(ctx, path, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--user-data-dir="+t.TempDir(),
		// Whatever it wants to ask for finds no host.
		"--host-resolver-rules=MAP * ~NOTFOUND", "about:blank")
	c.ExtraFiles = []*os.File{commands, answers} // 3 and 4, as Chromium expects them
	c.Stderr = &log
	c.WaitDelay = 5 * time.Second
	if err := c.Start(); err != nil {
		t.Fatalf("starting the browser: %v", err)
	}
	commands.Close()
	answers.Close()
	b := &browser{t: t, ctx: ctx, pipes: &pipes{to: to, waiting: map[int]chan message{}, woken: make(chan struct{}, 1)}}
	var reading sync.WaitGroup
	reading.Go(func() { b.read(from) })
	t.Cleanup(func() {
		to.Close() // a browser whose pipe ends goes
		waited := make(chan error, 1)
		go func() { waited <- c.Wait() }()
		select {
		case <-waited:
		case <-time.After(10 * time.Second):
			cancel()
			<-waited
		}
		cancel()
		reading.Wait()
		from.Close()
		if t.Failed() {
			t.Logf("the browser said:\n%s", log.String())
		}
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// read takes messages, each of which ends with a zero byte.
func (b *pipes) read(from io.Reader) {
	in := bufio.NewReader(from)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			b.gone = fmt.Errorf("the browser is gone: %w", err)
			for _, w := range b.waiting {
				close(w)
			}
			b.waiting = nil
			b.mu.Unlock()
			return
		}
		var m message
		if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
			continue
		}
		b.mu.Lock()
		if m.ID != 0 {
			if w := b.waiting[m.ID]; w != nil {
				w <- m
				delete(b.waiting, m.ID)
			}
		} else {
			b.events = append(b.events, m)
			select {
			case b.woken <- struct{}{}:
			default:
			}
		}
		b.mu.Unlock()
	}
}

func (b *browser) send(method string, params any) (message, error) {
	answer := make(chan message, 1)
	b.mu.Lock()
	if b.gone != nil {
		b.mu.Unlock()
		return message{}, b.gone
	}
	b.last++
	id := b.last
	b.waiting[id] = answer
	b.mu.Unlock()
	text, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params, "sessionId": b.session})
	if b.session == "" {
		text, err = json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	}
	if err != nil {
		return message{}, err
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		return message{}, err
	}
	select {
	case m, ok := <-answer:
		if !ok {
			return message{}, errors.New("the browser is gone")
		}
		if m.Error != nil {
			return m, errors.New(m.Error.Message)
		}
		return m, nil
	case <-b.ctx.Done():
		return message{}, b.ctx.Err()
	}
}

// call sends a command and reads its result.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	if params == nil {
		params = map[string]any{}
	}
	m, err := b.send(method, params)
	if err == nil && result != nil {
		err = json.Unmarshal(m.Result, result)
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
}

// eval runs a script in the page and reads its value.
func (b *browser) eval(script string, value any) {
	b.t.Helper()
	var out struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true}, &out)
	if out.ExceptionDetails != nil {
		b.t.Fatalf("a script of the test failed: %s", out.ExceptionDetails)
	}
	if value == nil {
		return
	}
	if err := json.Unmarshal(out.Result.Value, value); err != nil {
		b.t.Fatalf("the value of a script of the test: %v in %s", err, out.Result.Value)
	}
}

// open loads a page at a size and in a colour scheme.
func (b *browser) open(path string, width, height int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.load(path)
	// Two frames, so that what is laid out late is laid out.
	b.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))", nil)
}

// load waits until a file is loaded, and forgets what happened before.
func (b *browser) load(path string) {
	b.t.Helper()
	b.mu.Lock()
	b.events = nil
	b.mu.Unlock()
	b.call("Page.navigate", map[string]any{"url": "file://" + filepath.ToSlash(path)}, nil)
	for !b.has("Page.loadEventFired") {
		select {
		case <-b.woken:
		case <-b.ctx.Done():
			b.t.Fatalf("%s was not loaded: %v", path, b.ctx.Err())
		}
	}
}

func (b *browser) has(method string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		if e.Method == method {
			return true
		}
	}
	return false
}

// complaints are all warnings, errors, exceptions and requests to other places
// than the disk since the page was opened.
func (b *browser) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, e := range b.events {
		var p struct {
			Type    string
			Entry   struct{ Level string }
			Request struct{ URL string }
		}
		if err := json.Unmarshal(e.Params, &p); err != nil {
			out = append(out, err.Error())
			continue
		}
		bad := false
		switch e.Method {
		case "Runtime.exceptionThrown":
			bad = true
		case "Runtime.consoleAPICalled":
			bad = p.Type == "warning" || p.Type == "error" || p.Type == "assert"
		case "Log.entryAdded":
			bad = p.Entry.Level == "warning" || p.Entry.Level == "error"
		case "Network.requestWillBeSent":
			bad = !strings.HasPrefix(p.Request.URL, "file://") && !strings.HasPrefix(p.Request.URL, "data:")
		}
		if bad {
			out = append(out, e.Method+": "+string(e.Params))
		}
	}
	return out
}

// move puts the pointer on a place of the window.
func (b *browser) move(x, y float64) {
	b.t.Helper()
	b.call("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": x, "y": y}, nil)
}

// press presses a key.
func (b *browser) press(key string) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key}, nil)
	}
}
