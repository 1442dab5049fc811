#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A peer that misbehaves, in TAP.

A TUN device joins the kernel to a TCP written here, which says exactly what a
case wants: which option in which segment, how much of a HELLO and when, what
records.  The sockets under test are ordinary sockets of this process.  A case
passes if the program gets TCP's bytes or a clear error, in time, and never a
byte too many or too few.  Needs root, the module, and hello_timeout_ms=3000.

rs_wire [PATTERN]: the cases whose names have PATTERN in them.  Those that begin
with "link" run only so.  They need a link to another host, whose name the peer
here takes: it gets and gives grants of that link, and proves them with its key,
which it reads off the wire of eth0.
"""
import ctypes
import fcntl
import json
import os
import queue
import socket
import struct
import subprocess
import sys
import threading
import time
from functools import partial

OURS, PEER = "10.78.0.1", "10.78.0.2"
PROTO = 257
LIMIT = 10                      # seconds that any answer may take
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
ROLE_SYN, ROLE_SYNACK, ROLE_CONFIRM = 1, 2, 3
MAGIC = b"\xd5RSTRM\r\n"
DATA, ACK_REC, GRANT, SWITCH, REVOKE, BROKEN, RESUME, END = range(1, 9)
WINDOW = 65536
NONCE = 0x5a17c3
TOKEN = 77


def option(role, nonce=NONCE, version=1):
    return struct.pack("!BBHI", 254, 8, 0x5253,
                       version << 28 | role << 24 | nonce)


def hello(role, nonce=NONCE, size=72, window=WINDOW, versions=(1, 1),
          instance=None, token=TOKEN):
    return (MAGIC + struct.pack("!HBBIIHH", size, *versions,
                                role << 24 | nonce, bool(instance), 4793, 0)
            + (instance or os.urandom(16)) + struct.pack("!QQ", token, window)
            + bytes(16))


def record(kind, payload=b"", flags=0, size=None):
    return struct.pack("!BBHI", kind, flags, 0,
                       len(payload) if size is None else size) + payload


def switch(offset, epoch):
    return record(SWITCH, struct.pack("!QIIQIIQ", offset, epoch, 1, 8, 1, 0, 0))


def broken(epoch):
    return record(BROKEN, struct.pack("!II", epoch, 0))


def resume(epoch, count):
    return record(RESUME, struct.pack("!IIQ", epoch, 0, count))


def ack(consumed, limit):
    return record(ACK_REC, struct.pack("!QQ", consumed, limit))


def end(offset):
    return record(END, struct.pack("!Q", offset))


def siphash(k0, k1, data):
    """SipHash-2-4 of Aumasson and Bernstein."""
    mask = (1 << 64) - 1
    v0, v1 = k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d
    v2, v3 = k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573

    def left(word, n):
        return (word << n | word >> 64 - n) & mask

    def rounds(n, v0, v1, v2, v3):
        for _ in range(n):
            v0, v2 = (v0 + v1) & mask, (v2 + v3) & mask
            v1, v3 = left(v1, 13) ^ v0, left(v3, 16) ^ v2
            v0, v2 = (left(v0, 32) + v3) & mask, (v2 + v1) & mask
            v1, v3 = left(v1, 17) ^ v2, left(v3, 21) ^ v0
            v2 = left(v2, 32)
        return v0, v1, v2, v3

    data += bytes(-(len(data) + 1) % 8) + bytes([len(data) & 255])
    for word, in struct.iter_unpack("<Q", data):
        v0, v1, v2, v3 = rounds(2, v0, v1, v2, v3 ^ word)
        v0 ^= word
    v0, v1, v2, v3 = rounds(4, v0, v1, v2 ^ 0xff, v3)
    return v0 ^ v1 ^ v2 ^ v3


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


class Tun:
    """All segments for one peer port go to that port's queue."""

    def __init__(self):
        self.fd = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(self.fd, 0x400454ca, struct.pack("16sH", b"wire0", 0x1001))
        for cmd in (f"addr add {OURS} peer {PEER} dev wire0",
                    "link set wire0 up mtu 1500"):
            subprocess.run(["ip"] + cmd.split(), check=True)
        self.ports = {}
        threading.Thread(target=self.receive, daemon=True).start()

    def receive(self):
        while True:
            packet = os.read(self.fd, 65536)
            if packet[0] >> 4 != 4 or packet[9] != 6:
                continue
            tcp = packet[(packet[0] & 15) * 4:]
            port = struct.unpack("!H", tcp[2:4])[0]
            if port in self.ports:
                self.ports[port].put(tcp)

    def send(self, tcp):
        pseudo = (socket.inet_aton(PEER) + socket.inet_aton(OURS)
                  + struct.pack("!HH", 6, len(tcp)))
        tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
        head = (struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 1, 0x4000, 64,
                            6, 0)
                + socket.inet_aton(PEER) + socket.inet_aton(OURS))
        head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
        os.write(self.fd, head + tcp)


