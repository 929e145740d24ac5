package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/containers/podman/v5/pkg/errorhandling"
)

// Kinds of failure, for errors.Is, besides ErrNotFound.
var (
	// ErrNameInUse: a container or network of that name is there already.
	ErrNameInUse = errors.New("name in use")
	// ErrPortInUse: another process listens on a port to be published.
	ErrPortInUse = errors.New("port in use")
	// ErrPull: an image could not be had.
	ErrPull = errors.New("image pull failed")
	// ErrUnreachable: the engine does not answer.
	ErrUnreachable = errors.New("Podman does not answer")
	// ErrTooOld: the engine's API is older than what is spoken here.
	ErrTooOld = errors.New("Podman is too old")
)

// causes are the engine's words for kinds of failure that it gives no code
// for: "already exists" is HTTP 500 for containers and 409 for networks.
var causes = []struct {
	text string
	kind error
}{
	{"name is already in use", ErrNameInUse},
	{"is already in use by", ErrNameInUse},
	{"container already exists", ErrNameInUse},
	{"network already exists", ErrNameInUse},
	{"network name", ErrNameInUse},
	{"address already in use", ErrPortInUse},
	{"port is already allocated", ErrPortInUse},
	{"no such container", ErrNotFound},
	{"no container with name or ID", ErrNotFound},
	{"network not found", ErrNotFound},
	{"image not known", ErrNotFound},
}

// explain wraps a failed call once: what was tried, the kind, the engine's
// own words. broken is the transport's error, where the call did not get
// through at all.
func explain(what string, err, broken error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", what, err)
	case broken != nil:
		return fmt.Errorf("%s: %w: %w", what, ErrUnreachable, broken)
	}
	var model *errorhandling.ErrorModel
	if !errors.As(err, &model) {
		return fmt.Errorf("%s: %w", what, err)
	}
	said := model.Message
	if said == "" {
		said = model.Because
	}
	if kind := kindOf(model); kind != nil {
		return fmt.Errorf("%s: %w: %s", what, kind, said)
	}
	if said == "" {
		said = fmt.Sprintf("the engine said %d %s", model.ResponseCode, http.StatusText(model.ResponseCode))
	}
	return fmt.Errorf("%s: %s", what, strings.TrimSpace(said))
}

func kindOf(model *errorhandling.ErrorModel) error {
	switch model.ResponseCode {
	case http.StatusNotFound:
		return ErrNotFound
	case http.StatusBadGateway:
		// Podman has no use for 502: it comes from the relay before it.
		return ErrUnreachable
	}
	for _, c := range causes {
		if c.text == "network name" {
			// 'network name benchctl already used: network already exists'
			if strings.Contains(model.Message, "network name") && strings.Contains(model.Message, "already used") {
				return c.kind
			}
			continue
		}
		if strings.Contains(model.Because, c.text) || strings.Contains(model.Message, c.text) {
			return c.kind
		}
	}
	return nil
}
