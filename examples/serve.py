#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Start a server with a listening socket as its standard input, as inetd does.

usage: serve.py PORT COMMAND...
"""
import os
import socket
import sys

IPPROTO_RDMASTREAM = 257

listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_RDMASTREAM)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("", int(sys.argv[1])))
listener.listen()
os.dup2(listener.fileno(), 0)
os.execvp(sys.argv[2], sys.argv[2:])
