# SPDX-License-Identifier: GPL-2.0-only
"""An end of a link that is written here, with a real queue pair (rs_qp).

Documentation/links.rst tells what is said; here each word of it can be a lie.
"""
import json
import os
import socket
import struct
import subprocess
import time

from rs_peer import Failed, expect, siphash

MAGIC, VERSION, SIZE = 0x5253544c, 3, 48
DEPTH = 512
READY, DATA, DATA_WANT, CREDIT, DONE, FREED, RQ_CREDIT = 7, 1, 2, 3, 4, 5, 6
PROOF_REQ, PROOF_REP, KEY_ACTIVE, KEY_PASSIVE = 1, 2, 3, 5
CM_PORT = 4793
WAIT = 10                       # seconds


def gid(addr):
    """Of an address, as RoCE has it."""
    if ":" in addr:
        return socket.inet_pton(socket.AF_INET6, addr)
    return bytes(10) + b"\xff\xff" + socket.inet_aton(addr)


def words(secret):
    return struct.unpack("<QQ", secret)


class Refused(Failed):
    """What rs_qp was told to do has not come to be."""


class Qp:
    """rs_qp: a queue pair and memory."""

    def __init__(self, depth=DEPTH):
        self.process = subprocess.Popen(["rs_qp", "-d", str(depth)], text=True,
                                        stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.number = self.addr = self.rkey = None

    def ask(self, *what):
        print(*what, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().split()
        if not answer or answer[0] != "ok":
            raise Refused(f"rs_qp {what[0]} to work, not {' '.join(answer[1:])}")
        return answer[1:]

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
        self.host_port = CM_PORT

    def heard(self, hello):
        """The HELLO of the host."""
        self.host_port, = struct.unpack("!H", hello[24:26])
        self.host_instance = hello[32:48]
        self.host_token, = struct.unpack("!Q", hello[48:56])
        self.host_secret = hello[64:80]


class End:
    """Our end of a link with @host, for @ticket.

    What a case wants to be a lie it says by @lies: slot, depth, link_id, key, token,
    own_token, version, proof, gids, qpns (as we pretend to see them).
    """
    next_id = 1

    def __init__(self, ticket, host, ours=None, depth=DEPTH, **lies):
        self.ticket, self.host, self.ours = ticket, host, ours or host
        self.lies, self.depth = lies, depth
        self.qp = Qp(depth)
        self.id = lies.get("link_id", End.next_id)
        End.next_id += 1
        self.half = struct.unpack("!Q", os.urandom(8))[0]
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
        """Of the messages, as whoever is @active; @qpns: ours and the host's."""
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

    def accept(self, seconds=WAIT):
        """We are the passive side."""
        theirs, req = self.qp.made(self.qp.ask("await", int(seconds * 1000)))
        theirs, req = int(theirs), bytes.fromhex(req)[:SIZE]
        ours = self.qp.number
        self.host_id, = struct.unpack("!I", req[24:28])
        self.lies.setdefault("slot", req[5])
        asked = self.proof(PROOF_REQ, False, req[:-8] + bytes(8), bytes(SIZE),
                           (0, theirs))
        expect(req[-8:] == struct.pack("!Q", asked), "a REQ that is proven")
        proof = self.proof(PROOF_REP, False, req, self.hello(), (ours, theirs))
        rep = self.hello(self.lies.get("proof", proof))
        self.qp.ask("accept", rep.hex())
        self.keys(False, req, rep, (ours, theirs))
        return self

    def ready(self):
        self.say(READY)
        self.hear(READY)
        return self

    def close(self):
        self.qp.close()

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
            if str(err).endswith("not time"):
                return None
            raise
        self.returned += 1
        if self.returned == self.depth // 4 and "rq_credit" not in self.lies:
            self.say(RQ_CREDIT, self.returned)
            self.returned = 0
        return value >> 28, value & 0xfffff, length

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
            return self.qp.ask("state") == ["3"]
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


def until(done, what, seconds=WAIT):
    end = time.monotonic() + seconds
    while not done():
        expect(time.monotonic() < end, what)
        time.sleep(0.05)
