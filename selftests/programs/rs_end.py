# SPDX-License-Identifier: GPL-2.0-only
"""An end of a link that is written here, with a real queue pair (rs_qp).

Documentation/links.rst tells what is said; here each word of it can be a lie.
"""
import contextlib
import itertools
import json
import os
import socket
import struct
import subprocess
import time

from rs_peer import (BROKEN, GRANT, OURS, PEER, REVOKE, SWITCH, Failed, Served, agreed,
                     expect, ip, read_hello, record, siphash)
from streams import write_file

MAGIC, VERSION, SIZE = 0x5253544c, 3, 48
DEPTH, MEMORY = 512, 1 << 20
CELLS = 1 << 16                 # bytes of our memory, behind which rings are
READY, DATA, DATA_WANT, CREDIT, DONE, FREED, RQ_CREDIT = 7, 1, 2, 3, 4, 5, 6
PROBE, PROBE_ACK, RENEW = 8, 9, 10
PROOF_REQ, PROOF_REP, KEY_ACTIVE, KEY_PASSIVE = 1, 2, 3, 5
CM_PORT = 4793
WAIT = 30                       # seconds


def gid(addr):
    """Of an address, as RoCE and the proofs of iWARP have it."""
    if ":" in addr:
        return socket.inet_pton(socket.AF_INET6, addr)
    return bytes(10) + b"\xff\xff" + socket.inet_aton(addr)


def words(secret):
    return struct.unpack("<QQ", secret)


class Refused(Failed):
    """What rs_qp was told to do has not come to be."""


