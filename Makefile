# Targets by what one wants; `make` alone lists them.
GO       ?= go
TOOL      = $(GO) tool -modfile=tools/go.mod
FUZZTIME ?= 60s
BENCH    ?= .
PKG      ?= ./...
TESTFLAGS ?=
# How long the tests of one package may take: it ends what hangs, and leaves room
# for a machine that is slow and busy (the longest package takes two minutes).
TESTTIME ?= 40m
# What make bench and bench-table measure: the stages, the engine's queue, the
# trace writer. Rooms keep more benchmarks; bench-once runs them all.
BENCHPKG ?= ./dev/benchmarks ./sim/internal/event ./trace/chrome
ALLBENCH  = $(shell git grep -l '^func Benchmark' -- '*_test.go' | sed 's,^,./,; s,/[^/]*$$,,' | sort -u)
# go-nvml binds functions that its own header calls deprecated; with cgo the C
# compiler would fill the screen with that.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations
# Packages that decide as NCCL does, and those of their tests that compare with
# what NCCL, a reference or a golden file says: they are run again as compiled
# where x*y+z may be fused, and on one processor.
PARITY   ?= ./search ./tuning ./connect ./topo ./topo/fabric ./plan/... ./comm ./study/decision ./study/ncclog ./study/logcheck ./explain ./dev/parity
PARITYRUN ?= NCCL|Parity|Decisions|Reference|Dumps|Logs|GOAL|BitForBit|Stories|Explains|Segments|BruteForce|Collisions

# Packages that could race (.ci/concurrent says why those); ./... for all.
RACEPKG  ?= $(shell .ci/concurrent)
# Packages of which cgo selects other files.
CGOPKG   ?= $(shell git grep -lE '^//go:build .*\bcgo\b' -- '*.go' | sed 's,^,./,; s,/[^/]*$$,,' | sort -u)
# Packages with tests that need hardware, and skip where it is absent.
DEVICEPKG ?= $(shell git grep -l 'require\.Hardware' -- '*_test.go' | sed 's,^,./,; s,/[^/]*$$,,' | sort -u)

