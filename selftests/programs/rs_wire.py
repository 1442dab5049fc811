#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A peer that violates the protocol on TCP.  Prints TAP.

A case passes if the program gets TCP's bytes or a clear error, in time, and
never a byte too many or too few.  Needs root, the module, and
hello_timeout_ms=3000.

rs_wire [PATTERN]: the cases whose names have PATTERN in them.
"""
import contextlib
import ctypes
import os
import random
import select
import socket
import struct
import sys
import threading
import time

from rs_end import dump, setting
from rs_peer import (ACK, ACK_REC, ANSWER, DATA, END, GRANT, HELLO, LIMIT, MAGIC, NONCE, OURS,
                     PEER, PSH, RESUME, ROLE_CONFIRM, ROLE_SYN, ROLE_SYNACK, STOPPED, SWITCH,
                     Peer, Served, agreed, broken_pipe, chosen, drain, end, expect, fails, found, hello, ip,
                     nonce_of, option, our_socket, read_data, read_hello, record,
                     role_nonce, role_of, run, switch)
from streams import fill, tcp_now, unread
from withheld import Withheld


def charged():
    """Bytes charged to TCP's sockets."""
    return 4096 * tcp_now("mem")


@contextlib.contextmanager
def migration():
    """Connections of a listener that is closed go to others of its group."""
    def switch_it(value):
        with open("/proc/sys/net/ipv4/tcp_migrate_req", "w", encoding="ascii") as file:
            file.write(value)

    switch_it("1")
    try:
        yield
    finally:
        switch_it("0")


def soon(done, seconds=2):
    """Waits until done() is true, or for this time."""
    stop = time.monotonic() + seconds
    while not done() and time.monotonic() < stop:
        time.sleep(0.01)
    return done()


# ---- our listener, the peer connects ----

def server_plain(tun):
    served = Served(tun)
    expect(not found(served.answer), "no option in the SYN-ACK")
    served.echo_plain()


def server_agrees(tun):
    served = agreed(tun)
    expect(role_of(served.answer) == ROLE_SYNACK, "the answer's option")
    served.echo_framed()


def server_refuses(tun):
    """As always when connections may go to another listener."""
    with setting("../ipv4/tcp_migrate_req", 1):
        for reserved in range(16):
            served = Served(tun, option(ROLE_SYN), reserved=reserved)
            expect(not found(served.answer), "no option in the SYN-ACK")
            port = f":{served.sock.getsockname()[1]}"
            expect(not any((entry["local"] or "").endswith(port) for entry in dump("sockets")),
                   f"no stream, with the reserved bits {reserved}")
            served.echo_plain()


def server_synack_again(tun):
    """The options of the first SYN-ACK and of the next one, of which the second is answered."""
    listener = our_socket()
    listener.bind((OURS, 0))
    listener.listen(20)
    for syn in option(ROLE_SYN), b"":
        peers = [Peer(tun) for _ in range(8)]
        for peer in peers:
            peer.send_syn(listener.getsockname()[1], syn)
        for peer in peers:
            first = peer.synack()
            peer.ack = 0
            second = peer.synack()
            expect(first == second and bool(found(first)) == bool(syn),
                   f"the same option: {first.hex()} {second.hex()}")
        peers[0].confirm(syn)
        sock, _ = listener.accept()
        sock.settimeout(LIMIT)
        said = record(DATA, b"hello") if syn else b"hello"
        peers[0].write((hello(ROLE_SYN) if syn else b"") + said)
        expect(sock.recv(100) == b"hello", "the peer's bytes")
        sock.close()
    listener.close()


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


def before_hello(tun):
    """A client that may still send HELLO: while the server waits, and after it has spoken first."""
    for lowat in (1, 4):
        for banner in (b"", b"banner"):
            served = Served(tun, option(ROLE_SYN))
            served.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, lowat)
            served.sock.sendall(banner)
            expect(not banner or served.peer.read(6) == banner, "our bytes")
            yield served


def polled(sock):
    poll = select.poll()
    poll.register(sock, select.POLLIN | select.POLLRDHUP)
    return [mask for _, mask in poll.poll(0)]


