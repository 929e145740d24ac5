package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/host"
)

type container = engine.Container

func clock(o Observed) []Finding {
	if o.Local || o.Target.FactsErr != nil {
		return nil
	}
	d := o.Target.Facts.Clock
	const do = "let chronyd or systemd-timesyncd set both clocks: tokens carry times"
	says := fmt.Sprintf("the target's clock is %s %s the generator's", d.Abs().Round(time.Millisecond), map[bool]string{true: "behind", false: "ahead of"}[d < 0])
	switch {
	case d.Abs() >= clockFailure:
		return failure(do, "%s", says)
	case d.Abs() >= clockWarning:
		return warning(do, "%s", says)
	case d == 0:
		return ok("both tell the same time, as far as can be seen")
	}
	return ok("%s", says)
}

func reachability(o Observed) []Finding {
	r := o.Endpoint
	if r == nil {
		return nil
	}
	up := publishedByUs(o.Containers, r.Port)
	opens := false
	for _, s := range o.Preparation.Steps {
		opens = opens || s.Kind == host.KindFirewall && s.Port.Port == r.Port
	}
	const do = "open the port in the target's firewall and in those on the way; set publish for the target where it is reached under another address"
	switch r.Outcome {
	case Reached:
		return ok("%s answers", r.Address)
	case Refused:
		if up {
			return failure(do+"; the lab publishes it", "%s refuses, though the lab publishes the port", r.Address)
		}
		return ok("%s can be reached; nothing listens yet", r.Address)
	case Silent, Rejected:
		says := fmt.Sprintf("%s does not answer (%v)", r.Address, r.Err)
		if r.Outcome == Rejected {
			says = fmt.Sprintf("a firewall or router rejects connections to %s (%v)", r.Address, r.Err)
		}
		if opens {
			return warning("benchctl provision opens the port in firewalld; look again afterwards", "%s", says)
		}
		return failure(do, "%s", says)
	}
	return failure("check address and publish of the target in the inventory", "%s cannot be reached: %v", r.Address, r.Err)
}

func registries(o Observed) []Finding {
	var out []Finding
	for _, r := range o.Registries {
		out = append(out, registry(r)...)
	}
	return out
}

func registry(r Registry) []Finding {
	there := len(r.Images) > 0 && len(r.Missing) == 0
	login := fmt.Sprintf("registry %q { username = …, password = env(\"…\") } in the target's block of the inventory", r.Host)
	switch r.Outcome {
	case Welcome:
		if r.Login {
			return ok("%s takes the login", r.Host)
		}
		return ok("%s needs no login", r.Host)
	case LoginFails:
		return failure("correct "+login, "%s refuses the login of the inventory: %v", r.Host, r.Err)
	case WantsLogin:
		if there {
			return warning("add "+login, "%s wants a login; its images are on the target already", r.Host)
		}
		return failure("add "+login, "%s wants a login", r.Host)
	}
	if there {
		return ok("%s was not reached (%v), and need not be: its images are on the target", r.Host, r.Err)
	}
	says := fmt.Sprintf("%s was not reached from the target: %v", r.Host, r.Err)
	if r.Outcome == Unclear {
		says = fmt.Sprintf("%s answers, but not as registries do: %v", r.Host, r.Err)
	}
	if len(r.Missing) > 0 {
		says += "\nnot on the target yet: " + strings.Join(r.Missing, ", ")
	}
	return warning("nothing where the target has a mirror (registries.conf) or a proxy; else open the way, or load the images on the target (podman load)", "%s", says)
}
