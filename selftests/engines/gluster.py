#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A program that writes and reads blocks of a file in a Gluster volume, by libgfapi.

usage: gluster.py GO PROGRESS VOLUME SERVER

Until the file GO is there, each block that is written is read again and compared; in the end, all
of them are.
"""
import ctypes
import os
import random
import sys
import time

go, progress, volume, server = sys.argv[1:5]
BLOCKS, BLOCK = 200, 128 << 10
api = ctypes.CDLL("libgfapi.so.0", use_errno=True)
for name in ("glfs_new", "glfs_creat"):
    getattr(api, name).restype = ctypes.c_void_p
for name in ("glfs_pwrite", "glfs_pread"):
    getattr(api, name).restype = ctypes.c_ssize_t


def must(condition, what):
    if not condition:
        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")


def main():
    fs = ctypes.c_void_p(api.glfs_new(volume.encode()))
    must(fs, "glfs_new")
    must(api.glfs_set_volfile_server(fs, b"tcp", server.encode(), 24007) == 0, "volfile server")
    api.glfs_set_logging(fs, b"/dev/null", 0)
    must(api.glfs_init(fs) == 0, "glfs_init")
    fd = ctypes.c_void_p(api.glfs_creat(fs, b"work", os.O_RDWR, 0o644))
    must(fd, "create")

    def write(block, data):
        must(api.glfs_pwrite(fd, data, ctypes.c_size_t(len(data)), ctypes.c_int64(block * BLOCK), 0, None, None) == len(data),
             f"write of block {block}")

    def compare(block, data):
        buf = ctypes.create_string_buffer(len(data))
        must(api.glfs_pread(fd, buf, ctypes.c_size_t(len(data)), ctypes.c_int64(block * BLOCK), 0, None) == len(data),
             f"read of block {block}")
        if buf.raw != data:
            sys.exit(f"block {block}: other bytes than were written")

    rand = random.Random(11)
    known = {}
    count, slowest, told = 0, 0.0, 0.0
    while not os.path.exists(go):
        block = rand.randrange(BLOCKS)
        data = rand.randbytes(BLOCK)
        since = time.monotonic()
        write(block, data)
        compare(block, data)
        slowest = max(slowest, time.monotonic() - since)
        known[block] = data
        count += 2
        if time.monotonic() - told > 0.2:
            told = time.monotonic()
            with open(progress, "a", encoding="ascii") as file:
                print(count, file=file)
    for block, data in known.items():
        compare(block, data)
    must(api.glfs_close(fd) == 0, "close")
    must(api.glfs_fini(fs) == 0, "end")
    print(f"{count} requests, {len(known)} blocks compared; the slowest took {slowest * 1000:.0f} ms")


main()
