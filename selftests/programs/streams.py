# SPDX-License-Identifier: GPL-2.0-only
"""For programs with rdmastream sockets: making and connecting them, filling and reading them,
what rsctl says of them, and files that are settings.
"""
import fcntl
import json
import select
import socket
import struct
import subprocess
import sys
import termios
import time

IPPROTO_RDMASTREAM = 257
LIMIT = 60      # s
SOME = 16384


def write_file(path, what):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(what))


def wait_until(what, seconds, why):
    """Ends the program, and says why, if this does not come true in time."""
    limit = time.monotonic() + seconds
    while not what():
        if time.monotonic() > limit:
            sys.exit(why)
        time.sleep(0.1)


def tcp_now(name):
    """A number of TCP's in /proc/net/sockstat, such as "mem", pages, or "orphan", sockets."""
    with open("/proc/net/sockstat", encoding="ascii") as file:
        words = next(line for line in file if line.startswith("TCP:")).split()
    return int(words[words.index(name) + 1])


def new(address="0.0.0.0", proto=IPPROTO_RDMASTREAM):
    """Of the family of the address."""
    return socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET,
                         socket.SOCK_STREAM, proto)


def listening(address, backlog=1, port=0, proto=IPPROTO_RDMASTREAM):
    listener = new(address, proto)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(backlog)
    return listener


def connected(listener, proto=IPPROTO_RDMASTREAM, **options):
    """A client and the server's socket.  @options: of the client, by name, before it connects."""
    where = listener.getsockname()
    client = new(where[0], proto)
    for name, value in options.items():
        client.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
    client.connect(where)
    return client, listener.accept()[0]


def pair(address, **options):
    with listening(address) as listener:
        return connected(listener, **options)


def receive(sock, size):
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise ConnectionError(f"the end after {len(data)} of {size} bytes")
        data += piece
    return bytes(data)


def unread(sock):
    """Number of readable bytes."""
    return struct.unpack("i", fcntl.ioctl(sock, termios.FIONREAD, bytes(4)))[0]


def take_turns(ours, theirs, turns=20, size=20000):
    """Bytes both ways.  As many as by default are more than a prelude and two spans."""
    for _ in range(turns):
        ours.sendall(bytes(size))
        receive(theirs, size)
        theirs.sendall(bytes(size))
        receive(ours, size)


def fill(sock, data=bytes(65536), most=None, flags=0, patience=0):
    """Write, again and again, until nothing is taken for that many seconds.  Return: bytes

    @most: bytes in all
    """
    before, size = sock.gettimeout(), 0
    sock.setblocking(False)
    try:
        while most is None or size < most:
            try:
                size += sock.send(data if most is None else data[:most - size], flags)
            except BlockingIOError:
                if not patience or not select.select([], [sock], [], patience)[1]:
                    break
    finally:
        sock.settimeout(before)
    return size


def told(*select_by):
    """What "rsctl sockets" says of each, or of those that are selected."""
    return json.loads(subprocess.run(["rsctl", "-j", "sockets", *select_by], check=True,
                                     stdout=subprocess.PIPE).stdout)


def framed():
    """How many have records."""
    return sum(entry["mode"] == "framed" for entry in told())


def ring_size(sock):
    """Bytes of the ring that it writes to; 0: none."""
    local = "%s:%d" % sock.getsockname()[:2]
    return sum(entry["tx"]["ring_size"] for entry in told()
               if entry["local"] == local and entry["remote"] and entry["tx"]["carrier"] == "ring")


def on_rings(pairs):
    """Bytes go from the first to the second of each pair until they go by rings."""
    end = time.monotonic() + LIMIT
    for client, server in pairs:
        while not ring_size(client):
            if time.monotonic() > end:
                sys.exit("no ring")
            client.sendall(bytes(SOME))
            receive(server, SOME)
            time.sleep(0.01)    # virtual time passes only while all wait
