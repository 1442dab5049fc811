#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What each device must be able to do: links, bytes by rings, a link that is quiet.  Run by
# ../hca.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

size=600000
load || bail "cannot load the module"
use ring
in_all rsctl set link_probe_ms 500 >/dev/null

lost() { counter 0 links-lost; counter 1 links-lost; }
none_lost() { lost; ! lost | grep -qv '^0$'; }

ok "a link comes up" want_link
ok "data on rings" carried ring $size inet inet
ok "small writes" carried ring 100000 rds4 rds4 -w 500
ok "zero copy, splice" carried ring $size inet6 inet6 -W zerocopy -R splice
ok "large writes" carried ring $((4 * size)) rds6 rds6 -w 1M -r 1M
# more than a link has under way at once: they wait for each other
ok "many connections at once" stream inet inet -C 24 -n $((2 * size)) -m 1M -w 50000 -t 200
# what is sent when there is nothing to send: probes
sleep $((3 * SLOW))
ok "an idle link stays up" has_link 0
ok "data after the pause" carried ring $size rds4 rds4 -e
ok "no link was lost" none_lost
done_testing