class Peer:
    """One TCP connection on a wire that loses nothing."""
    next_port = 20000
    every = []

    def __init__(self, tun):
        Peer.next_port += 1
        Peer.every.append(self)
        self.tun, self.port, self.remote = tun, Peer.next_port, 0
        self.queue = tun.ports[self.port] = queue.Queue()
        self.seq, self.ack = 1000, 0
        self.data, self.fin, self.rst, self.opts = b"", False, False, b""

    def segment(self, flags, data=b"", opts=b""):
        opts += b"\1" * (-len(opts) % 4)
        self.tun.send(struct.pack("!HHIIBBHHH", self.port, self.remote,
                                  self.seq, self.ack, (5 + len(opts) // 4) << 4,
                                  flags, 65535, 0, 0) + opts + data)
        self.seq += len(data) + bool(flags & (SYN | FIN))

    def step(self, seconds):
        """Take one segment in, acknowledge it. False: none came."""
        try:
            tcp = self.queue.get(timeout=max(seconds, 0.001))
        except queue.Empty:
            return False
        source, _, seq, _, off, flags = struct.unpack("!HHIIBB", tcp[:14])
        self.opts, data = tcp[20:(off >> 4) * 4], tcp[(off >> 4) * 4:]
        self.remote = source
        if flags & RST:
            self.rst = True
        elif flags & SYN:
            self.ack = (seq + 1) & 0xffffffff
        elif (data or flags & FIN) and seq == self.ack:
            self.data += data
            self.fin = bool(flags & FIN)
            self.ack = (self.ack + len(data) + self.fin) & 0xffffffff
            self.segment(ACK)
        elif data or flags & FIN:
            self.segment(ACK)
        return True

    def until(self, done, seconds=LIMIT):
        end = time.monotonic() + seconds
        while not done():
            if not self.step(end - time.monotonic()) and \
               time.monotonic() >= end:
                return False
        return True

    def read(self, n):
        expect(self.until(lambda: len(self.data) >= n or self.fin or self.rst),
               f"{n} bytes from the socket under test in time")
        expect(len(self.data) >= n, f"{n} bytes, not an early end")
        head, self.data = self.data[:n], self.data[n:]
        return head

    def write(self, data):
        for at in range(0, len(data), 1400):
            self.segment(ACK | PSH, data[at:at + 1400])

    def end(self):
        self.segment(ACK | FIN)

    def connect(self, port, syn=b"", confirm=b""):
        self.remote = port
        self.segment(SYN, opts=b"\2\4\5\xb4" + syn)
        expect(self.until(lambda: self.ack), "a SYN-ACK")
        answer = self.opts
        self.segment(ACK, opts=confirm)
        return answer

    def accept(self, answer):
        expect(self.until(lambda: self.ack), "a SYN")
        asked = self.opts
        self.segment(SYN | ACK, opts=b"\2\4\5\xb4" + answer(asked))
        return asked

    def close(self):
        if self.port in self.tun.ports:
            self.segment(RST | ACK)
            del self.tun.ports[self.port]

    @classmethod
    def close_all(cls):
        """Else closed sockets wait for minutes for peers that are no more."""
        for peer in cls.every:
            peer.close()
        cls.every.clear()


class Failed(Exception):
    pass


def expect(good, what):
    if not good:
        raise Failed(what)


def found(opts):
    """Our option among TCP options, or None."""
    at = opts.find(b"\xfe\x08\x52\x53")
    return opts[at:at + 8] if at >= 0 else None


def our_socket():
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, PROTO)
    sock.settimeout(LIMIT)
    return sock


def drain(sock):
    """What a program gets until the end: bytes, and the errno or 0."""
    data = b""
    try:
        while True:
            more = sock.recv(65536)
            if not more:
                return data, 0
            data += more
    except TimeoutError as err:
        expect(err.errno, "an end or an error, not a hang")
        return data, err.errno
    except OSError as err:
        return data, err.errno


