#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What programs can make the kernel keep for them, and what it is charged for.

Usage: rs_memory.py ADDRESS crumbs|closed|waiting|lingering|scarce|blocked N
       rs_memory.py ADDRESS orphans N COMMAND...
       rs_memory.py ADDRESS group|high|peeks|accepted N DIRECTORY

crumbs: N sockets in turn write a byte each, which nobody reads, until one takes no more:
no byte continues the one before in the page that a task's writes share.  They are
kept until they are read.  Prints how many bytes it has taken, and SO_SNDBUF with the ring,
which is what they and what keeps them may take.

closed: N clients write what they may to a server that does not read, and close.  Prints
how many of them the server finds reset when it reads.

waiting: N clients have nothing more to send, close, and wait for servers that do not.  Then
one writes what it may to a server that does not read, and closes.  Prints whether that server
finds it reset when it reads, 0 or 1.

lingering: N clients have nothing more to send, close, and wait for servers that do not.  Prints how
many streams of them are left soon, at least.

orphans: runs COMMAND while there are more orphans than tcp_max_orphans, and then what "closed"
does, with TCP and with ours.  Prints of each how many are reset, and how many of them for that
reason.  What is not reset must arrive.

scarce: N clients on rings write what they may, blocks of 32 KiB, while tcp_mem allows no more
than there is.  Prints how many pages more TCP has then, and how many ms a client takes that 50
times waits by poll() and writes.  All bytes must arrive in the end.

blocked: likewise, but the last one writes 1 MiB, in a blocking call, to a server that reads.  Prints
after how many ms that has arrived.

group: as scarce, but by MSG_ZEROCOPY, in a control group to which memory.max leaves 1 MiB.  Prints
how many bytes it has then beyond that limit.

high: peeks at what has arrived by N rings, in a control group that is a MiB below memory.high.
Prints for how many ms it was in these calls.

peeks: peeks at 16 of 32 KiB that have arrived by N rings, then at two pieces in turn by SO_PEEK_OFF,
in a control group near memory.high.  Prints how many bytes it has not seen.

