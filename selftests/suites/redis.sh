# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# Redis' own test suite, with Debian's binaries.  UNITS chooses.
needs="redis-server redis-tools tcl dpkg-dev"
limit=10000
# the last one ends with an exception where Debian's server is newer than its tests
units="unit/protocol unit/pubsub unit/querybuf unit/limits unit/client-eviction unit/info
	unit/networking unit/tracking unit/obuf-limits unit/dump unit/multi
	unit/type/list unit/type/string integration/redis-cli integration/redis-benchmark
	integration/replication-buffer integration/block-repl integration/logging
	integration/replication"

build() {
	source_of redis
}

run() {
	local unit single=()
	cp -r "$BUILT"/redis-*/ redis
	cd redis || return
	# Debian's server is one program with several names
	for unit in server cli benchmark check-aof check-rdb sentinel; do
		ln -sf "$(type -P redis-$unit)" src/redis-$unit
	done
	for unit in ${UNITS:-$units}; do
		single+=(--single "$unit")
	done
	# fills all buffers three bytes at a time: over ten minutes where RDMA is emulated
	tclsh8.6 tests/test_helper.tcl --clients 2 --timeout 1500 --tags -slow "${single[@]}" | tee log
	sed -n 's/\x1b\[[0-9;]*m//g; s/ *([0-9]* ms)$//; s/^\[\(ok\|err\|exception\|ignore\|skip\)\]: \(.*\)/\1 \2/p' log |
		while read -r how name; do
			result "$name" "$how"
		done
}
