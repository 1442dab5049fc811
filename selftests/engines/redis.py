#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A client of Redis Cluster that believes nothing.

usage: redis.py GO PROGRESS ADDRESS:PORT...

Sets keys and gets them again until the file GO is there; each answer is compared.  Slots may move
meanwhile (MOVED, ASK); no other error and no lost connection is accepted.  Then it compares all
keys, and says how long the slowest request took.
"""
import os
import random
import socket
import sys
import time

go, progress = sys.argv[1:3]
nodes = sys.argv[3:]
KEYS = 2000
conns = {}
where = {}      # key -> node
slowest = 0.0
count = 0


class Connection:
    def __init__(self, node):
        host, port = node.rsplit(":", 1)
        self.sock = socket.create_connection((host, int(port)), timeout=60)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.sock.makefile("rb")

    def ask(self, *words):
        out = b"*%d\r\n" % len(words)
        for word in words:
            out += b"$%d\r\n%s\r\n" % (len(word), word)
        self.sock.sendall(out)
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the connection has ended")
        if line[:1] == b"$":
            size = int(line[1:])
            return None if size < 0 else self.file.read(size + 2)[:-2]
        return line[:-2]


def connection(node):
    if node not in conns:
        conns[node] = Connection(node)
    return conns[node]


def request(key, *words):
    global slowest, count
    since = time.monotonic()
    node = where.get(key, nodes[0])
    asking = False
    while True:
        if asking and connection(node).ask(b"ASKING") != b"+OK":
            sys.exit("ASKING was refused")
        answer = connection(node).ask(*words)
        if answer is None or not answer.startswith((b"-MOVED ", b"-ASK ", b"-TRYAGAIN")):
            break
        asking = answer.startswith(b"-ASK ")
        if not answer.startswith(b"-TRYAGAIN"):
            node = answer.split()[2].decode()
        if answer.startswith(b"-MOVED "):
            where[key] = node
    if answer is not None and answer.startswith(b"-"):
        sys.exit(f"{words[0]} {key}: {answer}")
    slowest = max(slowest, time.monotonic() - since)
    count += 1
    return answer


def compare(key, got, want):
    if got != want:
        sys.exit(f"{key}: got {got and got[:40]}, of {got and len(got)} bytes, instead of {want[:40]}, of {len(want)}")


def main():
    rand = random.Random(7)
    data = {}
    told = 0
    after = 0
    while not os.path.exists(go) or after < 3:
        after += os.path.exists(go)
        for _ in range(100):
            key = b"key:%d" % rand.randrange(KEYS)
            value = rand.randbytes(rand.choice((10, 100, 4000, 20000))).hex().encode()
            if request(key, b"SET", key, value) != b"+OK":
                sys.exit(f"SET {key} was not answered by OK")
            data[key] = value
            key = rand.choice(list(data)[-50:])
            compare(key, request(key, b"GET", key), data[key])
        if time.monotonic() - told > 0.2:
            told = time.monotonic()
            with open(progress, "a", encoding="ascii") as file:
                print(count, file=file)
    for key, value in data.items():
        compare(key, request(key, b"GET", key), value)
    print(f"{count} requests, {len(data)} keys compared; the slowest request took {slowest * 1000:.0f} ms")


main()
