package podman

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
)

// maxFrame bounds a frame of a multiplexed stream; a longer one means that
// the stream is something else.
const maxFrame = 64 << 20

// demux takes a stream apart that joins standard output and error: eight
// bytes of header (stream number, three unused, length), then that many
// bytes. Stream 3 is an error of the engine itself.
func demux(r io.Reader, stdout, stderr io.Writer) error {
	var header [8]byte
	for {
		if _, err := io.ReadFull(r, header[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("the stream broke off: %w", err)
		}
		size := int64(binary.BigEndian.Uint32(header[4:]))
		if header[0] > 3 || size > maxFrame {
			return errors.New("the stream is not in the form of the API")
		}
		switch header[0] {
		case 2:
			if _, err := io.CopyN(stderr, r, size); err != nil {
				return fmt.Errorf("the stream broke off: %w", err)
			}
		case 3:
			said, err := io.ReadAll(io.LimitReader(r, size))
			if err != nil {
				return fmt.Errorf("the stream broke off: %w", err)
			}
			return fmt.Errorf("the engine said: %s", said)
		default:
			if _, err := io.CopyN(stdout, r, size); err != nil {
				return fmt.Errorf("the stream broke off: %w", err)
			}
		}
	}
}

// wholeLines passes on lines only when they are complete, so that what two
// streams write at the same time stays readable.
type wholeLines struct {
	w       io.Writer
	pending []byte
}

// maxPending bounds what is held back of a line without an end.
const maxPending = 64 << 10

func (l *wholeLines) Write(b []byte) (int, error) {
	l.pending = append(l.pending, b...)
	end := bytes.LastIndexByte(l.pending, '\n') + 1
	if end == 0 && len(l.pending) > maxPending {
		end = len(l.pending)
	}
	if end > 0 {
		if _, err := l.w.Write(l.pending[:end]); err != nil {
			return 0, err
		}
		l.pending = append(l.pending[:0], l.pending[end:]...)
	}
	return len(b), nil
}

func (l *wholeLines) flush() error {
	if len(l.pending) == 0 {
		return nil
	}
	_, err := l.w.Write(l.pending)
	l.pending = nil
	return err
}

// Logs joins standard output and error in the order in which their lines
// were ended.
func (e *podman) Logs(ctx context.Context, name string, opts engine.LogOptions, w io.Writer) error {
	what := fmt.Sprintf("read the log of container %q", name)
	query := url.Values{"stdout": {"true"}, "stderr": {"true"}, "follow": {strconv.FormatBool(opts.Follow)}}
	if opts.Tail > 0 {
		query.Set("tail", strconv.Itoa(opts.Tail))
	}
	if !opts.Since.IsZero() {
		query.Set("since", opts.Since.UTC().Format(time.RFC3339Nano))
	}
	response, err := e.request(ctx, what, http.MethodGet, "/containers/%s/logs", query, nil, name)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	stdout, stderr := &wholeLines{w: w}, &wholeLines{w: w}
	err = errors.Join(demux(response.Body, stdout, stderr), stdout.flush(), stderr.flush())
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
