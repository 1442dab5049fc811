#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What programs see when the link is lost at a given moment.  Prints TAP.

rs_moments -s -p PORT             the far end; executes commands received over TCP
rs_moments -c HOST -k KIND -p PORT [-P PATTERN] [--cut CMD --mend CMD]

A case specifies what both programs do and where the link is lost.  All cases run in
parallel: when all have reached that point, the shell command CMD cuts the link of all
of them.  This must make no difference: with plain TCP, the same cases pass without
any loss.  Every byte is checked against its offset.
"""
import argparse
import concurrent.futures
import errno
import fcntl
import itertools
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time

import tap
from streams import IPPROTO_RDMASTREAM

KINDS = {
    "tcp4": (socket.AF_INET, 0), "tcp6": (socket.AF_INET6, 0),
    "inet": (socket.AF_INET, IPPROTO_RDMASTREAM),
    "inet6": (socket.AF_INET6, IPPROTO_RDMASTREAM),
}
LIMIT = 100 * int(os.environ.get("SLOW", 1))     # seconds that anything may take
SIOCOUTQ = 0x5411
SO_ZEROCOPY, MSG_ZEROCOPY = 60, 0x4000000
K, M = 1024, 1024 * 1024


def pattern():
    """Bytes that differ at each offset; the period is a prime."""
    size = 1000003
    words = struct.pack("<131072Q", *((n * 0x9e3779b97f4a7c15 + (n >> 7) * n)
                                      & (1 << 64) - 1 for n in range(131072)))
    return size, words[:size] * 2


PERIOD, BYTES = pattern()


def name_of(err):
    return errno.errorcode.get(err.errno, str(err.errno)) if err.errno \
        else "TIMEOUT"


class Ends:
    """The sockets of one program, by number, and operations on them."""

    def __init__(self):
        self.socks, self.ids = {}, itertools.count(1)
        self.sent, self.got, self.lent = {}, {}, []
        self.lock, self.listed, self.listed_at = threading.Lock(), [], 0

    def keep(self, sock):
        sock.settimeout(LIMIT)
        number = next(self.ids)
        self.socks[number] = sock
        self.sent[number] = self.got[number] = 0
        return number

    def listen(self, kind, port, backlog=64):
        family, proto = KINDS[kind]
        sock = socket.socket(family, socket.SOCK_STREAM, proto)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("", port))
        sock.listen(backlog)
        return self.keep(sock), sock.getsockname()[1]

    def accept(self, n):
        return self.keep(self.socks[n].accept()[0])

    def connect(self, kind, host, port):
        family, proto = KINDS[kind]
        sock = socket.socket(family, socket.SOCK_STREAM, proto)
        sock.settimeout(LIMIT)
        sock.connect((host, port))
        return self.keep(sock)

    def port(self, n):
        return self.socks[n].getsockname()[1]

    def send(self, n, size):
        """How many bytes of the pattern went, and the error or none."""
        done = 0
        while done < size:
            at = self.sent[n] % PERIOD
            try:
                put = self.socks[n].send(
                    BYTES[at:at + min(size - done, 256 * K)],
                    socket.MSG_NOSIGNAL)
            except OSError as err:
                return done, name_of(err)
            done += put
            self.sent[n] += put
        return done, ""

    def send_zerocopy(self, n, size):
        """By MSG_ZEROCOPY, from memory that stays."""
        at = self.sent[n] % PERIOD
        self.lent.append(BYTES[at:at + size])
        self.socks[n].setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
        put = self.socks[n].send(self.lent[-1], socket.MSG_NOSIGNAL | MSG_ZEROCOPY)
        self.sent[n] += put
        return put

    def completed(self, n):
        """The kernel has done with it."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            try:
                self.socks[n].recvmsg(1, 256, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
                return True
            except BlockingIOError:
                time.sleep(0.05)
        return False

    def recv(self, n, size, flags=0):
        """How many bytes came; then "" enough, "end", an error, "wrong"."""
        done = 0
        while done < size:
            try:
                data = self.socks[n].recv(min(size - done, 256 * K), flags)
            except OSError as err:
                return done, name_of(err)
            if not data:
                return done, "end"
            at = self.got[n] % PERIOD
            if data != BYTES[at:at + len(data)]:
                return done, "wrong byte"
            done += len(data)
            if not flags & socket.MSG_PEEK:
                self.got[n] += len(data)
        return done, ""

    def shutdown(self, n, how=socket.SHUT_WR):
        try:
            self.socks[n].shutdown(how)
        except OSError as err:
            return name_of(err)
        return ""

    def linger(self, n, seconds):
        self.socks[n].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                 struct.pack("ii", 1, seconds))

    def buffers(self, n, size):
        for which in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            self.socks[n].setsockopt(socket.SOL_SOCKET, which, size)

    def close(self, n):
        start = time.monotonic()
        self.socks.pop(n).close()
        return time.monotonic() - start

    def close_all(self):
        for sock in list(self.socks.values()):
            sock.close()
        self.socks.clear()

    def error(self, n):
        err = self.socks[n].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return errno.errorcode.get(err, "") if err else ""

    def events(self, n, wanted, ms=0):
        poll = select.poll()
        poll.register(self.socks[n].fileno(), wanted)
        got = poll.poll(ms)
        return got[0][1] if got else 0

    def outq(self, n):
        return struct.unpack("i", fcntl.ioctl(self.socks[n].fileno(), SIOCOUTQ,
                                              bytes(4)))[0]

    def carriers(self, n):
        """What rsctl says of this socket: (tx, rx)."""
        ports = [self.socks[n].getsockname()[1], self.socks[n].getpeername()[1]]
        with self.lock:         # one list serves all threads that ask now
            if time.monotonic() > self.listed_at + 0.3:
                said = subprocess.run(["rsctl", "-j", "sockets"], check=True,
                                      stdout=subprocess.PIPE).stdout
                self.listed, self.listed_at = json.loads(said), time.monotonic()
            listed = self.listed
        for one in listed:
            if one.get("remote") and \
               [int(one[end].rpartition(":")[2]) for end in
                ("local", "remote")] == ports:
                return one["tx"]["carrier"], one["rx"]["carrier"]
        return "none", "none"


