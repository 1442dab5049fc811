#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A peer that ends the prelude in every possible way.  Prints TAP.

A case passes if the program gets TCP's bytes or a clear error, in time, and
never a byte too many or too few.  Needs root, the module, hello_timeout_ms=3000,
ring_mode=0.

rs_prelude [PATTERN]: the cases whose names have PATTERN in them.
"""
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

from rs_end import setting
from rs_peer import (ACK, ACK_REC, ANSWER, CAP_PLAIN, CAP_RDMA, DATA, END, FIN, GRANT, HELLO, LIMIT, MAGIC,
                     NONCE, PEER, PLAIN, PSH, ROLE_CONFIRM, ROLE_SYN, ROLE_SYNACK, RST, SWITCH,
                     URG, Peer, Served, chosen, drain, end, expect, found, hello, nonce_of,
                     option, our_socket, plain, read_data, read_hello, record, role_nonce,
                     role_of, run)
from streams import IPPROTO_RDMASTREAM, receive, unread

PRELUDE = 16384
BIT = 8                         # in the option's role
SOL, EAGER = IPPROTO_RDMASTREAM, 2
TCP_INQ = 36                    # also the type of its message
# where no HELLO may be seen
FULL = bytes(i % 251 & 0x7f for i in range(PRELUDE))


def begun(tun, confirm=option(ROLE_CONFIRM | BIT), **kwargs):
    return Served(tun, option(ROLE_SYN | BIT), confirm, **kwargs)


def sender(sock, data):
    thread = threading.Thread(target=sock.sendall, args=(data,), daemon=True)
    thread.start()
    return thread


def reaches_end(tun, extra=b"beyond"):
    """The host sends HELLO after its prelude.  Return: the stream; the rest of it follows."""
    served = begun(tun)
    served.sock.sendall(FULL + extra)
    expect(served.peer.read(PRELUDE) == FULL, "a plain prelude")
    expect(read_hello(served.peer).startswith(MAGIC), "HELLO behind it")
    expect(read_data(served.peer, len(extra)) == extra, "then records")
    return served


# ---- our listener, the peer connects ----

def server_plain(tun):
    served = begun(tun)
    expect(role_of(served.answer) == ROLE_SYNACK | BIT, "agreement")
    served.echo_plain()


def server_speaks_first(tun):
    served = begun(tun)
    served.sock.sendall(b"banner")
    expect(served.peer.read(6) == b"banner", "our bytes, nothing before them")
    served.echo_plain()


def server_without(tun):
    served = Served(tun, option(ROLE_SYN), option(ROLE_CONFIRM), late=hello(ROLE_SYN))
    expect(role_of(served.answer) == ROLE_SYNACK, "the old way")
    served.echo_framed()


def server_answers_hello(tun):
    """The peer's HELLO after its prelude is answered at once, within the own prelude."""
    for said in (b"", b"said"):
        served = begun(tun, late=FULL[:9])
        if said:
            served.sock.sendall(said)
            expect(served.peer.read(4) == said, "our bytes")
        served.peer.write(FULL[9:] + hello(ROLE_SYN) + record(DATA, b"more"))
        expect(read_hello(served.peer).startswith(MAGIC), "HELLO at once")
        expect(receive(served.sock, PRELUDE + 4) == FULL + b"more", "all bytes")
        served.sock.sendall(b"answer")
        expect(read_data(served.peer, 6) == b"answer", "our bytes in DATA")


def server_answer_late(tun):
    """After an outage, TCP continues, and so does the connection."""
    served = reaches_end(tun)
    time.sleep(8)       # twice hello_timeout_ms, and more
    served.peer.write(hello(ROLE_SYN) + record(DATA, b"framed"))
    expect(receive(served.sock, 6) == b"framed", "what is in a record")


def server_answer_unread(tun):
    """The peer's answer follows data that the program reads late."""
    served = reaches_end(tun)
    said = 6 * FULL
    with setting("hello_timeout_ms", 100):
        served.peer.write(said + hello(ROLE_SYN))
        time.sleep(9)       # more than 48 times that, and the timer that runs
        expect(receive(served.sock, len(said)) == said, "all bytes")
    served.peer.write(record(DATA, b"framed"))
    expect(receive(served.sock, 6) == b"framed", "what is in a record")


def server_reaches_end(tun):
    served = reaches_end(tun)
    served.peer.write(b"raw" + hello(ROLE_SYN) + record(DATA, b"framed"))
    expect(receive(served.sock, 9) == b"rawframed", "the peer's bytes")


def server_finds_hello(tun):
    """HELLO is found in data that looks similar, even if it arrives in pieces."""
    for size in (1400, 7, 1):
        served = reaches_end(tun)
        tricks = served.peer.said(
            b"\xd5" + MAGIC[:7] + b"\xd5\xd5" + MAGIC + b"x" * 4 +
            hello(ROLE_SYN, nonce=1) + hello(ROLE_SYN, nonce=NONCE) + hello(ROLE_SYNACK)
            + MAGIC[:3])
        said = tricks + served.peer.said(hello(ROLE_SYN)) + record(DATA, b"framed")
        for at in range(0, len(said), size):
            served.peer.write(said[at:at + size])
        expect(receive(served.sock, len(tricks) + 6) == tricks + b"framed",
               f"the peer's bytes, {size} at a time")
        served.sock.close()


