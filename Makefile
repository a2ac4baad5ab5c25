# `make check` is the whole truth: CI runs it and nothing else. The other
# targets are slices of it, or run the program.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := check

GO ?= go
PKGS ?= ./...
# -count=1: some tests open sockets and start processes, and a cached result
# says nothing about those.
TESTFLAGS ?= -race -count=1
# How long each fuzz target runs.
FUZZTIME ?= 3s
# Modules of their own, so that the library's users never download what they need.
MODULES := interop bench
# Systems that the code is type-checked for besides this one.
OTHER_SYSTEMS := darwin windows

##@ Everyday

.PHONY: check
check: lint test fuzz conformance interop ## run everything that CI runs (the default)
	@echo "check: all passed"

.PHONY: run
run: ## serve the built-in demo at http://127.0.0.1:8421/mcp
	$(GO) run ./cmd/mcpsplice serve

.PHONY: build
build: ## build ./bin/mcpsplice
	$(GO) build -trimpath -o bin/ ./cmd/mcpsplice

.PHONY: clean
clean: ## remove what make has built and installed
	rm -rf bin .tools

.PHONY: help
help: ## print this list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z][a-z-]*:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

##@ Slices of check

.PHONY: lint
lint: fmt vet staticcheck tidy fix ## everything that reads code without running it

.PHONY: fmt
fmt: ## fail on files that gofmt would change
	@scripts/fmt

.PHONY: vet
vet: ## go vet here, for darwin and for windows, and in bench and interop
	$(GO) vet $(PKGS)
	set -e; for os in $(OTHER_SYSTEMS); do GOOS=$$os CGO_ENABLED=0 $(GO) vet $(PKGS); done
	set -e; for dir in $(MODULES); do $(GO) -C $$dir vet ./...; done

.PHONY: staticcheck
staticcheck: ## staticcheck, at the version in go.mod
	$(GO) tool staticcheck $(PKGS)

.PHONY: tidy
tidy: ## fail when go.mod or go.sum is not what go mod tidy would write
	$(GO) mod tidy -diff
	set -e; for dir in $(MODULES); do $(GO) -C $$dir mod tidy -diff; done

.PHONY: fix
fix: ## fail where go fix knows a newer way to write something
	$(GO) fix -diff $(PKGS)

.PHONY: test
test: ## all tests, with the race detector
	$(GO) test $(TESTFLAGS) $(PKGS)
	set -e; for dir in $(MODULES); do $(GO) -C $$dir test -count=1 ./...; done

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME, one after the other
	@GO=$(GO) scripts/fuzz $(FUZZTIME)

.PHONY: conformance
conformance: ## the official conformance suite against our client and server
	@./conformance/run

.PHONY: interop
interop: ## the bridge between all kinds of ends of ours, and with other people's
	$(GO) -C interop run ./matrix
	@./interop/run

##@ Not part of check

.PHONY: bench
bench: ## measure ourselves against the peers and the physical limit
	@./bench/run

# How long soak goes on, and what happens in it: see CONTRIBUTING.md.
DURATION ?= 10m
SEED ?=

.PHONY: soak
soak: ## kill servers under a client for DURATION, 500 times each at least
	$(GO) build -o bin/ ./internal/faulttest/soak
	bin/soak -duration $(DURATION) $(if $(SEED),-seed $(SEED))