class Near:
    """Operations of this process; start() runs them in the background."""

    def __init__(self):
        self.ends = Ends()
        self.pool = concurrent.futures.ThreadPoolExecutor(200)

    def start(self, what, *args):
        return self.pool.submit(getattr(self.ends, what), *args)

    def __getattr__(self, what):
        return lambda *args: self.start(what, *args).result(2 * LIMIT)


class Far(Near):
    """Operations of another process."""

    def __init__(self, host, port):
        super().__init__()
        for _ in range(200):
            try:
                self.conn = socket.create_connection((host, port))
                break
            except ConnectionRefusedError:
                time.sleep(0.1)
        self.calls, self.ids = {}, itertools.count()
        self.lock = threading.Lock()
        threading.Thread(target=self.answers, daemon=True).start()

    def answers(self):
        for line in self.conn.makefile():
            number, good, result = json.loads(line)
            call = self.calls.pop(number)
            if good:
                call.set_result(result)
            else:
                call.set_exception(OSError(result))

    def start(self, what, *args):
        call = concurrent.futures.Future()
        with self.lock:
            number = next(self.ids)
            self.calls[number] = call
            self.conn.sendall(json.dumps([number, what, args]).encode() + b"\n")
        return call


def serve(port):
    listener = socket.create_server(("", port), family=socket.AF_INET6,
                                    dualstack_ipv6=True)
    conn = listener.accept()[0]
    ends, lock = Ends(), threading.Lock()

    def one(number, what, args):
        try:
            answer = [number, True, getattr(ends, what)(*args)]
        except Exception as err:        # the other end shall hear of it
            answer = [number, False, repr(err)]
        with lock:
            conn.sendall(json.dumps(answer).encode() + b"\n")

    for line in conn.makefile():
        threading.Thread(target=one, args=json.loads(line),
                         daemon=True).start()


class Failed(Exception):
    pass


def expect(good, what):
    if not good:
        raise Failed(what)