def server_finds_hello_at_end(tun):
    for before in (FULL, FULL[:-3] + MAGIC[:3], FULL[:-8] + MAGIC):
        served = reaches_end(tun)
        served.peer.write(before + hello(ROLE_SYN) + record(DATA, b"framed"))
        expect(receive(served.sock, PRELUDE + 6) == before + b"framed", "all bytes")
        served.sock.close()


def server_hello_is_missing(tun):
    """A peer that does not answer HELLO is reset after a timeout."""
    served = reaches_end(tun)
    said = FULL + b"no HELLO here but bytes of a program"
    with setting("hello_timeout_ms", 100):
        served.peer.write(said)
        data, err = drain(served.sock)
    expect(data == said and err == 110, f"ETIMEDOUT, not {err}")


def server_hello_is_late(tun):
    served = reaches_end(tun)
    with setting("hello_timeout_ms", 100):
        served.peer.write(b"still plain")
        data, err = drain(served.sock)
    expect(data == b"still plain" and err == 110, f"ETIMEDOUT, not {err}")


def server_hello_is_bad(tun):
    reaches_end(tun)
    for bad in (hello(ROLE_SYN, size=10), hello(ROLE_SYN, versions=(9, 9))):
        begun(tun, late=FULL + bad).reset(FULL)


def server_plain_for_good(tun):
    """If the peer continues without HELLO first, so does this host."""
    for extra in (b"x", b"no HELLO", MAGIC + bytes(64), bytes(9000)):
        served = begun(tun, late=FULL + extra)
        expect(receive(served.sock, PRELUDE + len(extra)) == FULL + extra, "all bytes")
        served.sock.sendall(FULL + extra + b"answer")
        expect(served.peer.read(PRELUDE + len(extra) + 6) == FULL + extra + b"answer",
               "plain bytes")
        served.echo_plain()


def server_part_of_hello(tun):
    """An incomplete HELLO is given to the program as data."""
    for n in (1, 7, 8, 71):
        said = FULL + hello(ROLE_SYN)[:n]
        with setting("hello_timeout_ms", 3000 if n < 8 else 100):
            served = begun(tun, late=said)
            said = served.peer.said(said)
            began = time.monotonic()
            expect(receive(served.sock, len(said)) == said, "the bytes, after a while")
        expect(2 < time.monotonic() - began < 8, "that of hello_timeout_ms, or 48 times")
        served.echo_plain()


def server_part_of_hello_before_ours(tun):
    """A peer that has not received our HELLO does not answer it: nothing is held back."""
    served = begun(tun)
    served.sock.sendall(FULL + b"more")
    served.peer.write(b"answer" + MAGIC[:1])    # acknowledges nothing of that
    expect(receive(served.sock, 7) == b"answer" + MAGIC[:1], "all bytes")
    expect(served.peer.read(PRELUDE) == FULL, "a plain prelude")
    read_hello(served.peer)
    served.peer.write(b"and" + hello(ROLE_SYN) + record(DATA, b"then"))
    expect(receive(served.sock, 7) == b"andthen", "what follows, without HELLO")
    expect(read_data(served.peer, 4) == b"more", "our bytes in records")


def server_hello_in_parts(tun):
    """After an outage within HELLO, no part of it is given to the program."""
    for n in (8, 71):
        said = FULL + hello(ROLE_SYN)
        served = begun(tun, late=said[:PRELUDE])
        said = served.peer.said(said)[PRELUDE:] + record(DATA, b"framed")
        served.peer.write(said[:n])
        time.sleep(4)       # more than hello_timeout_ms
        served.peer.write(said[n:])
        expect(receive(served.sock, PRELUDE + 6) == FULL + b"framed", "no byte of HELLO")


def server_part_of_hello_then_end(tun):
    for n in (1, 8, 71):
        said = FULL + hello(ROLE_SYN)[:n]
        served = begun(tun, late=said)
        said = served.peer.said(said)
        served.peer.end()
        expect(drain(served.sock) == (said, 0), "TCP's bytes")
        served.sock.close()


def server_peer_ends(tun):
    """The peer ends in its prelude: the response is plain TCP, however long."""
    served = begun(tun, late=b"question")
    served.peer.end()
    expect(drain(served.sock) == (b"question", 0), "the question")
    sender(served.sock, FULL * 3)
    expect(served.peer.read(3 * PRELUDE) == FULL * 3, "plain bytes")
    served.sock.close()
    expect(served.peer.until(lambda: served.peer.fin), "FIN")
    expect(not served.peer.data, "no byte more")


