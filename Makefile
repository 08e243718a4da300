# SPDX-License-Identifier: Apache-2.0
# Every target installs what it needs, says what it does, and has little to do the second time.
#
#   make            the programs, in build/
#   make image      the image that the chart installs: build/image.oci.tar for amd64 and arm64, build/image.tar for this machine's own
#                   architecture (ARCH=arm64: only that one, build/image-arm64.tar)
#   make check      what needs no cluster and takes a minute or two: it builds, the lint, unit tests, the chart's tests
#   make test       all that a change has to pass: the tests on real clusters, and beside them all others
#   make long       what takes too long for each change, before something is called done; PART="pages stale" chooses (docs/dev/testing.md)
#   make emulated-unit   the unit tests on the other architecture, by qemu (a part of make long)
#   make cluster-test SANITIZE=1   the tests of failures again, on a cluster that runs the programs of the sanitized build
#   make demo       watch a ComputeDomain form on a real cluster (KEEP=1 leaves it up; MODE=host: the nodes run nvidia-imex themselves; MODE=rack: racks; MODE=gpus: GPUs, too)
#   make bench      measure it (MODES, FIGURES, PAIRS, SIZES, VALUES: see test/bench/run)
#   make scale      the controller among thousands of pretended nodes, against a real API server (NODES="100 1000 10000", JSON=FILE)
#   make fuzz       only the fuzzers, each for FUZZ_SECONDS of processor time (default 60)
#   make matrix     the tests that matter on each version of Kubernetes since 1.32, which takes hours the first time; writes docs/reference/versions.md
#   make soak       faults strike a cluster of six nodes for MINUTES (20), workloads come and go (SEED, FAULTS, WORKLOADS=channel, host-channel or racks: see test/soak/run)
#   make simulate   the controllers in a world of our own, in virtual time: SEEDS (1-200), NODES (4), DOMAINS (3), MINUTES (10), FAULTS (all)
#   make prove      each state that small worlds can reach, in half an hour (docs/dev/proofs.md): WORLDS (all), MEMORY (16, GiB)
#   make mutate     the code changed in one place at a time, and whether a unit test fails: FILES (all), RECORD=yes (docs/dev/testing.md)
#   make agree      the simulated API server beside a real one: SEEDS ("1 2 3 new"), REQUESTS (100000), ALL=yes to go on after a difference
#   make pictures   draw docs/pictures/*.svg from the texts beside them
#   make reference  write the generated pages of docs/reference from the chart, the source and the tests
#   make release-test   scripts/release against a registry on this machine, with a key of its own; builds cosign the first time
#   make containerfile-context   build/context, from which the Containerfile makes an image on a base of yours; make containerfile-test tries it
#   make clean      remove all that was built here (and take the test cluster down)

build := build
checked := build-asan
fuzzing := build-fuzz
sanitize := -Db_sanitize=address,undefined

# A sanitizer must fail the test that it complains about, and say where.
export ASAN_OPTIONS ?= strict_string_checks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS ?= print_stacktrace=1:halt_on_error=1

programs := $(build)/src/controller/compute-domain-controller \
	$(build)/src/cd_plugin/compute-domain-kubelet-plugin \
	$(build)/src/daemon/compute-domain-daemon \
	$(build)/src/gpu_plugin/gpu-kubelet-plugin \
	$(build)/src/hook/cdi-hook

