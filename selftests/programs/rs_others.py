#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Sockets in the hands of others than the program that has made them.

Usage: rs_others ADDRESS kernel|bpf|delay|migrate

  kernel   the kernel accepts from the program's listener, as nfsd does (rs_acceptor.ko)
  bpf      a BPF program of the control group sets SO_RCVLOWAT before accept()
  delay    TCP_TX_DELAY makes the SYN-ACKs of a listener late
  migrate  the children of a listener that is closed go to others of its SO_REUSEPORT group
"""
import contextlib
import ctypes
import os
import platform
import socket
import struct
import sys
import threading
import time

import tap
from streams import IPPROTO_RDMASTREAM

TCP_TX_DELAY = 37
ACCEPTOR = "/sys/module/rs_acceptor/parameters/"
GROUPS = "/sys/fs/cgroup"
MIGRATE = "/proc/sys/net/ipv4/tcp_migrate_req"
KINDS = {"tcp": 0, "rdmastream": IPPROTO_RDMASTREAM}


def listener(address, kind="rdmastream", port=0):
    sock = socket.socket(proto=KINDS[kind])
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind((address, port))
    sock.listen(100)
    return sock


def connected(sock, kind="rdmastream"):
    client = socket.socket(proto=KINDS[kind])
    client.settimeout(20)
    client.connect(sock.getsockname())
    return client


def put(path, value):
    """One write() at once.  Return: 0 or an errno."""
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, str(value).encode())
    except OSError as err:
        return err.errno
    finally:
        os.close(file)
    return 0


# ---- the kernel accepts ----

def is_reset(client):
    try:
        client.recv(64)
    except ConnectionResetError:
        return True
    return False


def echoed(sock, client, times=1):
    """
    Bytes to the kernel, which accepts so often, and back.  Return: what is wrong.
    """
    client.sendall(b"hello")
    for _ in range(times):
        err = put(ACCEPTOR + "echo", sock.fileno())
    try:
        back = client.recv(64)
    except OSError as failure:
        back = failure
    return "" if not err and back == b"hello" else f"{os.strerror(err)}, {back!r}"


def kernel(address):
    for kind in KINDS:
        sock = listener(address)
        wrong = echoed(sock, connected(sock, kind))
        tap.ok(not wrong, f"the kernel accepts, from {kind}", wrong)
        put(ACCEPTOR + "take", sock.fileno())
        wrong = echoed(sock, connected(sock, kind))
        tap.ok(not wrong, f"the kernel accepts with callbacks of its own, from {kind}", wrong)
        put(ACCEPTOR + "take", -1)
        before = connected(sock, kind)
        before.sendall(b"early")
        put(ACCEPTOR + "take", sock.fileno())
        # a stream is reset, and the kernel gets the next one at once
        wrong = echoed(sock, connected(sock, kind), times=1 if kind == "rdmastream" else 2)
        put(ACCEPTOR + "take", -1)
        tap.ok(not wrong, f"callbacks while one waits: the next one is accepted, from {kind}",
               wrong)
        tap.ok(is_reset(before) == (kind == "rdmastream"),
               f"callbacks while one waits: only a stream is reset, from {kind}")
        wrong = echoed(sock, connected(sock, kind))
        tap.ok(not wrong, f"callbacks are unset again: the kernel accepts, from {kind}", wrong)


# ---- a BPF program ----

def insn(code, regs, offset, value):
    return struct.pack("<BBhi", code, regs, offset, value)


# if (op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB) bpf_setsockopt(SO_RCVLOWAT, 100); return 1;
LOWAT = b"".join((
    insn(0xbf, 0x16, 0, 0),         # r6 = r1
    insn(0x61, 0x12, 0, 0),         # r2 = r1->op
    insn(0x55, 0x02, 8, 5),         # if r2 != 5: to the end
    insn(0x62, 0x0a, -8, 100),      # on the stack: 100
    insn(0xbf, 0x61, 0, 0),         # r1 = r6
    insn(0xb7, 0x02, 0, socket.SOL_SOCKET),
    insn(0xb7, 0x03, 0, socket.SO_RCVLOWAT),
    insn(0xbf, 0xa4, 0, 0),         # r4 = r10 - 8
    insn(0x07, 0x04, 0, -8),
    insn(0xb7, 0x05, 0, 4),
    insn(0x85, 0x00, 0, 49),        # bpf_setsockopt()
    insn(0xb7, 0x00, 0, 1),
    insn(0x95, 0x00, 0, 0),
))
PROG_LOAD, PROG_ATTACH, PROG_DETACH, SOCK_OPS, CGROUP_SOCK_OPS = 5, 8, 9, 13, 3


def bpf_call(command, attr):
    number = 280 if platform.machine() == "aarch64" else 321
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(number, command, attr, len(attr))
    if result < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return result


@contextlib.contextmanager
def lowat_by_bpf():
    """All children of listeners in the control group get it."""
    code, gpl = ctypes.create_string_buffer(LOWAT), ctypes.create_string_buffer(b"GPL")
    log = ctypes.create_string_buffer(65536)
    attr = struct.pack("<IIQQIIQII", SOCK_OPS, len(LOWAT) // 8, ctypes.addressof(code),
                       ctypes.addressof(gpl), 1, len(log), ctypes.addressof(log), 0, 0)
    try:
        program = bpf_call(PROG_LOAD, attr)
    except OSError:
        print(log.value.decode(), file=sys.stderr)
        raise
    group = os.open(GROUPS, os.O_RDONLY)
    attr = struct.pack("<IIII", group, program, CGROUP_SOCK_OPS, 0)
    bpf_call(PROG_ATTACH, attr)
    yield
    bpf_call(PROG_DETACH, attr)


def inode_before_accept(port):
    """Inodes of connections to this port that nobody has accepted, as /proc/net/tcp says."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return {int(row[9]) for row in rows
            if row[1].endswith(f":{port:04X}") and row[3] == "01"}