def server_end_crosses_hello(tun):
    """The peer's FIN crosses HELLO: records are sent in one direction, without a window."""
    served = reaches_end(tun)
    served.peer.write(b"bye")
    served.peer.end()
    expect(drain(served.sock) == (b"bye", 0), "the peer's last bytes")
    more = os.urandom(300000)
    thread = sender(served.sock, more)
    expect(read_data(served.peer, len(more)) == more, "records")
    thread.join(LIMIT)
    served.sock.close()
    expect(served.peer.until(lambda: served.peer.fin), "FIN")
    expect(served.peer.data == end(PRELUDE + 6 + len(more)), "the stream's FIN before")


def server_fin_crosses_hello(tun):
    """This host's FIN crosses the peer's HELLO."""
    served = begun(tun)
    served.sock.sendall(b"bye")
    served.sock.shutdown(socket.SHUT_WR)
    expect(served.peer.read(3) == b"bye" and served.peer.until(lambda: served.peer.fin),
           "our last bytes and FIN")
    said = FULL + hello(ROLE_SYN)
    for _ in range(5):
        said += record(DATA, FULL[:8000])
    served.peer.write(said)
    expect(receive(served.sock, PRELUDE + 40000) == FULL + FULL[:8000] * 5, "all bytes")
    served.peer.write(end(PRELUDE + 40000))
    served.peer.end()
    expect(drain(served.sock) == (b"", 0), "the end")
    expect(not served.peer.data, "no byte more")
    served.sock.close()


def server_fin_crosses_hello_truncated(tun):
    served = begun(tun)
    for acknowledged in (False, True):
        served = begun(tun)
        served.sock.shutdown(socket.SHUT_WR)
        if acknowledged:
            expect(served.peer.until(lambda: served.peer.fin), "FIN")
        served.peer.write(FULL + hello(ROLE_SYN) + record(DATA, b"part"))
        served.peer.end()
        data, err = drain(served.sock)
        expect(data == FULL + b"part" and err == 104, f"ECONNRESET, not {err}")
        served.sock.close()


def server_closed(tun):
    """As with TCP, data for a closed socket is answered with RST."""
    for said in (b"late", FULL + hello(ROLE_SYN)):
        served = begun(tun)
        served.sock.close()
        expect(served.peer.until(lambda: served.peer.fin), "FIN")
        served.peer.write(said)
        expect(served.peer.until(lambda: served.peer.rst), "RST")


def server_unconfirmed(tun):
    """An unconfirmed server does not send HELLO, and continues without records."""
    served = begun(tun, b"")
    sender(served.sock, FULL * 2)
    expect(served.peer.read(2 * PRELUDE) == FULL * 2, "plain bytes")
    served.echo_plain()


def server_unconfirmed_hello(tun):
    served = begun(tun, b"", late=FULL + hello(ROLE_SYN) + record(DATA, b"framed"))
    expect(receive(served.sock, PRELUDE + 6) == FULL + b"framed", "all bytes")
    expect(read_hello(served.peer).startswith(MAGIC), "HELLO")


def server_unconfirmed_late(tun):
    served = begun(tun, b"")
    sender(served.sock, FULL * 2)
    expect(served.peer.read(2 * PRELUDE) == FULL * 2, "plain bytes")
    served.peer.write(FULL + hello(ROLE_SYN) + record(DATA, b"framed"))
    expect(read_hello(served.peer).startswith(MAGIC), "HELLO, where we are")
    expect(receive(served.sock, PRELUDE + 6) == FULL + b"framed", "all bytes")


def server_unconfirmed_closes(tun):
    served = begun(tun, b"")
    served.sock.sendall(FULL * 2)
    served.sock.close()
    expect(served.peer.read(2 * PRELUDE) == FULL * 2, "plain bytes")
    expect(served.peer.until(lambda: served.peer.fin), "FIN")


def server_urgent_segment_repeated(tun):
    """The segment with an urgent byte arrives twice, the first time out of order."""
    served = begun(tun)
    peer = served.peer
    seq = peer.seq
    peer.seq = seq + 4
    peer.segment(ACK | PSH | URG, b"!", urgent=1)
    peer.seq = seq
    peer.segment(ACK | PSH | URG, b"four", urgent=5)
    peer.seq = seq + 4
    peer.segment(ACK | PSH | URG, b"!", urgent=1)
    peer.segment(ACK | PSH, b"more")
    expect(receive(served.sock, 8) == b"fourmore", "the other bytes")
    peer.end()
    expect(drain(served.sock) == (b"", 0), "the end")


# ---- spans: without records, for want of a ring ----

INSTANCE = bytes(range(16))


def again(**kwargs):
    """A HELLO of the peer that repeats its first one."""
    return hello(ROLE_SYN, **{"instance": INSTANCE, "caps": CAP_PLAIN, **kwargs})