FUZZ_SECONDS ?= 60
PART ?= $(patsubst test/long/%.bats,%,$(wildcard test/long/*.bats)) tagged gpu_kill_points emulated simulate channels daemons

.PHONY: all deps image image-$(own_arch) image-$(other_arch) check test long unit clang fuzz-test chart-test image-test cluster-test emulated-unit demo bench scale \
	fuzz soak agree simulate simulate-test simulate-long prove prove-test mutate channels-long daemons-long gpu-kill-points-long matrix pictures reference clean \
	actionlint release-test containerfile-context containerfile-test
.DELETE_ON_ERROR:

all: deps
	@test -e $(build)/build.ninja || meson setup $(build) --buildtype=release -Doptimization=2 -Ddebug=true
	ninja -C $(build)

deps:
	@scripts/deps

# One image name for the architectures that GPU nodes and control planes have; the other one than this machine's is built in a folder of
# its own, with Debian's compiler and libraries for it, and nothing of it is run here. The test cluster loads only this machine's.
own_arch := $(shell dpkg --print-architecture)
other_arch := $(filter-out $(own_arch),amd64 arm64)
cross := build-$(other_arch)
packers := $(wildcard scripts/*image) scripts/sysroot VERSION LICENSE docs/reference/third-party.md

image: $(if $(ARCH),image-$(ARCH),image-$(own_arch) image-$(other_arch))
	@$(if $(ARCH),,$(MAKE) --no-print-directory $(build)/image.oci.tar)

image-$(own_arch): all
	@$(MAKE) --no-print-directory $(build)/image.tar

image-$(other_arch):
	@scripts/deps --for $(other_arch)
	@test -e $(cross)/build.ninja || meson setup $(cross) --cross-file $$(scripts/sysroot $(other_arch)).ini --buildtype=release \
		-Doptimization=2 -Ddebug=true
	ninja -C $(cross) $(patsubst $(build)/%,%,$(programs))
	@$(MAKE) --no-print-directory $(build)/image-$(other_arch).tar

$(build)/image.tar: $(programs) $(packers)
	scripts/image $(build) $@

$(build)/image-$(other_arch).tar: $(patsubst $(build)/%,$(cross)/%,$(programs)) $(packers)
	scripts/image --arch $(other_arch) $(cross) $@

$(build)/image.oci.tar: $(build)/image.tar $(build)/image-$(other_arch).tar scripts/mkindex
	scripts/mkindex $@ $(build)/image.tar $(build)/image-$(other_arch).tar

# Beside two clusters a test may wait long for a processor: its time limit is for those that hang.
patient := --timeout-multiplier 8

unit: deps
	@test/cluster/tools vale
	@test -e $(checked)/build.ninja || meson setup $(checked) --buildtype=debugoptimized $(sanitize)
	meson test -C $(checked) $(patient) --print-errorlogs --suite unit --suite standin

# Each fuzzer for a few seconds. Only what it needs is built. The loops of yyjson.h step from a null pointer before they
# look whether there is anything to loop over, which is all that clang's check of pointer arithmetic has found here.
$(fuzzing)/build.ninja: | deps
	CC="ccache clang" meson setup $(fuzzing) --buildtype=debugoptimized $(sanitize) \
		-Db_lundef=false -Dc_args='-fsanitize=fuzzer-no-link -fno-sanitize=pointer-overflow'

clang: $(fuzzing)/build.ninja
	ninja -C $(fuzzing) $(patsubst $(build)/%,%,$(programs))

fuzz-test: $(fuzzing)/build.ninja
	meson test -C $(fuzzing) $(patient) --print-errorlogs --suite fuzz

# The chart's tests need helm and promtool of the cluster's programs; the others take minutes to compile.
chart-test: deps
	@type helm promtool >/dev/null 2>&1 || test/cluster/tools helm prometheus
	bats test/chart

# With SANITIZE=1 the programs in the cluster are those of the sanitized build, and only the tests of failures run, because everything
# takes longer.
cluster-test: image-$(own_arch) $(if $(SANITIZE),$(checked)/image.tar)
	test/cluster/tools
ifdef SANITIZE
	CD_IMAGE=$(abspath $(checked)/image.tar) test/cluster/run-tests test/long/failures.bats test/long/node_failures.bats test/long/daemon_faults.bats test/cluster/driver_managed.bats
else
	test/cluster/run-tests
endif

# Only for the tests: larger than what we ship, and slower.
.PHONY: $(checked)/image.tar
$(checked)/image.tar: deps
	@test -e $(checked)/build.ninja || meson setup $(checked) --buildtype=debugoptimized $(sanitize)
	ninja -C $(checked) $(patsubst $(build)/%,%,$(programs))
	scripts/image $(checked) $@

# What is in the image of each architecture; the programs of the other one are started once, by a qemu that is called directly.
image-test: image
	bats test/image

# What is pushed and signed at a release, and what of it verifies.
release-test: deps
	test/cluster/tools helm release
	bats test/release

containerfile-context: all
	scripts/image --context $(build) $(build)/context

containerfile-test: all
	scripts/containerfile-try $(build)

# The lint looks at the workflows only where this is there.
actionlint: deps
	test/cluster/tools actionlint

# clang, which the fuzzers are built with, warns of what gcc does not.
check: actionlint all unit chart-test clang

# Clusters wait more than they work, so that the rest finds the time; it makes way for them. The unit tests, which know seconds and
# less, come first, by themselves.
test: image-$(own_arch) unit
	test/cluster/tools
	BESIDE='nice make --no-print-directory fuzz-test chart-test image-test simulate-test prove-test' test/cluster/run-tests

# The unit tests as the other architecture's programs; their children too are run by qemu (scripts/emulate).
emulated-unit:
	@scripts/deps --for $(other_arch)
	@test -e $(cross)-tests/build.ninja || scripts/emulate $(other_arch) meson setup $(cross)-tests --buildtype=release \
		--cross-file $$(scripts/sysroot $(other_arch)).ini --cross-file scripts/run-natively.ini
	ninja -C $(cross)-tests
	scripts/emulate $(other_arch) meson test -C $(cross)-tests --no-rebuild --suite unit $(patient) --print-errorlogs

without_cluster := emulated simulate channels daemons gpu_kill_points
# The files of test/long, and the tests with the tag long of test/cluster.
long_files = $(patsubst %,test/long/%.bats,$(filter-out tagged $(without_cluster),$(PART)))
tagged_files := $(shell grep -l '^# bats test_tags=.*long' test/cluster/*.bats)

long: image-$(own_arch) $(if $(filter emulated,$(PART)),emulated-unit) $(if $(filter simulate,$(PART)),simulate-long) $(if $(filter channels,$(PART)),channels-long) $(if $(filter daemons,$(PART)),daemons-long) $(if $(filter gpu_kill_points,$(PART)),gpu-kill-points-long)
ifneq ($(long_files),)
	test/cluster/tools
	EVERY_POINT=yes CLUSTERS=1 test/cluster/run-tests $(long_files)
endif
ifneq ($(filter tagged,$(PART)),)
	test/cluster/tools
	TAGS=long test/cluster/run-tests $(tagged_files)
endif

# The histories of rules/channels, a hundred times as many as in a change's tests.
channels-long: all
	CHANNELS_HISTORIES=1000000 $(build)/test/unit/rules/test_rules_channels_histories

# Each step of Prepare and Unprepare of GPUs, of which a change's tests take every seventh.
gpu-kill-points-long: all
	EVERY_POINT=yes meson test -C $(build) --no-rebuild --timeout-multiplier 20 gpu_plugin_kill_points daemon_kill_points cd_plugin_claims_rebuild

# Fifty domains after each other on the same nodes and addresses, of which a change's tests have four.
daemons-long: all
	HANDOVERS=50 STANDIN_BUILD=$(abspath $(build)/test/standin) DAEMON=$(abspath $(build)/src/daemon/compute-domain-daemon) \
		bats -f "domains follow each other|with one port" test/standin/daemons.bats

demo: image-$(own_arch)
	test/cluster/demo

bench: image-$(own_arch)
	test/bench/run

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

# The same seeds each time, for a minute.
simulate-test: all
	$(build)/test/simulate/simulate --seeds 1 --for 40 --jobs 1
	$(build)/test/simulate/simulate --seeds 1 --for 20 --jobs 1 --hostile

# Seeds that nobody has seen yet, for an hour, on all cores: each world for a sixteenth of it.
simulate-long: all
	first=$$(date +%s); failed=; \
	for size in "4 --domains 3 --restores" "4 --domains 3 --hostile" "10 --domains 6 --racks --hostile" \
		"10 --domains 5 --channels --restores" "10 --domains 5 --channels --hostile --restores" \
		"10 --domains 5 --restores --clocks" "10 --domains 5 --standing --restores --hostile" "10 --domains 5 --channels --clocks" \
		"10 --domains 6 --racks --restores --clocks" "4 --domains 3 --fresh-pods --restores" "10 --domains 5 --hostile --one-off" \
		"4 --domains 3 --hostile --minutes 60" "16 --domains 8" \
		"10 --domains 5 --lying --restores" \
		"10 --domains 3 --crashing --restores" \
		"10 --domains 5 --isolation-changes"; do \
		$(build)/test/simulate/simulate --seeds $$first --for 225 --nodes $$size || failed=yes; \
	done; \
	test -z "$$failed"

# All worlds, the mistakes that must be found among them.
MEMORY ?= 16
prove: all
	meson test -C $(build) --no-rebuild --timeout-multiplier 20 --suite prove
	$(build)/test/prove/prove --memory $(MEMORY) $(WORLDS:%=--world %)

# The smallest of them, optimized.
prove-test: all
	$(build)/test/prove/prove --quiet --world small

# One change at a time, in a build folder for this purpose.
mutate: deps
	JOBS=$(or $(JOBS),$(shell nproc)) test/mutate/run $(FILES)

# The forms that the programs send are those that it knows; then the requests.
agree: all
	test/cluster/tools kubernetes debian
	test/agree/collect check
	test/agree/run

soak: image-$(own_arch)
	test/cluster/tools
	test/soak/run

matrix: image-$(own_arch)
	test/cluster/matrix

# Only whoever changes a picture needs graphviz.
pictures:
	@scripts/deps --for pictures
	for p in docs/pictures/*.dot; do dot -Tsvg "$$p" -o "$${p%.dot}.svg" || exit 1; done

reference:
	scripts/reasons
	scripts/reference
	scripts/failures-page

clean:
	@test ! -d $${CD_CLUSTER_DIR:-/var/lib/compute-domains-test} || test/cluster/down
	rm -rf $(build) $(checked) $(fuzzing) $(cross) $(cross)-tests build-mutate
