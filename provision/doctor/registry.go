package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/benchctl/benchctl/inventory"
)

// registryTimeout bounds the talk with one registry.
const registryTimeout = 15 * time.Second

// dockerHub has its API under another name.
const dockerHub, dockerHubAPI = "docker.io", "registry-1.docker.io"

// splitImage gives the registry and the repository of an image, as container
// engines read its name.
func splitImage(image string) (registry, repository string) {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	first, rest, found := strings.Cut(name, "/")
	if found && (strings.ContainsAny(first, ".:") || first == "localhost") {
		if first == dockerHub && !strings.Contains(rest, "/") {
			rest = "library/" + rest
		}
		return first, rest
	}
	if !found {
		name = "library/" + name
	}
	return dockerHub, name
}

// askRegistry finds out whether images can be pulled from a registry, as the
// engine does it: GET /v2/, and where that is refused, a token with the login
// or without one (distribution specification, token authentication). dial
// connects from the target. Nothing is pulled.
func askRegistry(ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error), login inventory.Registry, repository string) (RegistryOutcome, error) {
	ctx, cancel := context.WithTimeout(ctx, registryTimeout)
	defer cancel()
	name := login.Host
	if name == dockerHub {
		name = dockerHubAPI
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	if login.Insecure {
		// What the inventory asks for: an unknown certificate is fine.
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	a := asking{client: &http.Client{Transport: transport}, login: login}
	base := "https://" + name + "/v2/"
	answer, err := a.get(ctx, base, false)
	if err != nil && login.Insecure {
		base = "http://" + name + "/v2/"
		answer, err = a.get(ctx, base, false)
	}
	if err != nil {
		return Unreachable, err
	}
	switch answer.status {
	case http.StatusOK:
		return Welcome, nil
	case http.StatusUnauthorized:
		return a.authenticate(ctx, base, answer.challenge, repository)
	}
	return Unclear, fmt.Errorf("GET %s: status %d", base, answer.status)
}

type asking struct {
	client *http.Client
	login  inventory.Registry
}

func (a asking) known() bool { return a.login.Username != "" || a.login.Password.IsSet() }

type registryAnswer struct {
	status    int
	challenge string
}

func (a asking) get(ctx context.Context, at string, withLogin bool) (registryAnswer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return registryAnswer{}, err
	}
	if withLogin {
		request.SetBasicAuth(a.login.Username, a.login.Password.Reveal())
	}
	response, err := a.client.Do(request)
	if err != nil {
		return registryAnswer{}, err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20))
	return registryAnswer{response.StatusCode, response.Header.Get("WWW-Authenticate")}, nil
}

// authenticate answers a challenge of the registry.
func (a asking) authenticate(ctx context.Context, base, challenge, repository string) (RegistryOutcome, error) {
	scheme, parameters := parseChallenge(challenge)
	at := base
	switch scheme {
	case "basic":
		if !a.known() {
			return WantsLogin, nil
		}
	case "bearer":
		realm, err := url.Parse(parameters["realm"])
		if err != nil || realm.Host == "" || realm.Scheme != "https" && realm.Scheme != "http" {
			return Unclear, fmt.Errorf("it asks for a token from %q", parameters["realm"])
		}
		if a.known() && realm.Scheme != "https" && !a.login.Insecure {
			return Unclear, errors.New("it wants the password over plain HTTP; insecure = true in the inventory allows that")
		}
		query := realm.Query()
		if s := parameters["service"]; s != "" {
			query.Set("service", s)
		}
		if repository != "" {
			query.Set("scope", "repository:"+repository+":pull")
		}
		realm.RawQuery = query.Encode()
		at = realm.String()
	default:
		return Unclear, fmt.Errorf("it wants authentication of the kind %q", challenge)
	}
	answer, err := a.get(ctx, at, a.known())
	switch {
	case err != nil:
		return Unreachable, err
	case answer.status == http.StatusOK:
		return Welcome, nil
	case answer.status == http.StatusUnauthorized || answer.status == http.StatusForbidden:
		if a.known() {
			return LoginFails, fmt.Errorf("status %d", answer.status)
		}
		return WantsLogin, nil
	}
	return Unclear, fmt.Errorf("status %d when asked for a token", answer.status)
}

var challengeParameter = regexp.MustCompile(`([a-zA-Z]+)="([^"]*)"`)

// parseChallenge reads `Bearer realm="https://…",service="…"`.
func parseChallenge(text string) (scheme string, parameters map[string]string) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	parameters = map[string]string{}
	for _, m := range challengeParameter.FindAllStringSubmatch(rest, -1) {
		parameters[strings.ToLower(m[1])] = m[2]
	}
	return strings.ToLower(scheme), parameters
}