def reasons(name):
    """How often the host has counted a reason."""
    out = subprocess.run(["rsctl", "-s", "-o", "stats"], check=True, text=True,
                         capture_output=True).stdout
    return sum(int(line.split()[1]) for line in out.splitlines()
               if line.startswith(f"reason:{name} "))


class Spanned:
    """A connection with HELLOs, behind the peer's prelude; the peer knows PLAIN."""

    def __init__(self, tun, **kwargs):
        self.served = begun(tun, late=FULL)
        self.peer, self.sock = self.served.peer, self.served.sock
        self.peer.write(again(**kwargs))
        expect(read_hello(self.peer).startswith(MAGIC), "HELLO")
        expect(receive(self.sock, PRELUDE) == FULL, "the prelude")
        self.sent = 0

    def record(self):
        kind, _, _, size = struct.unpack("!BBHI", self.peer.read(8))
        return kind, self.peer.read(size)

    def left(self):
        """The host sends PLAIN.  Return: length of the span, and the bytes in records before it."""
        before = b""
        while True:
            kind, payload = self.record()
            if kind == PLAIN:
                return struct.unpack("!Q", payload)[0], before
            expect(kind in (DATA, ACK_REC), f"PLAIN, not {kind}")
            before += payload if kind == DATA else b""

    def leaves(self):
        """The host leaves records by itself, once it knows that there will be no ring."""
        stop = time.monotonic() + LIMIT
        kind = DATA
        while kind != PLAIN:
            expect(time.monotonic() < stop, "PLAIN in time")
            self.sock.sendall(b"ours")
            kind, payload = self.record()
            while kind == ACK_REC:
                kind, payload = self.record()
        expect(self.peer.read(4) == b"ours", "plain bytes")
        self.sent = 4
        return struct.unpack("!Q", payload)[0]

    def comes_back(self):
        """A GRANT that the host cannot use is answered, even from within a span."""
        self.peer.write(record(GRANT, struct.pack("!IIIIQIIQ", 1, 1, 1, 1, 4096, 65536, 0, 0)))
        expect(read_hello(self.peer).startswith(MAGIC), "HELLO at once")
        kind, payload = self.record()
        expect(kind == SWITCH and payload[8:12] == bytes(4), "the GRANT refused")

    def gets(self, data):
        expect(receive(self.sock, len(data)) == data, "the peer's bytes")

    def refused(self, said, reason, before=b""):
        """The host resets the connection because of this, and counts the reason."""
        was = reasons(reason)
        self.peer.write(said)
        self.served.reset(before)
        expect(reasons(reason) == was + 1, f"the reason {reason}")


def span_of_ours(tun):
    """A span of the host is plain, the next ones are longer; the peer need not have answered."""
    span = Spanned(tun)
    size = span.leaves()
    expect(size == 65536, "64 KiB")
    more = os.urandom(65536 * 4)
    thread = sender(span.sock, more)
    rest = size - span.sent
    expect(span.peer.read(rest) == more[:rest], "the rest of the span")
    size, before = span.left()
    expect(size == 131072 and not before, "PLAIN again, twice as long")
    expect(span.peer.read(size) == more[rest:rest + size], "that span")
    span.left()
    expect(span.peer.read(len(more) - rest - size) == more[rest + size:], "the last bytes")
    thread.join(LIMIT)
    span.peer.write(record(DATA, b"in a record") + plain(5) + b"plain")
    span.gets(b"in a recordplain")
    span.peer.end()
    expect(drain(span.sock) == (b"", 0), "the end")


def span_of_peer(tun):
    """The host answers a span with one, although it has nothing to send."""
    span = Spanned(tun)
    span.peer.write(plain(5) + b"plain")
    span.gets(b"plain")
    expect(span.left()[1] == b"", "PLAIN")
    span.sock.sendall(b"answer")
    expect(span.peer.read(6) == b"answer", "plain bytes")
    span.peer.write(plain(1 << 40))
    for _ in range(9):
        span.peer.write(FULL)
        span.gets(FULL)
    span.peer.end()
    expect(drain(span.sock) == (b"", 0), "the end")
    span.sock.close()
    expect(span.peer.until(lambda: span.peer.fin) and not span.peer.data, "FIN, no byte more")


def span_shutdown(tun):
    """Data that arrived before both directions were shut down can be read, also in spans."""
    span = Spanned(tun)
    span.peer.write(plain(65536) + 3 * FULL)
    span.gets(3 * FULL)
    span.peer.write(FULL + plain(65536) + FULL)
    until_unread(span.sock, 2 * PRELUDE)
    span.sock.shutdown(socket.SHUT_RDWR)
    span.gets(2 * FULL)
    span.peer.write(b"more")
    expect(span.peer.until(lambda: span.peer.rst), "RST for what comes later")


