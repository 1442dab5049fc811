#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""One end of a stream, whose program sets an option that leads it away from RDMA.

Usage: rs_option.py send|receive ADDRESS PORT mark|policy DIRECTORY

Sends to ADDRESS, or receives there, until there is DIRECTORY/enough, or an end or error, which it
prints.  When there is DIRECTORY/mark (already before the connection, or later), sets the option,
and writes the counter ring-tx-bytes to DIRECTORY/marked: SO_MARK 7, or an IPsec policy of the
socket, for what it sends, that protects nothing.
"""
import errno
import os
import socket
import struct
import subprocess
import sys
import time

import streams

XFRM_POLICY = {socket.AF_INET: (socket.IPPROTO_IP, 17), socket.AF_INET6: (socket.IPPROTO_IPV6, 35)}
XFRM_POLICY_OUT = 1
XFRM_POLICY_ALLOW = 0
ENDLESS = 2 ** 64 - 1


def policy(family):
    """struct xfrm_userpolicy_info"""
    lifetime = [ENDLESS] * 4 + [0] * 4
    return struct.pack("@40xH10xI8Q40x4B4x", family, 0, *lifetime,
                       XFRM_POLICY_OUT, XFRM_POLICY_ALLOW, 0, 0)


def look(sock, option, directory):
    """Set the option if it is time for that."""
    if not os.path.exists(directory + "/mark"):
        return
    os.unlink(directory + "/mark")
    if option == "mark":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, 7)
    else:
        sock.setsockopt(*XFRM_POLICY[sock.family], policy(sock.family))
    stats = subprocess.check_output(["rsctl", "-s", "-o", "stats"], text=True)
    streams.write_file(directory + "/marked",
                       "".join(line.split()[1] + "\n" for line in stats.splitlines()
                               if line.startswith("ring-tx-bytes ")))


def send(address, port, option, directory):
    sock = streams.new(address)
    look(sock, option, directory)
    sock.connect((address, port))
    while not os.path.exists(directory + "/enough"):
        look(sock, option, directory)
        sock.sendall(bytes(10000))
        time.sleep(0.01)


def receive(address, port, option, directory):
    sock, _ = streams.listening(address, port=port).accept()
    sock.settimeout(0.1)
    while not os.path.exists(directory + "/enough"):
        look(sock, option, directory)
        try:
            if not sock.recv(1 << 20):
                break
        except TimeoutError:
            pass


try:
    {"send": send, "receive": receive}[sys.argv[1]](sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
    print("end")
except OSError as e:
    print(errno.errorcode[e.errno])
