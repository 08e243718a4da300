# SPDX-License-Identifier: Apache-2.0
# Every target installs what it needs, prints its steps, and does little the second time.
#
#   make            the programs, in build/
#   make image      the image that the chart installs: build/image.oci.tar for amd64 and arm64, build/image.tar for this machine's own
#                   architecture (ARCH=arm64: only that one, build/image-arm64.tar)
#   make plugin     the kubectl plugin for both architectures, its archives, and its manifest for krew: build/plugin
#   make check      all checks without a cluster, in a minute or two: build, lint, unit tests, the chart's tests
#   make test       all tests that a change must pass: the tests on real clusters, and all others at the same time
#   make long       tests that take too long for each change; run them before a release; PART="pages stale" selects (docs/dev/testing.md)
#   make emulated-unit   the unit tests on the other architecture, by qemu (a part of make long)
#   make cluster-test SANITIZE=1   the tests of failures again, on a cluster that runs the programs of the sanitized build
#   make demo       watch a ComputeDomain form on a real cluster (KEEP=1 keeps it; MODE=host: host-managed IMEX; MODE=rack: racks; MODE=gpus: also GPUs)
#   make bench      measure latency and cost (MODES, FIGURES, PAIRS, SIZES, VALUES: see test/bench/run)
#   make bench-claims   what a claim per pod, a shared claim and the claim of a PodGroup cost in Kubernetes itself (CD_KUBERNETES, ROUNDS, SIZES, FORMS: see test/bench/claims; DRIVER=yes: with this driver)
#   make scale      the controller with thousands of simulated nodes and a real API server (NODES="100 1000 10000", JSON=FILE)
#   make fuzz       only the fuzzers, each for FUZZ_SECONDS of processor time (default 60)
#   make matrix     the main tests on each version of Kubernetes since 1.32, for hours the first time; writes docs/reference/versions.md
#   make soak       faults on a cluster of six nodes for MINUTES (20), with changing workloads (SEED, FAULTS, WORKLOADS=channel, host-channel or racks: see test/soak/run)
#   make simulate   the controllers in a simulated world, in virtual time: SEEDS (1-200), NODES (4), DOMAINS (3), MINUTES (10), FAULTS (all)
#   make prove      each state that small worlds can reach, in half an hour (docs/dev/proofs.md): WORLDS (all), MEMORY (16, GiB)
#   make mutate     change the code in one place at a time, and check that a unit test fails: FILES (all), RECORD=yes (docs/dev/testing.md)
#   make agree      compare the simulated API server with a real one: SEEDS ("1 2 3 new"), REQUESTS (100000), ALL=yes to continue after a difference
#   make pictures   draw docs/pictures/*.svg from the texts beside them; page-picture draws racks.png with Chromium
#   make reference  write the generated pages of docs/reference from the chart, the source and the tests
#   make release-test   scripts/release with a registry on this machine and its own key; builds cosign the first time
#   make containerfile-context   build/context, from which the Containerfile builds an image on your own base; make containerfile-test tries it
#   make clean      remove everything that was built here, and the test cluster

build := build
checked := build-asan
fuzzing := build-fuzz
sanitize := -Db_sanitize=address,undefined

# A sanitizer error must fail the test and print where it happened.
export ASAN_OPTIONS ?= strict_string_checks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS ?= print_stacktrace=1:halt_on_error=1

programs := $(build)/src/controller/compute-domain-controller \
	$(build)/src/cd_plugin/compute-domain-kubelet-plugin \
	$(build)/src/daemon/compute-domain-daemon \
	$(build)/src/gpu_plugin/gpu-kubelet-plugin \
	$(build)/src/hook/cdi-hook
# The plugin of kubectl, which is not in the image.
plugin_of_kubectl := $(build)/src/cli/kubectl-compute_domains

# The GPU driver and nvidia-imex of the test cluster's nodes.
standins := $(addprefix $(build)/test/standin/,libcuda.so.1 libnvidia-ml.so.1 nvidia-imex nvidia-imex-ctl nvidia-smi standin-knob)

