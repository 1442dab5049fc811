#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Many peers of one host: a connection from each of many network namespaces.

Usage: rs_peers ADDRESS NAMESPACE...

The server is in the caller's namespace.  Each client sends and gets back what lets its
connection move to rings, then each pair exchanges bytes once more while all are there.
Prints how many pairs had rings in both directions at once, as the server's end sees it.
"""
import os
import subprocess
import sys
import time

from space import enter, enter_fd
from streams import listening, new, receive, told

LIMIT = 240     # s
# Far from half of a first ring: a ring that is filled so often is replaced by a larger one,
# for which each of these hosts would register 4 MiB.
TEXT = bytes(range(256)) * 16


def exchange(pairs):
    for client, server in pairs:
        client.sendall(TEXT)
        assert receive(server, len(TEXT)) == TEXT
        server.sendall(TEXT)
        assert receive(client, len(TEXT)) == TEXT


def with_rings(port):
    return sum(entry["tx"]["carrier"] == "ring" and entry["rx"]["carrier"] == "ring"
               for entry in told()
               if entry["local"] and entry["local"].endswith(f":{port}") and entry["remote"])


def main():
    address, names = sys.argv[1], sys.argv[2:]
    home = f"/proc/{os.getpid()}/ns/net"
    here = os.open(home, os.O_RDONLY)
    listener = listening(address, len(names))
    pairs = []
    for name in names:
        enter(f"/run/netns/{name}")
        client = new(address)
        client.settimeout(60)
        client.connect(listener.getsockname())
        enter_fd(here, "our own namespace")
        server = listener.accept()[0]
        server.settimeout(60)
        pairs.append((client, server))
    begin = time.monotonic()
    port = listener.getsockname()[1]
    while True:
        exchange(pairs)
        count = with_rings(port)
        passed = time.monotonic() - begin
        print(f"{passed:.0f} s: {count} of {len(pairs)} have rings", flush=True)
        if count == len(pairs) or passed > LIMIT:
            break
    memory = subprocess.run(["rsctl", "memory"], capture_output=True, check=True, text=True).stdout
    print(memory.partition("\n")[0])
    exchange(pairs)
    print(with_rings(port))


main()