# ---- our listener, the peer connects ----

class Served:
    """The peer has connected to a listener of ours."""

    def __init__(self, tun, syn=b"", confirm=b"", early=b"", late=b""):
        listener = our_socket()
        listener.bind((OURS, 0))
        listener.listen(1)
        self.peer = Peer(tun)
        self.answer = self.peer.connect(listener.getsockname()[1], syn, confirm)
        if early:
            self.peer.write(early)
        self.sock, _ = listener.accept()
        self.sock.settimeout(LIMIT)
        listener.close()
        if late:
            self.peer.write(late)

    def echo_plain(self):
        self.peer.write(b"plain")
        expect(self.sock.recv(100) == b"plain", "the peer's bytes")
        self.sock.sendall(b"answer")
        expect(self.peer.read(6) == b"answer", "our bytes, nothing before them")
        self.sock.close()
        expect(self.peer.until(lambda: self.peer.fin), "FIN")
        expect(not self.peer.data, "no byte more")

    def echo_framed(self):
        self.peer.write(record(DATA, b"framed"))
        expect(self.sock.recv(100) == b"framed", "the peer's bytes")
        expect(read_hello(self.peer).startswith(MAGIC), "HELLO")
        self.sock.sendall(b"answer")
        expect(read_data(self.peer, 6) == b"answer", "our bytes in DATA")
        self.sock.close()

    def reset(self, before=b""):
        """The connection must be reset, and lose none of @before."""
        data, err = drain(self.sock)
        expect(before.startswith(data), "no byte of ours reaches the program")
        expect(err == 104, f"ECONNRESET, not {err}")
        expect(self.peer.until(lambda: self.peer.rst), "RST")
        self.sock.close()


def read_hello(peer):
    """With the addresses that the host has besides this one."""
    fixed = peer.read(72)
    return fixed + peer.read(struct.unpack("!H", fixed[8:10])[0] - 72)


def read_data(peer, n):
    data = b""
    while len(data) < n:
        kind, _, _, size = struct.unpack("!BBHI", peer.read(8))
        payload = peer.read(size)
        if kind == DATA:
            data += payload
    return data


def agreed(tun, after=b"", **kwargs):
    """HELLOs are exchanged; @after follows the peer's."""
    return Served(tun, option(ROLE_SYN), option(ROLE_CONFIRM),
                  late=hello(ROLE_SYN, **kwargs) + after)


def server_plain(tun):
    served = Served(tun)
    expect(not found(served.answer), "no option in the SYN-ACK")
    served.echo_plain()


def server_agrees(tun):
    served = agreed(tun)
    expect(found(served.answer) == option(ROLE_SYNACK), "the answer's option")
    served.echo_framed()


def server_option_malformed(tun):
    for syn in (option(ROLE_SYN)[:4], b"\xfe\x07\x52\x53\0\0\0\1",
                option(ROLE_SYNACK), option(ROLE_SYN, version=0)):
        served = Served(tun, syn)
        expect(not found(served.answer), "no option in the SYN-ACK")
        served.echo_plain()


def server_synack_stripped(tun):
    Served(tun, option(ROLE_SYN), early=b"").echo_plain()


def server_confirm_stripped(tun):
    Served(tun, option(ROLE_SYN), early=hello(ROLE_SYN)).echo_framed()


def server_peer_silent(tun):
    served = Served(tun, option(ROLE_SYN))
    time.sleep(4)
    served.echo_plain()


def server_speaks_first_to_plain(tun):
    served = Served(tun, option(ROLE_SYN))
    served.sock.sendall(b"banner")
    expect(served.peer.read(6) == b"banner", "our bytes, nothing before them")
    served.echo_plain()


def server_hello_cut(tun):
    for k in (1, 7, 8, 40, 71):
        for confirm in (b"", option(ROLE_CONFIRM)):
            said = hello(ROLE_SYN)[:k]
            served = Served(tun, option(ROLE_SYN), confirm, said)
            served.peer.end()
            data, err = drain(served.sock)
            expect(err or data == said, f"TCP's bytes or an error, cut at {k}")
            expect(not err or not data, f"no byte before the error, cut at {k}")
            served.sock.close()


