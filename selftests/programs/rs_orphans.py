#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What programs can make the kernel keep for them, and what it is charged for.

Usage: rs_orphans.py ADDRESS crumbs|closed N

crumbs: two sockets in turn write N bytes, one at a time, which the peer does not read:
none continues the one before in the page that a task's writes share.  Prints how many
were written and by how much the memory of TCP has grown, both in bytes.

closed: N clients write what they may to a server that does not read, and close.  Prints
how many of them the server finds reset when it reads.
"""
import json
import socket
import subprocess
import sys
import time

IPPROTO_RDMASTREAM = 257
LIMIT = 60      # s


def pairs(address, count):
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_RDMASTREAM)
    listener.bind((address, 0))
    listener.listen(count)
    made = []
    for _ in range(count):
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_RDMASTREAM)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        client.connect(listener.getsockname())
        made.append((client, listener.accept()[0]))
    return made


def sends_on_ring(client):
    port = client.getsockname()[1]
    told = subprocess.run(["rsctl", "-j", "sockets"], capture_output=True, check=True).stdout
    return any(entry["local"].endswith(f":{port}") and entry["tx"]["carrier"] == "ring"
               for entry in json.loads(told) if entry["local"])


def on_rings(made):
    """Bytes go to and fro until they go by rings."""
    end = time.monotonic() + LIMIT
    for client, server in made:
        while not sends_on_ring(client):
            if time.monotonic() > end:
                sys.exit("no ring")
            client.sendall(bytes(16384))
            left = 16384
            while left:
                left -= len(server.recv(left))


def tcp_bytes():
    with open("/proc/net/sockstat", encoding="ascii") as file:
        for line in file:
            if line.startswith("TCP:"):
                return int(line.split()[-1]) * 4096
    sys.exit("no sockstat")


def crumbs(address, count):
    made = pairs(address, 2)
    on_rings(made)
    before, written = tcp_bytes(), 0
    for n in range(count):
        try:
            written += made[n % 2][0].send(b"x", socket.MSG_DONTWAIT)
        except BlockingIOError:
            break
    print(written, tcp_bytes() - before)


def closed(address, count):
    made = pairs(address, count)
    for client, _ in made:
        client.setblocking(False)
        try:
            while True:
                client.send(bytes(65536))
        except BlockingIOError:
            pass
    for client, _ in made:
        client.close()
    reset = 0
    for _, server in made:
        try:
            while server.recv(1 << 20):
                pass
        except ConnectionResetError:
            reset += 1
        server.close()
    print(reset)


{"crumbs": crumbs, "closed": closed}[sys.argv[2]](sys.argv[1], int(sys.argv[3]))
