# Everything that is done to this repository by command. CI calls nothing else.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory

TIMEOUT  ?= 9m
FUZZTIME ?= 30s
# The SQLite library is C, translated: checking its memory too doubles the time of
# every test and finds nothing of ours.
UNCHECKED := '-gcflags=modernc.org/sqlite/lib=-race=false -d=checkptr=0' '-gcflags=modernc.org/libc/...=-race=false -d=checkptr=0'
TOOL     := go tool -modfile=internal/tools/tools.mod

.PHONY: help setup test lint fuzz docs build
.DEFAULT_GOAL := help

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 10

setup: ## install what the tests need beside Go: a C compiler for the race detector, ps, Redis, Python, curl, jq, openssl
	@tools/setup.sh

test: setup ## run all tests with the race detector
	CGO_ENABLED=1 go test -race $(UNCHECKED) -timeout $(TIMEOUT) ./...

lint: ## check format, vet, staticcheck, the build without cgo, the rules of internal/lint
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted (gofmt -w .):"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	$(TOOL) staticcheck ./...
	CGO_ENABLED=0 go build -buildvcs=false -o /dev/null ./...
	go test ./internal/lint ./internal/tools/...

fuzz: ## fuzz every decoder, FUZZTIME (30s) each
	@grep -rl --include='*_test.go' --exclude-dir=bench '^func Fuzz' . | sort | while read -r file; do \
		grep -oE '^func Fuzz\w+' "$$file" | while read -r _ name; do \
			echo "== $$name ($${file#./})"; \
			go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" < /dev/null; \
		done; \
	done

.PHONY: mutants
mutants: ## break each promise in a copy of the tree: which test notices? (minutes)
	cd internal/mutants && go test -count=1 -timeout 40m -run '^TestEveryMutantIsCaught$$' -mutants

.PHONY: sim
SEEDS   ?= 0
MINUTES ?= 0
sim: ## simulate beside a model: SEEDS=10000 or MINUTES=10; a list that fails is kept in internal/sim/testdata
	go test ./internal/sim -count=1 -timeout 0 -v -run Simulated -sim.seeds $(SEEDS) -sim.minutes $(MINUTES) -sim.from 0 -sim.keep

.PHONY: long
LONG_SEEDS ?= 10000
long: setup ## every proof at full size: kills, simulation, search, mutants, long tests (20 minutes)
	SETTLE_LONG=1 go test ./internal/kill -count=1 -timeout 60m -v | grep -v '^=== '
	SETTLE_LONG=1 go test -count=1 -p 1 -timeout 60m $$(go list ./... | grep -v /internal/kill)
	go test ./internal/sim -count=1 -timeout 0 -v -run Simulated -sim.seeds $(LONG_SEEDS)
	go test ./internal/sim/small -count=1 -timeout 0 -v -small.full
	$(MAKE) mutants

docs: ## write the generated pages and tables anew
	go run ./internal/tools/defaults
	go test . -run '^TestTableOfArrows$$' -update

.PHONY: bench bench-quick
bench: ## measure beside peers (25 minutes on an idle machine, C compiler), write docs/performance.md
	cd bench && go run . -docs ../docs

bench-quick: ## the same with small sizes, three minutes: only prints
	cd bench && go run . -quick -out results-quick.jsonl

build: ## build bin/settle, static
	CGO_ENABLED=0 go build -trimpath -o bin/settle ./cmd/settle
