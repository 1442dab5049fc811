# SPDX-License-Identifier: GPL-2.0-only
#
# Top-level targets, listed by "make help".  Kbuild lists the sources of rdmastream.ko.

top	:= $(dir $(abspath $(lastword $(MAKEFILE_LIST))))

# The kernel to build for: the running one, if its headers are installed, otherwise the
# newest one with installed headers.
KVER	?= $(or $(and $(wildcard /lib/modules/$(shell uname -r)/build),$(shell uname -r)), \
	$(shell ls -d /usr/src/linux-headers-*-amd64 2>/dev/null | \
		sed 's,.*/linux-headers-,,' | sort -V | tail -n 1))
KDIR	?= $(firstword $(wildcard /lib/modules/$(strip $(KVER))/build) \
	/usr/src/linux-headers-$(strip $(KVER)))

all: module tools

module:
	@cp "$$(scripts/build-module $(abspath $(KDIR)) $(if $(W),W=$(W)) $(if $(C),C=$(C)))" .
	@echo "rdmastream.ko: for $(strip $(KVER))"

tools:
	$(MAKE) -C userspace-tools

check:
	scripts/check $(CHECKFLAGS)

check-debug:
	scripts/check -k um-debug $(CHECKFLAGS)

soak:
	scripts/soak $(SOAKFLAGS) $(or $(SECONDS),600) $(SEED)

# random socket and netlink calls
calls:
	scripts/calls $(CALLSFLAGS) $(or $(SECONDS),3600) $(SEED)

SEEDS ?= 1-100
simulate:
	scripts/simulate $(SIMULATEFLAGS) $(SEEDS)

CUTS ?= 10000
cuts:
	scripts/run-scenario um-6.12 cuts CUTS=$(CUTS) LIMIT=$(CUTS) -- \
		-n 1 -t $$(($(CUTS) + 600)) --seed 1 -o build/check/cuts.um-6.12

# each call of each verb fails; of those after the first EVERY, one in EVERY
EVERY ?= 100000
verbs:
	scripts/run-scenario um-6.12 hca SUITE=hca/verbs EVERY=$(EVERY) PROFILES=plain DMA=virt \
		REPORTS=no LIMIT=14000 -- -n 1 -t 14400 --seed 1 -o build/check/verbs.um-6.12

PEERS ?= 1000
peers:
	scripts/run-scenario um-6.12 peers PEERS=$(PEERS) -- \
		-n 1 -m $$((2048 + $(PEERS) * 6)) -t 1800 -o build/check/peers.um-6.12

# one allocation after the other fails
nth:
	scripts/run-scenario um-debug nth LIMIT=4000 -- \
		-n 1 -t 4600 -a kmemleak=on -o build/check/nth.um-debug

RUNS ?= 100000000
fuzz:
	scripts/fuzz -r $(RUNS) $(TARGETS)

mutate:
	scripts/mutate $(if $(MUTANTS),-n $(MUTANTS)) $(if $(SEED),-s $(SEED)) $(MUTATEFLAGS)

SUITES ?=
suites:
	scripts/suites $(SUITESFLAGS) $(SUITES)

ENGINES ?=
engines:
	scripts/engines $(ENGINESFLAGS) $(ENGINES)

style:
	scripts/style

doc:
	$(MAKE) -C Documentation html

deb:
	scripts/build-deb

check-deb:
	scripts/check-deb $(RELEASE)

debug-kernel:
	scripts/install-deps kernels
	selftests/vm/build-kernel debug

demo:
	scripts/demo

bench:
	scripts/bench streams
	scripts/bench instr

bench-instr bench-programs bench-memory bench-plot:
	scripts/bench $(@:bench-%=%)

clean:
	$(MAKE) -C userspace-tools clean
	rm -rf build/module build/selftests build/tools build/unit build/fuzz build/mutate build/run build/bench \
		build/check build/deb build/check-deb build/doc
	rm -f rdmastream.ko

