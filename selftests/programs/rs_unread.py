#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A program that leaves unread what its peer has sent can send nevertheless, as with TCP.

usage: rs_unread ADDRESS SIZE STEP...

Both ends are of this host.  They exchange bytes, so that the streams have left their records.
Then come the steps:
    back:N     N bytes are sent to the program, or as many as there is room for
    forth:N    it sends N bytes, or as many as there is room for; the peer reads none yet
    end        nothing more is sent to it
    do:CMD     a shell command, by which there is a ring to come back to, say
Last, the program sends SIZE bytes in all, and ends its stream, before it reads any; the peer reads
up to the end.
"""
import os
import socket
import subprocess
import sys
import threading

from streams import fill, pair, receive, take_turns

ROOM = 4 << 20
LIMIT = 20 * int(os.environ.get("SLOW", 1))
PIECE = bytes(20000)


def receive_all(sock, size):
    receive(sock, size)
    if sock.recv(1):
        sys.exit("there is more than was sent")


def main():
    address, size, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    unread = sent = 0
    ours, theirs = pair(address, SO_RCVBUF=ROOM)
    for sock in ours, theirs:
        sock.settimeout(LIMIT)
    take_turns(ours, theirs)
    for step in steps:
        what, _, how = step.partition(":")
        if what == "back":
            unread += fill(theirs, PIECE, int(how), patience=1)
        elif what == "forth":
            sent += fill(ours, PIECE, int(how), patience=1)
        elif what == "end":
            theirs.shutdown(socket.SHUT_WR)
        else:
            subprocess.run(["bash", "-c", how], stdout=subprocess.DEVNULL, check=True)
    reader = threading.Thread(target=receive_all, args=(theirs, size), daemon=True)
    reader.start()
    try:
        ours.sendall(bytes(size - sent))
        ours.shutdown(socket.SHUT_WR)
    except TimeoutError:
        sys.exit(f"cannot send while {unread} bytes are unread")
    reader.join(LIMIT)
    if reader.is_alive():
        sys.exit(f"not all comes while {unread} bytes are unread")
    receive(ours, unread)


main()
