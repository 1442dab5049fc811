#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Takes what a connection brings by way of a pipe that somebody else empties.

usage: rs_splicer -s PORT MIB | HOST PORT

With -s the other end, which sends MIB MiB to its first connection.  Else one
thread sleeps in splice() while another reads the pipe, which could hold all of a
ring; prints bytes and milliseconds.
"""
import fcntl
import os
import socket
import sys
import threading
import time

M = 1 << 20


def send(port, mib):
    listener = socket.create_server(("", port))
    conn, _ = listener.accept()
    for _ in range(mib):
        conn.sendall(b"x" * M)


def take(host, port):
    conn = socket.create_connection((host, port))
    out, into = os.pipe()
    fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, M)
    got = []

    def empty():
        while piece := os.read(out, M):
            got.append(len(piece))

    reader = threading.Thread(target=empty)
    reader.start()
    start = time.monotonic()
    while os.splice(conn.fileno(), into, M):
        pass
    os.close(into)
    reader.join()
    print(sum(got), round((time.monotonic() - start) * 1000))


if sys.argv[1] == "-s":
    send(int(sys.argv[2]), int(sys.argv[3]))
else:
    take(sys.argv[1], int(sys.argv[2]))