FUZZ_SECONDS ?= 60
PART ?= $(patsubst test/long/%.bats,%,$(wildcard test/long/*.bats)) tagged gpu_kill_points emulated simulate channels daemons budget macos helm html

.PHONY: all deps check-deps cross-deps plugin plugin-macos image image-$(own_arch) image-$(other_arch) check test long unit lint clang fuzz-test chart-test image-test cluster-test emulated-unit demo bench bench-claims scale \
	fuzz soak agree simulate simulate-test simulate-long prove prove-test mutate channels-long daemons-long budget-long gpu-kill-points-long helm-long html-long matrix pictures page-picture reference clean \
	actionlint release-test containerfile-context containerfile-test
.DELETE_ON_ERROR:
# ninja uses all processors, and must not run twice at the same time in one folder.
.NOTPARALLEL:

all: $(build)/build.ninja
	ninja -C $(build)

$(build)/build.ninja: | deps
	meson setup $(build) --buildtype=release -Doptimization=2 -Ddebug=true

deps:
	@scripts/deps

# Also the compilers and tools that only checks and tests need.
check-deps:
	@scripts/deps --for checks

# One image name for the architectures of GPU nodes and control planes. Another architecture than this machine's is built in its own
# folder, with Debian's compiler and libraries for it, and not run here. The test cluster loads only this machine's.
own_arch := $(shell dpkg --print-architecture)
other_arch := $(filter-out $(own_arch),amd64 arm64)
cross := build-$(other_arch)
packers := $(wildcard scripts/*image) scripts/sysroot VERSION LICENSE docs/reference/third-party.md

image: $(if $(ARCH),image-$(ARCH),image-$(own_arch) image-$(other_arch))
	@$(if $(ARCH),,$(MAKE) --no-print-directory $(build)/image.oci.tar)

image-$(own_arch): $(build)/build.ninja
	ninja -C $(build) $(patsubst $(build)/%,%,$(programs))
	@$(MAKE) --no-print-directory $(build)/image.tar

$(cross)/build.ninja: | cross-deps
	meson setup $(cross) --cross-file $$(scripts/sysroot $(other_arch)).ini --buildtype=release -Doptimization=2 -Ddebug=true

cross-deps:
	@scripts/deps --for $(other_arch)

image-$(other_arch): $(cross)/build.ninja
	ninja -C $(cross) $(patsubst $(build)/%,%,$(programs))
	@$(MAKE) --no-print-directory $(build)/image-$(other_arch).tar

# The kubectl plugin, static and stripped: the programs, and archives with a manifest for krew. PLUGIN_URL is the folder from which users
# will download the archives.
plugin: $(build)/build.ninja $(cross)/build.ninja
	ninja -C $(build) $(patsubst $(build)/%,%,$(plugin_of_kubectl))
	ninja -C $(cross) $(patsubst $(build)/%,%,$(plugin_of_kubectl))
	@mkdir -p $(build)/plugin
	strip -o $(build)/plugin/kubectl-compute_domains-linux-$(own_arch) $(plugin_of_kubectl)
	$(subst arm64,aarch64,$(subst amd64,x86_64,$(other_arch)))-linux-gnu-strip -o $(build)/plugin/kubectl-compute_domains-linux-$(other_arch) \
		$(patsubst $(build)/%,$(cross)/%,$(plugin_of_kubectl))
	scripts/plugin $(if $(PLUGIN_URL),--url $(PLUGIN_URL)) $(build)/plugin

$(build)/image.tar: $(programs) $(packers)
	scripts/image $(build) $@

$(build)/image-$(other_arch).tar: $(patsubst $(build)/%,$(cross)/%,$(programs)) $(packers)
	scripts/image --arch $(other_arch) $(cross) $@

$(build)/image.oci.tar: $(build)/image.tar $(build)/image-$(other_arch).tar scripts/mkindex
	scripts/mkindex $@ $(build)/image.tar $(build)/image-$(other_arch).tar

# While two clusters run, a test may wait long for a processor. The time limit is for tests that hang.
patient := --timeout-multiplier 8
# Some tests wait for programs that they start.
more_jobs := --num-processes $(shell expr $$(nproc) + 2)

$(checked)/build.ninja: | check-deps
	meson setup $(checked) --buildtype=debugoptimized $(sanitize)

unit: $(checked)/build.ninja
	meson test -C $(checked) $(patient) $(more_jobs) --print-errorlogs --suite unit --suite standin

# Checks of texts and of the structure of the code.
lint: $(checked)/build.ninja
	@test/cluster/tools vale
	meson test -C $(checked) $(patient) --print-errorlogs --suite lint

# Runs each fuzzer for a few seconds, and builds only the fuzzers. The loops of yyjson.h advance a null pointer before they check whether
# there is an element. clang's check of pointer arithmetic has found nothing else here.
$(fuzzing)/build.ninja: | check-deps
	CC="ccache clang" meson setup $(fuzzing) --buildtype=debugoptimized $(sanitize) \
		-Db_lundef=false -Dc_args='-fsanitize=fuzzer-no-link -fno-sanitize=pointer-overflow'

clang: $(fuzzing)/build.ninja
	ninja -C $(fuzzing) $(patsubst $(build)/%,%,$(programs))

fuzz-test: $(fuzzing)/build.ninja
	meson test -C $(fuzzing) $(patient) --print-errorlogs --suite fuzz

# The chart's tests need only helm and promtool of the cluster's programs. The other programs take minutes to compile.
chart-test: deps
	@type helm promtool >/dev/null 2>&1 || test/cluster/tools helm prometheus
	bats test/chart

# With SANITIZE=1 the programs in the cluster are those of the sanitized build, and only the tests of failures run, because everything
# takes longer.
cluster-test: all image-$(own_arch) $(if $(SANITIZE),$(checked)/image.tar)
	test/cluster/tools
ifdef SANITIZE
	CD_IMAGE=$(abspath $(checked)/image.tar) test/cluster/run-tests test/long/failures.bats test/long/node_failures.bats test/long/daemon_faults.bats test/cluster/driver_managed.bats
else
	test/cluster/run-tests
endif

# Only for the tests: larger and slower than the released image.
.PHONY: $(checked)/image.tar
$(checked)/image.tar: $(checked)/build.ninja deps
	ninja -C $(checked) $(patsubst $(build)/%,%,$(programs))
	scripts/image $(checked) $@

# Checks the image and the kubectl plugin of each architecture. A directly called qemu starts the programs of the other architecture once.
image-test: image plugin
	bats test/image

# Checks what a release pushes and signs, and verifies the signatures.
release-test: $(build)/build.ninja
	ninja -C $(build) $(patsubst $(build)/%,%,$(plugin_of_kubectl))
	test/cluster/tools helm release krew
	bats test/release

containerfile-context: all
	scripts/image --context $(build) $(build)/context

containerfile-test: all
	scripts/containerfile-try $(build)

# The lint checks the workflows only if actionlint is installed.
actionlint: check-deps
	test/cluster/tools actionlint

# clang, which builds the fuzzers, has warnings that gcc lacks.
check: actionlint all lint unit chart-test clang

# Clusters mostly wait, so the other tests run at the same time with a lower priority. The unit tests have time limits of seconds, so
# they run first and alone.
test: all image-$(own_arch) unit
	test/cluster/tools
	BESIDE='nice make --no-print-directory lint fuzz-test chart-test image-test simulate-test prove-test' test/cluster/run-tests

# The unit tests as programs of the other architecture. qemu also runs their children (scripts/emulate), except tests that mount, make
# device nodes, read what the kernel counts, or run Go programs.
not_emulated := base_metrics cd_plugin_claims cd_plugin_host_nodes gpu_plugin_gpu_driver gpu_plugin_kill_points hook_in_root hook_kernels \
	hook_program hook_sandbox kube_resolver nvidia_worker
emulated-unit:
	@scripts/deps --for checks
	@scripts/deps --for $(other_arch)
	@test -e $(cross)-tests/build.ninja || scripts/emulate $(other_arch) meson setup $(cross)-tests --buildtype=release \
		--cross-file $$(scripts/sysroot $(other_arch)).ini --cross-file scripts/run-natively.ini
	ninja -C $(cross)-tests
	scripts/emulate $(other_arch) meson test -C $(cross)-tests --no-rebuild $(patient) --print-errorlogs \
		$$(meson test -C $(cross)-tests --no-rebuild --list --suite unit | sed 's,.* / ,,' | grep -vxF $(not_emulated:%=-e %))

without_cluster := emulated simulate channels daemons budget gpu_kill_points macos helm html
# The files of test/long, and the tests with the tag long of test/cluster. The part with is all files with_*.bats.
long_files = $(sort $(patsubst %,test/long/%.bats,$(filter-out with tagged $(without_cluster),$(PART))) $(if $(filter with,$(PART)),$(wildcard test/long/with_*.bats)))
tagged_files := $(shell grep -l '^# bats test_tags=.*long' test/cluster/*.bats)

long: all image-$(own_arch) $(if $(filter emulated,$(PART)),emulated-unit) $(if $(filter simulate,$(PART)),simulate-long) $(if $(filter channels,$(PART)),channels-long) $(if $(filter daemons,$(PART)),daemons-long) $(if $(filter budget,$(PART)),budget-long) $(if $(filter gpu_kill_points,$(PART)),gpu-kill-points-long) $(if $(filter macos,$(PART)),plugin-macos) $(if $(filter helm,$(PART)),helm-long) $(if $(filter html,$(PART)),html-long)
ifneq ($(long_files),)
	test/cluster/tools
	EVERY_POINT=yes CLUSTERS=1 test/cluster/run-tests $(long_files)
endif
ifneq ($(filter tagged,$(PART)),)
	test/cluster/tools
	TAGS=long test/cluster/run-tests $(tagged_files)
endif

# The kubectl plugin for macOS. It is compiled, and not run.
plugin-macos: all
	scripts/plugin-macos $(build) $(build)/plugin-macos

# The histories of rules/channels, a hundred times as many as in `make test`.
channels-long: all
	CHANNELS_HISTORIES=1000000 $(build)/test/unit/rules/test_rules_channels_histories

# Each step of Prepare and Unprepare of GPUs; `make test` has every seventh.
gpu-kill-points-long: all check-deps
	EVERY_POINT=yes meson test -C $(build) --no-rebuild --timeout-multiplier 20 gpu_plugin_kill_points daemon_kill_points cd_plugin_claims_rebuild

# The Helm of the tests uses Kubernetes' versions of common modules. It must answer like a Helm with its own versions.
helm-long: deps
	test/cluster/tools helm helm-alone prometheus
	HELM=$(abspath test/chart/both-helms) bats test/chart

# The page of `kubectl compute-domains racks --html` in headless Chromium.
html-long: all
	@scripts/deps --for browser
	PLUGIN=$(abspath $(plugin_of_kubectl)) bats test/html

# Fifty ComputeDomains after each other on the same nodes and addresses; `make test` has four.
daemons-long: all
	HANDOVERS=50 STANDIN_BUILD=$(abspath $(build)/test/standin) DAEMON=$(abspath $(build)/src/daemon/compute-domain-daemon) \
		bats --filter-tags handovers test/standin/daemons.bats

# The requests and bytes of the controller with 100,000 nodes; `make test` has 1,000.
budget-long: all
	$(build)/test/unit/controller/test_controller_budget 100000

# Compiles and installs only what the demo runs.
demo: image-$(own_arch)
	ninja -C $(build) $(patsubst $(build)/%,%,$(standins) $(plugin_of_kubectl))
	test/cluster/demo

bench: all image-$(own_arch)
	test/bench/run

bench-claims: $(build)/build.ninja $(if $(DRIVER),image-$(own_arch))
	ninja -C $(build) test/unit/dra/interop_server
	DRIVER=$(DRIVER) test/bench/claims

scale: all
	test/scale/run $(if $(JSON),--json $(JSON))

fuzz: fuzz-test
	for f in $(fuzzing)/test/fuzz/fuzz_*[!.p]; do \
		name=$${f##*/}; mkdir -p $(fuzzing)/found/$$name; echo "== $$name"; \
		FUZZ_CPU_SECONDS=$(FUZZ_SECONDS) $$f -print_final_stats=1 $(fuzzing)/found/$$name test/fuzz/corpus/$$name || exit 1; \
	done

SEEDS ?= 1-200
NODES ?= 4
DOMAINS ?= 3
MINUTES ?= 10
simulate: all
	$(build)/test/simulate/simulate --seeds $(SEEDS) --nodes $(NODES) --domains $(DOMAINS) --minutes $(MINUTES) --faults "$(FAULTS)"

# The same seeds each time: those of the corpus, and some with a hostile tenant.
simulate-test: all
	$(build)/test/simulate/simulate --corpus test/simulate/corpus --jobs 1
	$(build)/test/simulate/simulate --seeds 1-30 --jobs 1 --hostile
	$(build)/test/simulate/causes --seeds 1-6 --jobs 1

# New seeds for an hour on all cores. All worlds get the same time. Short seeds spend much of it on the start of the world.
simulate-long: all
	first=$$(date +%s); failed=; \
	for size in "4 --domains 3 --restores" "4 --domains 3 --hostile" "10 --domains 6 --racks --hostile" \
		"10 --domains 5 --channels --restores" "10 --domains 5 --channels --hostile --restores" \
		"10 --domains 5 --restores --clocks" "10 --domains 5 --standing --restores --hostile" "10 --domains 5 --channels --clocks" \
		"10 --domains 6 --racks --restores --clocks" "4 --domains 3 --fresh-pods --restores" "10 --domains 5 --hostile --one-off" \
		"4 --domains 3 --hostile --minutes 60" "16 --domains 8" \
		"10 --domains 5 --lying --restores" \
		"10 --domains 3 --crashing --restores" \
		"10 --domains 5 --isolation-changes" "4 --domains 3 --careless-restores" \
		"10 --domains 5 --go-domains --restores" \
		"10 --domains 5 --channels --shared" "10 --domains 5 --standing --shared" \
		"10 --domains 5 --channels --shared --auto" "10 --domains 5 --standing --shared --auto"; do \
		$(build)/test/simulate/simulate --minutes 30 --seeds $$first --for 164 --nodes $$size || failed=yes; \
	done; \
	$(build)/test/simulate/causes --seeds $$first-$$((first + 59)) --jobs $(shell nproc) || failed=yes; \
	test -z "$$failed"

# All worlds, including the mistakes that must be found.
MEMORY ?= 16
prove: all
	meson test -C $(build) --no-rebuild --timeout-multiplier 20 --suite prove
	$(build)/test/prove/prove --memory $(MEMORY) $(WORLDS:%=--world %)

# The smallest worlds, optimized.
prove-test: all
	$(build)/test/prove/prove --quiet --world small

# One change at a time, in a separate build folder.
mutate: check-deps
	JOBS=$(or $(JOBS),$(shell nproc)) test/mutate/run $(FILES)

# First checks that the programs send only known forms of requests, then sends the requests.
agree: all
	test/cluster/tools kubernetes debian
	test/agree/collect check
	test/agree/run

soak: all image-$(own_arch)
	test/cluster/tools
	test/soak/run

matrix: all image-$(own_arch)
	test/cluster/matrix

# Only a change of a picture needs graphviz.
pictures:
	@scripts/deps --for pictures
	for p in docs/pictures/*.dot; do dot -Tsvg "$$p" -o "$${p%.dot}.svg" || exit 1; done

# The screenshot of `racks --html`. Only a change of the page needs Chromium.
page-picture: all
	@scripts/deps --for browser
	test/html/picture $(plugin_of_kubectl) docs/pictures/racks.png

reference:
	scripts/reasons
	scripts/reference
	scripts/failures-page
	@test ! -x $(plugin_of_kubectl) || $(plugin_of_kubectl) help-page >docs/reference/cli.md

clean:
	@test ! -d $${CD_CLUSTER_DIR:-/var/lib/compute-domains-test} || test/cluster/down
	rm -rf $(build) $(checked) $(fuzzing) $(cross) $(cross)-tests build-mutate