def server_hello_cut_then_silent(tun):
    for k in (4, 40):
        said = hello(ROLE_SYN)[:k]
        served = Served(tun, option(ROLE_SYN), option(ROLE_CONFIRM), said)
        data, err = drain_or_raw(served.sock, said)
        expect(err or data == said, f"an error or TCP's bytes, cut at {k}")
        served.peer.close()


def drain_or_raw(sock, said):
    try:
        return sock.recv(len(said)), 0
    except OSError as err:
        expect(err.errno, "no hang")
        return b"", err.errno


def server_hello_slow(tun):
    served = Served(tun, option(ROLE_SYN), option(ROLE_CONFIRM))
    time.sleep(1)
    for byte in hello(ROLE_SYN):
        served.peer.write(bytes([byte]))
    served.echo_framed()


def server_hello_garbage(tun):
    for bad in (hello(ROLE_SYN, size=10), hello(ROLE_SYN, size=60000)):
        Served(tun, option(ROLE_SYN), option(ROLE_CONFIRM), late=bad).reset()


def server_hello_not_ours(tun):
    """Another nonce, the wrong role: a program's bytes, or a refusal."""
    for bad in (hello(ROLE_SYN, nonce=1), hello(ROLE_SYNACK)):
        served = Served(tun, option(ROLE_SYN), early=bad)
        served.peer.end()
        data, err = drain(served.sock)
        expect(err or data == bad, "all of TCP's bytes, or an error")
        served.sock.close()


def server_version_unknown(tun):
    agreed(tun, versions=(9, 9)).reset()


def server_records_malformed(tun):
    long = struct.pack("!QQ", 0, 0) + b"\0"
    for bad in (record(0), record(0x80 | 99), record(DATA, flags=1),
                record(DATA, size=0), record(DATA, size=256 * 1024 + 1),
                record(DATA, size=0xffffffff), record(ACK_REC, long),
                record(GRANT, b"x"), record(SWITCH), record(END, b"1234")):
        agreed(tun, record(DATA, b"before") + bad).reset(b"before")


def server_records_impossible(tun):
    for bad in (record(ACK_REC, struct.pack("!QQ", 1, 1 << 40)),
                record(END, struct.pack("!Q", 1)),
                switch(6, 1), switch(6, 0),
                record(RESUME, struct.pack("!IIQ", 3, 0, 1))):
        agreed(tun, record(DATA, b"before") + bad).reset(b"before")


def server_data_after_end(tun):
    """The program may have read the end already; the peer hears of it."""
    bad = record(END, struct.pack("!Q", 6)) + record(DATA, b"x")
    served = agreed(tun, record(DATA, b"before") + bad)
    data, err = drain(served.sock)
    expect(b"before".startswith(data) and err in (0, 104), "no byte more")
    expect(err or data == b"before", "all before the end")
    expect(served.peer.until(lambda: served.peer.rst), "RST")


def server_reset_before_accept(tun):
    """TCP's accept() returns the connection; its first use tells the error."""
    listener = our_socket()
    listener.bind((OURS, 0))
    listener.listen(1)
    peer = Peer(tun)
    peer.connect(listener.getsockname()[1], option(ROLE_SYN),
                 option(ROLE_CONFIRM))
    peer.write(hello(ROLE_SYN) + record(0))
    expect(peer.until(lambda: peer.rst), "RST")
    try:
        data, err = drain(listener.accept()[0])
        expect(not data and err == 104, f"ECONNRESET, not {err}")
    except ConnectionAbortedError:
        pass                    # what POSIX has for it


def server_record_unknown(tun):
    """A type of a later version that need not be understood."""
    agreed(tun, record(99, b"what?")).echo_framed()


def server_tcp_ends_first(tun):
    served = agreed(tun, record(DATA, b"before") + record(DATA, b"cut", size=9))
    served.peer.end()
    data, err = drain(served.sock)
    expect(b"beforecut".startswith(data) and err, "an error, not a clean end")


