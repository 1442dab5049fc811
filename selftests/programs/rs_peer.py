# SPDX-License-Identifier: GPL-2.0-only
"""A peer that is written here, for rs_wire and rs_liar.

A TUN device joins the kernel to a TCP, which says exactly what a case wants:
which option in which segment, how much of a HELLO and when, what records.  The
sockets under test are ordinary sockets of this process.
"""
import contextlib
import errno
import fcntl
import os
import queue
import re
import socket
import struct
import subprocess
import threading
import time

import tap
from streams import IPPROTO_RDMASTREAM

OURS, PEER = "10.78.0.1", "10.78.0.2"
LIMIT = 10                      # seconds that any answer may take
FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32
ROLE_SYN, ROLE_SYNACK, ROLE_CONFIRM = 1, 2, 3
MAGIC = b"\xd5RSTRM\r\n"
DATA, ACK_REC, GRANT, SWITCH, REVOKE, BROKEN, RESUME, END = range(1, 9)
LINK, STOPPED = 10, 11
PLAIN, CAP_PLAIN = 12, 8
# the kind of device that this host has, too
CAP_RDMA = 16 if os.environ.get("RDMA") == "siw" else 1
WINDOW = 65536
NONCE, ANSWER = 0x5a17c3c0ffee11, 0x1234567890abcd      # the client's, the server's
TOKEN = 77
HELLO = 80                      # bytes, without addresses
# stands for the nonce that the options make; Peer.said() knows that
AGREED = b"\xfeAGREED"


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


def role_nonce(client, server, role):
    """What CONFIRM and HELLO state, of the nonces of both options."""
    return siphash(client, server, struct.pack("<Q", role)) & (1 << 56) - 1


def nonce_bytes(nonce):
    return AGREED if nonce is None else nonce.to_bytes(7, "big")


def option(role, nonce=None, version=2):
    if nonce is None and role & 7 == ROLE_SYN:
        nonce = NONCE
    return struct.pack("!BBHB", 254, 12, 0x5253, version << 4 | role) + nonce_bytes(nonce)


def hello(role, nonce=None, size=None, window=WINDOW, versions=(2, 2),
          instance=None, token=TOKEN, secret=bytes(16), port=4793,
          addresses=(), caps=None):
    """With an RDMA device, if @instance is stated but not @caps; @addresses: 16 bytes each."""
    if size is None:
        size = HELLO + 16 * len(addresses)
    return (MAGIC + struct.pack("!HBBB", size, *versions, role) + nonce_bytes(nonce)
            + struct.pack("!IHHI", (CAP_RDMA if instance else 0) if caps is None else caps,
                          port, len(addresses), 0)
            + (instance or os.urandom(16)) + struct.pack("!QQ", token, window)
            + secret + b"".join(addresses))


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


def plain(size):
    """The next bytes are in no record."""
    return record(PLAIN, struct.pack("!Q", size))


def end(offset):
    return record(END, struct.pack("!Q", offset))


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ip(command):
    subprocess.run(["ip"] + command.split(), check=True)


class Wire:
    """A network of ours; all segments for one peer port go to that port's queue."""
    device, peer = "wire0", PEER

    def __init__(self):
        self.open()
        ip(f"addr add {OURS} peer {self.peer} dev {self.device}")
        ip(f"link set {self.device} up arp off mtu 1500")
        with open(f"/sys/class/net/{self.device}/address", encoding="ascii") as file:
            self.ethernet = bytes.fromhex(file.read().replace(":", "")) + bytes(6) + b"\x08\0"
        self.carried()
        self.ports = {}
        threading.Thread(target=self.receive, daemon=True).start()

    def open(self):
        ip("link add wire0 type veth peer name wire1")
        # one segment at a time
        subprocess.run("ethtool -K wire0 tso off gso off".split(), check=True)
        ip("link set wire1 up")
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.sock.bind(("wire1", 0x800))
        self.fd = self.sock.fileno()

    def carried(self):
        """The kernel drops what is sent before it has noticed the carrier."""
        end = time.monotonic() + LIMIT
        for device in ("wire0", "wire1"):
            with open(f"/sys/class/net/{device}/operstate", encoding="ascii") as file:
                while file.read() != "up\n":
                    expect(time.monotonic() < end, f"{device} comes up")
                    time.sleep(0.01)
                    file.seek(0)

    def close(self):
        """It goes; else it would be in the way of the next program's."""
        ip(f"link del {self.device}")

    def receive(self):
        while True:
            try:
                packet = os.read(self.fd, 65536)[14:]
            except OSError:
                return          # it is gone
            if packet[0] >> 4 != 4 or packet[9] != 6:
                continue
            tcp = packet[(packet[0] & 15) * 4:]
            port = struct.unpack("!H", tcp[2:4])[0]
            if port in self.ports:
                self.ports[port].put(tcp)

    def send(self, tcp, host=OURS, source=None):
        source = source or self.peer
        pseudo = (socket.inet_aton(source) + socket.inet_aton(host)
                  + struct.pack("!HH", 6, len(tcp)))
        tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
        head = (struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 1, 0x4000, 64,
                            6, 0)
                + socket.inet_aton(source) + socket.inet_aton(host))
        head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
        os.write(self.fd, self.ethernet + head + tcp)


class Tap(Wire):
    """The same by a tunnel, which another program may encrypt."""
    device, peer = "wire2", "192.0.2.77"

    def open(self):
        self.fd = os.open("/dev/net/tun", os.O_RDWR)
        # TUNSETIFF: with Ethernet frames
        fcntl.ioctl(self.fd, 0x400454ca, struct.pack("16sH", b"wire2", 0x1002))

    def carried(self):
        pass        # its reader gets what is sent