def span_in_pieces(tun):
    """Spans that arrive in pieces; bytes of the program look like HELLO."""
    for size in (1, 7, 8, 23):
        span = Spanned(tun)
        said, bytes_ = b"", b""
        for n in range(1, 9):
            text = b"x" * n + MAGIC[:n]
            said += plain(len(text)) + text
            bytes_ += text
        said += again() + record(DATA, b"framed")
        for at in range(0, len(span.peer.said(said)), size):
            span.peer.write(span.peer.said(said)[at:at + size])
        span.gets(bytes_ + b"framed")
        span.left()
        expect(read_hello(span.peer).startswith(MAGIC), "we come back, too")
        span.sock.close()


def span_looks_like_hello(tun):
    """Bytes like those of HELLO around its place, while the host looks for it."""
    for n in range(1, 9):
        for tail in (plain(4) + b"next" + again(), again()):
            for cut in (1, 3, 1400):
                span = Spanned(tun)
                span.leaves()
                span.comes_back()
                text = MAGIC[:n - 1] + b"." + MAGIC[:n]
                said = span.peer.said(plain(len(text)) + text + tail + record(DATA, b"framed"))
                for at in range(0, len(said), cut):
                    span.peer.write(said[at:at + cut])
                span.gets(text + (b"next" if tail[0] == PLAIN else b"") + b"framed")
                span.sock.close()
                span.peer.close()


def span_interrupted(tun):
    """A peer that knows that the host returns to records may leave its span before the end."""
    span = Spanned(tun)
    span.leaves()
    span.comes_back()
    tricks = span.peer.said(MAGIC * 2 + hello(ROLE_SYN, nonce=1) + hello(ROLE_SYNACK) + MAGIC[:3])
    span.peer.write(plain(1 << 30) + tricks + again() + record(DATA, b"framed"))
    span.gets(tricks + b"framed")
    span.sock.sendall(b"more")
    expect(span.left()[0] == 131072 and span.peer.read(4) == b"more", "a span again")


def span_hello_not_due(tun):
    """In a span, the host looks for HELLO only when it can come."""
    span = Spanned(tun)
    said = span.peer.said(again()) * 2 + plain(9)
    span.peer.write(plain(len(said) + 1) + said)
    span.gets(said)
    span.peer.write(b"." + plain(4) + b"next")
    span.gets(b".next")


def span_rounds(tun):
    """More spans than a byte can count."""
    span = Spanned(tun)
    for _ in range(300):
        span.peer.write(plain(1) + b"." + again())
        span.left()
        expect(read_hello(span.peer).startswith(MAGIC), "HELLO")
    span.gets(b"." * 300)
    span.leaves()


def span_window(tun):
    """The window of a HELLO counts, however much has come before it."""
    span = Spanned(tun)
    span.peer.write(plain(1) + b"." + again(window=1 << 61) + record(DATA, b"framed"))
    span.gets(b".framed")


def span_not_agreed(tun):
    Spanned(tun, caps=0).refused(plain(5) + b"plain", "bad-record")
    served = Served(tun, option(ROLE_SYN), option(ROLE_CONFIRM),
                    late=again() + plain(5) + b"plain")
    served.reset()


def span_agreed_before(tun):
    """What the HELLO of the host has said counts, not a setting that has changed since."""
    served = reaches_end(tun)
    with setting("prelude", 0):
        served.peer.write(FULL + again() + plain(5) + b"plain")
        expect(receive(served.sock, PRELUDE + 5) == FULL + b"plain", "the peer's bytes")
    served.sock.close()


def span_malformed(tun):
    for bad in (plain(0), plain((1 << 40) + 1), plain((1 << 64) - 1),
                record(PLAIN, bytes(7)), record(PLAIN, bytes(7) + b"\1\0")):
        Spanned(tun).refused(bad + b"plain", "bad-record")


def span_and_record(tun):
    """Only PLAIN or HELLO may follow a span."""
    for bad in (record(DATA, b"framed"), record(ACK_REC, struct.pack("!QQ", 0, 1 << 20)),
                end(PRELUDE + 1), record(GRANT, bytes(40)), record(100, b"unknown"), bytes(16),
                plain(0), again(size=10), MAGIC + bytes(72)):
        was = reasons("bad-record") + reasons("bad-hello") + reasons("no-hello")
        span = Spanned(tun)
        span.peer.write(plain(1) + b"." + bad)
        span.served.reset(b".")
        expect(reasons("bad-record") + reasons("bad-hello") + reasons("no-hello") == was + 1,
               f"a reason for {bad}")


def span_too_early(tun):
    """PLAIN before the host has answered the last one, HELLO without a span, PLAIN behind FIN."""
    Spanned(tun).refused((plain(1) + b"." + again()) * 2, "bad-record", b"..")
    Spanned(tun).refused(again(), "bad-record")
    span = Spanned(tun)
    span.peer.write(end(PRELUDE) + plain(1))
    expect(span.peer.until(lambda: span.peer.rst), "RST")


def span_other_peer(tun):
    """After a span, HELLO must be from the same peer."""
    for other in ({"token": 78}, {"secret": b"x" * 16}, {"instance": b"y" * 16}):
        Spanned(tun).refused(plain(1) + b"." + again(**other), "bad-hello", b".")
    Spanned(tun).refused(plain(1) + b"." + again(versions=(9, 9)), "version", b".")


