#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Two ends of a stream for kept.sh, which tells them by files when to go on.

rs_kept serve PORT DIR           reads; what comes behind @FIRST, it splices into a pipe first
rs_kept keep PORT DIR            reads all, and does not close
rs_kept talk HOST PORT DIR       writes, and closes in the end
rs_kept half HOST PORT DIR       writes, shuts down its direction, and closes in the end
rs_kept reset HOST PORT DIR      writes, and resets the connection in the end
"""
import os
import socket
import struct
import sys

from streams import listening, new, receive, wait_until

FIRST, MORE, PAGE = 20000, 32768, 4096
data = bytes((i * 7 + i // 251) % 255 + 1 for i in range(FIRST + MORE))


def wait_for(path):
    wait_until(lambda: os.path.exists(path), 200, f"{path} does not come")


def say(path):
    open(path, "w", encoding="ascii").close()


def serve(port, where):
    sock, _ = listening("", port=int(port)).accept()
    got = receive(sock, FIRST)
    say(where + "/first")
    reader, writer = os.pipe()
    spliced = os.splice(sock.fileno(), writer, PAGE)
    say(where + "/spliced")
    wait_for(where + "/left")
    got += os.read(reader, spliced)
    got += receive(sock, len(data) - len(got))
    wrong = [i for i, byte in enumerate(got) if byte != data[i]]
    print(f"{spliced} bytes spliced; wrong: {wrong[:16]}")
    sys.exit(bool(wrong))


def keep(port, where):
    sock, _ = listening("", port=int(port)).accept()
    receive(sock, FIRST)
    say(where + "/first")
    receive(sock, MORE)
    say(where + "/read")
    wait_for(where + "/over")


def talk(host, port, where):
    sock = new(host)
    write(sock, host, port, where)
    sock.close()
    wait_for(where + "/closed")


def reset(host, port, where):
    sock = new(host)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    write(sock, host, port, where)
    sock.close()
    wait_for(where + "/closed")


def half(host, port, where):
    sock = new(host)
    write(sock, host, port, where)
    sock.shutdown(socket.SHUT_WR)
    wait_for(where + "/closed")


def write(sock, host, port, where):
    sock.connect((host, int(port)))
    sock.sendall(data[:FIRST])
    wait_for(where + "/go")
    sock.sendall(data[FIRST:])
    wait_for(where + "/end")


{"serve": serve, "keep": keep, "talk": talk, "half": half,
 "reset": reset}[sys.argv[1]](*sys.argv[2:])