def server_shut_before_hello(tun):
    """A program that has shut down its receiving direction gets the end at once."""
    for served in before_hello(tun):
        served.sock.shutdown(socket.SHUT_RD)
        expect(polled(served.sock) == [select.POLLIN | select.POLLRDHUP], "the end in poll()")
        served.sock.settimeout(2)
        expect(served.sock.recv(9) == b"", "the end")
        served.sock.close()


def server_reset_before_hello(tun):
    """After RST, the error once, then the end."""
    for served in before_hello(tun):
        served.peer.close()
        expect(soon(lambda: polled(served.sock)), "an event")
        fails(served.sock, 104)
        expect(served.sock.recv(9) == b"", "the end")
        expect(polled(served.sock)[0] & select.POLLIN, "the end in poll()")
        served.sock.close()
    *_, served = before_hello(tun)
    served.peer.write(MAGIC[:1])
    served.peer.close()
    expect(soon(lambda: polled(served.sock)), "an event")
    data, err = drain(served.sock)
    expect(data == MAGIC[:1] and err == 104, "what has arrived, then the error")
    expect(served.sock.recv(9) == b"", "the end")
    served.sock.close()


def server_hello_cut(tun):
    for k in (1, 7, 8, 40, 71):
        for confirm in (b"", option(ROLE_CONFIRM)):
            said = hello(ROLE_SYN)[:k]
            served = Served(tun, option(ROLE_SYN), confirm, said)
            said = served.peer.said(said)
            served.peer.end()
            data, err = drain(served.sock)
            expect(err or data == said, f"TCP's bytes or an error, cut at {k}")
            expect(not err or not data, f"no byte before the error, cut at {k}")
            served.sock.close()


def server_hello_cut_then_silent(tun):
    for k in (4, 40):
        said = hello(ROLE_SYN)[:k]
        with setting("hello_timeout_ms", 100):
            served = Served(tun, option(ROLE_SYN), option(ROLE_CONFIRM), said)
            said = served.peer.said(said)
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
    for byte in served.peer.said(hello(ROLE_SYN)):
        served.peer.write(bytes([byte]))
    served.echo_framed()


def server_hello_delayed(tun):
    """After an outage during the handshake, TCP continues, and so does the connection."""
    for first in (0, 40):
        served = Served(tun, option(ROLE_SYN), option(ROLE_CONFIRM))
        said = served.peer.said(hello(ROLE_SYN))
        served.peer.write(said[:first])
        time.sleep(4)       # more than hello_timeout_ms
        served.peer.write(said[first:])
        served.echo_framed()


def server_hello_garbage(tun):
    for bad in (hello(ROLE_SYN, size=10), hello(ROLE_SYN, size=60000)):
        Served(tun, option(ROLE_SYN), option(ROLE_CONFIRM), late=bad).reset()


def server_hello_not_ours(tun):
    """A HELLO with another nonce or role is data, or is refused."""
    for bad in (hello(ROLE_SYN, nonce=1), hello(ROLE_SYN, nonce=NONCE),
                hello(ROLE_SYNACK)):
        served = Served(tun, option(ROLE_SYN), early=bad)
        bad = served.peer.said(bad)
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
                record(RESUME, struct.pack("!IIQ", 3, 0, 1)),
                record(STOPPED, struct.pack("!II", 1, 0))):
        agreed(tun, record(DATA, b"before") + bad).reset(b"before")


def server_data_after_end(tun):
    """Data after FIN resets, even if the program has already read the end."""
    bad = record(END, struct.pack("!Q", 6)) + record(DATA, b"x")
    served = agreed(tun, record(DATA, b"before") + bad)
    data, err = drain(served.sock)
    expect(b"before".startswith(data) and err in (0, 104), "no byte more")
    expect(err or data == b"before", "all before the end")
    expect(served.peer.until(lambda: served.peer.rst), "RST")


def server_reset_before_accept(tun):
    """As with TCP, accept() returns the connection; its first use returns the error."""
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


