#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Programs that own their sockets while it is their turn to send, so nobody can send for them.

Usage: rs_turns serve PORT
       rs_turns send ADDRESS PORT N SECONDS

N streams on one link over a slow device have each sent so much that most wait for their turn; and a
thread for each sends a page that userfaultfd withholds.  Another stream has to send a MiB within so
many seconds.  Prints how long it took.
"""
import resource
import selectors
import socket
import sys
import threading
import time

import streams
from withheld import Withheld

RATE = "/sys/module/rs_hca/parameters/rate"
EACH, MUCH = 32768, 1 << 20


def serve(port):
    """Reads what comes, and closes after each client."""
    listener = streams.listening("0.0.0.0", 1000, int(port))
    ready = selectors.DefaultSelector()
    ready.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj is listener:
                ready.register(listener.accept()[0], selectors.EVENT_READ)
            elif not key.fileobj.recv(1 << 16):
                ready.unregister(key.fileobj)
                key.fileobj.close()


def on_rings(clients):
    """Bytes go until they go by rings."""
    for client in clients:
        client.sendall(b"x")
    return sum(each["tx"]["carrier"] == "ring" for each in streams.told()) == len(clients)


def occupy(client, page):
    client.sendall(bytes(EACH))
    client.sendall(page)


def over(client):
    """The other end has read everything."""
    client.shutdown(socket.SHUT_WR)
    if client.recv(1):
        sys.exit("an answer")
    client.close()


def send(address, port, n, seconds):
    n = int(n)
    resource.setrlimit(resource.RLIMIT_NOFILE, (4 * n, 4 * n))
    threading.stack_size(256 * 1024)
    clients = []
    for _ in range(n + 1):
        client = streams.new(address)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
        client.connect((address, int(port)))
        client.sendall(bytes(20000))
        clients.append(client)
    streams.wait_until(lambda: on_rings(clients), streams.LIMIT, "not all have rings")
    client = clients.pop()
    streams.write_file(RATE, 4000000)
    withheld = Withheld(n)
    for i, each in enumerate(clients):
        threading.Thread(target=occupy, args=(each, withheld.page(i)), daemon=True).start()
    withheld.wait_for(n)
    waiting = sum(each["tx"]["stall"] == "stall-slot" for each in streams.told())
    start = time.monotonic()
    client.sendall(bytes(MUCH))
    over(client)
    took = time.monotonic() - start
    print(f"{waiting} streams waited for their turn; a MiB in {took:.1f} s")
    streams.write_file(RATE, 0)
    withheld.come()
    for each in clients:
        over(each)
    sys.exit(took > float(seconds) or waiting < 128)


{"serve": serve, "send": send}[sys.argv[1]](*sys.argv[2:])
