#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The netlink family, asked rightly, wrongly and at random.  TAP on stdout.

usage: rs_netlink [MESSAGES [SEED]]
       rs_netlink ended [SECONDS]	look at a link that ends before it is up

Every rejection must say why: by errno, in words, and by the attribute that is at
fault or missing, if it is one's fault.  A dump of sockets must be consistent, however many
come and go.  Of MESSAGES (5000) random ones, some nearly right, none may go without an answer
or do harm.
"""
import errno
import os
import random
import socket
import struct
import sys
import time

import tap
from streams import IPPROTO_RDMASTREAM
from tap import ok

GENERIC = 16
SOL_NETLINK, JOIN, CAP_ACK, EXT_ACK, STRICT = 270, 1, 10, 11, 12
REQUEST, MULTI, ACK, DUMP_INTR, DUMP = 1, 2, 4, 0x10, 0x300
ACK_TLVS, CAPPED = 0x200, 0x100
ERROR, DONE = 2, 3
NESTED, NET_ORDER = 0x8000, 0x4000

# of uapi/linux/rdmastream_netlink.h
INFO, LINK, SOCK, STATS, DRAIN_SET = 1, 2, 3, 4, 5
PEER, DEVICE, MEMORY, SETTING, SETTING_SET, LINK_MAKE = 9, 10, 11, 12, 13, 14
SETTING_NTF = LAST = 15
DUMPS = (LINK, SOCK, PEER, DEVICE, MEMORY, SETTING)
S_LOCAL, S_REMOTE, S_MODE, S_STATE, S_REASON, S_UID, S_INODE, S_PEER = range(1, 9)
S_TX, S_RX, S_DEVICE, S_PORT, S_LPORT, S_RPORT, S_CARRIER = range(9, 16)
L_STATE, L_UP_MS = 2, 16


def attr(kind, data):
    if isinstance(data, str):
        data = data.encode() + b"\0"
    size = 4 + len(data)
    return struct.pack("=HH", size, kind) + data + b"\0" * (-size % 4)


def u8(kind, val):
    return attr(kind, struct.pack("=B", val))


def u32(kind, val):
    return attr(kind, struct.pack("=I", val))


def u64(kind, val):
    return attr(kind, struct.pack("=Q", val))


def be16(kind, val):
    return attr(kind, struct.pack(">H", val))


def attrs(data):
    """Type and payload of each."""
    at = 0
    while at + 4 <= len(data):
        size, kind = struct.unpack_from("=HH", data, at)
        if size < 4:
            raise ValueError("attribute of %d bytes" % size)
        yield kind & 0x3fff, data[at + 4:at + size]
        at += size + (-size % 4)


class Answer:
    def __init__(self):
        self.err = None         # errno, 0: acknowledged or dumped
        self.text = ""
        self.at = None          # offset of the attribute at fault
        self.missing = None     # number of the one that is needed
        self.msgs = []          # payloads of what was told
        self.changed = False    # DUMP_INTR


class Netlink:
    def __init__(self, rcvbuf=None):
        self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, GENERIC)
        for option in (CAP_ACK, EXT_ACK, STRICT):
            self.sock.setsockopt(SOL_NETLINK, option, 1)
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.bind((0, 0))
        self.sock.settimeout(20)
        self.seq = 0
        self.family = GENERIC
        reply = self.ask(3, attr(2, "rdmastream"))      # GETFAMILY, by name
        if not reply.msgs:
            raise SystemExit("Bail out! no family rdmastream")
        told = dict(attrs(reply.msgs[0][4:]))
        self.family = struct.unpack("=H", told[1])[0]
        self.groups = [dict(attrs(group)) for _, group in attrs(told[7])]

    def join(self):
        """From now on events are heard."""
        for group in self.groups:
            self.sock.setsockopt(SOL_NETLINK, JOIN, struct.unpack("=I", group[2])[0])

    def event(self, cmd, seconds=5):
        """The next one of this number; None: there is none."""
        self.sock.settimeout(seconds)
        try:
            while True:
                data = self.sock.recv(1 << 16)
                if data[16] == cmd:
                    return dict(attrs(data[20:]))
        except TimeoutError:
            return None

    def send(self, cmd, body=b"", flags=ACK, kind=None, size=None):
        self.seq += 1
        data = struct.pack("=BBH", cmd, 1, 0) + body
        head = struct.pack("=IHHII", size or 16 + len(data), kind or self.family,
                           REQUEST | flags, self.seq, 0)
        self.sock.send(head + data)

    def hear(self, between=None):
        """All of the answer to what was sent last; between() before each part."""
        answer = Answer()
        while answer.err is None:
            if between:
                between()
            data = self.sock.recv(1 << 20)
            at = 0
            while at + 16 <= len(data):
                size, kind, flags, seq, _ = struct.unpack_from("=IHHII", data, at)
                if seq == self.seq:
                    self.take(answer, kind, flags, data[at + 16:at + size])
                at += size + (-size % 4)
        return answer

    @staticmethod
    def take(answer, kind, flags, body):
        if flags & DUMP_INTR:
            answer.changed = True
        if kind not in (ERROR, DONE):
            answer.msgs.append(body)
            return
        answer.err = -struct.unpack_from("=i", body)[0] if len(body) >= 4 else 0
        skip = 4
        if kind == ERROR:
            skip = 20
            if not flags & CAPPED:
                skip = 4 + struct.unpack_from("=I", body, 4)[0]
        if flags & ACK_TLVS:
            for what, val in attrs(body[skip:]):
                if what == 1:
                    answer.text = val.rstrip(b"\0").decode()
                elif what == 2:
                    answer.at = struct.unpack("=I", val)[0]
                elif what == 5:
                    answer.missing = struct.unpack("=I", val)[0]

    def ask(self, cmd, body=b"", flags=ACK, between=None):
        self.send(cmd, body, flags)
        return self.hear(between)

    def dump(self, cmd, body=b"", between=None):
        return self.ask(cmd, body, DUMP, between)


def refused(nl, name, cmd, body, err, flags=ACK, at=None, missing=None):
    """Is it, with this errno, in words, at this offset of the attributes (None: it
    is no attribute's fault), or for want of this one?"""
    a = nl.ask(cmd, body, flags)
    want = None if at is None else 20 + at
    ok(a.err == err and a.text and a.at == want and a.missing == missing, name,
       "errno %s, text \"%s\", attribute at %s, missing %s, wanted %d, %s, %s" %
       (a.err, a.text, a.at, a.missing, err, want, missing))


def rejections(nl):
    refused(nl, "state beyond the last", LINK, u32(2, 99), errno.ERANGE, DUMP, 0)
    refused(nl, "peer of three bytes", LINK, attr(4, b"abc"), errno.ERANGE, DUMP, 0)
    refused(nl, "mode beyond the last, behind another attribute", SOCK,
            be16(S_PORT, 1) + u32(S_MODE, 8), errno.ERANGE, DUMP, 8)
    refused(nl, "device name without end", DEVICE, attr(1, b"rxe0"), errno.EINVAL, DUMP, 0)
    refused(nl, "device name that is too long", DEVICE, attr(1, "x" * 64), errno.EINVAL,
            DUMP, 0)
    refused(nl, "attribute that is unknown", SOCK, u32(100, 1), errno.EINVAL, DUMP, 0)
    refused(nl, "attribute that is only told", SOCK, u8(S_STATE, 1), errno.EINVAL, DUMP, 0)
    refused(nl, "attribute where none is taken", INFO, u32(1, 1), errno.EINVAL, at=0)
    refused(nl, "another attribute where none is taken", STATS, u32(1, 1) + u32(2, 1),
            errno.EINVAL, at=0)
    refused(nl, "rubbish where none is taken", INFO, b"ab", errno.EINVAL)
    refused(nl, "port of four bytes", SOCK, u32(S_PORT, 80), errno.EINVAL, DUMP, 0)
    refused(nl, "bytes behind the attributes", SETTING_SET, attr(1, "ring_mode") + b"abc",
            errno.EINVAL)
    refused(nl, "drain without a word", DRAIN_SET, b"", errno.EINVAL, missing=8)
    refused(nl, "drain that is neither on nor off", DRAIN_SET, u8(8, 2), errno.ERANGE, at=0)
    refused(nl, "setting that is none", SETTING_SET, attr(1, "upgrad") + u64(2, 1),
            errno.ENOENT, at=0)
    name = attr(1, "ring_mode")
    refused(nl, "value too great", SETTING_SET, name + u64(2, 3), errno.ERANGE, at=len(name))
    refused(nl, "setting without a value", SETTING_SET, name, errno.EINVAL,
            missing=2)
    refused(nl, "value without a setting", SETTING_SET, u64(2, 1), errno.EINVAL, missing=1)
    name = attr(1, "ring_size")
    refused(nl, "ring size too small", SETTING_SET, name + u64(2, 4096), errno.ERANGE,
            at=len(name))
    refused(nl, "ring size that is no power of two", SETTING_SET, name + u64(2, 100000),
            errno.EINVAL, at=len(name))
    name = attr(1, "family")
    refused(nl, "setting that is fixed", SETTING_SET, name + u64(2, 3), errno.EPERM, at=0)
    refused(nl, "link for no socket", LINK_MAKE, u64(S_INODE, 1), errno.ENOENT, at=0)
    refused(nl, "link for nothing", LINK_MAKE, b"", errno.EINVAL, missing=S_INODE)
    # the core says no more than an errno
    a = nl.ask(LAST + 1)
    ok(a.err == errno.EOPNOTSUPP, "command beyond the last", a.err)
    a = nl.ask(SETTING_NTF)
    ok(a.err == errno.EOPNOTSUPP, "event that is asked for", a.err)
    a = nl.ask(LINK)
    ok(a.err == errno.EOPNOTSUPP, "dump that is not asked for as one", a.err)


def unprivileged():
    """What another user may not do, in a process of its own."""
    pid = os.fork()
    if not pid:
        os.setuid(65534)
        nl = Netlink()
        good = True
        for cmd, body in ((DRAIN_SET, u8(8, 1)),
                          (SETTING_SET, attr(1, "ring_mode") + u64(2, 1))):
            a = nl.ask(cmd, body)
            good = good and a.err == errno.EPERM and "CAP_NET_ADMIN" in a.text
        good = good and all(not nl.dump(cmd).err for cmd in DUMPS)
        os._exit(not good)
    ok(not os.waitpid(pid, 0)[1], "another user may look, but change nothing")


def settings(nl):
    def value(name):
        told = dict(attrs(nl.dump(SETTING, attr(1, name)).msgs[0][4:]))
        return struct.unpack("=Q", told[2])[0]

    def told(listener, name, val):
        event = listener.event(SETTING_NTF)
        return event and event[1] == name.encode() + b"\0" and \
            struct.unpack("=Q", event[2])[0] == val

    listener = Netlink()
    listener.join()
    before = value("ring_threshold")
    a = nl.ask(SETTING_SET, attr(1, "ring_threshold") + u64(2, 12345))
    with open("/proc/sys/net/rdmastream/ring_threshold") as f:
        ok(not a.err and value("ring_threshold") == 12345 and int(f.read()) == 12345,
           "a setting that is set is that of sysctl, too")
    ok(told(listener, "ring_threshold", 12345), "a setting that is set causes an event")
    nl.ask(SETTING_SET, attr(1, "ring_threshold") + u64(2, 12345))
    nl.ask(SETTING_SET, attr(1, "ring_threshold") + u64(2, before))
    ok(told(listener, "ring_threshold", before), "a setting causes an event only if it has changed")
    for name, val in (("ring_threshold", before + 1), ("ring_threshold", before),
                      ("ring_size", 2 * value("ring_size")), ("ring_size", value("ring_size")),
                      ("link_probe_ms", value("link_probe_ms") + 1), ("link_probe_ms", value("link_probe_ms"))):
        with open("/proc/sys/net/rdmastream/" + name, "w") as f:
            f.write("%d" % val)
        ok(told(listener, name, val), "%s by sysctl is an event" % name)
    names = set()
    bad = []
    for body in nl.dump(SETTING).msgs:
        told = dict(attrs(body[4:]))
        name = told[1].rstrip(b"\0").decode()
        names.add(name)
        if 7 in told:           # fixed
            continue
        least, most = (struct.unpack("=Q", told[i])[0] for i in (4, 5))
        for val in (least - 1, most + 1):
            if 0 <= val < 1 << 64 and \
               nl.ask(SETTING_SET, attr(1, name) + u64(2, val)).err != errno.ERANGE:
                bad.append((name, val))
    ok(not bad, "each range is kept", bad)
    ok(names == set(os.listdir("/proc/sys/net/rdmastream")), "the settings are those of sysctl",
       names)


def listener():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_RDMASTREAM)
    s.bind(("127.0.0.1", 0))
    s.listen(1)
    return s


