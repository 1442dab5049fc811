#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A client of an echo server: echo.py ADDRESS PORT"""
import socket
import sys

IPPROTO_RDMASTREAM = 257

with socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_RDMASTREAM) as sock:
    sock.connect((sys.argv[1], int(sys.argv[2])))
    total = 0
    with sock.makefile("rb") as replies:
        for n in range(64):
            block = bytes([n]) * 65536
            sock.sendall(block)
            if replies.read(len(block)) != block:
                sys.exit("other bytes came back")
            total += len(block)
    print(total, "bytes came back")
