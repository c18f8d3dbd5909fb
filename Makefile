# Nothing is expected but Go, make and bash; targets that need a Debian package install it when it is missing and they may.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS   += --no-print-directory
.DEFAULT_GOAL := help

VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS   := -s -w -X main.version=$(VERSION)
GOBUILD   := CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)'
TOOL      := go tool -modfile=tools/pinned/go.mod
PLATFORMS := linux/amd64 linux/arm64 windows/amd64 darwin/arm64
FUZZTIME  ?= 60s
FUZZTEST  ?= 300ms
MAKOTIME  ?= 10m
DIST      ?= dist
SCALE     ?= 10
CYCLES    ?= 100000
SOAK      ?= 10m
SEED      ?= 0
ROUNDS    ?= 5
PACKAGES  ?= ./...
# The longest packages start first. Two packages more than cores run at a time, because tests mostly wait.
LONGEST   := $(if $(filter ./...,$(PACKAGES)),./test/faults ./test/fleettest ./test/cluster ./cmd/gozzard ./test/tenants ./test/console \
	./test/identity ./internal/host ./test/soak ./test/packages ./internal/sqlstore ./test/pages)
ATONCE    ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 2)))
PREFIX    ?= /usr/local
DESTDIR   ?=
ARCHES    ?= amd64 arm64
DEMO      ?= --demo

# The console is built where npm is. In CI it is required.
NPM  := $(shell command -v npm 2>/dev/null)
DIST_WEB := internal/console/dist/index.html

# In CI a test may be skipped only when .ci/skips lists it, and PostgreSQL is required.
ifeq ($(CI),true)
STRICT := -strict
export GOZZARD_TEST_POSTGRES := require
endif

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-18s %s\n", $$1, $$2}' Makefile

.PHONY: build
build: web ## static binary bin/gozzard
	$(GOBUILD) -o bin/gozzard ./cmd/gozzard

# The page of the program. Without npm the program is built without it and says so on /: install Node 20 or newer (Debian: apt-get install nodejs npm).
.PHONY: web
ifneq ($(NPM),)
web: $(DIST_WEB) ## the console, from web/ into the program; needs npm
else
web:
	@echo "web: npm is missing, so the program has no console; install Node 20 or newer with npm and build again"
	@[ '$(CI)' != true ]
endif

web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	cd web && for i in 1 2 3; do npm ci --no-audit --no-fund --ignore-scripts --loglevel=error && break; [ $$i != 3 ] && sleep 5; done
	@touch $@

$(DIST_WEB): web/node_modules/.package-lock.json web/build.mjs web/types.mjs web/tsconfig.json docs/openapi.json $(shell find web/src -type f ! -name api-types.ts 2>/dev/null)
	cd web && npm run --silent check && npm run --silent build

.PHONY: test-web
test-web: web ## the tests of the console that need no browser
	cd web && npm test

.PHONY: pictures
pictures: web ## the pictures of the console in docs/pictures, from a demo fleet in Chromium
	@.ci/deps
	@mkdir -p docs/pictures
	go test -count=1 -tags pictures -run TestPictures ./test/console -pictures '$(CURDIR)/docs/pictures'

.PHONY: run
run: build ## server and three agents in one process, on 127.0.0.1:8080, with a demo; DEMO= runs one agent without it
	bin/gozzard dev $(DEMO)

.PHONY: man
man: build ## manual pages of all commands in bin/man
	@rm -rf bin/man
	bin/gozzard man bin/man

# The completion of each shell, below share. HELPER is a program for this machine that prints it, and the manual.
COMPLETIONS := bash:bash-completion/completions/gozzard zsh:zsh/site-functions/_gozzard fish:fish/vendor_completions.d/gozzard.fish
HELPER      ?= $(or $(BINARY),bin/gozzard)

