# benchctl. The targets that people use:
#
#   make demo      build a lab on this machine, run a campaign on it, report, tear down
#   make test      everything: static checks, unit tests, the real lab
#   make check     the fast loop: format, vet, staticcheck, unit tests and testscripts
#   make build     bin/benchctl
#   make dist      dist/benchctl-OS-ARCH for the machines that load comes from
#   make lab       leave the lab host up for tests; make lab-down undoes it

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

# Podman's bindings need these tags to build without the storage libraries.
TAGS        := remote,containers_image_openpgp,exclude_graphdriver_btrfs
VERSION     := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
LDFLAGS     := -X main.version=$(VERSION)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
LABHOST     := bin/labhost
export GOFLAGS := -buildvcs=false -tags=$(TAGS)

# Load often comes from a laptop.
PLATFORMS   := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64

.PHONY: build dist check test demo lab lab-down lab-status fmt vet staticcheck unit race lab-tests lab-tests-long bench clean

build:
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/benchctl ./cmd/benchctl

dist: $(PLATFORMS:%=dist/%)
	cd dist && sha256sum benchctl-* > SHA256SUMS

dist/%: FORCE
	CGO_ENABLED=0 GOOS=$(*D) GOARCH=$(*F) go build -trimpath -ldflags '-s -w $(LDFLAGS)' \
		-o dist/benchctl-$(*D)-$(*F)$(if $(filter windows,$(*D)),.exe) ./cmd/benchctl

$(LABHOST): FORCE
	@go build -o $@ ./provision/testlab/labhost
FORCE:

lab: $(LABHOST)
	$(LABHOST) up

lab-down: $(LABHOST)
	$(LABHOST) down

lab-status: $(LABHOST)
	$(LABHOST) status

demo: $(LABHOST)
	@provision/testlab/demo.sh

check: fmt vet staticcheck unit

fmt:
	@bad=$$(gofmt -l cmd provision scenarios inventory loadtest); if [ -n "$$bad" ]; then echo "not gofmt-clean:" $$bad; exit 1; fi

vet:
	go vet ./...
	go vet -tags=$(TAGS),lab,long ./...

# Made anew when its version, which stands above, may have changed.
bin/staticcheck: Makefile
	GOFLAGS= GOBIN=$(CURDIR)/bin go install $(STATICCHECK)
	@touch $@

staticcheck: bin/staticcheck
	bin/staticcheck -tags=$(TAGS),lab,long ./...

unit:
	go test ./...

# Known truth in virtual time is a matter of arithmetic, which the race detector
# makes five times slower: it is run without.
race:
	CGO_ENABLED=1 go test -race ./...
	go test ./loadtest

# One lab, one package after the other: a target holds one lab.
lab-tests: build $(LABHOST)
	$(LABHOST) up
	go test -tags=$(TAGS),lab -count=1 -p 1 -timeout 40m -run 'Lab' ./provision/... ./loadtest/... ./cmd/...

# Those that the hour of `make test` has no room for: every flow on servers of
# before Keycloak 17.
lab-tests-long: $(LABHOST)
	$(LABHOST) up
	go test -tags=$(TAGS),lab,long -count=1 -p 1 -timeout 40m -run 'LabWildFly' ./loadtest/dataset

# What the engine costs, beside peers that are installed (wrk, hey, nginx as
# their server): quote the ratios, and only from an idle machine.
bench:
	go run ./loadtest/bench

test: $(LABHOST)
	@provision/testlab/everything.sh

clean:
	rm -rf bin dist
