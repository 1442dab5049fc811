#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A peer that ends the prelude in every possible way.  Prints TAP.

A case passes if the program gets TCP's bytes or a clear error, in time, and
never a byte too many or too few.  Needs root, the module, hello_timeout_ms=3000,
prelude=1 and upgrade=0.

rs_prelude [PATTERN]: the cases whose names have PATTERN in them.
"""
import os
import socket
import struct
import sys
import threading
import time

from rs_end import setting
from rs_peer import (ACK, ANSWER, DATA, HELLO, LIMIT, MAGIC, NONCE, PEER, PSH,
                     ROLE_CONFIRM, ROLE_SYN, ROLE_SYNACK, URG, Peer, Served, chosen,
                     drain, end, expect, found, hello, nonce_of, option, our_socket,
                     read_data, read_hello, record, role_nonce, role_of, run)

PRELUDE = 16384
BIT = 8                         # in the option's role
SOL, EAGER = 257, 2
# where no HELLO may be seen
FULL = bytes(i % 251 & 0x7f for i in range(PRELUDE))


def begun(tun, confirm=option(ROLE_CONFIRM | BIT), **kwargs):
    return Served(tun, option(ROLE_SYN | BIT), confirm, **kwargs)


def receive(sock, n):
    data = b""
    while len(data) < n:
        more = sock.recv(n - len(data))
        expect(more, f"{n} bytes, not an end after {len(data)}")
        data += more
    return data


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
    sys.exit(run(chosen(globals(), ("server_", "client_"),
                        "".join(sys.argv[1:2]))))
