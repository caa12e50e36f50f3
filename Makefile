# Everything a person or CI does with this tree. `make help` lists it.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  = -s -w -X gangd/pkg/api.Version=$(VERSION)
# gnoded alone is built with cgo (NVML loads the driver's library); without a C compiler it
# is built too, and says "built without NVML".
CC_FOUND := $(shell command -v $(or $(CC),gcc) >/dev/null 2>&1 && echo 1 || echo 0)
PURE     = $(filter-out ./cmd/gnoded ./cmd/gpmix,$(wildcard ./cmd/*))

.PHONY: help build install packages try-packages test check quick deep vuln size unit race e2e controllers ends chaos vm properties recipe fuzz sim model mutants bench scale compare traces sensitivity uplot axe stacks browser demo clean
.DEFAULT_GOAL := build

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-8s %s\n", $$1, $$2}'

build: ## all programs, into bin/
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ $(PURE)
	CGO_ENABLED=$(CC_FOUND) CGO_CFLAGS='-O2 -g -Wno-deprecated-declarations' go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/gnoded ./cmd/gpmix

PREFIX ?= /usr/local
install: build ## programs, Slurm's names, manual pages and completions below PREFIX (/usr/local)
	@scripts/install $(PREFIX)

packages: build ## packages for Debian and Red Hat, into bin/packages
	@scripts/packages $(PACKAGE_VERSION)

try-packages: build ## their ways in and out in a Debian below TRY (/var/tmp/gangd-packages): install, upgrade, purge ...; as root, minutes
	@mkdir -p $(or $(TRY),/var/tmp/gangd-packages) && scripts/try-packages $(or $(TRY),/var/tmp/gangd-packages)

# AGAIN=-again: what fails is run once more, and only what fails twice fails.
GOTEST = go run ./scripts/gotest $(AGAIN) -notes=$(CURDIR)/bin/tests.tsv
# As on a bare machine, and those that say that they lack a program once more with what is installed.
BARE = -bare="$(CURDIR)/scripts/bare --here"

test: ## all that CI runs; at its end the slowest tests, and what was skipped, and why
	@rm -f bin/tests.tsv
	$(MAKE) quick unit
	$(MAKE) -j2 -Otarget e2e deep
	$(MAKE) demo
	@go run ./scripts/gotest -report=bin/tests.tsv

TOOL = go tool -modfile=tools/go.mod

check: quick deep ## formatting, vet, tidy modules, staticcheck, who may import whom, manual pages, known bugs are built

quick:
	@test -z "$$(gofmt -l cmd pkg e2e bench examples man scripts)" || { gofmt -l cmd pkg e2e bench examples man scripts; echo "run gofmt -w on these"; exit 1; }
	go vet ./...
	go mod tidy -diff
	cd tools && go mod tidy -diff
	go test -count=1 ./pkg ./man

# The parts of check that take a processor for minutes: make test has them beside e2e, which mostly waits.
deep:
	nice -n 19 $(TOOL) staticcheck ./...
	nice -n 19 go test -count=1 ./pkg/lab/sim -run '^TestBugsAreBuilt$$'

vuln: ## known vulnerabilities in what our code calls; needs vuln.go.dev, or GOVULNDB=file:///COPY (docs/security.md)
	$(TOOL) govulncheck -test ./...

size: ## lines of what the installed programs are made of, a row a package
	scripts/size

unit: build ## unit, property and command tests
	$(GOTEST) $(BARE) -parallel=6 ./cmd/... ./pkg/... ./man/... ./examples/... ./scripts/...

race: ## the same under the race detector
	CGO_ENABLED=1 go test -race ./cmd/... ./pkg/...

e2e: build ## real daemons, real processes
	$(GOTEST) -count=1 -p=2 -parallel=5 -timeout=15m ./e2e/...

controllers: build ## two controllers and their database under load: each thing that can happen to either, ROUNDS (50) times, 2 hours
	GANG_E2E_CHAOS=1 GANG_E2E_ROUNDS=$(or $(ROUNDS),50) go test -count=1 -timeout 6h -v ./e2e \
	  -run '^(TestControllers|TestNobodyLeads|TestRollingUpgrade|TestLeaderCutFromNodes|TestOneDeadTheOtherCut|TestPromotionUnderControllers|TestReplicaLacksCommits|TestManyNodesFindTheLeader)$$'

model: ## every order of what can happen to two controllers, a node and its process, minutes: DEPTH (10) events
	go test -count=1 -v -timeout 2h ./pkg/lab/model -model.depth=$(or $(DEPTH),10)

ends: build ## how gangs end: who hears, who is blamed, what was used, what is saved, what epilogs hold; as root, half an hour
	@cd e2e && e() { GANG_E2E_CHAOS=1 GANG_E2E_ROUNDS=$$1 go test -count=1 -timeout 2h -v . -run "^($$2)$$"; } && \
	  e 8 TestWhoEndsItsOwnJobHearsTheAnswer && e 20 'TestWhoIsBlamed|TestSavesSurviveTheStop|TestEndIsToldBeforeTheEpilog' && \
	  e 1 'TestKillsForMemoryAreSeen|TestWhatWasUsedHoweverItEnded'

VM ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/gangd/vm
chaos: build ## hosts that really break, as root, minutes: all of e2e, and a table of what was found
	@rm -f bin/chaos.tsv
	@! command -v qemu-system-x86_64 >/dev/null || scripts/vm-kernel $(VM) || echo "no kernel for a virtual machine: its tests are skipped"
	@GANG_E2E_CHAOS=1 GANG_VM=$(VM) GANG_E2E_TABLE=$(CURDIR)/bin/chaos.tsv go test -count=1 -p 1 -timeout 60m ./e2e/...; \
	  rc=$$?; [ ! -e bin/chaos.tsv ] || scripts/chaos-table bin/chaos.tsv; exit $$rc
	go test -count=1 -v ./pkg/node/noded ./pkg/controller/store/sqlitestore -run '^TestDamage$$' -damage.places=1000
	go test -count=1 -v ./pkg/controller/store/pgstore -run '^(TestRestart|TestPromotion)$$' -pgstore.rounds=20 -timeout 1h

vm: ## jobs' limits on kernels of their own (qemu-system-x86; Debian's kernel is downloaded to VM): cgroup v2, v1, both, none
	scripts/vm-kernel $(VM)
	GANG_VM=$(VM) go test -count=1 -timeout 3h ./e2e/limits -run TestVM

attack: build ## what users, nodes and strangers may try against a site, as root, half an hour: a line for each try, HELD or BROKE; TRIES="^page/" some of them
	GANG_E2E_CHAOS=1 GANG_E2E_TRIES='$(TRIES)' go test -count=1 -timeout 3h ./e2e/attack -v

CHECKS ?= 10000
properties: ## the property tests with CHECKS (10000) draws each in place of 100, and ten times as many histories of cards
	GANG_HISTORIES=$$(($(CHECKS) * 10)) go test -count=1 -timeout 1h ./pkg/core/gang -run NeverOverCommitted
	go test -count=1 -timeout 1h ./pkg/controller/rpc -run NoFieldCosts -rpc.costs
	go test -count=1 -timeout 2h $$(grep -rl 'rapid\.Check' --include='*_test.go' pkg | xargs -n1 dirname | sort -u | sed 's|^|./|') -rapid.checks=$(CHECKS)

recipe: ## an option added as CONTRIBUTING says, and all programs built with it
	GANG_RECIPE=1 go test ./pkg -run TestOptionByTheRecipe -v

FUZZTIME ?= 20s
fuzz: ## each fuzz target for FUZZTIME (20s; 1000000x: so many inputs)
	@go list ./pkg/... ./cmd/... | while read p; do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "== $$p $$f"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x $$p || exit 1; done; done

SIM ?= 10000
SEED ?= 1
sim: ## SIM (10000) random schedules of a simulated cluster from SEED (1) on, and as many of several controllers
	go test -count=1 -timeout 2h -v ./pkg/lab/sim -run RandomSchedules -sim.schedules=$(SIM) -sim.seed=$(SEED)
	GOGC=400 go test -count=1 -timeout 4h -v ./pkg/lab/sim -run RandomControllers -sim.schedules=$$((2 * $(SIM))) -sim.seed=$(SEED)
	go test -count=1 -timeout 1h -v ./pkg/lab/sim -run 'CrashPoints|^TestDirected$$' -sim.full

MUTANTS ?= 600
mutants: ## known bugs put back one at a time, and MUTANTS (600) small changes drawn by SEED (1); writes docs/mutants.md
	nice go test -count=1 -timeout 1h -v ./pkg/lab/sim -run '^TestBugs$$' -sim.bugs -sim.schedules=2000 -sim.report=$(CURDIR)/docs/mutants.md
	@mkdir -p bin
	nice go run ./pkg/lab/mutants -seed $(SEED) -mutants $(MUTANTS) -report docs/mutants.md

bench: build ## gangd beside Slurm (where it is installed), in one run
	go run ./bench

scale: build ## gangd with 100, 1,000 and 10,000 nodes without processes, gangs of up to 2,048 of them, 100,000 jobs that wait, a million that ended, minutes
	for n in 100 1000; do go run ./bench/scale -nodes $$n -stop 10s; done
	go run ./bench/scale -nodes 10000 -held 256 -busy 4 -idle 60s -stop 10s
	go run ./bench/scale -nodes 2048 -idle 1s -gangs 128,256,512,1024,2048
	go run ./bench/scale -nodes 8 -idle 1s -waiting 100000
	go run ./bench/scale -nodes 8 -idle 1s -ended 1000000

compare: build ## the same command lines on gangd and on a real Slurm, as root, minutes: what differs, and whether docs say why
	GANG_COMPARE=all go test -count=1 -v -timeout 30m ./e2e/beside -run 'BesideSlurm|Document|Table'

GANG_TRACES ?= ../shared/traces
traces: build ## our rows beside published ones (GANG_TRACES, ../shared/traces)
	bin/gangsim rows --traces=$(GANG_TRACES)

sensitivity: ## the traces with each constant of docs/scheduling.md halved and doubled, an hour of CPU; CONSTANTS="giveWay ..." some of them
	scripts/sensitivity $(GANG_TRACES) bin/sensitivity 2 $(CONSTANTS)

UPLOT = 1.6.32
UPLOT_SHA512 = 2883159c6ebccefbb95d751b0b82d010f9e1c0ec41b8bc96d401eda66e882935c89a46cb824332fa369b8cb8122cc6ac36e186cd09bf7a9ded3a4c93c6989023
uplot: ## bring uPlot, which draws in reports, from npm
	@d=$$(mktemp -d); trap 'rm -rf "$$d"' EXIT; cd "$$d" && npm pack --silent uplot@$(UPLOT) && \
	  echo "$(UPLOT_SHA512)  uplot-$(UPLOT).tgz" | sha512sum -c && tar xzf uplot-$(UPLOT).tgz && \
	  install -Dm644 -t $(CURDIR)/pkg/core/plot/html/uplot package/LICENSE package/dist/uPlot.iife.min.js package/dist/uPlot.min.css

AXE = 4.14.1
AXE_SHA512 = 1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5
axe: ## bring axe-core, which looks for what people with a screen reader would miss, from npm into bin/
	@d=$$(mktemp -d); trap 'rm -rf "$$d"' EXIT; cd "$$d" && npm pack --silent axe-core@$(AXE) && \
	  echo "$(AXE_SHA512)  axe-core-$(AXE).tgz" | sha512sum -c && tar xzf axe-core-$(AXE).tgz && \
	  install -Dm644 -t $(CURDIR)/bin package/axe.min.js

stacks: build ## gangs of PyTorch in which one rank is elsewhere, N (100), and as many in which none is
	GANG_STACKS=$(or $(N),100) go test -count=1 -timeout 2h -v ./e2e -run TestOddOneOut

browser: build ## the page in a real Chromium, all flows (chromium-headless-shell); GANG_SHOTS=DIR keeps pictures
	GANG_BROWSER=all go test -count=1 -v -timeout 20m ./e2e/browser

demo: build ## a small cluster, a real gang, start to finish
	scripts/demo.sh

clean: ## remove what was built
	rm -rf bin