def equal(got, wanted, what):
    if isinstance(got, (list, tuple)):
        got = tuple(got)
    expect(got == wanted, f"{what}: {wanted}, not {got}")


class Knife:
    """Cuts the link when all cases that need it have asked for it."""

    def __init__(self, opt, cases):
        self.opt, self.running, self.waiting, self.is_cut = opt, cases, 0, False
        self.changed = threading.Condition()

    def run(self, cmd):
        if cmd and KINDS[self.opt.kind][1] and \
           subprocess.run(cmd, shell=True, stdout=subprocess.DEVNULL).returncode:
            raise Failed(f"'{cmd}' to succeed")

    def check(self):
        if not self.is_cut and self.running and self.waiting == self.running:
            self.is_cut = True
            self.changed.notify_all()
            self.run(self.opt.cut)

    def cut(self):
        with self.changed:
            self.waiting += 1
            self.check()
            while not self.is_cut:
                self.changed.wait()

    def case_ended(self, had_cut):
        with self.changed:
            self.running -= 1
            self.waiting -= had_cut
            self.check()

    def mend(self):
        if self.is_cut:
            self.run(self.opt.mend)
        self.is_cut = False
        self.waiting = 0


class Case:
    """Two programs, their connections, and the knife."""

    def __init__(self, opt, near, far, knife):
        self.near, self.far, self.opt, self.knife = near, far, opt, knife
        self.ours, self.has_cut = KINDS[opt.kind][1] != 0, False

    def pair(self, n=1):
        """@n connections: [(near, far)]."""
        listener, port = self.far.listen(self.opt.kind, 0)
        pairs = []
        for _ in range(n):
            near = self.near.connect(self.opt.kind, self.opt.client, port)
            pairs.append((near, self.far.accept(listener)))
        self.far.close(listener)
        return pairs

    def ringed(self, n=1):
        """The same, both directions on rings."""
        pairs = self.pair(n)
        for near, far in pairs:
            self.on_rings(near, far)
        return pairs if n > 1 else pairs[0]

    def on_rings(self, near, far):
        end = time.monotonic() + LIMIT
        while True:
            for a, at, b, bt in ((self.near, near, self.far, far),
                                 (self.far, far, self.near, near)):
                equal(a.send(at, 100), (100, ""), "first bytes sent")
                equal(b.recv(bt, 100), (100, ""), "first bytes received")
            if not self.ours or self.near.carriers(near) == ("ring", "ring"):
                return
            expect(time.monotonic() < end, "rings in time")
            time.sleep(0.05)

    def cut(self):
        self.has_cut = True
        self.knife.cut()

    def noticed(self, *which):
        """Until these send by ring no more, (program, socket)."""
        if not (self.opt.cut and self.ours):
            return
        end = time.monotonic() + LIMIT
        for prog, sock in which:
            while prog.carriers(sock)[0] == "ring":
                expect(time.monotonic() < end, "the loss is noticed in time")
                time.sleep(0.1)

    def ends_well(self, near, far, more=1000):
        """More bytes each way, then the end, in order."""
        calls = []
        for a, at in ((self.near, near), (self.far, far)):
            calls.append((a.start("send", at, more), (more, "")))
            calls.append((a.start("recv", at, more), (more, "")))
        for call, wanted in calls:
            equal(call.result(2 * LIMIT), wanted, "bytes each way")
        self.ended(near, far)

    def ended(self, near, far):
        for a, at in ((self.near, near), (self.far, far)):
            equal(a.shutdown(at), "", "shutdown")
        for a, at in ((self.near, near), (self.far, far)):
            equal(a.recv(at, 1), (0, "end"), "the end")
            equal(a.error(at), "", "SO_ERROR")


# ---- the cases ----

def case_idle(c):
    near, far = c.ringed()
    c.cut()
    c.noticed((c.near, near), (c.far, far))
    c.ends_well(near, far)


def sent_and_closed(c, size):
    """After close(), the kernel must deliver the remaining data."""
    near, far = c.ringed()
    c.cut()
    equal(c.near.send(near, size), (size, ""), "sent")
    c.near.close(near)
    equal(c.far.recv(far, size + 1), (size, "end"), "all, and the end")
    equal(c.far.error(far), "", "SO_ERROR")