def port_of(told):
    return struct.unpack(">H", dict(attrs(told[S_LOCAL]))[2])[0]


def ports(answer):
    return sorted(port_of(dict(attrs(body[4:]))) for body in answer.msgs)


def filters(nl):
    socks = [listener() for _ in range(20)]
    mine = sorted(s.getsockname()[1] for s in socks)
    one = mine[7]
    inode = os.fstat([s for s in socks if s.getsockname()[1] == one][0].fileno()).st_ino
    ok(set(mine) <= set(ports(nl.dump(SOCK))), "all sockets")
    ok(ports(nl.dump(SOCK, be16(S_PORT, one))) == [one], "those of a port")
    ok(ports(nl.dump(SOCK, be16(S_LPORT, one))) == [one], "those of a local port")
    ok(ports(nl.dump(SOCK, be16(S_RPORT, one))) == [], "those of a remote port")
    ok(ports(nl.dump(SOCK, u64(S_INODE, inode))) == [one], "the one with an inode")
    ok(set(mine) <= set(ports(nl.dump(SOCK, u32(S_MODE, 1)))), "those that listen")
    ok(not set(mine) & set(ports(nl.dump(SOCK, u32(S_MODE, 4)))), "those with records")
    ok(ports(nl.dump(SOCK, be16(S_PORT, one) + u32(S_MODE, 4))) == [], "two wishes, both count")
    ok(nl.dump(SOCK, attr(S_PEER, b"x" * 16)).msgs == [], "those of a peer that is none")
    ok(nl.dump(SOCK, attr(S_DEVICE, "none")).msgs == [], "those of a device that is none")
    for s in socks:
        s.close()