def server_reset_between_owners(tun):
    """A thread owns the socket for long, then the next one; the reset does not wait for it, too."""
    served = agreed(tun, record(DATA, b"x" * 200))
    expect(soon(lambda: unread(served.sock) == 200), "the peer's bytes")
    withheld = Withheld(2)
    threads = []

    def receive(i):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))      # before any worker
        served.sock.recv_into(withheld.page(i)[:100])

    def read(i):
        threads.append(threading.Thread(target=receive, args=(i,), daemon=True))
        threads[i].start()

    def waits(i):
        with open(f"/proc/self/task/{threads[i].native_id}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "D"

    read(0)
    withheld.wait_for(1)
    read(1)
    expect(soon(lambda: waits(1)), "the second one waits for the lock")
    served.peer.write(record(0))
    withheld.give(0)
    expect(served.peer.until(lambda: served.peer.rst), "RST")
    withheld.come()
    for thread in threads:
        thread.join(LIMIT)
        expect(not thread.is_alive(), "its bytes")


def server_migrated(tun):
    """A listener of TCP's gets the connection before anybody has accepted it, because migration was
    switched on late.  Nothing of it stays, not as one of the host's orphans, either."""
    before = tcp_now("orphan")
    for _ in range(10):
        ours, tcp = our_socket(), socket.socket()
        for listener in ours, tcp:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        ours.bind((OURS, 0))
        ours.listen(1)
        peer = Peer(tun)
        peer.connect(ours.getsockname()[1], option(ROLE_SYN), option(ROLE_CONFIRM))
        peer.write(hello(ROLE_SYN))
        expect(soon(lambda: any(each["mode"] == "framed" for each in dump("sockets"))), "records")
        tcp.bind(ours.getsockname())
        tcp.listen(1)
        with migration():
            ours.close()
        sock, _ = tcp.accept()
        withheld = Withheld(1)

        def send(sock=sock, withheld=withheld):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))      # before any worker
            with contextlib.suppress(OSError):
                sock.send(withheld.page(0)[:100])
            sock.close()

        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        withheld.wait_for(1)
        peer.write(record(0))
        withheld.give(0)
        expect(peer.until(lambda peer=peer: peer.rst or peer.fin), "RST or FIN")
        thread.join(LIMIT)
        expect(not thread.is_alive(), "the end of the call")
        tcp.close()
    expect(soon(lambda: tcp_now("orphan") == before),
           f"{before} orphans, not {tcp_now('orphan')}")


def server_record_unknown(tun):
    """Optional record types of later versions are ignored."""
    agreed(tun, record(99, b"what?")).echo_framed()


def server_tcp_ends_first(tun):
    served = agreed(tun, record(DATA, b"before") + record(DATA, b"cut", size=9))
    served.peer.end()
    data, err = drain(served.sock)
    expect(b"beforecut".startswith(data) and err, "an error, not a clean end")


