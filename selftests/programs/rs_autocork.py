#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Many small writes: all of them arrive, none waits for ever.

rs_autocork serve PORT
rs_autocork stream HOST PORT WRITES NODELAY	of 64 bytes, then the end
rs_autocork bursts HOST PORT NODELAY	of one to 40 writes, each burst is answered
rs_autocork turns HOST PORT COUNT		of 64 bytes: question, answer, waiting once
"""
import random
import resource
import socket
import struct
import sys
import threading

from streams import listening, new, receive

HEADER = struct.Struct("!I")	# bytes that one byte answers; 0: the end, with a count
COUNT = struct.Struct("!Q")
BURST = 4000
LIMIT = 20		# s


def content(offset, length):
    return bytes((i * 7 + (i >> 8)) & 255 for i in range(offset, offset + length))


PATTERN = content(0, 65536)		# it begins again there


def piece(offset, length):
    offset %= len(PATTERN)
    return (PATTERN + PATTERN[:length])[offset:offset + length]


def answer(s):
    each, = HEADER.unpack(receive(s, HEADER.size))
    got = 0
    while True:
        data = s.recv(60000)
        if not data:
            break
        if data != piece(got, len(data)):
            sys.exit("wrong bytes between %d and %d" % (got, got + len(data)))
        before = got // each if each else 0
        got += len(data)
        if each and got // each > before:
            s.sendall(b"." * (got // each - before))
    if not each:
        s.sendall(COUNT.pack(got))
    s.close()


def serve(port):
    listener = listening("", 128, port)
    while True:
        s, _ = listener.accept()
        threading.Thread(target=answer, args=(s,), daemon=True).start()


def connect(host, port, each, nodelay):
    s = new(host)
    s.settimeout(LIMIT)
    s.connect((host, port))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)
    s.sendall(HEADER.pack(each))
    return s


def stream(host, port, writes, nodelay):
    s = connect(host, port, 0, nodelay)
    for i in range(writes):
        s.sendall(piece(i * 64, 64))
    s.shutdown(socket.SHUT_WR)
    got, = COUNT.unpack(receive(s, COUNT.size))
    if got != writes * 64:
        sys.exit("%d of %d bytes" % (got, writes * 64))


def bursts(host, port, nodelay):
    s = connect(host, port, BURST, nodelay)
    seed = random.randrange(1 << 32)
    rnd = random.Random(seed)
    sent = 0
    for n in list(range(1, 41)) * 2:
        ends = sorted(rnd.sample(range(1, BURST), n - 1)) + [BURST]
        for begin, end in zip([0] + ends, ends):
            s.sendall(piece(sent + begin, end - begin))
        sent += BURST
        try:
            receive(s, 1)
        except socket.timeout:
            sys.exit("no answer to a burst of %d writes, seed %d" % (n, seed))


def waits():
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def turns(host, port, count):
    s = connect(host, port, 64, 1)
    before = waits()
    for i in range(count):
        s.sendall(piece(i * 64, 64))
        receive(s, 1)
    if waits() - before > count + count // 10:
        sys.exit("waited %d times for %d answers" % (waits() - before, count))


def main():
    todo = {"serve": serve, "stream": stream, "bursts": bursts, "turns": turns}
    if len(sys.argv) < 3 or sys.argv[1] not in todo:
        sys.exit(__doc__)
    args = sys.argv[2:]
    if sys.argv[1] == "serve":
        serve(int(args[0]))
    else:
        todo[sys.argv[1]](args[0], *map(int, args[1:]))


main()