def span_cut(tun):
    """TCP's FIN ends the stream in a span or at its end, but not within what must follow."""
    for k in (0, 1, 8, 15):
        for mark in (plain(5), again()):
            span = Spanned(tun)
            span.peer.write(plain(4) + b"span" + span.peer.said(mark)[:k])
            span.peer.end()
            data, err = drain(span.sock)
            expect(data == b"span" and err == (104 if k else 0), f"not {data}, {err}, cut at {k}")
            span.sock.close()
    for text in b"span", b"span" + plain(65536) + b"x":
        span = Spanned(tun)
        span.peer.write(plain(4) + text)
        span.peer.segment(ACK | RST)
        data, err = drain(span.sock)
        whole = text[:4] + text[20:]
        expect(data == whole and err == 104, f"{whole} and ECONNRESET, not {data}, {err}")


def until_event(sock, events):
    poll = select.poll()
    poll.register(sock, events)
    got = dict(poll.poll(1000 * LIMIT)).get(sock.fileno(), 0)
    expect(got & events, f"event {events:#x} with {unread(sock)} bytes unread")


def until_unread(sock, n):
    stop = time.monotonic() + LIMIT
    while unread(sock) != n:
        expect(time.monotonic() < stop, f"{n} bytes to read, not {unread(sock)}")
        time.sleep(0.01)


def span_lowat(tun):
    """SO_RCVLOWAT counts bytes that are queued, in the span, and behind its end, but not PLAIN."""
    text = os.urandom(40000)
    for peek_first in (True, False):
        span = Spanned(tun)
        span.peer.write(plain(25000) + text[:20000])
        until_unread(span.sock, 20000)
        if peek_first:
            span.sock.recv(39990, socket.MSG_PEEK)
        span.peer.write(text[20000:25000] + plain(65536) + text[25000:-10])
        until_unread(span.sock, 39990)
        if not peek_first:
            span.sock.recv(39990, socket.MSG_PEEK)
        span.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 32768)
        until_event(span.sock, select.POLLIN)
        span.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
        expect(receive(span.sock, 20000) == text[:20000], "what was before")
        span.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 20000)
        poll = select.poll()
        poll.register(span.sock, select.POLLIN)
        expect(not poll.poll(0), "no event for 19990 bytes and a PLAIN")
        span.peer.write(text[-10:])
        until_event(span.sock, select.POLLIN)
        span.gets(text[20000:])


def span_end_behind(tun):
    """Behind the end of an unread span, TCP_INQ counts bytes, and TCP's FIN is an event."""
    span = Spanned(tun)
    span.sock.setsockopt(socket.IPPROTO_TCP, TCP_INQ, 1)
    span.peer.write(plain(5) + b".span" + plain(65536) + b"x" * 10)
    until_unread(span.sock, 15)
    told = span.sock.recvmsg(1, 64)[1]
    expect(told == [(socket.IPPROTO_TCP, TCP_INQ, struct.pack("i", 14))], f"14 bytes, not {told}")
    span.peer.end()
    until_event(span.sock, select.POLLRDHUP)
    expect(drain(span.sock) == (b"span" + b"x" * 10, 0), "the peer's bytes, and the end")


def span_peer_ends(tun):
    """The peer ends in its span, before that of the host: the host can go on sending."""
    span = Spanned(tun)
    span.leaves()
    span.peer.write(plain(5) + b"span")
    span.peer.end()
    expect(drain(span.sock) == (b"span", 0), "the end")
    more = os.urandom(65536 - span.sent)
    thread = sender(span.sock, more)
    expect(span.peer.read(len(more)) == more, "plain bytes")
    thread.join(LIMIT)
    thread = sender(span.sock, FULL)
    expect(span.left()[0] == 131072 and span.peer.read(PRELUDE) == FULL, "a further span")
    thread.join(LIMIT)


def span_ends_unread(tun):
    """The peer ends before its HELLO, behind unread data: the host ends its stream with FIN."""
    span = Spanned(tun)
    span.leaves()
    span.comes_back()
    text = os.urandom(90000)
    span.peer.write(plain(1 << 20) + text)
    span.peer.end()
    span.sock.shutdown(socket.SHUT_WR)
    kind = ACK_REC
    while kind == ACK_REC:
        kind, _ = span.record()
    expect(kind == END, f"FIN, not {kind}")
    expect(drain(span.sock) == (text, 0), "the peer's bytes, and the end")


def span_without_answer(tun):
    """A peer that owes HELLO and sends ever more, unread, cannot make the host keep all of it."""
    span = Spanned(tun)
    span.leaves()
    span.comes_back()
    text = os.urandom(2 << 20)
    span.peer.write(plain(1 << 30) + text)
    most = max(span.sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF), 4 * 65536)
    kept = 0
    stop = time.monotonic() + LIMIT
    while kept <= 65536 and time.monotonic() < stop:
        kept = unread(span.sock)
        time.sleep(0.01)
    expect(65536 < kept <= most, f"up to {most} bytes to read, not {kept}")
    span.gets(text[:kept])


