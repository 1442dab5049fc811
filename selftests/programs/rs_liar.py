#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A peer that lies about rings and links, in TAP.

It has a link to this host, with a queue pair of its own (rs_qp), so it proves what
it says as it likes.  A case passes if what was not proved has no effect, and what
can't be resets the connection, for a reason that is counted.  Needs root, the
module, and this host's RDMA address in ADDR4_0.

rs_liar [PATTERN]: the cases whose names have PATTERN in them.
"""
import os
import struct
import sys
import time
from functools import partial

from rs_end import DONE, FREED, End, Linked, Refused, Ticket, dump, until
from rs_peer import (ACK_REC, DATA, END, GRANT, RESUME, Failed, ack, agreed, broken,
                     chosen, end, expect, read_hello, record, resume, run, siphash,
                     switch)


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


# Records as others than the link's end can have them.  @make writes one of
# @linked; @other is another stream of the same two hosts.
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
    ("by our end", lambda make, linked, other: make(key=linked.host_key)),
    ("by our end, sent back", lambda make, linked, other:
     make(key=linked.host_key, tokens=(linked.our_token, linked.token))))


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


def link_memory_of_refused_ring(tun):
    """Who refuses on TCP need not be who writes: only DONE frees the memory."""
    linked = Linked(tun)
    first = linked.granted_where()
    linked.peer.write(switch(0, 0))
    second = linked.granted_where()
    expect(first[0] == second[0], "a grant of the same link")
    expect(first[2] != second[2], "other memory for the next ring")
    linked.peer.write(end(0))
    expect(linked.sock.recv(1) == b"", "the end")
    linked.leave()
    other = Linked(tun)
    third = other.granted_where()
    expect(third[2] not in (first[2], second[2]), "other memory for another stream")
    for _, ring, _ in first, second:
        linked.end.say(DONE, ring)
        expect(linked.end.hear(FREED)[1] == ring, "FREED of this ring")
    other.peer.write(switch(0, 0))
    expect(other.granted_where()[2] in (first[2], second[2]),
           "memory whose sender has said DONE")
    other.left_alone()
    other.leave()


def link_done_twice(tun):
    """What has ended does not end again."""
    linked = Linked(tun)
    _, ring, _ = linked.granted_where()
    for _ in range(2):
        linked.end.say(DONE, ring)
    until(lambda: not linked.links(), "the link to end")
    linked.leave()


def link_refusal_by_done(tun):
    """A grant that is proven and not wanted is refused on the link, too."""
    linked = Linked(tun)
    linked.granted()
    linked.sock.shutdown(1)
    linked.record(END)
    linked.peer.write(linked.grant(1, ring=77))
    linked.switched((0, 0))
    expect(linked.end.hear(DONE)[1] == 77, "DONE of this ring")
    linked.left_alone()
    linked.leave()


def link_ring_twice(tun):
    """An id is used again only behind its FREED."""
    linked, other = Linked(tun), Linked(tun)
    linked.granted()
    other.granted()
    linked.peer.write(linked.grant(1, ring=78))
    linked.switched((0, 1))
    other.refused(other.grant(1, ring=78), "bad-grant")
    linked.leave()
    expect(linked.end.hear(DONE)[1] == 78, "DONE of this ring")
    again = Linked(tun)
    again.granted()
    again.peer.write(again.grant(1, ring=78))
    again.switched((0, 1))
    again.leave()


def link_never_freed(tun):
    """Who never says FREED loses the link, and its streams nothing."""
    linked = Linked(tun)
    linked.end.lies["freed"] = None
    linked.granted()
    linked.peer.write(linked.grant(1, ring=79))
    linked.switched((0, 1))
    linked.leave()
    while linked.end.hear(DONE)[1] != 79:
        pass                    # of an earlier case
    until(lambda: not linked.links(), "the link to end", 90)


def link_too_many(tun):
    """One address has so many links, whatever it calls itself."""
    setting = "/proc/sys/net/rdmastream/links_per_address"
    with open(setting, encoding="ascii") as file:
        before = file.read()
    first = Linked(tun)
    ends, names = [], []
    with open(setting, "w", encoding="ascii") as file:
        file.write("4")
    try:
        for n in range(6):
            ticket = Ticket()
            named = agreed(tun, instance=b"\xff" * 5 + bytes([n]) + os.urandom(10),
                           token=ticket.token, secret=ticket.secret)
            ticket.heard(read_hello(named.peer))
            names.append(named)
            try:
                ends.append(End(ticket, Linked.host).connect())
            except Refused:
                break
        expect(len(ends) == 3, f"three links besides the first, not {len(ends)}")
        expect(first.grown("reason:link-busy") == 1, "reason link-busy")
        first.left_alone()
    finally:
        with open(setting, "w", encoding="ascii") as file:
            file.write(before)
        for each in ends:
            each.close()
        for each in names:
            each.sock.close()
            each.peer.close()
    first.leave()


def link_rings_for_many(tun):
    """With a sixteenth of the default memory each of 56 peers gets a ring."""
    setting = "/proc/sys/net/rdmastream/rmb_max"
    with open(setting, encoding="ascii") as file:
        before = file.read()
    with open(setting, "w", encoding="ascii") as file:
        file.write(str(4 << 20))
    many = []
    try:
        for n in range(56):
            ticket = Ticket()
            named = agreed(tun, instance=b"\xff" * 6 + bytes([n]) + os.urandom(9),
                           token=ticket.token, secret=ticket.secret)
            ticket.heard(read_hello(named.peer))
            many.append((named, End(ticket, Linked.host).connect().ready()))
        for named, _ in many:
            Linked.record(named, GRANT)
    finally:
        with open(setting, "w", encoding="ascii") as file:
            file.write(before)
        for named, each in many:
            named.sock.close()
            named.peer.close()
            each.close()


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


def link_rings_nobody_ends(tun):
    """Connections that are gone before their SWITCH keep no memory for ever."""
    setting = "/proc/sys/net/rdmastream/rmb_max"
    with open(setting) as file:
        before = file.read()
    first = Linked(tun)
    first.peer.close()
    first.sock.close()
    with open(setting, "w") as file:
        file.write(str(16 << 20))
    try:
        for _ in range(80):
            linked = Linked(tun)
            if linked.link["id"] != first.link["id"]:
                break
            linked.granted()
            linked.peer.close()
            linked.sock.close()
        for _ in range(100):
            if all(link["id"] != first.link["id"]
                   for link in dump("links")):
                break
            time.sleep(0.1)
        else:
            raise Failed("a new link instead of one whose memory is lost")
        # who waits for a link gets a ring again
        linked = Linked(tun)
        linked.granted()
        linked.sock.close()
        linked.peer.close()
    finally:
        with open(setting, "w") as file:
            file.write(before)


if __name__ == "__main__":
    sys.exit(run(chosen(globals(), "link_", "".join(sys.argv[1:2]))))
