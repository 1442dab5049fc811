# SPDX-License-Identifier: GPL-2.0-only
#
# For people; what rdmastream.ko is made of is listed in Kbuild.  "make help"
# tells what can be made.

top	:= $(dir $(abspath $(lastword $(MAKEFILE_LIST))))

# The kernel to build for: the running one, if its headers are there, else the
# newest whose headers are.
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
	scripts/check --debug $(CHECKFLAGS)

SECONDS ?= 600
soak:
	scripts/soak $(SOAKFLAGS) $(SECONDS) $(SEED)

RUNS ?= 100000000
fuzz:
	scripts/fuzz -r $(RUNS) $(TARGETS)

SUITES ?=
suites:
	scripts/suites $(SUITESFLAGS) $(SUITES)

style:
	scripts/style

doc:
	$(MAKE) -C Documentation html

deb:
	scripts/build-deb

check-deb:
	scripts/check-deb

debug-kernel:
	scripts/install-deps kernels
	selftests/vm/build-kernel debug

demo:
	scripts/demo

bench:
	scripts/bench
	scripts/bench-instr

bench-instr:
	scripts/bench-instr

bench-programs:
	scripts/bench-programs

bench-memory:
	scripts/bench-memory

bench-plot:
	scripts/bench-plot

clean:
	$(MAKE) -C userspace-tools clean
	rm -rf build/module build/selftests build/tools build/unit build/fuzz build/run build/bench build/bench-instr build/bench-programs build/bench-memory build/bench-hosts \
		build/check build/deb build/check-deb build/doc
	rm -f rdmastream.ko

# The downloaded and built kernels as well.
distclean: clean
	rm -rf build

help:
	@echo "all           rdmastream.ko for one kernel, and rsctl (default)"
	@echo "module        rdmastream.ko only; KVER=release or KDIR=headers choose the kernel,"
	@echo "              W=1 and C=1 as in the kernel's own build"
	@echo "tools         rsctl and the preload library, in userspace-tools/"
	@echo "check         all tests, in virtual machines with Linux 6.12 and 6.1"
	@echo "check-debug   the tests again, on a kernel with KASAN, lockdep and kmemleak"
	@echo "              (CHECKFLAGS=\"-s PATTERN\": only some; see scripts/check -h)"
	@echo "soak          random traffic while links are lost, SECONDS=N long (600); SEED=N"
	@echo "              repeats one, SOAKFLAGS=\"-k 6.1\" chooses the kernel"
	@echo "fuzz          the pure files of the module by libFuzzer, RUNS=N of each target (10^8)"
	@echo "suites        suites that others wrote (Python's, Redis', nginx, ...), compared with"
	@echo "              TCP; SUITES=\"python nginx\": only some, SUITESFLAGS=-l lists them"
	@echo "style         what reads the sources: checkpatch, sparse, kernel-doc, ..."
	@echo "demo          two virtual machines; Redis and iperf3 over RDMA"
	@echo "bench         tables: TCP, rsockets, SMC-R, rdmastream, by the clock and by bench-instr"
	@echo "bench-instr   instructions that they cost; fails if ours have grown, or a fallback"
	@echo "              costs what a user would notice"
	@echo "bench-programs  what redis, nginx, memcached, PostgreSQL get of TCP, SMC-R, rdmastream"
	@echo "bench-memory  what connections pin of memory: rsockets, SMC-R, rdmastream"
	@echo "bench-plot    draws what \"make bench\" has measured, SVG files in build/bench/"
	@echo "doc           these texts and the manual pages as HTML, in build/doc/"
	@echo "deb           Debian packages, rdmastream-dkms and rdmastream-tools, in build/deb/"
	@echo "check-deb     install, load, upgrade and purge them in a Debian of their own; as root"
	@echo "debug-kernel  build the kernel for check-debug: ten minutes"
	@echo "clean         remove what was built; distclean: and the kernels"

.PHONY: all module tools check check-debug soak fuzz suites style debug-kernel doc deb check-deb demo bench bench-instr bench-programs bench-memory bench-plot clean distclean help
