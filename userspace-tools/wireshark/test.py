#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Has tshark read a capture with what Documentation/protocol.rst describes, in TAP.

The bytes are put together here from that text, not by the module's code.
"""
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(1, os.path.join(os.path.dirname(__file__), "../../selftests/programs"))
import tap

HERE = os.path.dirname(os.path.abspath(__file__))
SYN, ACK, PSH = 2, 16, 8
NONCE = bytes.fromhex("abcdef98765432")


def option(role, length=12):
    return struct.pack(">BBHB", 254, length, 0x5253, 2 << 4 | role) + NONCE


def hello(role, addresses=()):
    return struct.pack(">8sHBBB7sIHHI16sQQ16s", b"\xd5RSTRM\r\n", 80 + 16 * len(addresses),
                       2, 2, role, NONCE, 9, 4793, len(addresses), 0, b"instance-of-host",
                       0x1122334455667788, 65536, b"secret-of-stream") + b"".join(addresses)


def record(number, payload=b"", flags=0):
    return struct.pack(">BBHI", number, flags, 0, len(payload)) + payload


class Capture:
    """One TCP connection as it would be on the wire."""

    def __init__(self):
        self.packets = []
        self.next = {True: 1000, False: 5000}

    def segment(self, client, flags, payload=b"", options=b""):
        ports = (40000, 6379) if client else (6379, 40000)
        hosts = (b"\x0a\x4d\0\1", b"\x0a\x4d\0\2")[::1 if client else -1]
        options += b"\1" * (-len(options) % 4)
        tcp = struct.pack(">HHIIBBHHH", *ports, self.next[client], self.next[not client],
                          (20 + len(options)) // 4 << 4, flags, 1000, 0, 0) + options + payload
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, *hosts)
        self.packets.append(ip + tcp)
        self.next[client] += len(payload) + (1 if flags & SYN else 0)

    def write(self, name):
        with open(name, "wb") as out:
            out.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 101))
            for n, packet in enumerate(self.packets):
                out.write(struct.pack("<IIII", n, 0, len(packet), len(packet)) + packet)


def connection():
    cap = Capture()
    cap.segment(True, SYN, options=b"\2\4\5\xb4" + option(1))
    cap.segment(False, SYN | ACK, options=b"\2\4\5\xb4" + option(2))
    cap.segment(True, ACK, options=b"\1\1" + option(3))
    # one HELLO in two segments, cut before its length; the other one with an address
    said = hello(1)
    cap.segment(True, ACK | PSH, said[:9], options=option(3))
    cap.segment(True, ACK | PSH, said[9:])
    cap.segment(False, ACK | PSH, hello(2, [bytes(10) + b"\xff\xff\x0a\x4e\0\2"]))
    # several records in a segment, one over three
    cap.segment(True, ACK | PSH, record(1, b"hello") + record(9, struct.pack(">Q", 3)))
    data = record(1, bytes(3000))
    for at in range(0, len(data), 1400):
        cap.segment(True, ACK | PSH, data[at:at + 1400])
    cap.segment(False, ACK | PSH, record(2, struct.pack(">QQ", 3005, 68541)) + record(
        3, struct.pack(">IIIIQIIQ", 1, 7, 8, 0x99, 0xfeedbeef, 32768, 0, 0x1234)) + record(10))
    cap.segment(True, ACK | PSH, record(4, struct.pack(">QIIQIIQ", 3005, 1, 5, 0xcafe, 6, 0, 7)))
    cap.segment(False, ACK | PSH, record(5, struct.pack(">II", 1, 0)))
    cap.segment(True, ACK | PSH, record(11, struct.pack(">II", 1, 0)))
    cap.segment(True, ACK | PSH, record(6, struct.pack(">II", 1, 0)))
    cap.segment(False, ACK | PSH, record(7, struct.pack(">IIQ", 1, 0, 100)))
    cap.segment(True, ACK | PSH, record(4, struct.pack(">QIIQIIQ", 3105, 0, 0, 0, 0, 0, 0)))
    cap.segment(True, ACK | PSH, record(8, struct.pack(">Q", 3105)))
    # what is unknown and may be, what is not, what is malformed
    cap.segment(True, ACK | PSH, record(0x40, bytes(16)))
    cap.segment(True, ACK | PSH, record(0x80))
    cap.segment(True, ACK | PSH, record(2, bytes(8)))
    cap.segment(True, ACK | PSH, record(1, b"x", flags=1))
    return cap


def spans():
    """Records, a span that goes on in another segment, a further one, HELLO before its end."""
    cap = Capture()
    cap.segment(True, SYN, options=b"\2\4\5\xb4" + option(1))
    cap.segment(False, SYN | ACK, options=b"\2\4\5\xb4" + option(2))
    cap.segment(True, ACK | PSH, hello(1), options=option(3))
    cap.segment(False, ACK | PSH, hello(2))
    cap.segment(True, ACK | PSH, record(1, b"hello") + record(12, struct.pack(">Q", 1000)) +
                bytes(100))
    cap.segment(True, ACK | PSH, bytes(900) + record(12, struct.pack(">Q", 500)) + b"x" * 50)
    cap.segment(False, ACK | PSH, record(12, struct.pack(">Q", 500)))
    cap.segment(True, ACK | PSH, b"y" * 20 + hello(1) + record(1, b"more"))
    return cap


def short_pieces(n):
    """Preludes and spans of which a segment has but a few bytes: first, last, between records."""
    cap = Capture()
    cap.segment(True, SYN, options=b"\2\4\5\xb4" + option(1))
    cap.segment(False, SYN | ACK, options=b"\2\4\5\xb4" + option(10))
    cap.segment(True, ACK | PSH, b"p" * n)
    cap.segment(True, ACK | PSH, b"q" * n + hello(1) + record(1, b"hello"), options=option(3))
    cap.segment(False, ACK | PSH, hello(2) + record(1, b"hi"))
    cap.segment(True, ACK | PSH, record(12, struct.pack(">Q", 100 + n)) + bytes(100))
    cap.segment(True, ACK | PSH, bytes(n) + record(1, b"on") +
                record(12, struct.pack(">Q", n)) + b"x" * n + record(1, b"and on"))
    cap.segment(True, ACK | PSH, record(12, struct.pack(">Q", n + 20)) + b"y" * n)
    cap.segment(True, ACK | PSH, b"y" * 20 + record(1, b"end"))
    # a header in two segments
    last = record(8, struct.pack(">Q", 100))
    cap.segment(True, ACK | PSH, record(1, b"cut") + last[:n])
    cap.segment(True, ACK | PSH, last[n:])
    return cap


def malformed_span(n):
    """PLAIN with a payload of @n bytes, which begins no span."""
    cap = Capture()
    cap.segment(True, SYN, options=b"\2\4\5\xb4" + option(1))
    cap.segment(False, SYN | ACK, options=b"\2\4\5\xb4" + option(2))
    cap.segment(True, ACK | PSH, hello(1), options=option(3))
    cap.segment(False, ACK | PSH, hello(2))
    cap.segment(True, ACK | PSH, record(12, (bytes(7) + b"\x09\0")[:n]) + record(1, b"hello"))
    return cap


def other():
    """Plain TCP, with an option of another length."""
    cap = Capture()
    cap.segment(True, SYN, options=option(1, 8)[:4].replace(b"\xfe\x08", b"\xfe\x04"))
    cap.segment(True, ACK | PSH, b"\xd5RSTRM, but not really")
    return cap


def tshark(cap, *args):
    with tempfile.TemporaryDirectory() as tmp:
        name = os.path.join(tmp, "capture")
        cap.write(name)
        return subprocess.run(["tshark", "-X", "lua_script:" + os.path.join(HERE, "rdmastream.lua"),
                               "-n", "-r", name, *args], check=True, text=True,
                              capture_output=True, timeout=120).stdout


def fields(cap, select, *names):
    """For each packet that fits, its values; several of a field are joined by commas."""
    args = [arg for name in names for arg in ("-e", name)]
    return [line.split("\t") for line in
            tshark(cap, "-Y", select, "-T", "fields", *args).splitlines()]


def infos(cap):
    out = tshark(cap, "-Y", "rdmastream", "-T", "fields", "-e", "_ws.col.Info")
    return [line.strip() for line in out.splitlines()]


CASES = [
    ("the option, in each segment that has it",
     lambda: fields(connection(), "rdmastream_option", "frame.number", "rdmastream_option.role",
                    "rdmastream_option.version", "rdmastream_option.nonce"),
     [["1", "1", "2", "abcdef98765432"], ["2", "2", "2", "abcdef98765432"],
      ["3", "3", "2", "abcdef98765432"], ["4", "3", "2", "abcdef98765432"]]),
    ("HELLO, cut and whole",
     lambda: fields(connection(), "rdmastream.hello.magic", "frame.number",
                    "rdmastream.hello.role", "rdmastream.hello.len", "rdmastream.hello.nonce",
                    "rdmastream.hello.cm_port", "rdmastream.hello.token",
                    "rdmastream.hello.window", "rdmastream.hello.address"),
     [["5", "1", "80", "abcdef98765432", "4793", "0x1122334455667788", "65536", ""],
      ["6", "2", "96", "abcdef98765432", "4793", "0x1122334455667788", "65536",
       "::ffff:10.78.0.2"]]),
    ("bits of caps",
     lambda: [fields(connection(), f"rdmastream.hello.caps.{name} == {value}", "frame.number")
              for name, value in (("ib", 1), ("urg", 0), ("drained", 0), ("plain", 1),
                                  ("iwarp", 0))],
     [[["5"], ["6"]]] * 5),
    ("each record, as its line says it",
     lambda: infos(connection()),
     ["HELLO", "HELLO", "DATA 5 URG at 3", "DATA 3000",
      "ACK consumed 3005 limit 68541 GRANT epoch 1 size 32768 LINK",
      "SWITCH to ring, epoch 1 at 3005", "REVOKE epoch 1", "STOPPED epoch 1", "BROKEN epoch 1",
      "RESUME epoch 1 arrived 100", "SWITCH to tcp at 3105", "FIN at 3105", "unknown",
      "unknown (malformed)", "ACK (malformed)", "DATA (malformed)"]),
    ("spans between records",
     lambda: infos(spans()),
     ["HELLO", "HELLO", "DATA 5 PLAIN 1000 span 100", "span 900 PLAIN 500 span 50", "PLAIN 500",
      "span 20 HELLO DATA 4"]),
    *((f"pieces of {n} bytes",
       lambda n=n: infos(short_pieces(n)),
       [f"prelude {n}", f"prelude {n} HELLO DATA 5", "HELLO DATA 2", f"PLAIN {100 + n} span 100",
        f"span {n} DATA 2 PLAIN {n} span {n} DATA 6", f"PLAIN {20 + n} span {n}",
        "span 20 DATA 3", "DATA 3", "FIN at 100"]) for n in (1, 7, 8)),
    *((f"a malformed PLAIN of {n} bytes",
       lambda n=n: infos(malformed_span(n)),
       ["HELLO", "HELLO", "PLAIN (malformed) DATA 5"]) for n in (0, 7, 9)),
    ("the fields of GRANT",
     lambda: fields(connection(), "rdmastream.type == 3", "rdmastream.link", "rdmastream.ring",
                    "rdmastream.rkey", "rdmastream.addr", "rdmastream.proof"),
     [["7", "8", "0x00000099", "0x00000000feedbeef", "0x0000000000001234"]]),
    ("the fields of SWITCH",
     lambda: fields(connection(), "rdmastream.type == 4 && rdmastream.epoch == 1",
                    "rdmastream.offset", "rdmastream.ring", "rdmastream.addr", "rdmastream.rkey",
                    "rdmastream.proof"),
     [["3005", "5", "0x000000000000cafe", "0x00000006", "0x0000000000000007"]]),
    ("what is malformed",
     lambda: fields(connection(), "rdmastream.malformed", "rdmastream.type"),
     [["128"], ["2"], ["1"]]),
    ("other connections are not touched",
     lambda: [len(fields(other(), "rdmastream", "frame.number")),
              fields(other(), "rdmastream_option.malformed", "frame.number")],
     [0, [["1"]]]),
]


def main():
    for name, look, expected in CASES:
        try:
            seen = look()
        except (OSError, subprocess.SubprocessError) as err:
            seen = f"{err}: {getattr(err, 'stderr', '')}"
        tap.ok(seen == expected, name, f"expected {expected}\nseen     {seen}")
    return tap.done()


sys.exit(main())