def server_window_exceeded(tun):
    served = agreed(tun)
    served.peer.read(48)
    limit = struct.unpack("!Q", served.peer.read(32)[8:16])[0]
    chunk = record(DATA, bytes(65536))
    for _ in range(limit // 65536 + 2):
        served.peer.write(chunk)
        served.peer.until(lambda: served.peer.rst, 0.01)
    expect(served.peer.until(lambda: served.peer.rst), "RST")


def stalled(tun, **options):
    """A program that has written more than the peer's window."""
    served = agreed(tun, window=65536)
    read_hello(served.peer)
    served.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
    for option, value in options.items():
        served.sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    fill(served.sock)
    read_data(served.peer, 65536)
    return served


def server_window_probed(tun):
    """A sender without a window asks whether the peer is still there, as TCP does."""
    served = stalled(tun)
    expect(served.peer.read(24)[0] == ACK_REC, "a probe")
    served.peer.close()
    fails(served.sock, 104)


def server_window_probes_unanswered(tun):
    served = stalled(tun, TCP_USER_TIMEOUT=1000)
    fails(served.sock, 110)


def server_window_closed_for_long(tun):
    """TCP_USER_TIMEOUT limits the wait even if the peer answers the probes."""
    served = stalled(tun, TCP_USER_TIMEOUT=3000)
    began = time.monotonic()
    with served.peer.answering(lambda: served.peer.rst, 8):
        fails(served.sock, 110)
    expect(time.monotonic() - began > 2, "the wait")
    for _ in range(2):      # it is reported once, as by TCP
        broken_pipe(served.sock)


def server_reset_before_accept_told_once(tun):
    """A program that accepts a connection that we have reset hears of that once, then gets EPIPE."""
    listener = our_socket()
    listener.bind((OURS, 0))
    listener.listen(1)
    peer = Peer(tun)
    peer.connect(listener.getsockname()[1], option(ROLE_SYN), option(ROLE_CONFIRM))
    peer.write(hello(ROLE_SYN) + record(ACK_REC, b"short"))
    expect(peer.until(lambda: peer.rst), "RST")
    # without the peer's address, which is gone
    sock = socket.socket(fileno=ctypes.CDLL(None).accept(listener.fileno(), None, None))
    sock.settimeout(LIMIT)
    fails(sock, 104)
    for _ in range(2):
        broken_pipe(sock)
    sock.close()
    listener.close()


def server_speaks_first_in_time(tun):
    """TCP_USER_TIMEOUT does not begin before the client's HELLO is late."""
    served = Served(tun, option(ROLE_SYN), option(ROLE_CONFIRM))
    served.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 5000)
    served.sock.sendall(b"banner")
    served.peer.write(hello(ROLE_SYN))
    expect(read_hello(served.peer).startswith(MAGIC), "HELLO")
    expect(read_data(served.peer, 6) == b"banner", "our bytes in DATA")
    served.peer.write(record(DATA, b"hi"))
    expect(served.sock.recv(9) == b"hi", "the peer's bytes")
    served.sock.close()


def lingering(tun, seconds):
    """A program that has written, and sets SO_LINGER."""
    served = agreed(tun)
    read_hello(served.peer)
    served.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, seconds))
    served.sock.sendall(bytes(1000))
    return served


def close_takes(sock):
    began = time.monotonic()
    sock.close()
    return time.monotonic() - began


def server_lingers(tun):
    """SO_LINGER waits until the peer has acknowledged what was sent."""
    took = close_takes(lingering(tun, 2).sock)
    expect(1.5 < took < 5, f"two seconds of close(), not {took:.2f}")


def server_lingers_until_acked(tun):
    served = lingering(tun, 20)
    with served.peer.answering(lambda: served.peer.fin):
        took = close_takes(served.sock)
    expect(took < 5, f"close() to end with the last ACK, not after {took:.2f} s")


def server_padding_is_charged(tun):
    """A few bytes in a large packet are charged with the whole packet."""
    served = agreed(tun)
    read_hello(served.peer)
    packet = 70 * record(99, bytes(248)) + record(DATA, bytes(1025))
    before = charged()
    try:
        for device in "wire0", "wire1":
            ip(f"link set {device} mtu 20000")
        for taken in range(63):
            served.peer.segment(ACK | PSH, packet)
            if not soon(lambda: unread(served.sock) > taken * 1025):
                break
    finally:
        for device in "wire0", "wire1":
            ip(f"link set {device} mtu 1500")
    # a processor counts up to a MiB before it says so
    kept = taken * len(packet)
    expect(taken < 10 or charged() - before > kept - (1 << 20) > 0,
           f"{kept} bytes charged, not {charged() - before}")
    served.sock.close()
    served.peer.close()


# ---- our client, the peer listens ----

class Reached:
    """A socket that has connected to the peer."""

    def __init__(self, tun, answer, first=b"", drops=lambda opts: False):
        self.peer, self.first = Peer(tun), first
        self.sock = our_socket()
        thread = threading.Thread(target=self.connect)
        thread.start()
        self.asked = self.peer.accept(answer, drops)
        thread.join(LIMIT)
        expect(not thread.is_alive(), "connect() to return")

    def connect(self):
        self.sock.connect((PEER, self.peer.port))
        if self.first:
            self.sock.sendall(self.first)

    echo_plain = Served.echo_plain
    reset = Served.reset


def agree(_):
    return option(ROLE_SYNACK, ANSWER)


def client_plain(tun):
    reached = Reached(tun, lambda asked: b"")
    expect(found(reached.asked), "the option in the SYN")
    reached.echo_plain()


def client_echoed(tun):
    Reached(tun, found).echo_plain()