def case_byte_and_closed(c):
    sent_and_closed(c, 1)


def case_page_and_closed(c):
    sent_and_closed(c, 4 * K)


def case_much_and_closed(c):
    sent_and_closed(c, 50 * K)


def case_closed_before_loss(c):
    near, far = c.ringed()
    equal(c.near.send(near, 50 * K), (50 * K, ""), "sent")
    c.near.close(near)
    c.cut()
    equal(c.far.recv(far, M), (50 * K, "end"), "all, and the end")
    equal(c.far.error(far), "", "SO_ERROR")


def case_close_wait(c):
    """The link is lost after the far program has read everything and closed."""
    near, far = c.ringed()
    equal(c.near.send(near, 100), (100, ""), "question")
    equal(c.far.recv(far, 100), (100, ""), "question")
    equal(c.far.send(far, 100), (100, ""), "answer")
    c.far.close(far)
    equal(c.near.recv(near, 101), (100, "end"), "answer, end")
    c.cut()
    c.noticed((c.near, near))
    equal(c.near.error(near), "", "SO_ERROR")
    expect(not c.near.events(near, select.POLLIN) & select.POLLERR, "no POLLERR")
    equal(c.near.recv(near, 1), (0, "end"), "the end, again")
    equal(c.near.shutdown(near), "", "shutdown")


def case_close_wait_dropped(c):
    """The far kernel has already dropped the connection (tcp_fin_timeout is 3)."""
    near, far = c.ringed()
    c.far.close(far)
    equal(c.near.recv(near, 1), (0, "end"), "end")
    time.sleep(6)
    equal(c.near.error(near), "", "SO_ERROR")
    equal(c.near.recv(near, 1), (0, "end"), "the end, again")


def case_close_wait_sends(c):
    near, far = c.ringed()
    c.far.close(far)
    equal(c.near.recv(near, 1), (0, "end"), "end")
    c.cut()
    c.noticed((c.near, near))
    equal(c.near.send(near, 100), (100, ""), "sent after the other end has closed")
    end = time.monotonic() + LIMIT
    while not c.near.events(near, 0, 1000):
        expect(time.monotonic() < end, "a reset")
    done, err = c.near.send(near, 100)
    equal((done, err in ("EPIPE", "ECONNRESET")), (0, True), f"then {err}")


def case_half_close(c):
    near, far = c.ringed()
    c.cut()
    equal(c.near.send(near, 10 * K), (10 * K, ""), "sent")
    equal(c.near.shutdown(near), "", "shutdown")
    equal(c.far.recv(far, M), (10 * K, "end"), "all, and the end")
    call = c.far.start("send", far, M)
    equal(c.near.recv(near, M), (M, ""), "the other direction")
    equal(call.result(LIMIT), (M, ""), "sent")
    equal(c.far.shutdown(far), "", "shutdown")
    equal(c.near.recv(near, 1), (0, "end"), "its end")


def case_half_closed_before(c):
    near, far = c.ringed()
    equal(c.near.shutdown(near), "", "shutdown")
    equal(c.far.recv(far, 1), (0, "end"), "the end")
    c.cut()
    call = c.far.start("send", far, M)
    equal(c.near.recv(near, M), (M, ""), "the other direction")
    equal(call.result(LIMIT), (M, ""), "sent")
    c.far.close(far)
    equal(c.near.recv(near, 1), (0, "end"), "its end")


def case_fins_cross(c):
    near, far = c.ringed()
    c.cut()
    calls = []
    for a, at in ((c.near, near), (c.far, far)):
        equal(a.send(at, 20 * K), (20 * K, ""), "sent")
        equal(a.shutdown(at), "", "shutdown")
        calls.append(a.start("recv", at, M))
    for call in calls:
        equal(call.result(2 * LIMIT), (20 * K, "end"), "all, and the end")


