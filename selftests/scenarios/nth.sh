#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 asked=debug timeout=1200 append=kmemleak=on
# The same run (nomem-lib.sh) is repeated: in run n, allocation n below the module fails, in any
# context, until a run has fewer allocations.  Both ends are on this host.  Data is correct or an
# error is returned, and nothing is leaked.  From the environment: FROM (1), STEP (1: each),
# LIMIT (seconds), KINDS (slabs pages).
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/nomem-lib.sh
. "$(dirname "$0")/nomem-lib.sh"

: "${FROM:=1}" "${STEP:=1}" "${LIMIT:=1000}" "${KINDS:=slabs pages}"
each() {	# KNOB NAME
	local n status=1
	for ((n = FROM; ; n += STEP)); do
		[ $SECONDS -lt "$LIMIT" ] || { diag "$2: number $n and the rest take too long"; return 1; }
		say "$2: number $n fails"
		nth "$1" $n
		life
		status=$?
		off "$1" $n || break
		[ $status = 0 ] || { ok "$2: number $n fails" false; failed=$((failed + 1)); }
		wait_for 60 none_left || { ok "$2: nothing is left of number $n" false; failed=$((failed + 1)); }
		lives=$((lives + 1))
	done
	diag "$2: $((n - 1)) in a life"
	[ $status = 0 ]
}

exec 3>&1
shape=(-C 1 -n 30K -w 6K --hold-at 12K)
modprobe -a rdma_cm
begin_failing
insmod "$MODULE" || bail "cannot load the module"
set_net ack_timeout=18 ring_mode=1 loopback=1 ring_threshold=4096 link_flap_decay_ms=100 \
	ring_idle_ms=600000
ok "a run without failures" life
below_us
say "allocations fail from here on"
lives=0 failed=0
for kind in $KINDS; do
	knob=$inject
	[ "$kind" = slabs ] || knob=$pages
	each "$knob" "$kind"
	ok "$kind: a run without failures" test $? = 0
done
put require-start=0 require-end=0xffffffffffffffff times=-1
say "allocations fail no more"
diag "$lives lives"
ok "allocations failed" test $lives -gt 10
ok "whichever allocation fails, data is correct or an error is returned" test $failed = 0
new_rxe
rsctl drain off >/dev/null
ok "streams work again" rs_stream -b -k rds4 -l "$ADDR4_0" -n 300K -t 60
ok "no socket remains" wait_for 60 none_left
ok "the module can be unloaded" wait_for 20 rmmod rdmastream
ok "no memory leaks" kmemleak_check
done_testing