def span_grant_and_end(tun):
    """The peer sends GRANT, then FIN: records of the host continue without a window."""
    span = Spanned(tun)
    span.leaves()
    grant = record(GRANT, struct.pack("!IIIIQIIQ", 1, 1, 1, 1, 4096, 65536, 0, 0))
    span.peer.segment(ACK | PSH | FIN, grant + plain(4) + b"last")
    expect(drain(span.sock) == (b"last", 0), "the end")
    more = os.urandom(300000)
    thread = sender(span.sock, more)
    expect(read_hello(span.peer).startswith(MAGIC), "HELLO")
    expect(read_data(span.peer, len(more)) == more, "records")
    thread.join(LIMIT)


def span_answer_and_end(tun):
    """TCP has no room for the answer to PLAIN, and then the program ends."""
    with setting("ring_mode", 2), setting("ring_threshold", 1 << 30):
        span = Spanned(tun, window=1 << 20, caps=CAP_PLAIN | CAP_RDMA)     # there may be a ring
        answer_and_end(span)


def answer_and_end(span):
    span.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 30000)
    span.sock.setblocking(False)
    sent = span.sock.send(bytes(1 << 17))     # one record, of which TCP takes a part
    span.peer.write(plain(1) + b".")
    span.sock.setblocking(True)
    span.gets(b".")
    span.sock.shutdown(socket.SHUT_WR)
    expect(span.peer.until(lambda: span.peer.fin), "FIN")
    rest = sent - len(span.left()[1])
    expect(len(span.peer.data) == rest, f"{rest} bytes behind PLAIN, not {len(span.peer.data)}")


def span_mark(tun):
    """The urgent byte is in the span; segments with records before it carry the mark already."""
    for cut in (5, 16, 19, 20):
        span = Spanned(tun)
        span.leaves()
        said = plain(64) + b"abc!"
        span.peer.segment(ACK | PSH | URG, said[:cut], urgent=20)
        if said[cut:]:
            span.peer.segment(ACK | PSH | URG, said[cut:], urgent=20 - cut)
        span.peer.write(b"more")
        span.gets(b"abc")
        expect(span.sock.recv(1, socket.MSG_OOB) == b"!", "the urgent byte")
        span.gets(b"more")


def span_mark_in_next(tun):
    """The urgent byte is behind the end of a span that the program has yet to read."""
    span = Spanned(tun)
    span.leaves()
    span.peer.write(plain(2 * PRELUDE) + FULL + FULL[:-8])
    tail = FULL[-8:] + plain(64) + b"!more"
    span.peer.segment(ACK | PSH | URG, tail, urgent=25)
    span.gets(FULL * 2 + b"more")


def span_mark_far(tun):
    """The urgent byte is behind more than a window: it can be read before all other bytes."""
    span = Spanned(tun)
    span.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    text = os.urandom(65536)
    span.peer.write(plain(65536) + text + plain(65536) + text)
    span.peer.segment(ACK | PSH | URG, plain(65536) + b"!", urgent=17)
    until_event(span.sock, select.POLLPRI)
    expect(unread(span.sock) == 131072, f"131072 bytes before the mark, not {unread(span.sock)}")
    expect(span.sock.recv(1, socket.MSG_OOB) == b"!", "the urgent byte")
    span.gets(text * 2)


def span_mark_in_record(tun):
    span = Spanned(tun)
    was = reasons("bad-record")
    span.peer.segment(ACK | PSH | URG, record(DATA, b"framed"), urgent=10)
    span.served.reset(b"f")
    expect(reasons("bad-record") == was + 1, "the reason")


def span_mark_behind(tun):
    """An urgent byte in the record that follows a span is refused."""
    for urgent in (18, 24, 33):
        span = Spanned(tun)
        span.leaves()
        was = reasons("bad-record")
        span.peer.segment(ACK | PSH | URG, plain(1) + b"." + plain(4), urgent=urgent)
        span.served.reset(b".")
        expect(reasons("bad-record") == was + 1, "the reason")


def unsent(sock):
    return struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)))[0]


def span_outq(tun):
    """SIOCOUTQ in a span counts each byte of the program once."""
    span = Spanned(tun)
    span.leaves()
    span.peer.until(lambda: not unsent(span.sock))
    span.sock.sendall(b"x" * 1000)
    expect(unsent(span.sock) == 1000, f"1000, not {unsent(span.sock)}")
    with tempfile.TemporaryFile() as file:
        file.write(b"y" * 1000)
        file.flush()
        os.sendfile(span.sock.fileno(), file.fileno(), 0, 1000)
    expect(unsent(span.sock) == 2000, f"2000, not {unsent(span.sock)}")
    expect(span.peer.read(2000) == b"x" * 1000 + b"y" * 1000, "plain bytes")
    expect(span.peer.until(lambda: not unsent(span.sock)), "none")


