#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A connection that is owned for long before a program has accepted it.

Usage: rs_owned ADDRESS MS CMD...

rs_owner.ko owns it for MS milliseconds, as a slow accept() would.  Meanwhile CMD gives its
stream work to do, which has to wait.  Afterwards it is accepted, and bytes go both ways.
"""
import socket
import subprocess
import sys
import time

import streams

OWN = "/sys/module/rs_owner/parameters/own"


def own(listener, ms):
    """Owns the connection, as accept() does until it has charged the program."""
    with open(OWN, "w", encoding="ascii") as file:
        file.write(f"{listener.fileno()} {ms}")


def carries(source, sink):
    data = bytes(range(256)) * 100
    source.sendall(data)
    return sink.recv(len(data), socket.MSG_WAITALL) == data


def main():
    address, ms, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    listener = streams.listening(address)
    client = streams.new(address)
    client.connect(listener.getsockname())
    client.send(b"first")
    limit = time.monotonic() + 20
    while streams.framed() != 2:
        if time.monotonic() > limit:
            sys.exit("there are no records")
        time.sleep(0.01)
    own(listener, ms)
    end = time.monotonic() + ms / 1000
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    if time.monotonic() > end:
        sys.exit("the command has taken too long")
    peer, _ = listener.accept()
    whole = peer.recv(5, socket.MSG_WAITALL) == b"first"
    sys.exit(not (whole and carries(client, peer) and carries(peer, client)))


main()