def case_both_blocked(c):
    """Both send and neither reads: all buffers are full when the link is lost."""
    size = 12 * M
    near, far = c.ringed()
    sends = [c.near.start("send", near, size), c.far.start("send", far, size)]
    last = None
    while last != (now := (c.near.outq(near), c.far.outq(far))):
        last = now
        time.sleep(1)
    expect(not any(call.done() for call in sends), "both are blocked")
    c.cut()
    c.noticed((c.near, near), (c.far, far))
    expect(not any(call.done() for call in sends), "both are still blocked")
    recvs = [c.near.start("recv", near, size), c.far.start("recv", far, size)]
    for call in sends + recvs:
        equal(call.result(2 * LIMIT), (size, ""), "all of it")
    c.ends_well(near, far)


def case_unread_closed(c):
    """close() with unread data resets, with or without a lost link."""
    near, far = c.ringed()
    equal(c.near.send(near, 10 * K), (10 * K, ""), "sent")
    equal(c.far.recv(far, 100), (100, ""), "some of it")
    c.cut()
    c.far.close(far)
    equal(c.near.recv(near, 1), (0, "ECONNRESET"), "reset")


def case_abort(c):
    near, far = c.ringed()
    c.cut()
    equal(c.near.send(near, 10 * K), (10 * K, ""), "sent")
    c.far.linger(far, 0)
    c.far.close(far)
    equal(c.near.recv(near, 1), (0, "ECONNRESET"), "reset")


def case_linger(c):
    near, far = c.ringed()
    c.near.linger(near, 30)
    c.cut()
    equal(c.near.send(near, 50 * K), (50 * K, ""), "sent")
    close = c.near.start("close", near)
    equal(c.far.recv(far, M), (50 * K, "end"), "all, and the end")
    expect(close.result(LIMIT) < 29, "close() in time")


def case_zerocopy_ends(c):
    """Both have closed before the loss is noticed: zerocopy pages are released."""
    near, far = c.ringed()
    equal(c.near.send_zerocopy(near, 4 * K), 4 * K, "sent")
    c.cut()
    equal(c.near.shutdown(near), "", "shut down")
    equal(c.far.recv(far, M), (4 * K, "end"), "all, and the end")
    equal(c.far.shutdown(far), "", "shut down")
    equal(c.near.recv(near, 1), (0, "end"), "the end")
    expect(c.near.completed(near), "the completion")


def case_peek(c):
    near, far = c.ringed()
    equal(c.near.send(near, 30 * K), (30 * K, ""), "sent")
    equal(c.far.recv(far, 1, socket.MSG_PEEK), (1, ""), "peeked")
    equal(c.far.recv(far, 10 * K), (10 * K, ""), "some")
    c.cut()
    c.noticed((c.near, near), (c.far, far))
    equal(c.far.recv(far, 1, socket.MSG_PEEK), (1, ""), "peeked")
    equal(c.far.recv(far, 20 * K), (20 * K, ""), "the rest")
    c.ends_well(near, far)


def case_outq(c):
    """SIOCOUTQ drops to 0 when the far kernel has everything."""
    near, far = c.ringed()
    c.cut()
    equal(c.near.send(near, 50 * K), (50 * K, ""), "sent")
    equal(c.far.recv(far, 50 * K), (50 * K, ""), "received")
    end = time.monotonic() + LIMIT
    while c.near.outq(near):
        expect(time.monotonic() < end, "SIOCOUTQ 0 in time")
        time.sleep(0.1)
    c.ends_well(near, far)


def case_poll(c):
    """A task that sleeps in poll() during the loss is woken by later data."""
    near, far = c.ringed()
    c.cut()
    for a, at, b, bt in ((c.near, near, c.far, far), (c.far, far, c.near, near)):
        poll = b.start("events", bt, select.POLLIN, LIMIT * 1000)
        time.sleep(0.2)
        equal(a.send(at, 10), (10, ""), "sent")
        equal(poll.result(2 * LIMIT), select.POLLIN, "poll() says")
        equal(b.recv(bt, 10), (10, ""), "received")
    c.ends_well(near, far)