def consistency():
    """Dumps in many parts, while sockets come and go between these."""
    nl = Netlink(rcvbuf=4096)
    going = [listener() for _ in range(150)]
    steady = [listener() for _ in range(400)]
    want = sorted(s.getsockname()[1] for s in steady)
    coming = []
    flagged = wrong = 0

    def change():
        if going and random.random() < 0.5:
            going.pop(random.randrange(len(going))).close()
        if random.random() < 0.2:
            coming.append(listener())

    for _ in range(40):
        a = nl.dump(SOCK, between=change)
        got = ports(a)
        flagged += a.changed
        wrong += bool(a.err) or not all(got.count(p) == 1 for p in want)
    ok(not wrong, "dumps under change are whole", wrong)
    ok(not flagged, "none of them has to be repeated", flagged)
    for s in going + steady + coming:
        s.close()


def random_attr(rnd, depth=0):
    kind = rnd.choice((rnd.randrange(20), rnd.randrange(0x10000)))
    if rnd.random() < 0.2:
        kind |= rnd.choice((NESTED, NET_ORDER, NESTED | NET_ORDER))
    pick = rnd.random()
    if pick < 0.5:
        data = bytes(rnd.randrange(256)
                                     for _ in range(rnd.choice((1, 2, 4, 8, 16))))
    elif pick < 0.7:
        data = bytes(rnd.randrange(256) for _ in range(rnd.randrange(100)))
    elif pick < 0.85:
        data = rnd.choice((b"ring_mode\0", b"ring_size\0", b"rxe0\0", b"\0", b"x" * 63 + b"\0"))
    elif depth < 10:
        data = b"".join(random_attr(rnd, depth + 1) for _ in range(rnd.randrange(3)))
    else:
        data = b""
    out = bytearray(attr(kind, data))
    if rnd.random() < 0.1:      # a length that is wrong
        struct.pack_into("=H", out, 0, rnd.choice((0, 3, 5, len(data), 0xffff)))
    return bytes(out)


