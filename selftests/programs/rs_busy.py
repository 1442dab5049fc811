#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Round trips between programs that poll instead of sleeping.

Usage: rs_busy -s ADDRESS PORT
       rs_busy -c ADDRESS PORT HOW USEC SECONDS

The server answers each message of one connection after the other, and polls as its client
does.  HOW the client waits: recv, poll or epoll.  USEC: SO_BUSY_POLL, 0: sleep at once; for poll
and epoll net.core.busy_poll must be set, too.  Prints the number of round trips, and of those for
which the client has gone to sleep.
"""
import resource
import select
import socket
import sys
import time

SO_BUSY_POLL = 46
SIZE = 64


def waiter(sock, how):
    """A function that returns when there is something to read."""
    if how == "recv":
        return lambda: None
    poll = select.poll() if how == "poll" else select.epoll()
    poll.register(sock, select.POLLIN)
    return poll.poll


def read(sock, wait):
    data = b""
    while len(data) < SIZE:
        wait()
        part = sock.recv(SIZE - len(data))
        if not part:
            return b""
        data += part
    return data


def serve(address, port):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen()
    while True:
        sock, _ = listener.accept()
        how, usec = sock.recv(SIZE).decode().split()
        sock.setsockopt(socket.SOL_SOCKET, SO_BUSY_POLL, int(usec))
        wait = waiter(sock, how)
        sock.sendall(b"x" * SIZE)
        while data := read(sock, wait):
            sock.sendall(data)


def ask(address, port, how, usec, seconds):
    sock = socket.create_connection((address, port))
    sock.sendall(f"{how} {usec}".encode())
    sock.recv(SIZE, socket.MSG_WAITALL)
    sock.setsockopt(socket.SOL_SOCKET, SO_BUSY_POLL, usec)
    wait = waiter(sock, how)
    trips = slept = 0
    begin = time.monotonic()
    # what is before the ring does not count
    while time.monotonic() < begin + seconds:
        if not slept or time.monotonic() < begin + 1:
            trips = 0
            slept = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        sock.sendall(b"y" * SIZE)
        if len(read(sock, wait)) < SIZE:
            sys.exit("the server has closed")
        trips += 1
    slept = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - slept
    print(trips, slept)


def main():
    mode, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if mode == "-s":
        serve(address, port)
    else:
        ask(address, port, sys.argv[4], int(sys.argv[5]), float(sys.argv[6]))


main()
