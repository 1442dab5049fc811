#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""As rs_echo.c, in Python: HOST PORT BYTES."""
import socket
import sys

PIECE = 65536

server = socket.create_connection((sys.argv[1], int(sys.argv[2])))
done = 0
while done < int(sys.argv[3]):
    out = bytes(((done >> 16) + i * 31) & 255 for i in range(256)) * (PIECE // 256)
    server.sendall(out)
    if server.recv(PIECE, socket.MSG_WAITALL) != out:
        sys.exit("what came back is something else")
    done += PIECE
print(done, "bytes came back")