def client_hello_not_ours(tun):
    """A HELLO with the nonce of an option, or of the client's HELLO, is refused."""
    for nonce in (nonce_of, lambda _: ANSWER,
                  lambda asked: role_nonce(nonce_of(asked), ANSWER, ROLE_SYN)):
        reached = Reached(tun, agree)
        reached.peer.write(hello(ROLE_SYNACK, nonce(reached.asked)))
        reached.reset()


def client_agrees(tun):
    reached = Reached(tun, agree)
    reached.peer.write(hello(ROLE_SYNACK)
                       + record(DATA, b"hi"))
    expect(reached.sock.recv(9) == b"hi", "the peer's bytes")
    expect(read_hello(reached.peer).startswith(MAGIC), "HELLO")
    reached.sock.sendall(b"answer")
    expect(read_data(reached.peer, 6) == b"answer", "our bytes in DATA")
    reached.sock.close()


# A client that sends at once saves segments: HELLO and first bytes are one, and the FIN of the
# stream and that of TCP.  HELLO waits for a tick or two, and slow machines are not always
# in time.  A try that begins when the one before was told by a tick, and takes as long,
# fails as that did: hence the pauses.
def tries():
    end = time.monotonic() + 2 * LIMIT
    while time.monotonic() < end:
        yield
        time.sleep(random.uniform(0, 0.02))


def client_hello_with_bytes(tun):
    for _ in tries():
        reached = Reached(tun, agree, first=b"question")
        reached.peer.first()
        read_hello(reached.peer)
        if reached.peer.data:
            break
        reached.sock.close()
    expect(reached.peer.data == record(DATA, b"question"), "HELLO with DATA")


def server_hello_with_bytes(tun):
    for _ in tries():
        served = agreed(tun, record(DATA, b"question"))
        expect(served.sock.recv(8) == b"question", "the peer's bytes")
        served.sock.sendall(b"answer")
        served.peer.first()
        read_hello(served.peer)
        if served.peer.data:
            break
        served.sock.close()
    expect(served.peer.data == record(DATA, b"answer"), "HELLO with DATA")


def server_hello_alone(tun):
    """HELLO is sent although the program only reads."""
    served = agreed(tun, record(DATA, b"question"))
    expect(served.sock.recv(8) == b"question", "the peer's bytes")
    expect(read_hello(served.peer).startswith(MAGIC), "HELLO")


def client_fins_together(tun):
    reached = Reached(tun, agree, first=b"bye")
    reached.sock.close()
    expect(reached.peer.until(lambda: reached.peer.fin), "FIN")
    expect(reached.peer.last.endswith(end(3)), "the stream's FIN in TCP's segment")


def client_peer_silent(tun):
    reached = Reached(tun, agree)
    reached.peer.read(HELLO)
    with setting("hello_timeout_ms", 100):
        fails(reached.sock, 110)


def client_peer_plain(tun):
    reached = Reached(tun, agree)
    reached.peer.write(b"220 this is no HELLO but a banner of 72 bytes or more"
                       b" that a program has sent\r\n")
    reached.reset()


def client_hello_slow(tun):
    reached = Reached(tun, agree)
    time.sleep(1)
    for byte in reached.peer.said(hello(ROLE_SYNACK) + record(DATA, b"hi")):
        reached.peer.write(bytes([byte]))
    expect(reached.sock.recv(9) == b"hi", "the peer's bytes")


def client_hello_cut(tun):
    for k in (1, 8, 71):
        reached = Reached(tun, agree)
        reached.peer.write(hello(ROLE_SYNACK)[:k])
        reached.peer.end()
        data, err = drain(reached.sock)
        expect(not data and err, f"an error, cut at {k}")


def client_option_drops_syn(tun):
    """A network that drops SYNs with the option: later ones have none."""
    reached = Reached(tun, lambda asked: b"", drops=found)
    reached.echo_plain()


def client_reset_in_hello(tun):
    reached = Reached(tun, agree)
    reached.peer.close()
    fails(reached.sock, 104)


if __name__ == "__main__":
    sys.exit(run(chosen(globals(), ("server_", "client_"),
                        "".join(sys.argv[1:2]))))
