#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Programs that own their sockets while it is their turn to send, so nobody can send for them.

Usage: rs_turns ADDRESS N SECONDS

N streams on one link of a host with itself, over a slow device, have each sent so much that most
wait for their turn; and a thread for each sends a page that userfaultfd withholds.  Another stream
has to send a MiB within so many seconds.
"""
import resource
import socket
import sys
import threading
import time

import streams
from withheld import PAGE, Withheld

RATE = "/sys/module/rs_hca/parameters/rate"
EACH, MUCH = 32768, 1 << 20


def on_ring():
    return sum(bool(each["tx"].get("ring_size")) for each in streams.told())


def occupy(client, page):
    client.sendall(bytes(EACH))
    client.sendall(page)


def main():
    address, n, limit = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_NOFILE, (4 * n, 4 * n))
    threading.stack_size(256 * 1024)
    listener = streams.listening(address, n)
    pairs = []
    for _ in range(n + 1):
        client, server = streams.connected(listener, SO_SNDBUF=1 << 18)
        client.sendall(bytes(20000))
        streams.receive(server, 20000)
        pairs.append((client, server))
    while on_ring() <= n:
        time.sleep(0.1)
    client, server = pairs.pop()
    streams.write_file(RATE, 4000000)
    withheld = Withheld(n)
    for i, (each, _) in enumerate(pairs):
        threading.Thread(target=occupy, args=(each, withheld.page(i)), daemon=True).start()
    withheld.wait_for(n)
    start = time.monotonic()
    reader = threading.Thread(target=streams.receive, args=(server, MUCH), daemon=True)
    reader.start()
    client.sendall(bytes(MUCH))
    reader.join()
    took = time.monotonic() - start
    print(f"a MiB in {took:.1f} s")
    streams.write_file(RATE, 0)
    withheld.come()
    for each, other in pairs:
        if other.recv(EACH + PAGE, socket.MSG_WAITALL) != bytes(EACH + PAGE):
            sys.exit("what was sent has not come")
        each.close()
        other.close()
    sys.exit(took > limit)


main()