# BINARY=FILE installs that program instead of building one. Files in /etc that exist stay as they are.
.PHONY: install
install: $(if $(BINARY),,build) ## program, manual, units, settings, completion; PREFIX (/usr/local) and DESTDIR say where; as root also the accounts
	install -D -m 0755 $(or $(BINARY),bin/gozzard) '$(DESTDIR)$(PREFIX)/bin/gozzard'
	@for unit in packaging/*.service; do \
		install -d '$(DESTDIR)$(PREFIX)/lib/systemd/system'; \
		sed 's|/usr/bin/gozzard|$(PREFIX)/bin/gozzard|' $$unit >"$(DESTDIR)$(PREFIX)/lib/systemd/system/$${unit##*/}"; \
		chmod 0644 "$(DESTDIR)$(PREFIX)/lib/systemd/system/$${unit##*/}"; \
	done
	@install -D -m 0644 packaging/gozzard.sysusers '$(DESTDIR)$(PREFIX)/lib/sysusers.d/gozzard.conf'
	@for f in server.yaml agent.yaml relay.yaml; do \
		[ -e "$(DESTDIR)/etc/gozzard/$$f" ] || install -D -m 0644 packaging/$$f "$(DESTDIR)/etc/gozzard/$$f"; \
	done
	@for f in LICENSE NOTICE packaging/policy.yaml; do install -D -m 0644 $$f "$(DESTDIR)$(PREFIX)/share/doc/gozzard/$${f##*/}"; done
	@for f in $$(find examples -type f); do \
		mode=0644; [ ! -x "$$f" ] || mode=0755; \
		install -D -m $$mode "$$f" "$(DESTDIR)$(PREFIX)/share/doc/gozzard/$$f"; \
	done
	@for f in $(COMPLETIONS); do \
		install -d "$$(dirname '$(DESTDIR)$(PREFIX)'/share/$${f#*:})"; \
		$(HELPER) completion $${f%%:*} >'$(DESTDIR)$(PREFIX)'/share/$${f#*:}; \
		chmod 0644 '$(DESTDIR)$(PREFIX)'/share/$${f#*:}; \
	done
	@$(HELPER) man '$(DESTDIR)$(PREFIX)/share/man/man1'
	@gzip -9nf '$(DESTDIR)$(PREFIX)'/share/man/man1/gozzard*.1
	@install -D -m 0755 packaging/gozzard-signer-pkcs11 '$(DESTDIR)$(PREFIX)/share/gozzard/gozzard-signer-pkcs11'
	@for f in pyproject.toml $$(cd client/python && echo gozzard/*.py); do \
		install -D -m 0644 "client/python/$$f" '$(DESTDIR)$(PREFIX)'/share/gozzard/python/"$$f"; \
	done
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ]; then sh packaging/scripts/postinstall.sh; fi
	@echo "installed $(DESTDIR)$(PREFIX)/bin/gozzard: see docs/install.md for what comes next"

.PHONY: uninstall
uninstall: ## remove what install has put in place; settings and data stay
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ]; then sh packaging/scripts/preremove.sh remove; fi
	rm -f '$(DESTDIR)$(PREFIX)/bin/gozzard' '$(DESTDIR)$(PREFIX)/lib/sysusers.d/gozzard.conf'
	rm -f $(foreach unit,$(notdir $(wildcard packaging/*.service)),'$(DESTDIR)$(PREFIX)/lib/systemd/system/$(unit)')
	rm -f $(foreach f,$(COMPLETIONS),'$(DESTDIR)$(PREFIX)/share/$(lastword $(subst :, ,$(f)))')
	rm -f '$(DESTDIR)$(PREFIX)'/share/man/man1/gozzard.1.gz '$(DESTDIR)$(PREFIX)'/share/man/man1/gozzard-*.1.gz
	rm -rf '$(DESTDIR)$(PREFIX)/share/doc/gozzard' '$(DESTDIR)$(PREFIX)/share/gozzard'

.PHONY: packages
packages: web ## deb and rpm packages and an OCI image in DIST, for ARCHES (amd64 arm64)
	@.ci/packages '$(VERSION)' '$(DIST)' $(ARCHES)

.PHONY: test-packages
test-packages: ## packages and image are installed, upgraded, purged and run in namespaces (needs root; minutes)
	@.ci/deps packages
	go test -count=1 -timeout 30m -v -tags packages ./test/packages

.PHONY: test-systemd
test-systemd: ## packages on three machines that boot systemd in namespaces, by the words of the docs (needs root; ten minutes)
	@.ci/deps systemd
	go test -count=1 -timeout 60m -v -tags systemd -run TestSystemd ./test/packages

# The race detector checks our code and NATS, but not the code inside SQLite, which is C translated to Go: with it, the tests of the record took 90 CPU seconds instead of 35.
# Only this package: it has no code of the standard library in it. A linker may take such code without the detector for the whole program.
NORACE := -gcflags=modernc.org/sqlite/lib=-race=false

# The models explore states in one goroutine: the race detector finds nothing in them and makes them ten times slower. They run first, without it.
MODELS := ^(TestProtocol|TestSupervision)(Mutations)?$$

# The short runs of the benchmarks are in make bench-quick: beside other tests they measure nothing.
QUICK  := ^TestQuick(Run|Growth|Profiles|Beside)$$
WHOLE  := $(filter ./...,$(PACKAGES))

# A machine that is shared can be too slow for a test that starts many processes. Up to this many failed tests run once more, alone; the summary lists them.
AGAIN ?= 8

# Packages that start the program, and what they need of it: PLAIN ones are about words, forms, pages, rights and features, and run as in a release; RACED ones
# are about faults under load and several servers, and run with the race detector, in the test and in the program. TestPrograms checks that each is in one list.
# PROGRAM=raced runs all of them with the detector. PROGRAM=shipped: the tests have the detector, except those of PLAIN, and no program has it.
PLAIN   := cmd/gozzard test/tenants test/console test/pages test/packages test/compat test/fleettest test/identity test/notify
RACED   := test/faults test/cluster test/soak test/ledger
PROGRAM ?=

# Under the race detector every program that ends waits a second for late reports; these tests start hundreds.
.PHONY: test
test: deps-test web ## vet and all tests, with the race detector where it can find something, a line for every package as it ends; fuzz targets try random inputs for FUZZTEST
	@CGO_ENABLED=0 go build -trimpath -o bin/testsummary ./tools/testsummary
	@race='-race $(NORACE)'; export CGO_ENABLED=1; command -v gcc >/dev/null || { race=; CGO_ENABLED=0; echo "test: no C compiler, so without the race detector"; }; \
	export GORACE=atexit_sleep_ms=50 GOZZARD_FUZZ_TIME=$(FUZZTEST) GOZZARD_TEST_PROGRAM=$(PROGRAM) GOZZARD_BUILDS=$$(mktemp -d); trap 'rm -rf "$$GOZZARD_BUILDS"' EXIT; \
	export GOZZARD_PLAIN='$(if $(filter raced,$(PROGRAM)),,$(PLAIN))' GOZZARD_RACE="$$race"; \
	failed() { printf '{"Action":"exit","Code":%d}\n' $$?; }; \
	packages=$$(go list -e $(LONGEST) $(PACKAGES)); plain=$$(.ci/gotest plain $$packages); raced=$$(.ci/gotest raced $$packages); \
	flags='-json -vet=all -p $(ATONCE) -parallel 4 -timeout 60m'; \
	{ $(if $(WHOLE),CGO_ENABLED=0 go test -json -trimpath -vet=off -run '$(MODELS)' . ./internal/supervise || failed;) \
	[ -z "$$plain" ] || CGO_ENABLED=0 go test -trimpath $$flags $$plain || failed; \
	[ -z "$$raced" ] || go test $$race $$flags $(if $(WHOLE),-skip '$(MODELS)|$(QUICK)') $$raced || failed; } | \
	bin/testsummary -skips .ci/skips $(STRICT) -again $(AGAIN) .ci/gotest alone

.PHONY: test-raced
test-raced: ## make test with the race detector in every test and in every program (an hour on two cores; for every night)
	@$(MAKE) test PROGRAM=raced

.PHONY: deps-test
deps-test: ## Debian packages that tests need, when missing
	@.ci/deps

.PHONY: check
check: ## gofmt, vet, staticcheck, licences, govulncheck
	@bad=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$bad" ]; then echo "gofmt would change:"; echo "$$bad"; exit 1; fi; echo "gofmt: ok"
	go vet ./...
	@echo "vet: ok"
	$(TOOL) staticcheck ./...
	@echo "staticcheck: ok"
	go run ./tools/supply licences -platforms '$(PLATFORMS)' ./cmd/gozzard
	@.ci/vulncheck $(TOOL) govulncheck ./...

.PHONY: cross
cross: web ## build for every platform
	@for p in $(PLATFORMS); do \
		out=bin/gozzard-$${p%/*}-$${p#*/}; [ $${p%/*} = windows ] && out=$$out.exe; \
		echo "$$p"; GOOS=$${p%/*} GOARCH=$${p#*/} $(GOBUILD) -o $$out ./cmd/gozzard; \
	done

.PHONY: release
release: web ## govulncheck, then reproducible binaries with bills of materials, licences and checksums in DIST; RELEASE_KEY=FILE signs them
	@.ci/vulncheck --strict $(TOOL) govulncheck ./...
	@.ci/release '$(VERSION)' '$(DIST)' $(PLATFORMS)

.PHONY: verify
verify: ## check the signature and checksums of DIST with the public key RELEASE_PUB=FILE
	CGO_ENABLED=0 go run -trimpath ./tools/supply verify -key '$(RELEASE_PUB)' '$(DIST)'

.PHONY: model
model: ## the delivery protocol and supervision, larger configurations (minutes)
	go test -count=1 -timeout 60m -v -run 'TestProtocol' . -model.full
	go test -count=1 -timeout 60m -v -run 'TestSupervision' ./internal/supervise -model.full

.PHONY: faults
faults: ## crash, power-cut, silence and full-disk tests with their figures
	go test -count=1 -timeout 60m -v ./test/faults/... -faults.scale=$(SCALE)
	go test -count=1 -timeout 60m -v -run 'TestP|TestTI2|TestTE|TestTT4' ./internal/host -host.reuses=$$((1000 * $(SCALE)))

.PHONY: file-kills
file-kills: ## fault A26: the agent is killed 1,000 times while it writes a file; torn files, lost backups and wrong verdicts
	go test -count=1 -timeout 90m -v -run TestA26 ./test/faults -faults.filekills=1000

# The same tests with the record in PostgreSQL. A test that is about the file may be skipped only when .ci/skips-postgres lists it.
.PHONY: faults-postgres
faults-postgres: ## the tests of faults and of the fleet again, with the record of every server in PostgreSQL; lists what is skipped, and why
	@CGO_ENABLED=0 go build -trimpath -o bin/testsummary ./tools/testsummary
	@export GOZZARD_TEST_RECORD=postgres GOZZARD_TEST_POSTGRES=require GOZZARD_BUILDS=$$(mktemp -d); trap 'rm -rf "$$GOZZARD_BUILDS"' EXIT; \
	go test -json -count=1 -parallel 4 -timeout 60m ./test/faults ./test/fleettest | \
	bin/testsummary -skips .ci/skips-postgres -strict -again $(AGAIN) go test -json -timeout 60m

.PHONY: faults-cluster
faults-cluster: ## several servers on one record: 20 kills, failovers of PostgreSQL, freezes and cuts of 60 s, with 10,000 operations under kills and failovers; a table
	GOZZARD_TEST_POSTGRES=require go test -count=1 -parallel 1 -timeout 240m -v -run 'TestC[0-9]' ./test/cluster -cluster.kills=20 -cluster.operations=10000 \
		-cluster.times=3 -cluster.frozen=60s -cluster.out=$(CURDIR)/test/cluster/RESULTS.md

.PHONY: try-cluster
try-cluster: deps-test ## docs/try-several-servers.md: three servers, HAProxy, a relay and five hosts, each part killed ROUNDS (5) times under load (needs root)
	GOZZARD_TEST_POSTGRES=require go test -count=1 -timeout 60m -v -run TestTrySeveralServers ./test/pages -try.rounds=$(ROUNDS)

PREVIOUS ?= $(shell git describe --tags --abbrev=0 2>/dev/null)
.PHONY: upgrade-cluster
upgrade-cluster: ## servers on one record are upgraded one by one under load, from PREVIOUS (a tag or commit) to this version
	@test -n "$(PREVIOUS)" || { echo "make upgrade-cluster PREVIOUS=COMMIT"; exit 2; }
	@dir=$$(mktemp -d) && trap 'git worktree remove --force "$$dir/source"; rm -rf "$$dir"' EXIT && \
	git worktree add -q --detach "$$dir/source" $(PREVIOUS) && \
	(cd "$$dir/source" && CGO_ENABLED=0 go build -trimpath -o "$$dir/gozzard" ./cmd/gozzard) && \
	GOZZARD_TEST_POSTGRES=require go test -count=1 -timeout 30m -v -run 'TestC8' ./test/cluster -cluster.previous="$$dir/gozzard"

.PHONY: soak
soak: deps-test ## hundreds of odd daemons, callers on every door and random faults for SOAK (10m), and a table that must be all zeros; SEED repeats a plan
	go test -count=1 -timeout 12h -v -run TestSoak ./test/soak -soak.for=$(SOAK) -soak.seed=$(SEED) -soak.processes=250 -soak.callers=24

.PHONY: cycles
cycles: ## fault A16: 100,000 starts and stops on one agent, and what they leave behind (an hour)
	go test -count=1 -timeout 180m -v -run TestA16Cycles ./test/faults -faults.cycles=$(CYCLES)

.PHONY: idle
idle: ## fault P11: an hour in which no limit may be seen as exceeded
	go test -count=1 -timeout 90m -v -run TestP11Idle ./test/faults -faults.idle=1h

.PHONY: flood
flood: ## threats TD1, TD3 and TS2: 2,000 slow connections and 1,000 wrong logins a second beside valid callers; one agent that floods beside 999; 100,000 guesses
	go test -count=1 -timeout 20m -v -run TestTD1Flood ./test/faults -faults.slow=2000 -faults.bad=1000 -faults.flood=15s
	go test -count=1 -timeout 20m -v -run TestTS2Many ./internal/ratelimit -guard.guesses=100000
	go test -count=1 -timeout 20m -v -run TestTD3AgentFlood ./test/faults -faults.hosts=999 -faults.agentflood=30s

.PHONY: network
network: ## faults N1 to N3 and A10 between network namespaces, with 1,000 operations sent while one direction is lost
	go test -count=1 -timeout 20m -v -run TestNetwork ./test/faults -faults.scale=20

.PHONY: reconnect
reconnect: ## threat TD5, faults N9 and V20: 2,000 hosts come back all at once, also in the middle of a task on all of them
	go test -count=1 -timeout 20m -v -run 'TestN9|TestV20' ./test/faults -faults.comeback=2000

.PHONY: overload
overload: ## faults V15 and V19: three times what the server can do on 1,000 hosts for 30 s, and 1,000 callers that all retry at once
	go test -count=1 -timeout 30m -v -run TestV15 ./test/faults -faults.overload.hosts=1000 -faults.overload=30s
	go test -count=1 -timeout 20m -v -run TestV19 ./test/faults -faults.callers=1000

.PHONY: fleet
fleet: ## 2,000 simulated hosts are registered, operated and listed
	go test -count=1 -timeout 20m -v -run TestManyHosts ./test/fleettest -fleettest.hosts=2000

.PHONY: swaps
swaps: ## threat TT4: a million swaps of links in a minute or more, while commands start and stop
	go test -count=1 -timeout 30m -v -run TestTT4Swapped ./internal/host -host.reuses=8000 -host.swaps=1000000 -host.swapfor=60s

.PHONY: tenants
tenants: ## threats TI3 and TE6: 10,000 random requests of one tenant beside another, and 10,000 with real processes on a shared host
	go test -count=1 -timeout 30m -v -run 'TestTI3|TestJudge' ./test/tenants -requests 10000 -shared.requests 10000

.PHONY: bench-quick
bench-quick: ## a short run of every benchmark, without figures
	go test -count=1 -timeout 30m -run 'TestQuick' ./bench/...

.PHONY: bench
bench: ## figures beside those of peers: the path of an operation, businesses, and the agent beside other supervisors (an hour and three quarters)
	go run ./bench/spine
	go run ./bench/topology
	go run ./bench/supervisors
	go run ./bench/supervisors -single

.PHONY: bench-before
bench-before: ## the path of an operation with the program of the commit BEFORE and with that of this tree, in turns (20 minutes)
	@test -n "$(BEFORE)" || { echo "usage: make bench-before BEFORE=COMMIT" >&2; exit 2; }
	dir=$$(mktemp -d); trap 'git worktree remove --force $$dir/tree; rm -rf $$dir' EXIT; \
	git worktree add -q --detach $$dir/tree $(BEFORE) && \
	(cd $$dir/tree && CGO_ENABLED=0 go build -trimpath -o ../before ./cmd/gozzard) && \
	go run ./bench/spine -before $$dir/before -only single,ingest,fanout,large -out bench/spine/BEFORE.md

.PHONY: bench-fleet
bench-fleet: ## 1,000, 10,000 and 19,000 simulated agents, plain and over TLS, beside bare NATS (half an hour; QUICK=-quick for 1,000 in four minutes)
	go run ./bench/fleet $(QUICK)
	go run ./bench/fleet -growth $(QUICK)

.PHONY: bench-scale
bench-scale: ## 50,000 simulated agents over TLS at three servers on one PostgreSQL, beside bare NATS and bare PostgreSQL (an hour; QUICK=-quick for 300 in two minutes)
	@.ci/deps
	go run ./bench/scale $(QUICK)

.PHONY: bench-console
bench-console: build ## the console with 1,000,000 simulated processes and 20,000 changes a second, in Chromium, beside its limits
	@.ci/deps
	go run ./bench/console

.PHONY: first-hour
first-hour: ## the first steps of a new user in a fresh Debian, beside pm2's, with their times (needs root and the registries; minutes)
	@.ci/deps packages
	go run ./bench/firsthour

.PHONY: bench-templates
bench-templates: ## 10,000 instances of a template of 20 KB, beside Mako of Debian (some minutes; QUICK=-quick for some seconds)
	@.ci/deps mako
	go run ./bench/templates $(QUICK)

.PHONY: bench-metrics
bench-metrics: ## scrapes of an agent with 1,000 processes: time, bytes, and the processor time of the agent with and without them (three minutes; QUICK=-quick for some seconds)
	go run ./bench/metrics $(QUICK)

.PHONY: bench-supervisors
bench-supervisors: ## the agent beside other supervisors, which it installs, with many processes, and its profiles (an hour and a half)
	go run ./bench/supervisors
	go run ./bench/supervisors -single

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME, guided by coverage
	@grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do \
		for f in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go | cut -c6-); do \
			echo "$$dir $$f"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$dir; \
		done; \
	done

.PHONY: fuzz-mako
fuzz-mako: ## random templates beside Mako of Debian for MAKOTIME
	@.ci/deps mako
	GOZZARD_MAKO_TIME=$(MAKOTIME) go test -tags mako -count=1 -timeout 0 -run 'TestBesideMako|TestQuickRun' -v ./internal/mako ./bench/templates

.PHONY: clean
clean: ## remove what was built
	rm -rf bin $(DIST) web/node_modules web/src/api-types.ts
	find internal/console/dist -mindepth 1 ! -name '.*' -delete