# The downloaded and built kernels as well.
distclean: clean
	rm -rf build

help:
	@echo "all           rdmastream.ko for one kernel, and rsctl (default)"
	@echo "module        only rdmastream.ko; KVER=release or KDIR=headers choose the kernel,"
	@echo "              W=1 and C=1 as in the kernel's own build"
	@echo "tools         rsctl and the preload library, in userspace-tools/"
	@echo "check         the tests: on Linux 6.1, 6.12, 7.3 (while Debian's backports have it),"
	@echo "              and on 6.12 with KASAN, lockdep and kmemleak"
	@echo "check-debug   those on the kernel with KASAN, lockdep and kmemleak"
	@echo "              (CHECKFLAGS=\"-s PATTERN\": only some; see scripts/check -h)"
	@echo "soak          random traffic while links are lost, for SECONDS=N (600); SEED=N"
	@echo "              repeats a run, SOAKFLAGS=\"-k um-6.1\" chooses the kernel"
	@echo "calls         random socket and netlink calls on the debug kernel, for SECONDS=N (3600);"
	@echo "              SEED=N; CALLSFLAGS=\"-k um-6.1\" chooses the kernel"
	@echo "simulate      random programs, faults and settings in virtual time, SEEDS=\"1-100\";"
	@echo "              SIMULATEFLAGS=-h lists more options"
	@echo "nth           each allocation of connections with rings fails once, on the debug kernel"
	@echo "cuts          links break CUTS times (10000) under streams whose bytes are checked"
	@echo "verbs         each call of each verb fails once, at either end of a link; of those after"
	@echo "              the first EVERY (100000), only one in EVERY"
	@echo "peers         PEERS (1000) hosts with links to one host"
	@echo "fuzz          fuzz the pure files of the module with libFuzzer; RUNS=N of each target (10^8)"
	@echo "mutate        mutation tests of the unit tests; MUTANTS=N: a random sample, by SEED"
	@echo "suites        test suites of other projects (Python, Redis, nginx, ...), compared with"
	@echo "              TCP; SUITES=\"python nginx\": only some, SUITESFLAGS=-l lists them"
	@echo "engines       Redis Cluster, PostgreSQL, Open MPI, ... in three guests; RDMA is cut in the"
	@echo "              middle; ENGINES=\"redis etcd\": only some, ENGINESFLAGS=-l lists them"
	@echo "style         static checks: checkpatch, sparse, kernel-doc, ..."
	@echo "demo          two virtual machines; Redis and iperf3 over RDMA"
	@echo "bench         compares TCP, rsockets, SMC-R and rdmastream, by time and by"
	@echo "              instructions; scripts/bench -h has more"
	@echo "bench-instr   counts instructions; fails if rdmastream needs more than before, or if"
	@echo "              falling back to TCP has a cost that users would notice"
	@echo "bench-programs  Redis, nginx, memcached, PostgreSQL with TCP, SMC-R and rdmastream"
	@echo "bench-memory  memory that connections pin: rsockets, SMC-R, rdmastream"
	@echo "bench-plot    draws the results of \"make bench\", SVG files in build/bench/streams/"
	@echo "doc           this documentation and the manual pages as HTML, in build/doc/"
	@echo "deb           Debian packages, rdmastream-dkms and rdmastream-tools, in build/deb/"
	@echo "check-deb     as root: install, load, upgrade and purge them in a separate Debian;"
	@echo "              RELEASE=bookworm or trixie, by default that of this machine"
	@echo "debug-kernel  build a kernel with KASAN and so on for QEMU: ten minutes; make check"
	@echo "              does not need it"
	@echo "clean         remove everything that was built; distclean: the kernels, too"

.PHONY: all module tools check check-debug soak calls simulate cuts verbs peers nth fuzz mutate suites engines style debug-kernel doc deb check-deb demo bench bench-instr bench-programs bench-memory bench-plot clean distclean help