def bpf(address):
    sock = listener(address)
    with lowat_by_bpf():
        client = connected(sock)
    time.sleep(0.5)
    inodes = inode_before_accept(sock.getsockname()[1])
    tap.ok(inodes == {0}, "nobody has accepted it: no inode", inodes)
    client.sendall(b"x" * 100)
    peer, _ = sock.accept()
    peer.settimeout(20)
    tap.ok(peer.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 100,
           "SO_RCVLOWAT of the BPF program is set")
    tap.ok(peer.recv(1000) == b"x" * 100, "SO_RCVLOWAT of the BPF program: the bytes arrive")
    peer.sendall(b"y")
    tap.ok(client.recv(1000) == b"y",
           "SO_RCVLOWAT of the BPF program: bytes of the other direction arrive")


# ---- listeners that are closed ----

SIZE = 100000
CLIENTS = 20


def content(number):
    return bytes([number]) * SIZE


def send_all(client, number, ends):
    """One client: it sends, and waits for the end."""
    try:
        client.sendall(content(number))
        client.shutdown(socket.SHUT_WR)
        ends[number] = client.recv(100)
    except OSError as err:
        ends[number] = err


def read_all(peer, got):
    data = b""
    with contextlib.suppress(OSError):
        while piece := peer.recv(65536):
            data += piece
        peer.sendall(b"done")
    got.append(data)
    peer.close()


def migrated(address, first, second):
    """Return: what is wrong."""
    old = listener(address, first)
    new = listener(address, second, old.getsockname()[1])
    clients = [connected(old) for _ in range(CLIENTS)]
    ends, got = {}, []
    threads = [threading.Thread(target=send_all, args=(client, number, ends), daemon=True)
               for number, client in enumerate(clients)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    old.close()
    new.settimeout(20)
    readers = []
    for _ in range(CLIENTS):
        with contextlib.suppress(OSError):
            peer, _ = new.accept()
            peer.settimeout(20)
            readers.append(threading.Thread(target=read_all, args=(peer, got), daemon=True))
            readers[-1].start()
    for thread in threads + readers:
        thread.join(30)
    whole = sum(data in {content(number) for number in range(CLIENTS)} for data in got)
    said = sum(end == b"done" for end in ends.values())
    return "" if whole == said == CLIENTS else (
        f"{len(got)} accepted, {whole} whole, {said} answered: {ends}")


# ---- SYN-ACKs ----

def delay(address):
    """The listener's segments are late on purpose."""
    sock = listener(address)
    sock.setsockopt(socket.IPPROTO_TCP, TCP_TX_DELAY, 2000)
    client = connected(sock)
    peer, _ = sock.accept()
    client.sendall(b"hello")
    tap.ok(peer.recv(64) == b"hello", "TCP_TX_DELAY of a listener")


def migrate(address):
    put(MIGRATE, 1)
    for first in KINDS:
        for second in KINDS:
            wrong = migrated(address, first, second)
            tap.ok(not wrong, f"from a closed {first} listener to {second}", wrong)
    put(MIGRATE, 0)


{"kernel": kernel, "bpf": bpf, "delay": delay, "migrate": migrate}[sys.argv[2]](sys.argv[1])
sys.exit(tap.done())
