#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The kernel as the program that uses a socket of ours: a block device by nbd.

Usage: rs_nbd.py ADDRESS DEVICE [MIB]

Both ends are here: a child keeps the blocks in memory.  Writes them, drops what
the kernel has cached, and reads them.

nbd forbids its socket to use the page fragment of the task (sk_use_task_frag), as it
writes when memory is reclaimed, in the midst of other sends of a task.  How often
which fragment was filled is printed, where the kernel has kprobes.
"""

import fcntl
import os
import re
import struct
import sys
import threading

from streams import pair

SET_SOCK, DO_IT, CLEAR_SOCK, SET_SIZE_BLOCKS, DISCONNECT = 0xab00, 0xab03, 0xab04, 0xab07, 0xab08
BLKFLSBUF = 0x1261
REQUEST, REPLY = struct.Struct(">IHHQQI"), struct.Struct(">IIQ")
READ, WRITE, DISC = 0, 1, 2
TRACE = "/sys/kernel/tracing/"
PROBE = "p:frag sk_page_frag_refill sk=$arg1:x64 frag=$arg2:x64"


def read_all(conn, n):
    got = bytearray()
    while len(got) < n:
        some = conn.recv(n - len(got))
        if not some:
            sys.exit("server: the stream has ended")
        got += some
    return got


def serve(conn, size):
    blocks = bytearray(size)
    while True:
        magic, _, kind, handle, at, n = REQUEST.unpack(read_all(conn, REQUEST.size))
        if magic != 0x25609513:
            sys.exit(f"server: bad magic {magic:#x}")
        if kind == DISC:
            return
        data = b""
        if kind == WRITE:
            blocks[at:at + n] = read_all(conn, n)
        elif kind == READ:
            data = blocks[at:at + n]
        conn.sendall(REPLY.pack(0x67446698, 0, handle) + data)


def put(file, what):
    with open(TRACE + file, "w") as f:
        f.write(what)


def watch_frags():
    try:
        put("kprobe_events", PROBE)
        put("events/kprobes/frag/enable", "1")
        put("trace", "")
    except OSError:
        return False
    return True


def tell_frags():
    """The socket's own is inside of it, the task's is not.  nbd sends in our name, and in
    that of kblockd, whose workers are of high priority: on 6.1 in no other."""
    own = task = 0
    nbd = set()
    put("events/kprobes/frag/enable", "0")
    with open(TRACE + "trace") as f:
        found = re.findall(r"^ *(.*)-(\d+) .* frag: .*sk=(\w+) frag=(\w+)", f.read(), re.M)
    for name, pid, sk, frag in found:
        if int(pid) == os.getpid() or re.fullmatch(r"kworker/\d+:\d+H", name):
            nbd.add(sk)
    for _, pid, sk, frag in found:
        if sk in nbd and 0 < int(frag, 16) - int(sk, 16) < 1 << 12:
            own += 1
        elif sk in nbd:
            task += 1
    print(f"fragments of the socket {own}, of tasks {task}")


def main():
    address, device = sys.argv[1:3]
    size = int(sys.argv[3] if len(sys.argv) > 3 else 4) << 20
    client, server = pair(address)
    child = os.fork()
    if not child:
        client.close()
        serve(server, size)
        os._exit(0)
    server.close()
    disk = os.open(device, os.O_RDWR)
    fcntl.ioctl(disk, SET_SIZE_BLOCKS, size // 1024)
    fcntl.ioctl(disk, SET_SOCK, client.fileno())
    worker = threading.Thread(target=fcntl.ioctl, args=(disk, DO_IT))
    worker.start()
    watched = watch_frags()
    what = b"".join(struct.pack("<I", i * 2654435761 & 0xffffffff) for i in range(size // 4))
    for i in range(0, size, 1 << 16):
        os.pwrite(disk, what[i:i + (1 << 16)], i)
    os.fsync(disk)
    fcntl.ioctl(disk, BLKFLSBUF)
    os.posix_fadvise(disk, 0, size, os.POSIX_FADV_DONTNEED)
    same = all(os.pread(disk, 1 << 16, i) == what[i:i + (1 << 16)] for i in range(0, size, 1 << 16))
    if watched:
        tell_frags()
    fcntl.ioctl(disk, DISCONNECT)
    worker.join()
    fcntl.ioctl(disk, CLEAR_SOCK)
    os.close(disk)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not same:
        sys.exit("what was read is not what was written")
    sys.exit(status)


main()
