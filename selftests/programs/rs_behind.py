#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What has arrived can be counted and peeked at, as with TCP, even if a span ends within.

usage: rs_behind ADDRESS SIZE

Both ends are of this host.  They exchange bytes, so that the streams have left their records.  Then
SIZE bytes are sent, more than a span has left; nothing else arrives until all of them are counted
(FIONREAD), then peeked at, and read.
"""
import fcntl
import os
import socket
import struct
import sys
import termios
import threading
import time

from streams import pair, receive

LIMIT = 20 * int(os.environ.get("SLOW", 1))
TURNS = 20
TURN = 20000		# together more than a prelude and two spans


def ready(sock):
    return struct.unpack("i", fcntl.ioctl(sock, termios.FIONREAD, bytes(4)))[0]


def main():
    address, size = sys.argv[1], int(sys.argv[2])
    # two buffers' worth, because what fills one to the brim stays with the sender
    ours, theirs = pair(address, SO_RCVBUF=2 * size)
    for sock in ours, theirs:
        sock.settimeout(LIMIT)
    for _ in range(TURNS):
        ours.sendall(bytes(TURN))
        receive(theirs, TURN)
        theirs.sendall(bytes(TURN))
        receive(ours, TURN)
    data = os.urandom(size)
    threading.Thread(target=theirs.sendall, args=(data,), daemon=True).start()
    end = time.monotonic() + LIMIT
    while ready(ours) < size:
        if time.monotonic() > end:
            sys.exit(f"{ready(ours)} of {size} bytes are counted")
        time.sleep(0.05)
    if ready(ours) != size:
        sys.exit(f"{ready(ours)} bytes are counted, {size} were sent")
    try:
        seen = ours.recv(size, socket.MSG_PEEK | socket.MSG_WAITALL)
    except TimeoutError:
        sys.exit("not all can be peeked at")
    if seen != data:
        sys.exit(f"{len(seen)} of {size} bytes are peeked at")
    if receive(ours, size) != data:
        sys.exit("what is read is not what was sent")
    if ready(ours):
        sys.exit(f"{ready(ours)} bytes are counted after the last")


main()
