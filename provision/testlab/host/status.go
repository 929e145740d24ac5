package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/benchctl/benchctl/provision/testlab/command"
	"github.com/benchctl/benchctl/provision/testlab/machine"
	"github.com/benchctl/benchctl/provision/testlab/place"
)

// Status is what of the lab is up.
type Status struct {
	// Up is true where every service answers.
	Up       bool            `json:"up"`
	Run      string          `json:"run"`
	Cache    string          `json:"cache"`
	Services []ServiceStatus `json:"services"`
	Facts    *place.Facts    `json:"facts,omitempty"`
	// Containers are the names of those in the lab, running or not.
	Containers []string `json:"containers"`
}

// ServiceStatus is the state of one service.
type ServiceStatus struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Answers bool   `json:"answers"`
	// Problem says why it does not.
	Problem string `json:"problem,omitempty"`
}

// Status looks at the lab and changes nothing.
func (h *Host) Status(ctx context.Context) (Status, error) {
	s := Status{Run: h.Paths.Run, Cache: h.Paths.Cache, Services: []ServiceStatus{}, Containers: []string{}}
	facts, err := h.Paths.ReadFacts()
	if errors.Is(err, place.ErrDown) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.Facts, s.Up = &facts, true
	for _, service := range []machine.Service{podmanService(h.Paths), sshdService(h.Paths, facts.Port)} {
		state := ServiceStatus{Name: service.Name, PID: service.PID(), Answers: true}
		if err := service.Answers(ctx); err != nil {
			state.Answers, state.Problem = false, err.Error()
		}
		s.Up = s.Up && state.Answers && state.PID != 0
		s.Services = append(s.Services, state)
	}
	if !s.Services[0].Answers {
		return s, nil
	}
	out, err := command.Run(ctx, command.Command{
		Args: []string{"podman", "--url", "unix://" + facts.PodmanSocket, "ps", "--all", "--format", "{{.Names}}"},
	})
	if err != nil {
		return s, err
	}
	s.Containers = append(s.Containers, splitFields(string(out))...)
	return s, nil
}

// Write prints the status for a reader, or as JSON.
func (s Status) Write(w io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(s)
	}
	if s.Facts == nil {
		_, err := fmt.Fprintf(w, "no lab is up in %s; `make lab` starts it\n", s.Run)
		return err
	}
	state := map[bool]string{true: "up", false: "not wholly up; `make lab` starts what is missing"}[s.Up]
	fmt.Fprintf(w, "lab in %s: %s\n", s.Run, state)
	for _, service := range s.Services {
		if service.Answers && service.PID != 0 {
			fmt.Fprintf(w, "  %s answers, process %d\n", service.Name, service.PID)
		} else {
			fmt.Fprintf(w, "  %s is down: %s\n", service.Name, service.Problem)
		}
	}
	fmt.Fprintf(w, "  ssh -i %s -o UserKnownHostsFile=%s -p %d %s@127.0.0.1\n", s.Facts.IdentityFile, s.Facts.KnownHosts, s.Facts.Port, s.Facts.User)
	fmt.Fprintf(w, "  podman --url unix://%s ps\n", s.Facts.PodmanSocket)
	for _, i := range s.Facts.Images {
		fmt.Fprintf(w, "  image %s%s\n", i.Name, map[bool]string{true: " (stand-in)"}[i.StandIn])
	}
	_, err := fmt.Fprintf(w, "  containers: %d %v\n", len(s.Containers), s.Containers)
	return err
}

// Check returns the facts of a lab whose services answer, or an error that says what does not.
func Check(ctx context.Context, p place.Paths) (place.Facts, error) {
	facts, err := p.ReadFacts()
	if err != nil {
		return facts, err
	}
	if facts.Boot != bootID() {
		return facts, fmt.Errorf("%s is of an earlier boot of this machine: %w", p.In("lab.json"), place.ErrDown)
	}
	for _, service := range []machine.Service{podmanService(p), sshdService(p, facts.Port)} {
		if err := service.Answers(ctx); err != nil {
			return facts, fmt.Errorf("%s does not answer: %w", service.Name, err)
		}
	}
	return facts, nil
}