class Peer:
    """One TCP connection on a wire that loses nothing, with this host or another."""
    next_port = 20000
    every = []

    def __init__(self, tun, host=OURS):
        Peer.next_port += 1
        Peer.every.append(self)
        self.tun, self.host, self.port, self.remote = tun, host, Peer.next_port, 0
        self.queue = tun.ports[self.port] = queue.Queue()
        self.seq, self.ack = 1000, 0
        self.data, self.fin, self.rst, self.opts = b"", False, False, b""
        self.last = b""         # the last segment's data
        self.nonces = None      # of both options: the client's, the server's

    def segment(self, flags, data=b"", opts=b"", urgent=0, reserved=0):
        """@reserved: bits of the header that TCP ignores."""
        opts += b"\1" * (-len(opts) % 4)
        self.tun.send(struct.pack("!HHIIBBHHH", self.port, self.remote,
                                  self.seq, self.ack, (5 + len(opts) // 4) << 4 | reserved,
                                  flags, 65535, 0, urgent) + opts + data, self.host)
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
            self.last = data
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

    @contextlib.contextmanager
    def answering(self, done, seconds=LIMIT):
        """Segments are acknowledged meanwhile, until done()."""
        answers = threading.Thread(target=self.until, args=(done, seconds))
        answers.start()
        yield
        answers.join()

    def first(self):
        """Wait for a segment that has data."""
        expect(self.until(lambda: self.data or self.rst), "bytes in time")

    def said(self, data):
        """With the nonces that the options have agreed on."""
        def agreed_on(found):
            role = found[1][0] & 7
            return found[1] + nonce_bytes(role_nonce(*self.nonces, role))
        return re.sub(b"(.)" + AGREED, agreed_on, data, flags=re.DOTALL) \
            if self.nonces else data

    def write(self, data):
        data = self.said(data)
        for at in range(0, len(data), 1400):
            self.segment(ACK | PSH, data[at:at + 1400])

    def end(self):
        self.segment(ACK | FIN)

    def send_syn(self, port, syn=b"", reserved=0):
        self.remote = port
        self.segment(SYN, opts=b"\2\4\5\xb4" + syn, reserved=reserved)

    def synack(self):
        """Return: its options."""
        expect(self.until(lambda: self.ack), "a SYN-ACK")
        return self.opts

    def confirm(self, syn=b"", confirm=b""):
        """Answers the last SYN-ACK."""
        if found(syn) and found(self.opts):
            self.nonces = nonce_of(syn), nonce_of(self.opts)
        self.segment(ACK, opts=self.said(confirm))

    def connect(self, port, syn=b"", confirm=b"", reserved=0):
        self.send_syn(port, syn, reserved)
        answer = self.synack()
        self.confirm(syn, confirm)
        return answer

    def accept(self, answer, drops=lambda opts: False):
        """@drops: SYNs that do not arrive."""
        expect(self.until(lambda: self.ack), "a SYN")
        while drops(self.opts):
            self.ack = 0
            expect(self.until(lambda: self.ack), "another SYN")
        asked = self.opts
        answered = answer(asked)
        if found(asked) and found(answered):
            self.nonces = nonce_of(asked), nonce_of(answered)
        self.segment(SYN | ACK, opts=b"\2\4\5\xb4" + answered)
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


class Skipped(Exception):
    """Of a case; the reason."""


def expect(good, what):
    if not good:
        raise Failed(what)


def found(opts):
    """Our option among TCP options, or None."""
    at = opts.find(b"\xfe\x0c\x52\x53")
    return opts[at:at + 12] if at >= 0 else None


def nonce_of(opts):
    return int.from_bytes(found(opts)[5:], "big")


def role_of(opts):
    """With the bit of the prelude."""
    return found(opts)[4] & 15


def our_socket():
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_RDMASTREAM)
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


def fails(sock, number):
    """The program gets no byte, but this error."""
    data, err = drain(sock)
    expect(not data and err == number, f"{errno.errorcode[number]}, not {err}")


def broken_pipe(sock):
    """The program cannot write any more."""
    try:
        sock.send(b"x")
    except OSError as err:
        expect(err.errno == errno.EPIPE, f"EPIPE, not {err}")
    else:
        raise Failed("EPIPE, not success")


class Served:
    """The peer has connected to a listener of ours."""

    def __init__(self, tun, syn=b"", confirm=b"", early=b"", late=b"", reserved=0):
        listener = our_socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((OURS, 0))
        listener.listen(1)
        self.peer = Peer(tun)
        self.answer = self.peer.connect(listener.getsockname()[1], syn, confirm, reserved)
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
    fixed = peer.read(HELLO)
    return fixed + peer.read(struct.unpack("!H", fixed[8:10])[0] - HELLO)


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


def run(cases):
    """In TAP.  Return: exit status."""
    tun = Wire()
    print("TAP version 13")
    for name, case in cases:
        what = ""
        try:
            case(tun)
        except Skipped as why:
            name = f"{name} # SKIP {why}"
        except Failed as err:
            what = f"expected {err}"
        except OSError as err:
            what = repr(err)
        tap.ok(not what, name, what)
        Peer.close_all()
    tun.close()
    return tap.done()


def chosen(names, kinds, pattern):
    """The cases of these kinds with @pattern, a regular expression, in their names."""
    return [(name, fn) for name, fn in names.items()
            if name.startswith(kinds) and re.search(pattern, name)]
