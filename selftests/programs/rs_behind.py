#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What has arrived can be counted and peeked at, as with TCP, even if a span ends within.

usage: rs_behind ADDRESS SIZE, a multiple of 10,000

Both ends are of this host.  They exchange bytes, so that the streams have left their records.  Then
SIZE bytes are sent, more than a span has left; nothing else arrives until all of them are counted
(FIONREAD), then peeked at, and read.  Then as many come to a program that polls for SO_RCVLOWAT
bytes, and to one that polls with EPOLLET and reads only when all are there, and then some more;
then the end.  Then a peek waits for more bytes than come before the end.
"""
import os
import select
import socket
import struct
import sys
import threading
import time

from streams import pair, receive, take_turns, unread, wait_until

LIMIT = 20 * int(os.environ.get("SLOW", 1))
LARGE = 1 << 20


def send(sock, data):
    sender = threading.Thread(target=sock.sendall, args=(data,), daemon=True)
    sender.start()
    return sender


def poll_for(sock, data, least):
    """Reads what there is whenever that many bytes are announced, or the end."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    got = bytearray()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)
    while len(got) < len(data):
        if not poll.poll(1000 * LIMIT):
            sys.exit(f"SO_RCVLOWAT: no event after {len(got)} bytes; {unread(sock)} are here")
        piece = sock.recv(LARGE)
        if not piece:
            break
        got += piece
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
    if got != data:
        sys.exit(f"SO_RCVLOWAT: {len(got)} of {len(data)} bytes are right")


def edges_for(sock, data, send_more):
    """Waits for a further event as long as not all are here.  Then for one for the same again."""
    with select.epoll() as epoll:
        epoll.register(sock, select.EPOLLIN | select.EPOLLET)
        while unread(sock) < len(data):
            if not epoll.poll(LIMIT):
                sys.exit(f"EPOLLET: no event after {unread(sock)} of {len(data)} bytes")
        while epoll.poll(0.1):
            pass
        send_more(data[:1000])
        if not epoll.poll(LIMIT):
            sys.exit(f"EPOLLET: no event for 1000 bytes more than {len(data)}")
    if receive(sock, len(data) + 1000) != data + data[:1000]:
        sys.exit("EPOLLET: what is read is not what was sent")


def peek_to_end(address, data):
    """Peeks at more than there will be, while the end arrives."""
    ours, theirs = pair(address, SO_RCVBUF=2 * len(data))
    take_turns(ours, theirs)
    send(theirs, data).join(LIMIT)
    wait_until(lambda: unread(ours) == len(data), LIMIT, "not all is counted before the end")
    threading.Timer(0.2, theirs.shutdown, (socket.SHUT_WR,)).start()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", LIMIT, 0))
    start = time.monotonic()
    seen = ours.recv(len(data) + 1, socket.MSG_PEEK | socket.MSG_WAITALL)
    if seen != data or time.monotonic() > start + LIMIT - 1:
        sys.exit(f"{len(seen)} of {len(data)} bytes, up to the end, are peeked at in time")
    if receive(ours, len(data)) != data or ours.recv(1):
        sys.exit("what is read before the end is not what was sent")


def main():
    address, size = sys.argv[1], int(sys.argv[2])
    # two buffers' worth, because what fills one to the brim stays with the sender
    ours, theirs = pair(address, SO_RCVBUF=2 * size)
    for sock in ours, theirs:
        sock.settimeout(LIMIT)
    take_turns(ours, theirs)
    data = os.urandom(size)
    # where there is a link, they return to records after a span if they have not for 100 ms
    time.sleep(0.2)
    send(theirs, data)
    end = time.monotonic() + LIMIT
    while unread(ours) < size:
        if time.monotonic() > end:
            sys.exit(f"{unread(ours)} of {size} bytes are counted")
        time.sleep(0.05)
    if unread(ours) != size:
        sys.exit(f"{unread(ours)} bytes are counted, {size} were sent")
    try:
        seen = ours.recv(size, socket.MSG_PEEK | socket.MSG_WAITALL)
    except TimeoutError:
        sys.exit("not all can be peeked at")
    if seen != data:
        sys.exit(f"{len(seen)} of {size} bytes are peeked at")
    for at in range(0, size, 10000):
        if receive(ours, 10000) != data[at:at + 10000]:
            sys.exit(f"what is read at {at} is not what was sent")
        if unread(ours) != size - at - 10000:
            sys.exit(f"{unread(ours)} bytes are counted when {size - at - 10000} are left")
    send(theirs, data)
    edges_for(ours, data, theirs.sendall)
    theirs.sendall(data[:1000])     # what is short of SO_RCVLOWAT is announced at the end
    sender = send(theirs, data)
    threading.Thread(target=lambda: (sender.join(), theirs.shutdown(socket.SHUT_WR))).start()
    poll_for(ours, data[:1000] + data, 30000)
    peek_to_end(address, data)


main()