class Qp:
    """rs_qp: a queue pair and memory."""

    def __init__(self, depth=DEPTH, memory=MEMORY):
        self.process = subprocess.Popen(["rs_qp", "-d", str(depth), "-m", str(memory)],
                                        text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.number = self.addr = self.rkey = None

    def ask(self, *what):
        print(*what, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().split()
        if not answer or answer[0] != "ok":
            raise Refused(f"rs_qp {what[0]} to work, not {' '.join(answer[1:])}")
        return answer[1:]

    def read(self, at, size):
        return bytes.fromhex(self.ask("read", at, size)[0])

    def made(self, answer):
        self.number, self.addr, self.rkey = map(int, answer[:3])
        return answer[3:]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Ticket:
    """A TCP connection, as its two HELLOs name it."""

    def __init__(self, token=None, secret=None):
        self.token = token or struct.unpack("!Q", os.urandom(8))[0] | 1
        self.secret = secret or os.urandom(16)
        self.host_token = self.host_secret = self.host_instance = None
        self.host_port, self.host_window = CM_PORT, 0

    def heard(self, hello):
        """The HELLO of the host."""
        self.host_port, = struct.unpack("!H", hello[24:26])
        self.host_instance = hello[32:48]
        self.host_token, self.host_window = struct.unpack("!QQ", hello[48:64])
        self.host_secret = hello[64:80]


class End:
    """Our end of a link with @host, for @ticket.

    What a case wants to be a lie it says by @lies: slot, depth, link_id, key, token,
    own_token, version, proof, gids, qpns (as we pretend to see them).  rq_credit, freed and
    probe_ack set: those are not said by themselves.
    """
    next_id = 1

    def __init__(self, ticket, host, ours=None, depth=DEPTH, memory=MEMORY, **lies):
        self.ticket, self.host, self.ours = ticket, host, ours or host
        self.lies, self.depth = lies, depth
        self.qp = Qp(depth, memory)
        self.cells = itertools.cycle(range(0, CELLS, 16))
        self.id = lies.get("link_id", End.next_id)
        End.next_id += 1
        self.half = struct.unpack("!Q", os.urandom(8))[0]
        self.passive = False
        self.number = 0                 # of our next message
        self.heard = []                 # messages that nobody has waited for
        self.returned = 0
        self.key = self.host_key = self.host_id = None

    # ---- making it ----

    def hello(self, proof=0):
        get = self.lies.get
        return struct.pack("!IBBHQQIIQQ", MAGIC, get("version", VERSION),
                           get("slot", 0), get("depth", self.depth),
                           get("token", self.ticket.host_token),
                           get("own_token", self.ticket.token), self.id, 0,
                           get("key", self.half), proof)

    def proof(self, purpose, active, req, rep, qpns):
        """Of the messages; @active: by the end that connects; @qpns: ours and the host's."""
        gids = self.lies.get("gids", (gid(self.ours), gid(self.host)))
        qpns = self.lies.get("qpns", qpns)
        secrets = self.ticket.secret, self.ticket.host_secret
        if not active:
            gids, qpns, secrets = gids[::-1], qpns[::-1], secrets[::-1]
        return siphash(*words(secrets[0]), secrets[1] + req + rep + b"".join(gids)
                       + struct.pack("!IIII", *qpns, purpose, 0))

    def keys(self, active, req, rep, qpns):
        def key(purpose):
            return tuple(self.proof(purpose + i, active, req, rep, qpns)
                         for i in range(2))
        both = key(KEY_ACTIVE), key(KEY_PASSIVE)
        self.key, self.host_key = both if active else both[::-1]

    def connect(self):
        """We are the active side: our instance id is the greater one."""
        self.qp.made(self.qp.ask("route", self.ours, self.host,
                                 self.ticket.host_port))
        ours = self.qp.number
        proof = self.proof(PROOF_REQ, True, self.hello(), bytes(SIZE), (ours, 0))
        req = self.hello(self.lies.get("proof", proof))
        theirs, rep = self.qp.ask("connect", req.hex())
        theirs, rep = int(theirs), bytes.fromhex(rep)[:SIZE]
        self.host_id, = struct.unpack("!I", rep[24:28])
        proof = self.proof(PROOF_REP, True, req, rep[:-8] + bytes(8), (ours, theirs))
        if not self.lies:
            expect(rep[-8:] == struct.pack("!Q", proof), "a REP that is proven")
        self.keys(True, req, rep, (ours, theirs))
        return self

    def listen(self, port):
        self.qp.ask("listen", self.ours, port)
        return self

    def asked(self, seconds=WAIT):
        """We are the passive side.  Return: queue pair and bytes of the REQ."""
        theirs, req = self.qp.made(self.qp.ask("await", int(seconds * 1000)))
        return int(theirs), bytes.fromhex(req)[:SIZE]

    def accept(self, theirs, req, **lies):
        """@lies: as those of the end, but in the answer alone."""
        ours = self.qp.number
        self.passive = True
        self.host_id, = struct.unpack("!I", req[24:28])
        self.lies.setdefault("slot", req[5])
        asked = self.proof(PROOF_REQ, False, req[:-8] + bytes(8), bytes(SIZE),
                           (0, theirs))
        expect(req[-8:] == struct.pack("!Q", asked), "a REQ that is proven")
        self.lies.update(lies)
        proof = self.proof(PROOF_REP, False, req, self.hello(), (ours, theirs))
        rep = self.hello(self.lies.get("proof", proof))
        self.qp.ask("accept", rep.hex())
        self.keys(False, req, rep, (ours, theirs))
        return self

    def ready(self):
        # with iWARP the active side speaks first
        if self.passive and self.iwarp():
            self.hear(READY)
            self.say(READY)
        else:
            self.say(READY)
            self.nudge()
            self.hear(READY)
        return self

    def nudge(self):
        """siw can overlook what arrives while it accepts, until more arrives."""
        if not self.iwarp():
            return
        for _ in range(20):
            self.write(0, 0, b"")
            time.sleep(0.05)
            self.listen_up()
            if any(kind == READY for kind, _, _ in self.heard):
                return

    def iwarp(self):
        return self.qp.ask("iwarp") == ["1"]

    def close(self):
        self.qp.close()

    def leave(self):
        """As close(), but the host knows that the link has ended.

        close() tells it once, and that may be lost: the host would find out by its probes.
        """
        with contextlib.suppress(Refused):
            self.qp.ask("disconnect")
        self.close()

    # ---- messages ----

    def say(self, kind, number=0, addr=0, rkey=0, data=b"", step=1):
        """A message, numbered @step behind the last; @number: ring or count."""
        value = kind << 28 | (self.number + step - 1 & 255) << 20 | number
        self.number += step
        self.qp.ask("imm", value, addr, rkey, data.hex())

    def write(self, addr, rkey, data):
        self.qp.ask("write", addr, rkey, data.hex())

    def next(self, seconds=WAIT):
        """The next message: kind, ring or count, length; None: none came."""
        try:
            value, length = map(int, self.qp.ask("recv", int(seconds * 1000)))
        except Refused as err:
            # with iWARP, the queues of a link that has ended are flushed
            if str(err).endswith(("not time", "Flushed Error")):
                return None
            raise
        try:
            self.answer(value >> 28, value & 0xfffff)
        except Refused:             # what has come before the end of the link remains to be told
            if self.is_up():
                raise
        return value >> 28, value & 0xfffff, length

    def answer(self, kind, number):
        """What a message wants of us."""
        self.returned += kind != RQ_CREDIT      # for that receives are kept
        if self.returned == self.depth // 4 and "rq_credit" not in self.lies:
            self.say(RQ_CREDIT, self.returned)
            self.returned = 0
        if kind == DONE and "freed" not in self.lies:
            self.say(FREED, number)
        if kind == PROBE and "probe_ack" not in self.lies:
            self.say(PROBE_ACK)

    def any(self):
        """The next message, whatever it is."""
        message = self.heard.pop(0) if self.heard else self.next()
        expect(message, "a message in time")
        return message

    def listen_up(self):
        """What has come waits for hear(); what it wants of us is answered."""
        while message := self.next(0):
            self.heard.append(message)

    def hear(self, kind, seconds=WAIT):
        """The next of this kind; others wait."""
        for i, message in enumerate(self.heard):
            if message[0] == kind:
                return self.heard.pop(i)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            message = self.next(end - time.monotonic())
            if message and message[0] == kind:
                return message
            if message:
                self.heard.append(message)
        raise Failed(f"message {kind} in time")

    def is_up(self):
        try:
            return self.qp.ask("up") == ["1"]
        except (Refused, BrokenPipeError):
            return False


def rsctl(what):
    return subprocess.run(["rsctl"] + what.split(), check=True,
                          stdout=subprocess.PIPE).stdout


def dump(what):
    return json.loads(rsctl("-j " + what))


def counters():
    lines = (line.split() for line in rsctl("-s -o stats").decode().splitlines())
    return {words[0]: int(words[1]) for words in lines if words[1].isdigit()}


@contextlib.contextmanager
def setting(name, value):
    """Of this namespace; it is as before afterwards."""
    path = "/proc/sys/net/rdmastream/" + name
    with open(path, encoding="ascii") as file:
        before = file.read()
    write_file(path, value)
    try:
        yield
    finally:
        write_file(path, before)


class Address:
    """Other than PEER, for peers; where a case takes a Wire."""

    def __init__(self, tun, address):
        self.tun, self.address, self.ports = tun, address, tun.ports
        ip(f"route replace {address} dev wire0 src {OURS}")

    def send(self, tcp, host=OURS):
        self.tun.send(tcp, host, self.address)


def heard(peer, seconds):
    """Types of the records that come."""
    peer.until(lambda: False, seconds)
    kinds = set()
    while len(peer.data) >= 8:
        kind, _, _, size = struct.unpack("!BBHI", peer.read(8))
        peer.read(size)
        kinds.add(kind)
    return kinds


def said_hello(tun, **how):
    """A connection, and what names it."""
    ticket = Ticket()
    served = agreed(tun, token=ticket.token, secret=ticket.secret,
                    **{"instance": Linked.instance, **how})
    ticket.heard(read_hello(served.peer))
    return served, ticket


def until(done, what, seconds=WAIT):
    end = time.monotonic() + seconds
    while not done():
        expect(time.monotonic() < end, what)
        time.sleep(0.05)


def new_instance():
    """Greater than that of the host: we make the links."""
    return b"\xff" * 4 + os.urandom(12)


class Linked:
    """HELLOs are exchanged, and there is a link: that of the last one, if it can be."""
    host = os.environ.get("ADDR4_0")
    instance = new_instance()
    how = {}                        # of End()
    end = None
    rings = itertools.count(1)      # ids of those that we grant

    def __init__(self, tun):
        self.before = counters()
        served, self.ticket = said_hello(tun, instance=self.instance)
        self.peer, self.sock = served.peer, served.sock
        self.found = self.links() if self.end and self.end.is_up() else []
        if not self.found:
            self.no_end()
            type(self).end = End(self.ticket, self.host, **self.how).connect().ready()
            until(self.finds_link, "the link, up")
        self.link, = self.found
        self.end.listen_up()
        self.cell = next(self.end.cells)
        self.key, self.host_key = self.end.key, self.end.host_key
        self.token, self.our_token = self.ticket.token, self.ticket.host_token

    @classmethod
    def no_end(cls):
        """Our end of the link is there no more."""
        if cls.end:
            cls.end.close()
        cls.end = None

    def finds_link(self):
        self.found = self.links()
        return self.found

    @classmethod
    def links(cls):
        return [link for link in dump("links") if link["state"] == "up"
                and link["id"] == cls.end.host_id]

    def used(self):
        """Bytes of rings on the host's end of the link."""
        link, = self.links()
        return link["rmb_used"]

    def over(self, why, seconds=WAIT):
        """The link ends, for this reason; while the connection is there."""
        until(lambda: not self.links(), f"the link to end: {why}", seconds)
        self.ended(why)

    def ended(self, why):
        """The last link of this instance ended for this reason; reported once it is drained."""
        def said():
            return {peer["peer"]: peer.get("end_text") for peer in dump("peers")}

        with contextlib.suppress(Failed):
            until(lambda: said().get(self.instance.hex()) == why, why)
        expect(said().get(self.instance.hex()) == why, f"{why}, not {said()}")

    @classmethod
    def forgotten(cls):
        """Nothing is left of the links of this one."""
        name = cls.instance.hex()
        cls.no_end()
        until(lambda: all(link["peer"] != name for link in dump("links")),
              "its links to be gone")
        until(lambda: {rmb["link"] for rmb in dump("memory")} <=
              {link["id"] for link in dump("links")}, "its memory to be free")

    def prove(self, rec, key=None, tokens=None):
        """@rec, as the peer sends it, or with something not as it must be."""
        key = key or self.key
        tokens = struct.pack("!QQ", *(tokens or (self.token, self.our_token)))
        return rec + struct.pack("!Q", siphash(*key, tokens + rec))

    def grant(self, epoch, link=None, ring=None, rkey=1, addr=1 << 32,
              size=65536, **wrong):
        if ring is None:
            ring = next(self.rings)
        return self.prove(record(GRANT, struct.pack(
            "!IIIIQII", epoch, self.link["id"] if link is None else link, ring,
            rkey, addr, size, 0), size=40), **wrong)

    def grant_room(self, epoch, size=65536, **how):
        """A ring that is there, behind our cells."""
        return self.grant(epoch, rkey=self.end.qp.rkey, addr=self.end.qp.addr + CELLS,
                          size=size, **how)

    def switch(self, offset, epoch, **wrong):
        qp = self.end.qp
        return self.prove(record(SWITCH, struct.pack(
            "!QIIQII", offset, epoch, 1, qp.addr + self.cell, qp.rkey, 0), size=40),
            **wrong)

    def grown(self, name):
        return counters().get(name, 0) - self.before.get(name, 0)

    def left_alone(self):
        """Neither the link nor its peer's memory has been touched."""
        expect(self.link["id"] in (link["id"] for link in self.links()),
               "the link, up")
        written, = (sock["tx"]["ring_bytes"] for sock in dump("sockets")
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
        """Epoch of the ring that we are granted; @ring, @rkey, @addr, @size: the rest."""
        self.epoch, _, self.ring, self.rkey, self.addr, self.size = struct.unpack(
            "!IIIIQI", self.record(GRANT)[1][:28])
        return self.epoch

    def granted_where(self):
        """Link, ring and address of the ring that we are granted."""
        self.granted()
        return self.link["id"], self.ring, self.addr

    # ---- what we send by a ring of the host ----

    def take(self, offset):
        """The ring that we were granted last is taken up."""
        self.end.qp.ask("fill", self.cell, (bytes(8) + b"\xff" * 8).hex())
        self.peer.write(self.switch(offset, self.epoch))
        self.put_bytes = 0

    def put(self, data):
        """Behind what is in that ring."""
        while data:
            at = self.put_bytes % self.size
            piece, data = data[:self.size - at], data[self.size - at:]
            self.end.say(DATA, self.ring, self.addr + at, self.rkey, piece)
            self.put_bytes += len(piece)

    def credited(self):
        """How much of it the host says that it has read."""
        value, check = struct.unpack("!QQ", self.end.qp.read(self.cell, 16))
        expect(value == ~check & (1 << 64) - 1, "a cell that is whole")
        return value

    def reads(self, size):
        """The program does, of what we have sent."""
        data = b""
        while len(data) < size:
            got = self.sock.recv(size - len(data))
            expect(got, "no end")
            data += got
        return data

    def make_grow(self):
        """Often half of the ring is read at once: it is taken back for a larger one."""
        for _ in range(4):
            self.put(bytes(self.size // 2))
            self.reads(self.size // 2)

    def revoked(self):
        got, _ = struct.unpack("!II", self.record(REVOKE)[1])
        expect(got == self.epoch, f"REVOKE of {self.epoch}, not {got}")

    # ---- how it ends ----

    def leave(self):
        self.sock.close()
        self.peer.close()

    def reset(self, why, before=b""):
        """The connection is reset, for a reason that is counted."""
        Served.reset(self, before)
        expect(self.grown("reason:" + why) == 1, f"reason {why}")
        self.peer.close()

    def refused(self, what, why):
        """@what resets the connection."""
        self.peer.write(what)
        self.reset(why)

    def switched(self, what, why=""):
        """The next SWITCH: its offset and epoch; @host_ring, @host_cell: the rest."""
        said = struct.unpack("!QIIQI", self.record(SWITCH)[1][:28])
        expect(said[:2] == what, f"SWITCH {what}, not {said[:2]} {why}")
        self.host_ring, self.host_cell = said[2], said[3:]

    def credit(self, value, check=None):
        """The host is told so of our ring."""
        check = ~value & (1 << 64) - 1 if check is None else check
        self.end.say(CREDIT, self.host_ring, *self.host_cell,
                     struct.pack("!QQ", value, check))

    def on_broken_ring(self, tun_bytes=b"0123456789"):
        """The socket has switched to a ring of ours that can't be written."""
        self.peer.write(self.grant(1))
        self.switched((0, 1))
        self.sock.sendall(tun_bytes)
        epoch = struct.unpack("!I", self.record(BROKEN)[1][:4])[0]
        expect(epoch == 1, "BROKEN of this epoch")


@contextlib.contextmanager
def party(**how):
    """Another one than Linked, with links of its own; @how: of its End()."""
    kind = type("Party", (Linked,), {"instance": new_instance(), "end": None, "how": how})
    try:
        yield kind
    finally:
        kind.no_end()
