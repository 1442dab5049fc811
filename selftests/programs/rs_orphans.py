#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What programs can make the kernel keep for them, and what it is charged for.

Usage: rs_orphans.py ADDRESS crumbs|closed N

crumbs: N sockets in turn write a byte each, which nobody reads, until one takes no more:
no byte continues the one before in the page that a task's writes share.  They are
kept until they are read.  Prints how many bytes it has taken, and SO_SNDBUF with the ring,
which is what they and what keeps them may take.

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


def ring_size(client):
    """Bytes of the ring that it writes to; 0: none."""
    port = client.getsockname()[1]
    told = subprocess.run(["rsctl", "-j", "sockets"], capture_output=True, check=True).stdout
    return sum(entry["tx"]["ring_size"] for entry in json.loads(told)
               if entry["local"] and entry["local"].endswith(f":{port}") and
               entry["tx"]["carrier"] == "ring")


def on_rings(made):
    """Bytes go to and fro until they go by rings."""
    end = time.monotonic() + LIMIT
    for client, server in made:
        while not ring_size(client):
            if time.monotonic() > end:
                sys.exit("no ring")
            client.sendall(bytes(16384))
            left = 16384
            while left:
                left -= len(server.recv(left))


def fill(sock, data):
    """Write until nothing more is taken."""
    try:
        while True:
            sock.send(data, socket.MSG_DONTWAIT)
    except BlockingIOError:
        pass


def crumbs(address, count):
    made = pairs(address, count)
    on_rings(made)
    written = 0     # by each
    try:
        while True:
            for client, _ in made:
                client.send(b"x", socket.MSG_DONTWAIT)
            written += 1
    except BlockingIOError:
        print(written,
              client.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) + ring_size(client))


def closed(address, count):
    made = pairs(address, count)
    for client, _ in made:
        fill(client, bytes(65536))
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