accepted: a process in a control group accepts N connections of another one, first by TCP.
Prints how many bytes of slab memory more the group has for each than with TCP.
"""
import contextlib
import os
import select
import socket
import subprocess
import sys
import threading
import time

import streams
from streams import fill, on_rings, ring_size, tcp_now, unread, write_file

SO_ZEROCOPY = 60
SO_PEEK_OFF = 42
MSG_ZEROCOPY = 0x4000000
LIMIT = 60      # s
FIN_WAIT2 = 5   # of TCP_INFO
GROUPS = "/sys/fs/cgroup"
TCP_MEM = "/proc/sys/net/ipv4/tcp_mem"
RING_MODE = "/proc/sys/net/rdmastream/ring_mode"
TCP_MAX_ORPHANS = "/proc/sys/net/ipv4/tcp_max_orphans"


def pairs(address, count, sndbuf=65536, proto=streams.IPPROTO_RDMASTREAM):
    options = {"SO_SNDBUF": sndbuf} if sndbuf else {}
    with streams.listening(address, count, proto=proto) as listener:
        return [streams.connected(listener, proto, **options) for _ in range(count)]


def is_reset(sock, size=None):
    """Read until the end; there must be that much before it."""
    try:
        while part := len(sock.recv(1 << 20)):
            size = size and size - part
    except (ConnectionResetError, BrokenPipeError):     # EPIPE: behind the end
        return True
    if size:
        sys.exit(f"{size} bytes are missing at the end")
    return False


def read_file(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def tcp_pages():
    return tcp_now("mem")


def tcp_counter(name):
    names, values = (line.split() for line in read_file("/proc/net/netstat").splitlines()
                     if line.startswith("TcpExt:"))
    return int(values[names.index(name)])


def wait_until(condition):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            sys.exit("too late")
        time.sleep(0.02)


def crumbs(address, count):
    made = pairs(address, count)
    on_rings(made)
    written = 0     # by each
    try:
        while True:
            for client, _ in made:
                client.send(b"x", socket.MSG_DONTWAIT)
            written += 1
    except BlockingIOError:
        print(written,
              client.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) + ring_size(client))


def closed(address, count):
    made = pairs(address, count)
    for client, _ in made:
        fill(client)
    for client, _ in made:
        client.close()
    reset = 0
    for _, server in made:
        reset += is_reset(server)
        server.close()
    print(reset)


def closed_at_limit(address, count, proto):
    """Return: how many are reset; how often TCP says that it did that"""
    before = tcp_counter("TCPAbortOnMemory")
    made = pairs(address, count, proto=proto)
    if proto != socket.IPPROTO_TCP and int(read_file(RING_MODE)):
        on_rings(made)
    sizes = [fill(client) for client, _ in made]
    for client, _ in made:
        client.close()
    reset = 0
    for (_, server), size in zip(made, sizes):
        reset += is_reset(server, size)
        server.close()
    return reset, tcp_counter("TCPAbortOnMemory") - before


@contextlib.contextmanager
def crowd(address, count=8):
    """TCP has that many orphans, but tcp_max_orphans is 1."""
    usual = read_file(TCP_MAX_ORPHANS)
    made = pairs(address, count, proto=socket.IPPROTO_TCP)
    for client, _ in made:
        # stays in FIN_WAIT2 for a minute, with no timer that would count orphans
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_LINGER2, 120)
        client.shutdown(socket.SHUT_WR)
        wait_until(lambda client=client: client.getsockopt(
            socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == FIN_WAIT2)
        client.close()
    write_file(TCP_MAX_ORPHANS, 1)
    try:
        # TCP counts them ten times a second
        wait_until(lambda: closed_at_limit(address, 1, socket.IPPROTO_TCP) == (1, 1))
        yield
        if tcp_now("orphan") < count:
            sys.exit("the orphans have ended")
    finally:
        write_file(TCP_MAX_ORPHANS, usual)
        for _, server in made:
            server.close()


def orphans(address, count, *command):
    with crowd(address):
        subprocess.run(command, check=True)
        resets = [closed_at_limit(address, count, proto)
                  for proto in (socket.IPPROTO_TCP, streams.IPPROTO_RDMASTREAM)]
    print(*resets[0], *resets[1])


def waiting(address, count):
    made = pairs(address, count + 1)
    for client, server in made:
        client.sendall(b"x")
        server.sendall(server.recv(1))
        client.recv(1)
    last, server = made.pop()
    for client, _ in made:
        client.close()
    time.sleep(1)   # until the servers' kernel has acknowledged that
    fill(last)
    last.close()
    print(int(is_reset(server)))


def lingering(address, count):
    made = pairs(address, count)
    for client, server in made:
        client.sendall(b"x")
        server.sendall(server.recv(1))
        client.recv(1)
        client.close()
    least, end = count, time.monotonic() + 10
    while least and time.monotonic() < end:
        least = min(least, len(streams.told("mode", "closed")))
        time.sleep(0.1)
    print(least)


def arrive(made, sizes):
    """Read that much, which must be all."""
    for (_, server), size in zip(made, sizes):
        server.settimeout(LIMIT)
        while size:
            size -= len(server.recv(min(size, 1 << 20)))


def polls(client, times):
    """Return: ms, bytes."""
    since, size = time.monotonic(), 0
    for _ in range(times):
        if select.select([], [client], [], LIMIT)[1]:
            size += fill(client, bytes(32768))
    return (time.monotonic() - since) * 1000, size


def scarce(address, count):
    made = pairs(address, count, sndbuf=0)
    on_rings(made)
    usual, before = read_file(TCP_MEM), tcp_pages()
    write_file(TCP_MEM, f"512 768 {before}")
    try:
        sizes = [fill(client, bytes(32768)) for client, _ in made]
        more = tcp_pages() - before
        spent, size = polls(made[0][0], 50)
        sizes[0] += size
    finally:
        write_file(TCP_MEM, usual)
    arrive(made, sizes)
    print(more, round(spent))


def blocked(address, count):
    made = pairs(address, count, sndbuf=0)
    on_rings(made)
    client, server = made.pop()
    usual = read_file(TCP_MEM)
    write_file(TCP_MEM, f"512 768 {tcp_pages()}")
    try:
        sizes = [fill(client, bytes(32768)) for client, _ in made]
        client.settimeout(None)
        threading.Thread(target=client.sendall, args=[bytes(1 << 20)], daemon=True).start()
        since, got = time.monotonic(), 0
        while got < 1 << 20:
            got += len(server.recv(65536))
        spent = time.monotonic() - since
    finally:
        write_file(TCP_MEM, usual)
    arrive(made, sizes)
    print(round(spent * 1000))


def group(address, count, directory):
    # its sockets belong to the group, but not the memory that the program needs later
    write_file(f"{directory}/cgroup.procs", os.getpid())
    made = pairs(address, count, sndbuf=0)
    on_rings(made)
    write_file(f"{GROUPS}/cgroup.procs", os.getpid())
    data = bytes(16384)
    for client, _ in made:
        client.setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
    most = int(read_file(f"{directory}/memory.current")) + (1 << 20)
    write_file(f"{directory}/memory.max", most)
    try:
        sizes = [fill(client, data, flags=MSG_ZEROCOPY) for client, _ in made]
        more = int(read_file(f"{directory}/memory.current")) - most
    finally:
        write_file(f"{directory}/memory.max", "max")
    arrive(made, sizes)
    print(more)


def high(address, count, directory):
    write_file(f"{directory}/cgroup.procs", os.getpid())
    made = pairs(address, count)
    on_rings(made)
    for client, _ in made:
        client.send(bytes(4096), socket.MSG_DONTWAIT)
    room = bytearray(4096)
    time.sleep(1)
    most = int(read_file(f"{directory}/memory.current")) + (1 << 20)
    write_file(f"{directory}/memory.high", most)
    since = time.monotonic()
    try:
        for _, server in made:
            server.recv_into(room, 0, socket.MSG_PEEK)
        spent = time.monotonic() - since
    finally:
        write_file(f"{directory}/memory.high", "max")
    print(round(spent * 1000))


def peeks(address, count, directory):
    write_file(f"{directory}/cgroup.procs", os.getpid())
    made = pairs(address, count)
    on_rings(made)
    for client, server in made:
        client.sendall(bytes(32768))
        while unread(server) != 32768:
            time.sleep(0.01)
    room, missed = bytearray(16384), 0
    write_file(f"{directory}/memory.high", int(read_file(f"{directory}/memory.current")) + (1 << 20))
    try:
        for _, server in made:
            missed += 16384 - server.recv_into(room, 0, socket.MSG_PEEK)
            try:
                server.setsockopt(socket.SOL_SOCKET, SO_PEEK_OFF, 16384)
            except OSError:     # TCP of an older kernel does not have it
                continue
            for _ in range(2):
                missed += 4096 - server.recv_into(room, 4096, socket.MSG_PEEK)
    finally:
        write_file(f"{directory}/memory.high", "max")
    print(missed)


def slab(directory):
    return sum(int(line.split()[1]) for line in read_file(f"{directory}/memory.stat").splitlines()
               if line.startswith("slab_"))


def accepted(address, count, directory):
    more = []
    for proto in (socket.IPPROTO_TCP, streams.IPPROTO_RDMASTREAM):
        listener = streams.listening(address, count, proto=proto)
        clients = [streams.new(address, proto) for _ in range(count)]
        for client in clients:
            client.connect(listener.getsockname())
        write_file(f"{directory}/cgroup.procs", os.getpid())
        before = slab(directory)
        servers = [listener.accept()[0] for _ in range(count)]
        more.append(slab(directory) - before)
        write_file(f"{GROUPS}/cgroup.procs", os.getpid())
        for sock in [*clients, *servers, listener]:
            sock.close()
    print((more[1] - more[0]) // count)


{"crumbs": crumbs, "closed": closed, "waiting": waiting, "lingering": lingering,
 "orphans": orphans, "scarce": scarce, "blocked": blocked, "group": group, "high": high,
 "peeks": peeks, "accepted": accepted}[sys.argv[2]](sys.argv[1], int(sys.argv[3]), *sys.argv[4:])
