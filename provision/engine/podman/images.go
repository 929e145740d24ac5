package podman

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/containers/podman/v5/pkg/auth"
	"github.com/containers/podman/v5/pkg/bindings/images"
	"github.com/containers/podman/v5/pkg/domain/entities/types"

	"github.com/benchctl/benchctl/provision/engine"
)

func (e *podman) Image(ctx context.Context, ref string) (engine.Image, error) {
	return call(ctx, e, fmt.Sprintf("inspect image %q", ref), func(ctx context.Context) (engine.Image, error) {
		report, err := images.GetImage(ctx, ref, new(images.GetOptions).WithSize(true))
		if err != nil {
			return engine.Image{}, err
		}
		if report.ImageData == nil {
			return engine.Image{}, errors.New("the answer is empty")
		}
		return fromImage(report), nil
	})
}

func fromImage(r *types.ImageInspectReport) engine.Image {
	out := engine.Image{ID: r.ID, Digest: r.Digest.String(), Names: r.RepoTags, Labels: r.Labels, User: r.User, Size: r.Size}
	if r.Created != nil {
		out.Created = *r.Created
	}
	if r.Config != nil {
		out.Env = r.Config.Env
		if out.User == "" {
			out.User = r.Config.User
		}
	}
	return out
}

// Pull does its own request: the bindings would send every credential of the
// local auth.json to the target where no user name is given.
func (e *podman) Pull(ctx context.Context, ref string, login engine.Login, progress func(string)) (engine.Image, error) {
	what := fmt.Sprintf("pull image %q", ref)
	if progress == nil {
		progress = func(string) {}
	}
	query := url.Values{"reference": {ref}}
	if login.Insecure {
		query.Set("tlsVerify", "false")
	}
	header := http.Header{}
	if login.Username != "" {
		var err error
		if header, err = auth.MakeXRegistryAuthHeader(nil, login.Username, login.Password.Reveal()); err != nil {
			return engine.Image{}, fmt.Errorf("%s: %w: %w", what, engine.ErrPull, err)
		}
	}
	response, err := e.request(ctx, what, http.MethodPost, "/images/pull", query, header)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, engine.ErrUnreachable) {
			return engine.Image{}, err
		}
		return engine.Image{}, fmt.Errorf("%w (%w)", err, engine.ErrPull)
	}
	defer response.Body.Close()
	id, err := readPull(response.Body, progress)
	if ctx.Err() != nil {
		return engine.Image{}, fmt.Errorf("%s: %w", what, ctx.Err())
	}
	if err != nil {
		return engine.Image{}, fmt.Errorf("%s: %w: %w%s", what, engine.ErrPull, err, pullAdvice(err, login))
	}
	return e.Image(ctx, id)
}

// readPull reads the stream of a pull, which says 200 at its beginning and
// what went wrong later.
func readPull(body io.Reader, progress func(string)) (id string, err error) {
	decoder := json.NewDecoder(body)
	for {
		var report types.ImagePullReport
		if err := decoder.Decode(&report); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", fmt.Errorf("the answer broke off: %w", err)
		}
		if report.Error != "" {
			return "", errors.New(strings.TrimSpace(report.Error))
		}
		for line := range strings.Lines(report.Stream) {
			if line = strings.TrimSpace(line); line != "" {
				progress(line)
			}
		}
		if report.ID != "" {
			id = report.ID
		}
		if len(report.Images) > 0 {
			id = report.Images[0]
		}
	}
	if id == "" {
		return "", errors.New("the answer names no image")
	}
	return id, nil
}

// pullAdvice adds what to do about the commonest failures.
func pullAdvice(err error, login engine.Login) string {
	text := err.Error()
	has := func(any ...string) bool {
		for _, a := range any {
			if strings.Contains(text, a) {
				return true
			}
		}
		return false
	}
	switch {
	case has("unauthorized", "authentication required", "access to the resource is denied") && login.Username == "":
		return "; it may need a login: add a registry block with username and password to the target in the inventory"
	case has("unauthorized", "authentication required", "invalid username/password"):
		return "; check username and password of the registry block in the inventory"
	case has("toomanyrequests", "rate limit"):
		return "; the registry limits pulls: log in with a registry block, or wait"
	case has("server gave HTTP response to HTTPS client", "certificate signed by unknown authority", "x509:"):
		return "; set insecure = true in the registry block of the inventory if that is meant"
	case has("no such host", "connection refused", "i/o timeout", "no route to host", "network is unreachable"):
		return "; the target can't reach the registry: check its network, DNS and proxy"
	}
	return ""
}

func (e *podman) RemoveImage(ctx context.Context, ref string) error {
	return do(ctx, e, fmt.Sprintf("remove image %q", ref), func(ctx context.Context) error {
		_, errs := images.Remove(ctx, []string{ref}, nil)
		return errors.Join(errs...)
	})
}
