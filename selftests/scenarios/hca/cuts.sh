#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Links are cut under load, one after the other as fast as they come, $CUTS times: whatever
# was on its way is sent again, once.  Every byte is checked against its offset.  Run by
# ../cuts.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

params=/sys/module/rs_hca/parameters
: "${CUTS:=10000}"

load || bail "cannot load the module"
use ring
# several links, so that one is cut while others are made; each of use early
set_net links_per_path=8 link_flap_decay_ms=100 ring_threshold=4096 ring_size=16384 ring_idle_ms=600000
go=$(fresh go)

# Both ends count a link that was up and broke.
cuts() { grown 0 links-lost; }

# Connections that come and go beside those that stay.
short() {
	local n=0 how
	local first_port=30000 ports=9000
	while [ ! -e "$go" ]; do
		for how in "" "-e" "-W splice -R splice" "--half-close" "-W zerocopy -w 100K"; do
			# shellcheck disable=SC2086
			stream inet inet -C 2 -n 300K -t 300 $how >"$tmp/short" 2>&1 || {
				cp "$tmp/short" "$tmp/short.failed"
				return 1
			}
			n=$((n + 1))
			[ ! -e "$go" ] || break
		done
	done
	echo $n >"$tmp/short.n"
}

# Until there were that many, or none for a minute.
cut_all() {
	local had=0 has=0 since=$SECONDS
	while [ "$has" -lt "$CUTS" ]; do
		# nobody shall wait because links come and go
		hurry
		pause 0.1
		has=$(cuts)
		if [ "$has" -gt "$had" ]; then
			had=$has since=$SECONDS
		elif [ $((SECONDS - since)) -gt $((60 * SLOW)) ]; then
			diag "no cut for a minute, after $has"
			return 1
		fi
	done
}

# what is said here must not wait until the streams leave the only CPU
renice -n -10 $$ >/dev/null
ok "a link comes up" want_link
mark 0
mark 1
# what TCP carries while there is no link costs time, too
begin_streams -C 8 -n 1M -w 8000 --until "$go" --pace 20 -t 3000
short &
short=$!
renice -n 10 "$client" "$server" $short >/dev/null
echo 3 >$params/fault_delay_us
echo 300 >$params/fault_repeat
echo 200 >$params/fault_delay
since=$SECONDS
echo 12 >$params/fault_loss
ok "links are cut $CUTS times" cut_all
took=$((SECONDS - since + 1))
n=$(cuts)
for kind in loss repeat delay; do echo 0 >$params/fault_$kind; done
in_all touch "$go"
whole_streams "those that stay"
wait $short
ok "short connections, too" test $? = 0 || diag <"$tmp/short.failed"
ok "no socket remains" wait_for 40 no_streams || in_all rsctl -d sockets | diag
for vm in 0 1; do
	growth $vm | awk -v vm=$vm '
		{ n[$1] = $2 }
		/^reason:/ && $2 { why = why " " substr($1, 8) "=" $2 }
		END {
			printf "host %d: by TCP %.0f bytes, by rings %.0f; links up %d, lost %d, failed %d; resumes %d, resent %d bytes;%s\n",
				vm, n["tcp-tx-bytes"], n["ring-tx-bytes"], n["links-up"], n["links-lost"],
				n["links-failed"], n["resumes"], n["resent-bytes"], why
		}' | diag
done
diag "$n cuts in $took s: $((n * 60 / took)) a minute; $(cat "$tmp/short.n") short streams"
ok "rings were lost and streams continued" test $(($(grown 0 resumes) + $(grown 1 resumes))) -gt $((CUTS / 4))
ok "bytes were sent again" test $(($(grown 0 resent-bytes) + $(grown 1 resent-bytes))) -gt "$CUTS"
ok "no connection was reset" test $(($(grown 0 resets) + $(grown 1 resets))) = 0
hurry
ok "a link comes up again" want_link
ok "the new link carries data" carried ring 300000 inet inet
done_testing