def fuzz(nl, messages, seed):
    rnd = random.Random(seed)
    errors = {}
    for _ in range(messages):
        cmd = rnd.choice((rnd.randrange(1, LAST + 2), rnd.randrange(256)))
        if cmd == DRAIN_SET and rnd.random() < 0.9:
            continue            # that takes long
        body = b"".join(random_attr(rnd) for _ in range(rnd.randrange(4)))
        if rnd.random() < 0.1:
            body = body[:rnd.randrange(len(body) + 1)]
        flags = rnd.choice((ACK, ACK, DUMP, DUMP | ACK, ACK | rnd.randrange(0x10000) & ~0x11))
        a = nl.ask(cmd, body, flags | ACK)
        errors[a.err] = errors.get(a.err, 0) + 1
        if rnd.random() < 0.02:         # one that is too short to be answered
            nl.send(cmd, body, 0, size=rnd.choice((0, 1, 15, 0xffffff)) or 4)
    print("# answers: %s" % ", ".join("%s %d" % (errno.errorcode.get(e, e), n)
                                      for e, n in sorted(errors.items())))
    ok(len(errors) > 2, "%d random messages, seed %d, are answered" % (messages, seed))
    nl.ask(DRAIN_SET, u8(8, 0))
    ok(not nl.ask(INFO).err and all(not nl.dump(cmd).err for cmd in DUMPS),
       "the family is well afterwards")


def ended(nl, seconds):
    """Links that were never up, seen while they end: does any tell since when it is up?
    That is a short time, so there are many tries, and a look whenever the kernel's
    work may be interrupted: real time goes before it."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    seen = wrong = 0
    now = again = time.monotonic()
    end = now + seconds
    while not seen and now < end:
        if now >= again:
            nl.ask(DRAIN_SET, u8(8, 0))
            again = now + 0.5
        time.sleep(0.0002)
        now = time.monotonic()
        for body in nl.dump(LINK).msgs:
            told = dict(attrs(body[4:]))
            if struct.unpack("=I", told[L_STATE])[0] > 1:
                seen += 1
                wrong += L_UP_MS in told
    ok(seen, "a link that ends is seen")
    ok(not wrong, "it was never up, and does not tell since when", wrong)


def main():
    if sys.argv[1:2] == ["ended"]:
        ended(Netlink(), float(sys.argv[2]) if len(sys.argv) > 2 else 60)
        sys.exit(tap.done())
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    nl = Netlink()
    rejections(nl)
    unprivileged()
    settings(nl)
    filters(nl)
    consistency()
    fuzz(nl, messages, seed)
    sys.exit(tap.done())


main()