def case_accepted_late(c):
    """The link is lost while connections without rings wait in the backlog."""
    listener, port = c.far.listen(c.opt.kind, 0)
    nears = [c.near.connect(c.opt.kind, c.opt.client, port) for _ in range(4)]
    for near in nears:
        equal(c.near.send(near, 20 * K), (20 * K, ""), "sent")
    c.cut()
    for near in nears:
        equal(c.near.send(near, 40 * K), (40 * K, ""), "sent")
    fars = [c.far.accept(listener) for _ in nears]
    for far in fars:
        equal(c.far.recv(far, 60 * K), (60 * K, ""), "all")
        equal(c.far.send(far, 10 * K), (10 * K, ""), "sent back")
    for near in nears:
        equal(c.near.recv(near, 10 * K), (10 * K, ""), "all")
        c.near.close(near)
    for far in fars:
        equal(c.far.recv(far, 1), (0, "end"), "the end")


def case_accepted_never(c):
    listener, port = c.far.listen(c.opt.kind, 0)
    nears = [c.near.connect(c.opt.kind, c.opt.client, port) for _ in range(4)]
    for near in nears:
        equal(c.near.send(near, 20 * K), (20 * K, ""), "sent")
    c.cut()
    c.far.close(listener)
    for near in nears:
        equal(c.near.recv(near, 1), (0, "ECONNRESET"), "reset")


# ---- these take the link for themselves: by -P alone ----

def alone_again_and_again(c):
    """Each new link is lost as soon as the stream uses it."""
    near, far = c.ringed()
    for turn in range(3):
        c.cut()
        for a, at, b, bt in ((c.near, near, c.far, far),
                             (c.far, far, c.near, near)):
            call = a.start("send", at, 100 * K)
            equal(b.recv(bt, 100 * K), (100 * K, ""), f"bytes, turn {turn}")
            equal(call.result(LIMIT), (100 * K, ""), "sent")
        c.knife.mend()
        c.on_rings(near, far)
    c.ends_well(near, far)


def alone_outage(c):
    """Even TCP is blocked, for longer than links and RESUME wait."""
    near, far = c.ringed()
    equal(c.far.send(far, 50 * K), (50 * K, ""), "sent")
    c.cut()                     # nor does what we say to the far end
    equal(c.near.send(near, 50 * K), (50 * K, ""), "sent")
    time.sleep(c.opt.seconds)
    c.knife.mend()
    for a, at in ((c.near, near), (c.far, far)):
        equal(a.recv(at, 50 * K), (50 * K, ""), "all of it")
    c.ends_well(near, far)


def judge(fn, case):
    """Return: what failed, or nothing."""
    try:
        fn(case)
        return ""
    except Failed as err:
        return f"expected {err}"
    except (OSError, concurrent.futures.TimeoutError) as err:
        return repr(err)
    finally:
        case.knife.case_ended(case.has_cut)


def run(opt):
    cases = [(name.split("_", 1)[1], fn) for name, fn in globals().items()
             if name.startswith(("case_", "alone_")) and
             (opt.pattern in name if opt.pattern else name[:5] == "case_")]
    near, far, knife = Near(), Far(opt.client, opt.port), Knife(opt, len(cases))
    pool = concurrent.futures.ThreadPoolExecutor(len(cases))
    calls = [pool.submit(judge, fn, Case(opt, near, far, knife))
             for _, fn in cases]
    print("TAP version 13")
    for (name, _), call in zip(cases, calls):
        what = call.result()
        tap.ok(not what, name, what)
    status = tap.done()
    knife.mend()
    near.close_all()
    far.close_all()
    # calls that hang do not end with main()
    os._exit(status)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-s", dest="server", action="store_true")
    parser.add_argument("-c", dest="client")
    parser.add_argument("-p", dest="port", type=int, default=7300)
    parser.add_argument("-k", dest="kind", default="tcp4", choices=KINDS)
    parser.add_argument("-P", dest="pattern", default="")
    parser.add_argument("--seconds", type=int, default=35)
    parser.add_argument("--cut")
    parser.add_argument("--mend")
    opt = parser.parse_args()
    if opt.server:
        serve(opt.port)
    else:
        run(opt)


if __name__ == "__main__":
    sys.exit(main())
