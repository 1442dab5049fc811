# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What the commands scripts/bench* share that boot virtual machines.  Source it with the
# project's directory in $top.

# shellcheck disable=SC2154	# from who sources this
bench=$top/selftests/bench

usage() { sed -n '3,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; }
bad_usage() { usage >&2; exit 2; }
die() { echo "${0##*/}: $*" >&2; exit 1; }

# What it prints is only interesting if it fails.
quietly() {
	"$@" >>"$log" 2>&1 || { tail -n 30 "$log" >&2; die "failed: $*"; }
}

# prepare DIR [DEPS...]: builds what runs in the machines.  Sets out, log, and env_of_guest
# for env(1).
prepare() {
	local ko
	out=$1 log=$1/log
	shift
	mkdir -p "$out"
	: >"$log"
	"$top/scripts/install-deps" build lab "$@"
	command -v jq >/dev/null || "$top/scripts/install-deps" check
	ko=$("$top/scripts/build-module" 6.12 2>>"$log") || { tail -n 30 "$log" >&2; die "no module"; }
	# Others may build meanwhile.
	cp "$ko" "$out/rdmastream.ko"
	ko=$("$top/scripts/build-module" -b 6.12 2>>"$log") || { tail -n 30 "$log" >&2; die "no rs_floor.ko"; }
	cp "$ko" "$out/rs_floor.ko"
	quietly make -C "$top/userspace-tools" "O=$top/build/tools"
	quietly make -C "$bench" "O=$top/build/selftests/bench"
	# shellcheck disable=SC2034	# for who sources this
	env_of_guest=(MODULE="$out/rdmastream.ko" FLOOR="$out/rs_floor.ko" TOOLS="$top/build/tools"
		BIN="$top/build/selftests/bench")
}

# Guests on a busy host find a wrong frequency: they are told.
tsc_of_host() { echo "tsc_early_khz=$("$top/build/selftests/bench/tsc_khz")"; }

# measured NAME LIB SECONDS [OPTION...] -- COMMAND...: in two machines, with so many seconds
# and these options of theirs.  Prints the table of what it writes, by LIB.jq, which is in
# NAME.json, too.
measured() {
	local json=$out/$1.json lib=$2 options=(-t "$3") status=0
	shift 3
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	rm -f "$out/results" "$json"
	"$top/selftests/vm/run" -n 2 -k 6.12 "${options[@]}" -o "$out" -a "$(tsc_of_host)" -- \
		env "${env_of_guest[@]}" "$@" || status=$?
	[ -s "$out/results" ] || die "no results (status $status); logs are in $out"

	jq -nR -L "$bench" "include \"$lib\"; collect" "$out/results" >"$json"
	jq -r -L "$bench" "include \"$lib\"; table" "$json"
	[ $status = 0 ] || die "status $status: the table is not all; logs are in $out"
}
