#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Forges RoCE v2 packets into a queue pair of this host's RDMA device.

rs_forge -i IFACE -t SECONDS bad-key|bad-message|repeated HOST
rs_forge -t SECONDS user SOURCE HOST

Waits for a packet that this host sends to a queue pair of HOST (IPv4) and sends
others behind it, until the time is over.  Only the sequence number that comes next
is heard; on a busy link it is some further on until ours is on the wire, so they
are guessed: what is old, or too early, does no harm.

bad-key      a write to memory that the other end has not registered.  Its device
             must put the queue pair into the error state and say so.
bad-message  a message that is none of rdmastream's.  The module must end the link.
repeated     a message with data that has come before.  The module must end the link,
             for the one whose sequence number this took is lost.
user         as bad-key, but as the user "nobody", by a UDP socket of address SOURCE: any user
             that may send UDP can do that.  The number of the queue pair, and the next of its
             packets, are what "rdma resource" tells everybody; an idle link keeps them.  Says how
             many packets were sent, and how many this host refused to send.

The headers are those of the IB specification, volume 1, 9.2 (BTH), 9.3 (RETH) and
annex A17 (RoCE v2 and its invariant CRC).
"""
import argparse
import json
import os
import pwd
import random
import socket
import struct
import subprocess
import sys
import time
import zlib

ROCE_PORT = 4791
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2
RDMA_WRITE = range(0x06, 0x0c)          # RC: first, middle, last(+imm), only(+imm)
WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM = 0x09, 0x0a, 0x0b
ETH, IP, UDP, BTH = 14, 20, 8, 12


def icrc(frame):
    """Of all behind the Ethernet header; what changes on the way counts as ones."""
    head = bytearray(frame[ETH:ETH + IP + UDP + BTH])
    for at in (1, 8, 10, 11, IP + 6, IP + 7, IP + UDP + 4):
        head[at] = 0xff                 # TOS, TTL, checksums, BTH's reserved
    crc = zlib.crc32(b"\xff" * 8 + head + frame[ETH + IP + UDP + BTH:])
    return struct.pack("<I", crc)


def ip_sum(head):
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff


def opcode(frame):
    return frame[ETH + IP + UDP]


def behind_bth(frame):
    return frame[ETH + IP + UDP + BTH:-4]


# What is behind a BTH: RETH (address, key, length), perhaps an immediate value, bytes.
BAD_KEY = struct.pack("!QII", 0x1000, 0xdeadbe, 64) + bytes(64)
EMPTY = struct.pack("!QII", 0, 0, 0)
IMM_AT = {WRITE_LAST_IMM: 0, WRITE_ONLY_IMM: 16}


def brings_bytes(frame):
    """Is it a whole message that does?"""
    return opcode(frame) == WRITE_ONLY_IMM and any(behind_bth(frame)[12:16])


def next_number(frame):
    """Of the message behind the one that ends in this frame; None: no end of one."""
    at = IMM_AT.get(opcode(frame))
    if at is None:
        return None
    return (int.from_bytes(behind_bth(frame)[at:at + 4], "big") >> 20) + 1 & 0xff


def bad_message(number):
    return EMPTY + struct.pack("!I", 0xf << 28 | number << 20 | 0xfffff)


def forge(seen, rest, ahead):
    """A frame like the one seen, that many sequence numbers later."""
    bth = bytearray(seen[ETH + IP + UDP:ETH + IP + UDP + BTH])
    psn = (int.from_bytes(bth[9:12], "big") + ahead) & 0xffffff
    bth[0] = WRITE_ONLY if rest is BAD_KEY else WRITE_ONLY_IMM
    if rest[:16] in (BAD_KEY[:16], EMPTY):
        bth[1] &= 0x4f                  # no padding
    bth[9:12] = psn.to_bytes(3, "big")
    payload = bytes(bth) + rest
    ip = bytearray(seen[ETH:ETH + IP])
    ip[2:4] = (IP + UDP + len(payload) + 4).to_bytes(2, "big")
    ip[10:12] = bytes(2)
    ip[10:12] = ip_sum(ip).to_bytes(2, "big")
    udp = bytearray(seen[ETH + IP:ETH + IP + UDP])
    udp[4:6] = (UDP + len(payload) + 4).to_bytes(2, "big")
    udp[6:8] = bytes(2)
    frame = seen[:ETH] + bytes(ip) + bytes(udp) + payload
    return frame + icrc(frame)


def is_write(frame, host):
    at = ETH + IP + UDP
    return len(frame) >= at + BTH + 4 and frame[12:14] == b"\x08\x00" and \
        frame[ETH] == 0x45 and frame[ETH + 9] == socket.IPPROTO_UDP and \
        frame[ETH + 16:ETH + 20] == host and \
        frame[ETH + IP + 2:ETH + IP + 4] == ROCE_PORT.to_bytes(2, "big") and \
        opcode(frame) in RDMA_WRITE and frame[at + 5:at + 8] > b"\0\0\1"


def be_nobody():
    user = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    for family, protocol in ((socket.AF_PACKET, 0), (socket.AF_INET, socket.IPPROTO_UDP)):
        try:
            socket.socket(family, socket.SOCK_RAW, protocol).close()
        except PermissionError:
            continue
        sys.exit("rs_forge: nobody may open raw sockets here")


def queue_pairs():
    """Of connections: number at the other end, sequence number of the next packet."""
    told = subprocess.run(["rdma", "-j", "resource", "show", "qp"], check=True,
                          stdout=subprocess.PIPE).stdout
    return [(qp["rqpn"], qp["sq-psn"]) for qp in json.loads(told)
            if qp["type"] == "RC" and qp["state"] == "RTS"]


def as_user(args):
    be_nobody()
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # with this, and not connected: an IP id of 0, not one that nobody knows
    sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
    sock.bind((args.source, 0))
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 0, 0, 0x4000, 64, socket.IPPROTO_UDP, 0,
                     socket.inet_aton(args.source), socket.inet_aton(args.host))
    udp = struct.pack("!HHHH", sock.getsockname()[1], ROCE_PORT, 0, 0)
    end, sent, refused = time.monotonic() + args.limit, 0, 0
    while time.monotonic() < end:
        for number, psn in queue_pairs():
            bth = struct.pack("!BBHII", WRITE_ONLY, 0x40, 0xffff, number, 1 << 31 | psn)
            frame = forge(bytes(ETH) + ip + udp + bth, BAD_KEY, 0)
            try:
                sock.sendto(frame[ETH + IP + UDP:], (args.host, ROCE_PORT))
                sent += 1
            except PermissionError:
                refused += 1
    print(f"{sent} packets sent, {refused} refused")
    return 0 if sent + refused else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-i", dest="iface", default="eth0")
    parser.add_argument("-t", dest="limit", type=float, default=5)
    parser.add_argument("how", choices=("bad-key", "bad-message", "repeated", "user"))
    parser.add_argument("source", nargs="?")
    parser.add_argument("host")
    args = parser.parse_args()
    if (args.how == "user") != bool(args.source):
        parser.error("a source goes with \"user\"")
    if args.how == "user":
        return as_user(args)
    host = socket.inet_aton(args.host)
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    sock.bind((args.iface, 0))
    sock.settimeout(0.5)
    end, forged, checked = time.monotonic() + args.limit, 0, False
    rest, number = BAD_KEY, 0
    while time.monotonic() < end:
        try:
            frame, source = sock.recvfrom(65536)
        except socket.timeout:
            continue
        if source[2] != socket.PACKET_OUTGOING or not is_write(frame, host):
            continue
        if not checked and icrc(frame[:-4]) != frame[-4:]:
            print("rs_forge: cannot make the CRC of a packet", file=sys.stderr)
            return 1
        checked = True
        if args.how == "repeated":
            if not brings_bytes(frame):
                continue
            rest = behind_bth(frame)
        if next_number(frame) is not None:
            number = next_number(frame)
        first = 1 + random.randrange(2 ** random.randrange(8))
        for ahead in {1, *range(first, first + 4)}:
            if args.how == "bad-message":
                rest = bad_message(number + ahead - 1 & 0xff)
            sock.send(forge(frame, rest, ahead))
            forged += 1
    print(f"{forged} packets forged")
    return 0 if forged else 1


if __name__ == "__main__":
    sys.exit(main())
