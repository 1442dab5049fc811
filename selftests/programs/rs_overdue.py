#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A peer that owes an answer for ever.  Prints TAP.

After REVOKE or the loss of a ring, a host needs an answer of its peer (RESUME, or the SWITCH that
gives memory back), which only this connection can bring.  A case passes if the connection of a
peer whose TCP works is reset after 240 s with the right reason, its memory is free again, and
nothing else is touched.  Needs root, the module, this host's RDMA address in ADDR4_0, and
virtual time.

rs_overdue [PATTERN]: the cases whose names match, a regular expression.
"""
import errno
import os
import struct
import sys
import time

from rs_end import (DONE, FREED, Linked, counters, dump, heard, new_instance, party, said_hello,
                    until)
from rs_liar import registered, stopped, tcp_is_short
from rs_peer import (ACK, BROKEN, DATA, LINK, PEER, RESUME, chosen, drain, expect, record,
                     resume, run, switch)

DUE = 240               # seconds, two of TCP's longest timeouts for retransmission
LATE = 10               # which may be missing or added: its looks are a second apart, and TCP's
                        # answers come when they come


def socket_of(peer):
    return [sock for sock in dump("sockets") if sock["remote"] == f"{PEER}:{peer.port}"]


def no_link(linked):
    """It has ended."""
    until(lambda: all(link["id"] != linked.link["id"] or link["state"] != "up"
                      for link in dump("links")), "the link to end")


class Debt:
    """From now on the peer owes an answer."""

    def __init__(self, linked):
        self.linked, self.since, self.counters = linked, time.monotonic(), counters()

    def grown(self, name):
        return counters().get(name, 0) - self.counters.get(name, 0)

    def ends(self, least=DUE - LATE, most=DUE + LATE):
        """The connection is reset after that many seconds."""
        peer = self.linked.peer
        expect(peer.until(lambda: peer.rst, most), f"RST within {most} s")
        took = time.monotonic() - self.since
        print(f"# reset after {took:.1f} s")
        expect(least < took, f"RST after {least} s, not {took:.1f}")
        expect(self.grown("resets") == 1, "one connection that is reset")
        peer.close()

    def is_called(self, before=b""):
        """As ends(); the program gets what came @before, and an error."""
        self.ends()
        expect(self.grown("reason:link-lost") == 1, "reason link-lost")
        data, err = drain(self.linked.sock)
        expect(data == before, f"{before}, not {data}")
        expect(err == errno.ETIMEDOUT, f"ETIMEDOUT, not {err}")
        self.linked.sock.close()
        self.is_gone()

    def is_gone(self):
        until(lambda: not socket_of(self.linked.peer), "the socket to be gone")


class Beside:
    """Another stream over the link of @liar, and one over another link."""

    def __init__(self, liar, tun):
        self.streams = [kind(tun) for kind in (liar, Linked)]
        for each in self.streams:
            each.granted()

    def untouched(self, *streams):
        for each in streams or self.streams:
            each.left_alone()
            each.peer.write(record(DATA, b"beside"))
            expect(each.reads(6) == b"beside", "the bytes of another stream")

    def leave(self):
        for each in self.streams:
            each.leave()


def silence(linked, seconds):
    """TCP answers, and nothing else does, for that long."""
    expect(not linked.peer.until(lambda: linked.peer.rst or linked.peer.fin, seconds),
           f"no end within {seconds} s")


def broken(liar, tun, data=b"0123456789"):
    """A ring of the peer that these bytes have not reached."""
    linked = liar(tun)
    linked.granted()
    linked.on_broken_ring(data)
    linked.peer.write(switch(0, 0))     # nor is our answer due
    return linked


def overdue_resume(tun):
    """The ring of the peer is lost: it has to say how much it has got."""
    with party() as liar:
        other, linked = Linked(tun), broken(liar, tun)
        Debt(linked).is_called()
        liar.forgotten()
        other.left_alone()
        other.leave()


def overdue_resume_in_time(tun):
    """One that answers after 200 s loses nothing."""
    sent = b"0123456789"
    with party() as liar:
        linked = broken(liar, tun, sent)
        silence(linked, DUE - 4 * LATE)
        linked.peer.write(resume(1, 4))
        linked.switched((4, 0))
        expect(linked.record(DATA)[1] == sent[4:], "what has not come")
        silence(linked, DUE + LATE)
        linked.leave()
        liar.forgotten()


def overdue_resume_unheard(tun):
    """What TCP has not delivered is not due: after an outage, all of the time begins."""
    with party() as liar:
        linked = liar(tun)
        linked.granted()
        linked.peer.write(linked.grant(1))
        linked.switched((0, 1))
        linked.sock.sendall(b"0123456789")
        no_link(linked)
        linked.peer.write(switch(0, 0))
        # nobody looks at what comes
        time.sleep(2 * DUE)
        expect(socket_of(linked.peer), "the socket, which TCP keeps")
        linked.record(BROKEN)
        Debt(linked).is_called()
        liar.forgotten()


def overdue_revoked(tun):
    """A ring is taken back, and the peer keeps it; or says that it has stopped, no more."""
    for stops in False, True:
        with party() as liar:
            beside, linked = Beside(liar, tun), liar(tun)
            linked.granted()
            linked.take(0)
            linked.make_grow()
            linked.revoked()
            debt = Debt(linked)
            if stops:
                linked.peer.write(stopped(linked.epoch))
            debt.is_called()
            beside.untouched()
            # of the ring's sender only the link tells
            linked.end.say(DONE, linked.ring)
            expect(linked.end.hear(FREED)[1] == linked.ring, "FREED of this ring")
            beside.untouched()
            beside.leave()
            liar.forgotten()


def overdue_answer_to_grant(tun):
    """The link of a GRANT is lost, and the peer never says whether it has used it."""
    with party() as liar:
        other, linked = Linked(tun), liar(tun)
        before = registered()
        linked.granted()
        liar.no_end()
        no_link(linked)
        debt = Debt(linked)
        until(lambda: registered() < before, "the memory of the link to be free")
        debt.is_called()
        liar.forgotten()
        other.left_alone()
        other.leave()


def lost_behind(liar, tun, data):
    """The ring of the host is lost behind these bytes."""
    linked = liar(tun)
    linked.granted()
    linked.take(0)
    linked.put(data)
    liar.no_end()
    got = struct.unpack("!IIQ", linked.record(RESUME)[1])
    expect(got == (linked.epoch, 0, len(data)), "RESUME behind what has landed")
    return linked


def overdue_switch(tun):
    """The ring of the host is lost, and the peer never leaves it."""
    data = os.urandom(3000)
    with party() as liar:
        other, before = Linked(tun), registered()
        linked = lost_behind(liar, tun, data)
        debt = Debt(linked)
        until(lambda: registered() <= before, "the memory of the link to be free")
        debt.is_called(data)
        liar.forgotten()
        other.left_alone()
        other.leave()


def overdue_switch_in_time(tun):
    data = os.urandom(3000)
    with party() as liar:
        linked = lost_behind(liar, tun, data)
        silence(linked, DUE - 4 * LATE)
        linked.peer.write(switch(len(data), 0) + record(DATA, b"behind"))
        expect(linked.reads(len(data) + 6) == data + b"behind", "the peer's bytes")
        silence(linked, DUE + LATE)
        linked.leave()
        liar.forgotten()


def overdue_by_the_program(tun):
    """Behind data that the program does not read, the answer may have come."""
    data = os.urandom(6000)
    with party() as liar:
        linked = liar(tun)
        linked.granted()
        with tcp_is_short():
            linked.peer.segment(ACK, record(DATA, data[:1]) + record(DATA, data[1:]) +
                                linked.switch(len(data), linked.epoch))
            liar.no_end()
            no_link(linked)
            silence(linked, 2 * DUE)
        expect(linked.reads(len(data)) == data, "the peer's bytes")
        linked.record(RESUME)
        Debt(linked).is_called()
        liar.forgotten()


def overdue_closed(tun):
    """If the program has closed, it ends as all that make no progress: 17 looks, 15 s apart."""
    with party() as liar:
        linked = broken(liar, tun)
        debt = Debt(linked)
        linked.sock.close()
        debt.ends(16 * 15, 18 * 15 + LATE)
        debt.is_gone()
        liar.forgotten()


def overdue_link(tun):
    """A peer that makes no link when asked is asked again, while there are bytes to carry."""
    served, _ = said_hello(tun, instance=new_instance())

    def carries():
        """A byte.  Return: the host also asks for a link."""
        served.sock.sendall(b"x")
        kinds = heard(served.peer, 1)
        expect(DATA in kinds, "the byte")
        return LINK in kinds

    expect(carries(), "LINK at the beginning")
    silence(served, 100)
    expect(not served.peer.data, "nothing while there is nothing to carry")
    asked = []
    for second in range(60):
        if carries():
            asked.append(second)
    print(f"# asked after {asked} s")
    expect(len(asked) == 2 and asked[0] < 3 and 30 <= asked[1] - asked[0] < 40,
           f"LINK at once and once more, not after {asked} s")
    served.sock.close()
    served.peer.close()


if __name__ == "__main__":
    sys.exit(run(chosen(globals(), "overdue_", "".join(sys.argv[1:2]))))
