#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=1500
# 1 GiB in both directions at the same time over RDMA, and urgent data that is older than half
# of TCP's sequence space.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
ok "a link comes up" want_link
ok "1 GiB each way on rings" \
	carried ring $((1024 * 1024 * 1024)) inet inet -t 1400 -w 256K -r 256K

# An urgent byte, 2.2 GiB over TCP, 300 MiB that may use RDMA, and another urgent byte.  Each
# is at the right offset, and the first one, more than half of TCP's sequence space ago, does not
# keep the stream off rings.
urgent='
import os, socket, sys, time
MIB = 1 << 20
BY_TCP, MORE = 2200, 300
SIZE = (BY_TCP + MORE) * MIB
ours = socket.socket(proto=257)
if sys.argv[1] == "-s":
    ours.bind(("", 6998))
    ours.listen()
    sock, _ = ours.accept()
    buf, got = bytearray(MIB), 0
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    while n := sock.recv_into(buf):
        for at in (0, SIZE + 1):
            if got <= at < got + n:
                assert buf[at - got] == ord("!"), at
        got += n
    assert got == SIZE + 2, got
    sock.sendall(b"all")
else:
    ours.connect((sys.argv[1], 6998))
    ours.send(b"!", socket.MSG_OOB)
    piece = bytes(MIB)
    for n in range(BY_TCP + MORE):
        if n == BY_TCP:
            open(sys.argv[2] + ".held", "w").close()
            while not os.path.exists(sys.argv[2]):
                time.sleep(0.1)
        ours.sendall(piece)
    ours.send(b"!", socket.MSG_OOB)
    ours.shutdown(socket.SHUT_WR)
    assert ours.recv(4) == b"all"
'
begin_urgent() {
	printf '%s' "$urgent" >"$tmp/urgent"
	on 1 "base64 -d <<<$(base64 -w 0 "$tmp/urgent") >$tmp/urgent"
	on_bg 1 timeout 400 python3 "$tmp/urgent" -s
	server=$!
	wait_for 20 listens 1 6998
	timeout 400 python3 "$tmp/urgent" "$ADDR4_1" "$tmp/go" &
	client=$!
	wait_for 300 test -e "$tmp/go.held"
}
by_rings() { [ "$(grown 0 ring-tx-bytes)" -gt $((25 << 20)) ]; }
if [ "$SLOW" = 1 ]; then
	use tcp
	mark 0
	begin_urgent
	ok "an urgent byte and 2.2 GiB over TCP" test -e "$tmp/go.held"
	use ring
	hurry
	touch "$tmp/go"
	wait $client
	ok "all bytes were sent" test $? = 0
	wait $server
	ok "all bytes were read, and a second urgent byte" test $? = 0
	ok "the last bytes were sent on rings" by_rings
else
	skip "urgent data, 2.2 GiB apart" "takes too long on this kernel"
fi
done_testing