def server_window_exceeded(tun):
    served = agreed(tun)
    served.peer.read(40)
    limit = struct.unpack("!Q", served.peer.read(32)[8:16])[0]
    chunk = record(DATA, bytes(65536))
    for _ in range(limit // 65536 + 2):
        served.peer.write(chunk)
        served.peer.until(lambda: served.peer.rst, 0.01)
    expect(served.peer.until(lambda: served.peer.rst), "RST")


# ---- rings: the peer takes the name of a host that we have a link to ----

def rsctl(what):
    return subprocess.run(["rsctl"] + what.split(), check=True,
                          stdout=subprocess.PIPE).stdout


def counters():
    lines = (line.split() for line in rsctl("-s -o stats").decode().splitlines())
    return {words[0]: int(words[1]) for words in lines if words[1].isdigit()}


class Wire:
    """The keys of links, read off the wire as the links are made."""
    # IPv4, UDP to RoCE's port, queue pair 1: the connection manager's messages
    FILTER = ((0x30, 0, 0, 0), (0x15, 0, 8, 0x45), (0x30, 0, 0, 9),
              (0x15, 0, 6, 17), (0x28, 0, 0, 22), (0x15, 0, 4, 4791),
              (0x20, 0, 0, 32), (0x54, 0, 0, 0xffffff), (0x15, 0, 1, 1),
              (6, 0, 0, 65535), (6, 0, 0, 0))
    HEADERS = 20 + 8 + 12 + 8   # IP, UDP, BTH, DETH
    REQ, REP = 0x10, 0x13

    def __init__(self, dev="eth0"):
        code = ctypes.create_string_buffer(
            b"".join(struct.pack("HBBI", *step) for step in self.FILTER))
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        self.sock.setsockopt(socket.SOL_SOCKET, 26,     # SO_ATTACH_FILTER
                             struct.pack("HL", len(self.FILTER),
                                         ctypes.addressof(code)))
        self.sock.bind((dev, 3))
        self.sock.setblocking(False)
        self.asked, self.keys = {}, {}

    def take(self, mad):
        kind, = struct.unpack("!H", mad[16:18])
        at = mad.find(b"RSTL")
        if at < 0:
            return
        said = mad[at:at + 56]
        if kind == self.REQ:
            self.asked[mad[24:28]] = said
        elif kind == self.REP and mad[28:32] in self.asked:
            asked = self.asked[mad[28:32]]
            for one, other in (asked, said), (said, asked):
                link_id, = struct.unpack("!I", one[40:44])
                self.keys[other[8:24], link_id] = struct.unpack(
                    "!QQ", other[48:56] + one[48:56])

    def key(self, link):
        """The peer's half and ours of the key of a link of ours, or None."""
        try:
            while True:
                self.take(self.sock.recv(4096)[self.HEADERS:])
        except BlockingIOError:
            return self.keys.get((bytes.fromhex(link["peer"]), link["id"]))


class Linked:
    """HELLOs are exchanged under the name of the link's other end."""
    wire = None

    def __init__(self, tun):
        self.token = struct.unpack("!Q", os.urandom(8))[0] | 1
        self.link, self.key = self.wait_link()
        self.before = counters()
        served = agreed(tun, instance=bytes.fromhex(self.link["peer"]),
                        token=self.token)
        self.peer, self.sock = served.peer, served.sock
        self.our_token, = struct.unpack("!Q", read_hello(self.peer)[40:48])

    @classmethod
    def wait_link(cls):
        """A link that is up, and its key."""
        for _ in range(600):
            for link in json.loads(rsctl("-j links")):
                key = cls.wire.key(link)
                if link["state"] == "up" and key:
                    return link, key
                if link["state"] == "up":       # made before we listened
                    rsctl("drain on")
                    rsctl("drain off")
            time.sleep(0.1)
        raise Failed("a link in time")

    def prove(self, rec, key=None, tokens=None):
        """@rec, as the peer sends it, or with something not as it must be."""
        key = key or self.key
        tokens = struct.pack("!QQ", *(tokens or (self.token, self.our_token)))
        return rec + struct.pack("!Q", siphash(*key, tokens + rec))

    def grant(self, epoch, link=None, ring=1, rkey=1, addr=1 << 32, size=65536,
              **wrong):
        return self.prove(record(GRANT, struct.pack(
            "!IIIIQII", epoch, self.link["id"] if link is None else link, ring,
            rkey, addr, size, 0), size=40), **wrong)

    def switch(self, offset, epoch, **wrong):
        return self.prove(record(SWITCH, struct.pack(
            "!QIIQII", offset, epoch, 1, 8, 1, 0), size=40), **wrong)

    def grown(self, name):
        return counters().get(name, 0) - self.before.get(name, 0)

    def left_alone(self):
        """Neither the link nor its peer's memory has been touched."""
        expect(self.link["id"] in (link["id"] for link in
                                   json.loads(rsctl("-j links"))
                                   if link["state"] == "up"), "the link, up")
        written, = (sock["tx"]["ring_bytes"] for sock in
                    json.loads(rsctl("-j sockets"))
                    if sock["remote"] == f"{PEER}:{self.peer.port}")
        expect(not written, f"no byte by RDMA, not {written}")

    def record(self, kind=None):
        """The next record, or the next of this kind."""
        while True:
            got, _, _, size = struct.unpack("!BBHI", self.peer.read(8))
            payload = self.peer.read(size)
            if kind in (None, got):
                return got, payload

    def granted(self):
        """Epoch of the ring that we are granted."""
        return struct.unpack("!I", self.record(GRANT)[1][:4])[0]

    def refused(self, what, why):
        """@what resets the connection, for a reason that is counted."""
        self.peer.write(what)
        Served.reset(self, b"")
        expect(self.grown("reason:" + why) == 1, f"reason {why}")
        self.peer.close()

    def switched(self, what, why=""):
        """The next SWITCH: its offset and epoch."""
        got = struct.unpack("!QI", self.record(SWITCH)[1][:12])
        expect(got == what, f"SWITCH {what}, not {got} {why}")

    def on_broken_ring(self, tun_bytes=b"0123456789"):
        """The socket has switched to a ring of ours that can't be written."""
        self.peer.write(self.grant(1))
        self.switched((0, 1))
        self.sock.sendall(tun_bytes)
        epoch = struct.unpack("!I", self.record(BROKEN)[1][:4])[0]
        expect(epoch == 1, "BROKEN of this epoch")


def refuse_each(tun, cases):
    for what, why in cases:
        linked = Linked(tun)
        epoch = linked.granted()
        linked.refused(what(linked, epoch), why)


def link_proof_is_siphash(_):
    key = struct.unpack("<QQ", bytes(range(16)))
    expect(siphash(*key, bytes(range(15))) == 0xa129ca6149be45e5,
           "what the paper's appendix has")


def link_switch_refused(tun):
    refuse_each(tun, (
        (lambda linked, e: linked.switch(0, e + 1), "bad-switch"),
        (lambda linked, e: linked.switch(5, e), "bad-offset"),
        (lambda linked, e: linked.switch(0, e) * 2, "bad-switch"),
        (lambda linked, e: linked.switch(0, e) + record(DATA, b"x"),
         "bad-switch"),
        (lambda _, e: switch(5, 0), "bad-offset"),
        (lambda _, e: switch(0, 0) + switch(0, 0), "bad-switch"),
        (lambda linked, e: linked.switch(0, e) + switch(5, 0), "bad-switch")))


def link_broken_refused(tun):
    refuse_each(tun, (
        (lambda _, e: broken(e), "bad-resume"),
        (lambda _, e: broken(e + 1), "bad-resume"),
        (lambda _, e: broken(0), "bad-record")))


def link_resume_refused(tun):
    refuse_each(tun, (
        (lambda _, e: resume(1, 0), "bad-resume"),
        (lambda _, e: resume(0, 0), "bad-record"),
        (lambda linked, _: linked.grant(1) + resume(2, 0), "bad-resume"),
        (lambda linked, _: linked.grant(1) + resume(1, 1), "bad-resume")))


def link_grant_refused(tun):
    refuse_each(tun, (
        (lambda linked, _: linked.grant(2), "bad-grant"),
        (lambda linked, _: linked.grant(0), "bad-record"),
        (lambda linked, _: linked.grant(1, size=0), "bad-record"),
        (lambda linked, _: linked.grant(1, size=65535), "bad-record"),
        (lambda linked, _: linked.grant(1, ring=0), "bad-grant"),
        (lambda linked, _: linked.grant(1, ring=1 << 28), "bad-grant"),
        (lambda linked, _: linked.grant(1, addr=(1 << 64) - 8), "bad-grant"),
        (lambda linked, _: linked.grant(1) + linked.grant(1), "bad-grant"),
        (lambda linked, _: linked.grant(1) + linked.grant(2), "bad-grant"),
        (lambda linked, _: linked.grant(1, 0) + linked.grant(2, 0),
         "bad-grant")))


def link_ack_refused(tun):
    refuse_each(tun, (
        (lambda _, e: ack(1, 1 << 20), "bad-credit"),
        (lambda _, e: ack(0, 100), "bad-window"),
        (lambda _, e: ack(0, 1 << 20) + ack(0, (1 << 20) - 1), "bad-window")))


def link_end_refused(tun):
    """The program reads the end; the peer hears of what is behind it."""
    for what in (lambda _: record(DATA, b"x"), lambda _: end(0),
                 lambda linked: linked.switch(0, 1)):
        linked = Linked(tun)
        linked.granted()
        linked.peer.write(end(0) + what(linked))
        expect(linked.peer.until(lambda: linked.peer.rst), "RST")
        linked.sock.close()


def link_grant_of_unknown_link(tun):
    """It is left alone, and said so; each time anew."""
    linked = Linked(tun)
    linked.granted()
    for epoch in (1, 2, 3):
        linked.peer.write(linked.grant(epoch, 0xfffffff0 + epoch))
        linked.switched((0, 0))
    linked.sock.sendall(b"answer")
    expect(linked.record(DATA)[1] == b"answer", "our bytes in DATA")
    linked.sock.close()
    linked.peer.close()


# Records as others than the link's end can have them: @make writes one of @linked;
# @other is another stream of the same two hosts.
WRONG = (
    ("no proof", lambda make, linked, other: make()[:-8] + bytes(8)),
    ("one wrong bit", lambda make, linked, other:
     make()[:-1] + bytes([make()[-1] ^ 1])),
    ("another address", lambda make, linked, other:
     make()[:24] + bytes(8) + make()[32:]),
    ("another stream", lambda make, linked, other:
     make(tokens=(other.token, other.our_token))),
    ("tokens swapped", lambda make, linked, other:
     make(tokens=(linked.our_token, linked.token))),
    ("by our end", lambda make, linked, other: make(key=linked.key[::-1])),
    ("by our end, sent back", lambda make, linked, other:
     make(key=linked.key[::-1], tokens=(linked.our_token, linked.token))))


def link_grant_unproven(tun):
    """Who is not the link's other end makes us write nothing over it."""
    linked, other = Linked(tun), Linked(tun)
    linked.granted()
    for epoch, (what, wrong) in enumerate(WRONG, 1):
        linked.peer.write(wrong(partial(linked.grant, epoch), linked, other))
        linked.switched((0, 0), what)
    expect(linked.grown("grants-refused") >= len(WRONG), "each to be counted")
    linked.sock.sendall(b"answer")
    expect(linked.record(DATA)[1] == b"answer", "our bytes in DATA")
    linked.left_alone()
    for each in linked, other:
        each.sock.close()
        each.peer.close()


def link_switch_unproven(tun):
    """The same of the cell that credits are written to."""
    other = Linked(tun)
    for _, wrong in WRONG:
        linked = Linked(tun)
        epoch = linked.granted()
        linked.refused(wrong(partial(linked.switch, 0, epoch), linked, other),
                       "bad-switch")
    other.left_alone()
    other.sock.close()
    other.peer.close()


def link_grant_left_alone(tun):
    """A sender that leaves grants alone gets others, and may use DATA."""
    linked = Linked(tun)
    for epoch in (1, 2, 3):
        expect(linked.granted() == epoch, "the next epoch")
        linked.peer.write(switch(3 * (epoch - 1), 0) + record(DATA, b"abc"))
    data = b""
    while len(data) < 9:
        data += linked.sock.recv(9)
    expect(data == b"abc" * 3, "the peer's bytes")
    linked.sock.close()
    linked.peer.close()


def link_resumes(tun):
    """What the ring has not brought comes by DATA, no byte more or less."""
    for count in (0, 3, 10):
        linked = Linked(tun)
        linked.on_broken_ring()
        linked.peer.write(resume(1, count))
        linked.switched((count, 0))
        linked.sock.sendall(b"abc")
        rest, data = b"0123456789"[count:] + b"abc", b""
        while len(data) < len(rest):
            data += linked.record(DATA)[1]
        expect(data == rest, f"{rest}, not {data}")
        linked.sock.close()
        linked.peer.close()


def link_resumes_wrongly(tun):
    for wrong in (resume(1, 11), resume(2, 0), resume(1, 1 << 63),
                  resume(1, (1 << 64) - 1), ack(11, 1 << 20)):
        linked = Linked(tun)
        linked.on_broken_ring()
        linked.refused(wrong, "bad-credit" if wrong[0] == ACK_REC
                       else "bad-resume")


def link_resumes_twice(tun):
    for second in (0, 5):
        linked = Linked(tun)
        linked.on_broken_ring()
        linked.peer.write(resume(1, 5))
        linked.switched((5, 0))
        linked.refused(resume(1, second), "bad-resume")


def link_broken_is_answered(tun):
    linked = Linked(tun)
    epoch = linked.granted()
    linked.peer.write(linked.switch(0, epoch) + broken(epoch))
    got = struct.unpack("!IIQ", linked.record(RESUME)[1])
    expect(got == (epoch, 0, 0), "RESUME of this epoch, nothing has come")
    linked.peer.write(broken(epoch) + switch(0, 0) + record(DATA, b"abc"))
    expect(linked.sock.recv(9) == b"abc", "the peer's bytes")
    linked.sock.close()
    linked.peer.close()


# ---- our client, the peer listens ----

class Reached:
    """Our socket has connected to the peer."""

    def __init__(self, tun, answer, late=None):
        self.peer = Peer(tun)
        self.sock = our_socket()
        thread = threading.Thread(target=self.connect)
        thread.start()
        self.asked = self.peer.accept(answer)
        thread.join(LIMIT)
        expect(not thread.is_alive(), "connect() to return")

    def connect(self):
        self.sock.connect((PEER, self.peer.port))

    echo_plain = Served.echo_plain
    reset = Served.reset

    def nonce(self):
        return struct.unpack("!I", found(self.asked)[4:])[0] & 0xffffff


def agree(asked, nonce=0):
    known = struct.unpack("!I", found(asked)[4:])[0] & 0xffffff
    return option(ROLE_SYNACK, known ^ nonce)


def client_plain(tun):
    reached = Reached(tun, lambda asked: b"")
    expect(found(reached.asked), "the option in the SYN")
    reached.echo_plain()


def client_echoed(tun):
    Reached(tun, found).echo_plain()


def client_wrong_nonce(tun):
    Reached(tun, lambda asked: agree(asked, 1)).echo_plain()


def client_agrees(tun):
    reached = Reached(tun, agree)
    reached.peer.write(hello(ROLE_SYNACK, reached.nonce())
                       + record(DATA, b"hi"))
    expect(reached.sock.recv(9) == b"hi", "the peer's bytes")
    expect(read_hello(reached.peer).startswith(MAGIC), "HELLO")
    reached.sock.sendall(b"answer")
    expect(read_data(reached.peer, 6) == b"answer", "our bytes in DATA")
    reached.sock.close()


def client_peer_silent(tun):
    reached = Reached(tun, agree)
    reached.peer.read(72)
    data, err = drain(reached.sock)
    expect(not data and err == 110, f"ETIMEDOUT, not {err}")


def client_peer_plain(tun):
    reached = Reached(tun, agree)
    reached.peer.write(b"220 this is no HELLO but a banner of 72 bytes or more"
                       b" that a program has sent\r\n")
    reached.reset()


def client_hello_slow(tun):
    reached = Reached(tun, agree)
    time.sleep(1)
    for byte in hello(ROLE_SYNACK, reached.nonce()) + record(DATA, b"hi"):
        reached.peer.write(bytes([byte]))
    expect(reached.sock.recv(9) == b"hi", "the peer's bytes")


def client_hello_cut(tun):
    for k in (1, 8, 71):
        reached = Reached(tun, agree)
        reached.peer.write(hello(ROLE_SYNACK, reached.nonce())[:k])
        reached.peer.end()
        data, err = drain(reached.sock)
        expect(not data and err, f"an error, cut at {k}")


def client_reset_in_hello(tun):
    reached = Reached(tun, agree)
    reached.peer.close()
    data, err = drain(reached.sock)
    expect(not data and err == 104, f"ECONNRESET, not {err}")


def main():
    tun = Tun()
    cases = [(name, fn) for name, fn in globals().items()
             if name.startswith(("server_", "client_", "link_"))
             and (sys.argv[1] in name if len(sys.argv) > 1
                  else not name.startswith("link_"))]
    if any(name.startswith("link_") for name, _ in cases):
        Linked.wire = Wire()
    failed = 0
    print("TAP version 13")
    for n, (name, case) in enumerate(cases, 1):
        try:
            case(tun)
            print(f"ok {n} - {name}", flush=True)
        except (Failed, OSError) as err:
            failed += 1
            print(f"# expected {err}" if isinstance(err, Failed) else f"# {err!r}")
            print(f"not ok {n} - {name}", flush=True)
        Peer.close_all()
    print(f"1..{len(cases)}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