# ---- our client ----

class Reached:
    """A client that has connected to the peer."""

    def __init__(self, tun, bit=BIT, eager=False):
        self.peer = Peer(tun)
        self.sock = our_socket()
        if eager:
            self.sock.setsockopt(SOL, EAGER, 1)
        thread = threading.Thread(target=self.sock.connect,
                                  args=((PEER, self.peer.port),), daemon=True)
        thread.start()
        self.asked = found(self.peer.accept(
            lambda asked: option(ROLE_SYNACK | bit, ANSWER)))
        expect(self.asked, "the option in our SYN")
        thread.join(LIMIT)

    def role(self):
        return self.asked[4] & 0xf

    def hello(self):
        return self.peer.said(hello(ROLE_SYNACK))


def client_plain(tun):
    reached = Reached(tun)
    expect(reached.role() == ROLE_SYN | BIT, "a prelude is offered")
    reached.sock.sendall(b"question")
    expect(reached.peer.read(8) == b"question", "our bytes, nothing before them")
    expect(found(reached.peer.opts) ==
           reached.peer.said(option(ROLE_CONFIRM | BIT)), "the option confirmed")
    reached.peer.write(b"answer")
    expect(receive(reached.sock, 6) == b"answer", "the peer's bytes")
    reached.sock.sendall(b"more")
    expect(reached.peer.read(4) == b"more", "our bytes")
    expect(not found(reached.peer.opts), "and no option any more")
    reached.peer.end()
    expect(drain(reached.sock) == (b"", 0), "the end")
    reached.sock.close()
    expect(reached.peer.until(lambda: reached.peer.fin), "FIN")
    expect(not reached.peer.data, "no byte more")


def client_refused(tun):
    reached = Reached(tun, 0)
    reached.sock.sendall(b"question")
    expect(read_hello(reached.peer).startswith(MAGIC), "HELLO first")


def client_eager(tun):
    reached = Reached(tun, 0, True)
    expect(reached.role() == ROLE_SYN, "no prelude is offered")
    expect(read_hello(reached.peer).startswith(MAGIC), "HELLO first")


def client_eager_option(_):
    sock = our_socket()
    for bad in (b"", b"\1", struct.pack("i", 2), struct.pack("i", -1)):
        try:
            sock.setsockopt(SOL, EAGER, bad)
            expect(False, "EINVAL")
        except OSError as err:
            expect(err.errno == 22, f"EINVAL, not {err.errno}")
    sock.setsockopt(SOL, EAGER, 1)
    sock.setsockopt(SOL, EAGER, 0)


def client_both_reach_end(tun):
    reached = Reached(tun)
    reached.peer.write(FULL + reached.hello() + record(DATA, b"theirs"))
    reached.sock.sendall(FULL + b"ours")
    data = reached.peer.read(PRELUDE + HELLO)
    at = data.index(MAGIC)
    expect(data[:at] == FULL[:at], "plain bytes")
    reached.peer.data = data[at:] + reached.peer.data
    read_hello(reached.peer)
    expect(read_data(reached.peer, PRELUDE + 4 - at) == FULL[at:] + b"ours",
           "the rest in records")
    expect(receive(reached.sock, PRELUDE + 6) == FULL + b"theirs", "all bytes")


def client_forged(tun):
    """A server program may know the client's nonce (TCP_SAVED_SYN), but not its kernel's."""
    reached = Reached(tun)
    ours = nonce_of(reached.asked)
    forged = b"".join(hello(ROLE_SYNACK, nonce, instance=bytes(16)) for nonce in (
        ours, role_nonce(ours, 0, ROLE_SYNACK), role_nonce(ours, ours, ROLE_SYNACK)))
    reached.sock.sendall(FULL + b"ours")
    expect(reached.peer.read(PRELUDE) == FULL, "a plain prelude")
    expect(read_hello(reached.peer).startswith(MAGIC), "HELLO behind it")
    reached.peer.write(forged)
    expect(receive(reached.sock, len(forged)) == forged, "what the program has sent")
    reached.peer.write(reached.hello() + record(DATA, b"theirs"))
    expect(receive(reached.sock, 6) == b"theirs", "what is in a record")
    expect(read_data(reached.peer, 4) == b"ours", "our bytes in records")


def client_of_unconfirmed_server(tun):
    """An unconfirmed server continues without HELLO."""
    reached = Reached(tun)
    reached.peer.write(FULL + b"plain")
    expect(receive(reached.sock, PRELUDE + 5) == FULL + b"plain", "all bytes")
    reached.sock.sendall(FULL + b"plain")
    expect(reached.peer.read(PRELUDE + 5) == FULL + b"plain", "plain bytes")


if __name__ == "__main__":
    sys.exit(run(chosen(globals(), ("server_", "span_", "client_"),
                        "".join(sys.argv[1:2]))))
