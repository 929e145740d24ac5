package podman

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/containers/podman/v5/pkg/errorhandling"

	"github.com/benchctl/benchctl/provision/engine"
)

// causes are the engine's words for kinds of failure that it gives no code
// for: "already exists" is HTTP 500 for containers and 409 for networks.
var causes = []struct {
	text string
	kind error
}{
	{"name is already in use", engine.ErrNameInUse},
	{"is already in use by", engine.ErrNameInUse},
	{"container already exists", engine.ErrNameInUse},
	{"network already exists", engine.ErrNameInUse},
	{"address already in use", engine.ErrPortInUse},
	{"port is already allocated", engine.ErrPortInUse},
	{"no such container", engine.ErrNotFound},
	{"no container with name or ID", engine.ErrNotFound},
	{"network not found", engine.ErrNotFound},
	{"image not known", engine.ErrNotFound},
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
		return fmt.Errorf("%s: %w: %w", what, engine.ErrUnreachable, broken)
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
		return engine.ErrNotFound
	case http.StatusBadGateway:
		// Podman has no use for 502: it comes from the relay before it.
		return engine.ErrUnreachable
	}
	for _, c := range causes {
		if strings.Contains(model.Because, c.text) || strings.Contains(model.Message, c.text) {
			return c.kind
		}
	}
	return nil
}
