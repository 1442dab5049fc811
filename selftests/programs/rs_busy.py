#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Programs that poll instead of sleeping.

Usage: rs_busy -s ADDRESS PORT
       rs_busy -c ADDRESS PORT HOW SECONDS [NAME=VALUE...]
       rs_busy -w ADDRESS PORT [NAME=VALUE...] [-- COMMAND...]
       rs_busy -o ADDRESS PORT

-s: answers each message of one connection after the other, and polls as its client does.
-c: round trips.  HOW it waits for each: recv, poll or epoll.  Prints their number, and how
often it has gone to sleep meanwhile.
-w: reads what does not come, again and again for 50 ms that it sleeps, after it has run COMMAND.
Prints how many milliseconds of CPU time that took, and how often it has gone to sleep.
-o: sets the options, prints what comes of it, and what they are then.

NAME=VALUE: an option of the sockets of both ends, else they have what new sockets have.
usec: SO_BUSY_POLL, 0: sleep at once; for poll and epoll net.core.busy_poll must be set, too.
prefer: SO_PREFER_BUSY_POLL.  budget: SO_BUSY_POLL_BUDGET.
"""
import errno
import resource
import select
import socket
import struct
import subprocess
import sys
import time

OPTIONS = {"usec": 46, "prefer": 69, "budget": 70}
SIZE = 64
WAITS = 20


def setup(sock, settings):
    for setting in settings:
        name, value = setting.split("=")
        sock.setsockopt(socket.SOL_SOCKET, OPTIONS[name], int(value))


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
        how, *settings = sock.recv(SIZE).decode().split()
        setup(sock, settings)
        wait = waiter(sock, how)
        sock.sendall(b"x" * SIZE)
        while data := read(sock, wait):
            sock.sendall(data)


def connect(address, port, how, settings):
    sock = socket.create_connection((address, port))
    sock.sendall(" ".join([how, *settings]).encode())
    sock.recv(SIZE, socket.MSG_WAITALL)
    setup(sock, settings)
    return sock


def trip(sock, wait, number):
    data = number.to_bytes(8, "big") * (SIZE // 8)
    sock.sendall(data)
    if read(sock, wait) != data:
        sys.exit("the server has closed, or answered something else")


def sleeps():
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def ask(address, port, how, seconds, settings):
    sock = connect(address, port, how, settings)
    wait = waiter(sock, how)
    trips, slept = 0, None
    begin = time.monotonic()
    # what is before the ring does not count
    while time.monotonic() < begin + seconds:
        if slept is None or time.monotonic() < begin + 1:
            trips, slept = 0, sleeps()
        trip(sock, wait, trips)
        trips += 1
    print(trips, sleeps() - slept)


def wait_for_nothing(address, port, settings, command):
    sock = connect(address, port, "recv", settings)
    if command:
        subprocess.run(command, check=True)
    for number in range(100):		# and then both use rings
        trip(sock, lambda: None, number)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 50000))
    slept, cpu = sleeps(), time.process_time()
    for _ in range(WAITS):
        try:
            sock.recv(1)
        except BlockingIOError:
            continue
        sys.exit("there was something to read")
    print(round(1000 * (time.process_time() - cpu)), sleeps() - slept)


def outcome(function, *args):
    try:
        return function(socket.SOL_SOCKET, *args)
    except OSError as err:
        return errno.errorcode[err.errno]


def options(address, port):
    sock = connect(address, port, "recv", [])
    for number in range(100):
        trip(sock, lambda: None, number)
    for value in 0, 1, 2, 1, 0, -1, 9, 8, 65535, 65536, 7, 0:
        for name, option in OPTIONS.items():
            print(name, value, outcome(sock.setsockopt, option, value),
                  outcome(sock.getsockopt, option))
        trip(sock, lambda: None, value % 100)
        print("then", *(outcome(sock.getsockopt, option) for option in OPTIONS.values()))


def main():
    mode, address, port, *args = sys.argv[1:]
    where = address, int(port)
    if mode == "-s":
        serve(*where)
    elif mode == "-c":
        ask(*where, args[0], float(args[1]), args[2:])
    elif mode == "-w":
        end = args.index("--") if "--" in args else len(args)
        wait_for_nothing(*where, args[:end], args[end + 1:])
    else:
        options(*where)


main()