# The engine, packets and trace writers are compiled by a profile of where their time
# goes (make profile, docs/adr/0025-a-profile-for-hot-packages.md); PGO= does without.
# Its path is relative: it is in the program's build information.
PGO     ?= $(wildcard dev/cmd/hotprofile/*.pgo)
HOTROOMS = sim packet trace internal/protowire
HOT      = $(if $(PGO),$(foreach r,$(HOTROOMS),-gcflags=github.com/simccl/simccl/$(r)/...=-pgoprofile=$(PGO)))

# Symbols and DWARF are a quarter of the program; stack traces and profiles need
# neither. LDFLAGS= keeps them, for a debugger.
LDFLAGS ?= -s -w

.DEFAULT_GOAL := help

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The web page is in the program where make web has built it.
WEBTAG    = $(if $(wildcard app/web/page/site/dist/index.html.gz),-tags webpage)

.PHONY: build
build: ## bin/simccl, without cgo: NVML, CUDA, NCCL and verbs are opened at run time; with the web page after make web
	CGO_ENABLED=0 $(GO) build -trimpath $(HOT) $(WEBTAG) -ldflags '$(LDFLAGS)' -o bin/simccl ./cmd/simccl

.PHONY: house
house: ## the shape of the house: packages, lines, imports that lead up or in circles
	@$(GO) run ./dev/cmd/source lint -shape .

.PHONY: api
api: ## the exported names of the promised packages against dev/api: what went, or has another type, fails (docs/LIBRARY.md)
	@$(GO) run ./dev/cmd/source api

.PHONY: api-record
api-record: ## dev/api anew, in the commit that changes what is promised; read the diff
	@$(GO) run ./dev/cmd/source api -write

.PHONY: profile
profile: ## the profile by which make build compiles the engine, packets and trace writers (half a minute, on a quiet machine)
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/unprofiled ./cmd/simccl
	$(GO) run ./dev/cmd/hotprofile -tool bin/unprofiled

web/node_modules/.package-lock.json: web/package-lock.json
	cd web && npm ci --silent
	touch $@

.PHONY: sizes
sizes: ## machine code of bin/simccl by module and room (CONTRIBUTING.md)
	@GO="$(GO)" scripts/sizes.sh $(HOT)

# What a page runs a few times at most is compiled without inlining: calls compress well, so that the page is
# a fifteenth smaller. What its seconds are spent in, topo to job, keeps what it inlines.
COLD  = app/... study/... workload/... explain/... trace/... scenario config/... topo/lint topo/smi \
        topo/lstopo topo/machine topo/site
SMALL = $(foreach p,$(COLD:%=github.com/simccl/simccl/%) github.com/google/... encoding/xml regexp/... time,-gcflags=$(p)=-l)

.PHONY: web
web: web/node_modules/.package-lock.json ## web/dist: the web page as a static site, and packed for make build (needs npm)
	cd web && npx tsc --noEmit
	GOOS=js GOARCH=wasm $(GO) build -trimpath $(SMALL) -ldflags '-s -w $(if $(VERSION),-X main.version=v$(VERSION:v%=%))' -o bin/simccl.wasm ./cmd/wasm
	cd web && node build.mjs dist ../app/web/page/site/dist ../bin/simccl.wasm "$$($(GO) env GOROOT)/lib/wasm/wasm_exec.js"

.PHONY: web-pictures
web-pictures: web build ## docs/img/web-*.jpg, trace.png, lanes.png and report.png, from the page and a report in Chromium
	cd web && node pictures.mjs $(CURDIR)/bin/simccl ../docs/img

.PHONY: web-test
web-test: web build ## the page in Chromium, driven as a user drives it: files, times, cancel, offline, keyboard, axe, sizes
	$(GO) test -vet=off -tags webpage ./app/cli/root
	cd web && SIMCCL=$(CURDIR)/bin/simccl node --test test/

.PHONY: python
python: build ## tests and notebook of python/, with bin/simccl
	SIMCCL_PROGRAM=$(CURDIR)/bin/simccl PYTHONDONTWRITEBYTECODE=1 python3 -m unittest discover -s python/tests

.PHONY: release
release: $(if $(shell command -v npm),web) ## dist/: programs for linux, darwin and windows (with the web page where npm is), packages, checksums; VERSION=v0.1.0, ONLY=linux/amd64
	$(GO) run ./dev/cmd/release -version '$(VERSION)' -only '$(ONLY)' -page=$(if $(shell command -v npm),true,false) -flags '$(HOT)' -out dist

WASMPKG   = $(GO) list ./... | grep -vE '/simccl/(real|topo/detect|cmd/simccl|app|dev|examples|intercept|internal|study)(/|$$)'
.PHONY: wasm
wasm: ## build for js/wasm all that needs no hardware: the library's packages but real and topo/detect, and the page's program
	GOOS=js GOARCH=wasm $(GO) build -trimpath $$($(WASMPKG))

.PHONY: wasm-types
wasm-types: ## the packages of make wasm, type-checked
	$(GO) run ./dev/cmd/source crosscheck js/wasm $$($(WASMPKG))

.PHONY: plugin
plugin: ## bin/libnccl-profiler-simccl.so: NCCL's own events as a trace (needs gcc)
	$(CC) -O2 -Wall -Wextra -shared -fPIC -o bin/libnccl-profiler-simccl.so real/internal/nccl/profiler/profiler.c -lpthread

.PHONY: shim
shim: build ## bin/simccl-shim: the libraries that intercepted programs load (needs a C compiler); without it intercept builds them on first use
	$(GO) run ./dev/cmd/release -shim bin/simccl-shim -cc $(CC)

# Packages whose tests take longest go first, so that no other processor waits for them.
LONGEST   = $(if $(filter ./...,$(PKG)),./sim ./cmd/simccl ./real/internal/device)
.PHONY: test
test: ## what a change has to pass: build, lint, short tests, full tests of what depends on the change, race, generated files (5 minutes)
	.ci/test

.PHONY: test-all
test-all: ## everything there is to pass: every test, fused multiply-add, fuzz, Chromium, Slurm, soft-RoCE, other systems (15 minutes)
	CI_FULL=1 .ci/run

.PHONY: suite
suite: ## every test that needs no special hardware, of PKG
	$(GO) test -timeout $(TESTTIME) $(TESTFLAGS) $(LONGEST) $(PKG)

.PHONY: test-short
test-short: ## the tests without the long ones (-short)
	$(GO) test -short -timeout $(TESTTIME) $(TESTFLAGS) $(PKG)

# A program under the detector sleeps a second before it ends, to see what other
# goroutines still do; the commands of tests end hundreds of times.
.PHONY: race
race: ## the short tests under the race detector, of RACEPKG (what starts goroutines)
	CGO_ENABLED=1 GORACE="atexit_sleep_ms=20 $(GORACE)" $(GO) test -race -short -timeout $(TESTTIME) $(TESTFLAGS) $(RACEPKG)

.PHONY: cgo
cgo: ## vet, staticcheck and the tests of what is written twice, as built with cgo (needs a C compiler)
	CGO_ENABLED=1 $(GO) vet $(CGOPKG)
	check=$$($(TOOL) -n staticcheck) && CGO_ENABLED=1 $$check $(CGOPKG)
	CGO_ENABLED=1 $(GO) test -timeout $(TESTTIME) $(TESTFLAGS) $(CGOPKG)

.PHONY: lint
lint: fmt-check ## gofmt, vet, staticcheck, and the rules of the house
	@bad=0; for check in "$(GO) vet ./..." "$(TOOL) staticcheck ./..." "$(GO) run ./dev/cmd/source lint ."; do \
		echo "$$check"; $$check || bad=1; done; exit $$bad

.PHONY: fmt-check
fmt-check:
	@bad=$$(git ls-files '*.go' | xargs gofmt -l); test -z "$$bad" || { echo "gofmt would change: $$bad"; exit 1; }

.PHONY: vuln
vuln: ## known vulnerabilities in what is called (asks the Go vulnerability database)
	$(TOOL) govulncheck ./...

.PHONY: golden
golden: ## rewrite our own golden files; read the diff before committing it
	SIMCCL_UPDATE=1 $(GO) test -count=1 -timeout $(TESTTIME) $(PKG)
	git status --short

.PHONY: generate
generate: ## run the generators; a clean tree must stay clean
	$(GO) generate ./...
	@if command -v clang-16 >/dev/null && command -v zstd >/dev/null; then real/internal/cuda/kernels/generate.sh; else echo "left out: real/internal/cuda/kernels needs clang-16 and zstd"; fi

.PHONY: upgrades
upgrades: ## docs/results/UPGRADES.md: what changes from each release of NCCL to the next
	$(GO) run ./dev/cmd/pages upgrades testdata/topos docs/results/UPGRADES.md

.PHONY: machines
machines: ## docs/results/MACHINES.md and the decisions of testdata/machines
	@if [ -d ../shared/topos ]; then $(GO) run ./dev/cmd/pages machines -beside ../shared/topos dev/cmd/pages/beside.md; else echo "left out: the table beside real files, which are not here"; fi
	$(GO) run ./dev/cmd/pages machines docs/results/MACHINES.md
	$(GO) run ./cmd/simccl check testdata/machines --update

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (60s) each
	.ci/fuzz $(FUZZTIME) $(PKG)

.PHONY: calibration
calibration: build ## fit a class to the calibrations of testdata/measured and hold it against later runs
	for m in h200x4/calibrate h200x2/calibrate h200x2/unseen h200x2/fresh; do \
		bin/simccl calibrate fit testdata/measured/$$m/first --out bin/class.json || exit; \
		for run in later hour_later unseen fresh; do \
			dir=testdata/measured/$$m/$$run; [ -d $$dir ] || continue; \
			bin/simccl calibrate check $$dir --machine-class ./bin/class.json \
				--ops all_reduce,all_gather,reduce_scatter,broadcast,reduce --within 0.05 || exit; done; done

.PHONY: parity-v3
parity-v3: ## parity as compiled for CPUs with fused multiply-add, on one processor
	GOAMD64=v3 GOMAXPROCS=1 $(GO) test -count=1 -timeout $(TESTTIME) -run '$(PARITYRUN)' $(TESTFLAGS) $(PARITY)

.PHONY: bench
bench: ## BENCH (all) ten times, compared with dev/benchmarks/baseline.txt
	$(GO) test $(HOT) -run '^$$' -bench '$(BENCH)' -benchmem -count=10 -timeout 60m $(BENCHPKG) | tee dev/benchmarks/new.txt
	$(TOOL) benchstat dev/benchmarks/baseline.txt dev/benchmarks/new.txt

.PHONY: bench-once
bench-once: ## each benchmark one time, to see that it runs
	$(GO) test -short -timeout $(TESTTIME) -run '^$$' -bench . -benchtime 1x $(TESTFLAGS) $(ALLBENCH)

.PHONY: bench-table
bench-table: ## docs/results/BENCHMARKS.md from a run on this machine, as benchstat prints it
	$(GO) test $(HOT) -run '^$$' -bench . -benchmem -benchtime 150ms -count=6 -timeout 60m $(BENCHPKG) > dev/benchmarks/table.txt
	sed -n '/^## Against the engine of/,$$p' docs/results/BENCHMARKS.md > dev/benchmarks/old.txt
	{ sed '/^## /,$$d' docs/results/BENCHMARKS.md; echo '## Medians'; echo; echo '```'; $(TOOL) benchstat dev/benchmarks/table.txt; echo '```'; \
		echo; cat dev/benchmarks/old.txt; } > dev/benchmarks/page.txt
	mv dev/benchmarks/page.txt docs/results/BENCHMARKS.md

.PHONY: bench-old
bench-old: build ## the engine against that of an old binary, OLD=FILE, into docs/results/BENCHMARKS.md (minutes)
	SIMCCL=$(CURDIR)/bin/simccl SIMCCL_SCALE=1 SIMCCL_OLD=$(abspath $(OLD)) $(GO) test -count=1 -timeout 60m -v -run TestBenchOld ./sim

.PHONY: bench-cores
bench-cores: ## one size on one processor and on all, into docs/results/BENCHMARKS.md (minutes, on a quiet machine)
	SIMCCL_SCALE=1 SIMCCL_CORES=1 $(GO) test -count=1 -timeout 60m -v -run TestBenchCores ./sim

.PHONY: device
device: ## the packages whose tests need a GPU or an RDMA NIC; what is absent is skipped with its name, or fails with SIMCCL_REQUIRE=cuda,nccl,ib
	$(GO) test -count=1 -timeout $(TESTTIME) $(TESTFLAGS) $(DEVICEPKG)

.PHONY: rxe
rxe: ## tests of verbs in a small VM with two soft-RoCE devices (root, Debian; 2 to 6 minutes)
	dev/rxe/check.sh

.PHONY: slurm
slurm: build ## a sweep as an array of a private Slurm, tasks of it killed (root, Debian's slurm-wlm; under a minute)
	scripts/slurm.sh bin/simccl

STUDY    ?= bin/study
.PHONY: study
study: build ## the sweeps of docs/results/STUDY.md in STUDY (bin/study), and its pictures; goes on where it was (ten minutes of a processor)
	scripts/study.sh bin/simccl $(STUDY)

.PHONY: readers
readers: build ## what simccl writes for others (Parquet, Jobs of Kubernetes), read by their libraries
	cd tools/readers && SIMCCL=$(CURDIR)/bin/simccl $(GO) test -count=1 ./...

.PHONY: kubernetes
kubernetes: build ## a sweep as a Job of a Kubernetes API server and its Job controller, pods of it killed (12 minutes of a processor to build, then 20 seconds)
	cd tools/cluster && SIMCCL=$(CURDIR)/bin/simccl $(GO) test -count=1 -v -timeout $(TESTTIME) ./...

.PHONY: accuracy
accuracy: ## docs/results/ACCURACY.md: simulated against measured times
	SIMCCL_UPDATE=1 $(GO) test -count=1 -timeout $(TESTTIME) -v -run Accuracy ./dev/accuracy

.PHONY: own-table
own-table: ## the table of every operation in docs/results/HARDWARE.md, from OWNDIR of OWNGPUS GPUs
	@$(GO) run ./dev/cmd/pages own $(or $(OWNDIR),testdata/measured/h200x2/own-2026-11-23-0940) $(or $(OWNGPUS),2)

.PHONY: accuracy-jobs
accuracy-jobs: ## the columns of simccl in docs/results/ACCURACY-JOBS.md, found anew
	SIMCCL_UPDATE=1 $(GO) test -count=1 -timeout $(TESTTIME) -v -run TestPeers ./study/replay

.PHONY: packets
packets: ## docs/results/PACKETS.md: packets against the reference runs beside the checkout
	SIMCCL_UPDATE=1 $(GO) test $(HOT) -count=1 -timeout $(TESTTIME) -run 'ReferencePage|MeasuredPage' ./study/packetrun
	SIMCCL_UPDATE=1 $(GO) test $(HOT) -count=1 -timeout $(TESTTIME) -run HybridPage ./scenario

# Which of the page's tables make scale writes: ScaleGrowth for the growth in ranks.
SCALE    ?= Scale
.PHONY: scale
scale: build ## docs/results/SCALE.md: time and memory of large communicators
	SIMCCL=$(CURDIR)/bin/simccl SIMCCL_SCALE=1 $(GO) test -count=1 -timeout $(TESTTIME) -v -run '$(SCALE)' ./sim

# docs/results/SCALE.md and docs/results/BENCHMARKS.md from one quiet machine: some eight minutes.
.PHONY: figures
figures: scale bench-table ## docs/results/SCALE.md (but for other simulators) and docs/results/BENCHMARKS.md, on a quiet machine

# Other simulators, as scripts/peers.py says: --loggopsim DIR --astra DIR --versions TEXT
PEERS ?=
.PHONY: peers
peers: build ## docs/results/SCALE.md: other simulators beside simccl (PEERS="--loggopsim DIR --astra DIR")
	scripts/peers.py --simccl bin/simccl --page docs/results/SCALE.md $(PEERS)

.PHONY: reductions
reductions: ## dev/reductions/testdata/table.txt: what is left out of each of 430 requests, and why
	$(GO) test -count=1 ./dev/reductions -update

# These go on where their file ends.
.PHONY: cliffs
cliffs: build ## what default sweeps cost over nodes, operations, algorithms and machines, worst first (CLIFFS="-seed 1 -budget 600")
	$(GO) run ./dev/cmd/reductions cliffs $(CLIFFS) out/cliffs.jsonl

.PHONY: margins
margins: ## approximate times of random requests beside exact ones, worst first (MARGINS="-seed 1 -pairs 100")
	$(GO) run ./dev/cmd/reductions margins $(MARGINS) out/margins.jsonl

.PHONY: mutants
mutants: ## the code changed in one place at a time: which changes no test notices (MUTANTS="-seed 1 -n 100 -in topo,rules"; minutes each)
	$(GO) run ./dev/cmd/mutants $(MUTANTS) out/mutants.jsonl

.PHONY: cited
cited: ## rules that cite NCCL, changed in one place at a time: which of them no test decides (CITED="-in topo -n 20")
	$(GO) run ./dev/cmd/mutants -cited $(CITED) out/cited.jsonl

# How many random programs make equal draws.
EQUAL ?= 500
.PHONY: equal
equal: ## folded = unfolded, skipped = whole and traced = not traced, on many random programs, the stories and every machine at 1 GiB (minutes)
	$(GO) test -count=1 -timeout 120m -v -run 'RandomFoldsEqualUnfolded|FoldedEqualsUnfolded|SkippedEqualsWhole|TimesDependOnTheOperationAlone|Stories' ./sim -rapid.checks $(EQUAL)

.PHONY: budget
budget: ## seconds of what is limited in seconds: the end after a signal, large inputs; of the web page after make web build
	SIMCCL_BUDGET=1 $(GO) test $(HOT) -v -count=1 -timeout 60m -run '^TestBudget$$' ./cmd/simccl
	@if [ -n "$(WEBTAG)" ]; then cd web && node budget.mjs $(CURDIR)/bin/simccl; else echo "web page: not built (make web build)"; fi

.PHONY: ci
ci: ## what a merge has to pass, on a bare machine: make test after what it needs is installed (CI_FULL=1: make test-all)
	.ci/run
