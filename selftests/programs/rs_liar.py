#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A peer that violates the rules of rings and links.  Prints TAP.

It has a link to this host, with its own queue pair (rs_qp), so it can compute proofs.
A case passes if records without a valid proof have no effect, and impossible records reset
the connection with the right reason.  Needs root, the module, and this host's RDMA address
in ADDR4_0.

rs_liar [PATTERN]: the cases whose names match, a regular expression.
"""
import contextlib
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from functools import partial

from rs_end import DATA as MSG_DATA
from rs_end import (CELLS, DONE, FREED, PROBE, PROBE_ACK, READY, RENEW, RQ_CREDIT, WAIT, Address, End,
                    Linked, Refused, counters, dump, gid, heard, new_instance, party, rsctl,
                    said_hello, setting, until)
from rs_peer import (ACK, ACK_REC, BROKEN, DATA, END, GRANT, LINK, RESUME, REVOKE, STOPPED, Failed,
                     Skipped, ack, broken, chosen, end, expect, fails, ip, record, resume, run,
                     siphash, switch)
from streams import fill, tcp_now, write_file

SO_PEEK_OFF = 42


def stopped(epoch):
    return record(STOPPED, struct.pack("!II", epoch, 0))


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


def grant_behind_data(linked):
    """A second GRANT waits behind data.  Return: epoch of the first one, which is refused."""
    epoch = linked.granted()
    linked.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
    linked.sock.sendall(bytes(200000))      # some of it has to wait for our window
    linked.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    linked.peer.write(ack(0, 1 << 20))      # TCP takes only a part of the next record
    linked.sock.settimeout(WAIT)
    linked.peer.write(switch(0, 0))
    until(lambda: linked.grown("grants-tx") == 2, "the second GRANT to be due")
    return epoch


def link_switch_before_grant(tun):
    """A GRANT that waits behind data can't be answered, although the answer can be guessed."""
    linked = Linked(tun)
    epoch = grant_behind_data(linked)
    linked.refused(linked.switch(0, epoch + 1) + broken(epoch + 1), "bad-switch")


def link_grant_never_sent(tun):
    """If TCP can't send a GRANT any more, the peer's DONE is not needed to free its ring."""
    linked = Linked(tun)
    grant_behind_data(linked)
    both = linked.used()
    linked.peer.close()
    fails(linked.sock, 104)
    linked.sock.close()
    until(lambda: linked.used() < both, "the memory of the second ring to be free")


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


def link_fin_invalid(tun):
    """The program reads end of file; data after it resets the peer."""
    for what in (lambda _: record(DATA, b"x"), lambda _: end(0),
                 lambda linked: linked.switch(0, 1)):
        linked = Linked(tun)
        linked.granted()
        linked.peer.write(end(0) + what(linked))
        expect(linked.peer.until(lambda: linked.peer.rst), "RST")
        linked.sock.close()


def link_grant_of_unknown_link(tun):
    """Each such grant is refused."""
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
    """A host that is not the other end of the link cannot make this host write over it."""
    linked, other = Linked(tun), Linked(tun)
    linked.granted()
    for epoch, (what, wrong) in enumerate(WRONG, 1):
        linked.peer.write(wrong(partial(linked.grant, epoch), linked, other))
        linked.switched((0, 0), what)
    expect(linked.grown("grants-refused-rx") >= len(WRONG), "each to be counted")
    linked.sock.sendall(b"answer")
    expect(linked.record(DATA)[1] == b"answer", "our bytes in DATA")
    linked.left_alone()
    for each in linked, other:
        each.sock.close()
        each.peer.close()


def link_switch_unproven(tun):
    """Likewise for the cell into which credits are written."""
    other = Linked(tun)
    for _, wrong in WRONG:
        linked = Linked(tun)
        epoch = linked.granted()
        linked.refused(wrong(partial(linked.switch, 0, epoch), linked, other),
                       "bad-switch")
    other.left_alone()
    other.sock.close()
    other.peer.close()


def link_grants_refused_by_peer(tun):
    """A sender that refuses grants gets others, and may send DATA."""
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


def link_refusal_keeps_memory_until_done(tun):
    """A refusal on TCP may not come from the host that writes: only DONE frees the memory."""
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


def hears(end_of_it, kind, number=0):
    """Does the host acknowledge the message?"""
    try:
        end_of_it.say(kind, number)
    except Refused:
        return False
    return True


def link_done_twice(tun):
    """A second DONE or FREED ends the link."""
    linked = Linked(tun)
    _, ring, _ = linked.granted_where()
    linked.end.say(DONE, ring)
    hears(linked.end, DONE, ring)       # it may end before it acknowledges that
    until(lambda: not linked.links(), "the link to end")
    linked.leave()


def link_refusal_by_done(tun):
    """An authentic grant that is not used is refused on the link, too."""
    linked = Linked(tun)
    linked.granted()
    linked.sock.shutdown(1)
    linked.record(END)
    linked.peer.write(linked.grant(1, ring=77))
    linked.switched((0, 0))
    expect(linked.end.hear(DONE)[1] == 77, "DONE of this ring")
    linked.left_alone()
    linked.leave()


def symbols():
    """Addresses, in hexadecimal, and names of the module's functions and data, in their order."""
    with open("/proc/kallsyms", encoding="ascii") as file:
        return sorted((line.split()[0], line.split()[2]) for line in file
                      if line.endswith("[rdmastream]\n"))


FAULTS = "/sys/kernel/debug/failslab/"


@contextlib.contextmanager
def no_slabs(*functions):
    """Allocations below these functions of the module fail.  They stand together."""
    module = symbols()
    found = [i for i, (_, name) in enumerate(module) if name in functions]
    if len(found) != len(functions):
        raise Failed(f"functions {functions}")
    for name, value in (("task-filter", "N"), ("ignore-gfp-wait", "N"), ("stacktrace-depth", 32),
                        ("verbose", 0), ("interval", 1), ("times", -1),
                        ("require-start", "0x" + module[found[0]][0]),
                        ("require-end", "0x" + module[found[-1] + 1][0]), ("probability", 100)):
        write_file(FAULTS + name, value)
    try:
        yield
    finally:
        write_file(FAULTS + "probability", 0)
        write_file(FAULTS + "require-start", 0)


def link_refused_without_memory(tun):
    """The refusal of a grant needs no memory."""
    if not os.path.isdir(FAULTS):
        raise Skipped("only the debug kernel lets allocations fail")
    with party() as liar:
        linked, again = liar(tun), liar(tun)
        linked.granted()
        with no_slabs("rstream_txring_open", "rstream_txring_refuse"):
            linked.peer.write(linked.grant(1, ring=77))
            linked.switched((0, 0))
            expect(liar.end.hear(DONE)[1] == 77, "DONE of this ring")
        linked.left_alone()
        # after FREED, the id is another ring
        again.granted()
        again.peer.write(again.grant(1, ring=77))
        again.switched((0, 1))
        again.leave()
        expect(liar.end.hear(DONE)[1] == 77, "DONE of the other ring")
        linked.left_alone()
        linked.leave()
        liar.forgotten()


def link_ring_id_reused(tun):
    """A ring id is reused only after FREED."""
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
    """A peer that never sends FREED loses the link; its streams continue."""
    linked = Linked(tun)
    linked.end.lies["freed"] = None
    linked.granted()
    linked.peer.write(linked.grant(1, ring=79))
    linked.switched((0, 1))
    linked.leave()
    while linked.end.hear(DONE)[1] != 79:
        pass                    # of an earlier case
    until(lambda: not linked.links(), "the link to end", 90)


def too_many(tun, name, beside):
    """Allows three more links than exist; @beside: other links that count."""
    first = Linked(tun)
    ends, names = [], []
    try:
        with setting(name, beside() + 3):
            for _ in range(6):
                named, ticket = said_hello(tun, instance=new_instance())
                names.append(named)
                try:
                    ends.append(End(ticket, Linked.host).connect().ready())
                except Refused:
                    break
        expect(len(ends) == 3, f"three links besides the first, not {len(ends)}")
        expect(first.grown("reason:link-busy") == 1, "reason link-busy")
        first.left_alone()
    finally:
        for each in ends:
            each.close()
        for each in names:
            each.sock.close()
            each.peer.close()
    first.leave()


def link_too_many(tun):
    """The limit on links per address holds for any instance ids."""
    too_many(tun, "links_per_address", lambda: 1)


def link_too_many_of_all(tun):
    """The limit on all links holds."""
    too_many(tun, "links_max", lambda: sum(link["state"] == "up" for link in dump("links")))


def link_rings_for_many(tun):
    """With a sixteenth of the default memory, each of 56 peers gets a ring."""
    many = []
    left = (4 << 20) + sum(rmb["bytes"] for rmb in dump("memory"))
    try:
        with setting("rmb_max", left):
            for _ in range(56):
                named, ticket = said_hello(tun, instance=new_instance())
                many.append((named, End(ticket, Linked.host).connect().ready()))
            for named, _ in many:
                Linked.record(named, GRANT)
    finally:
        for named, each in many:
            named.sock.close()
            named.peer.close()
            each.close()


def link_resumes(tun):
    """Data lost on the ring arrives as DATA, no byte more or less."""
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


def link_resume_count_invalid(tun):
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


def link_abandoned_rings(tun):
    """Memory of connections that end before their SWITCH is reclaimed."""
    first = Linked(tun)
    first.peer.close()
    first.sock.close()
    with setting("rmb_max", 16 << 20):
        for _ in range(80):
            try:
                linked = Linked(tun)
            except Refused:             # the link has ended just now
                break
            if linked.link["id"] != first.link["id"]:
                break
            linked.granted()
            linked.peer.close()
            linked.sock.close()
        until(lambda: all(link["id"] != first.link["id"] for link in dump("links")),
              "a new link instead of one whose memory is lost")
        # a stream that waits for a link gets a ring again
        linked = Linked(tun)
        linked.granted()
        linked.sock.close()
        linked.peer.close()


def link_abandoned_rings_written(tun):
    """Likewise if a byte lands in each of them now and then."""
    with party() as liar, setting("rmb_max", 16 << 20):
        stays, rings, bytes_left = liar(tun), [], 5 << 19
        end = stays.end
        while bytes_left > 0:
            try:                                # it may take so long that the link ends
                linked = liar(tun)
                if linked.end is not end:
                    break
                linked.granted()
                linked.put_bytes = 0
                linked.leave()
            except Refused:
                break
            rings.append(linked)
            bytes_left -= linked.size
        print(f"# {len(rings)} rings")
        stop = time.monotonic() + 20
        with contextlib.suppress(Refused):      # no byte lands when the link has ended
            while liar.end is end and liar.links() and time.monotonic() < stop:
                for linked in rings:
                    linked.put(b"x")
                    end.listen_up()
                time.sleep(0.5)
        if liar.end is end:
            stays.over("too many abandoned rings", 0.5)
            end.hear(RENEW)
        else:
            stays.ended("too many abandoned rings")
        stays.leave()
        liar.forgotten()


def link_renewed_by_peer(tun):
    """A peer that gives up a link to reclaim its memory says so: that is no fault.  It has to be a
    link that was up for a second."""
    with party() as liar:
        for renews, lives in (True, 1.1), (True, 0), (False, 1.1):
            linked = liar(tun)
            time.sleep(lives)
            if renews:
                linked.end.say(RENEW)
            linked.granted()
            linked.end.qp.ask("disconnect")
            linked.over("the peer renews it" if renews and lives else "disconnected")
            linked.leave()
        liar.forgotten()


def lesser_instance():
    """Less than that of the host: it makes the links."""
    return bytes(8) + os.urandom(8)


@contextlib.contextmanager
def counted(event, only="0"):
    """Yields a function: how often the event has been traced.  @only: a filter, "0": none"""
    trace = "/sys/kernel/tracing/"
    if not os.path.isdir(trace + "events"):
        subprocess.run(["mount", "-t", "tracefs", "tracefs", trace], check=True)

    def count():
        n = 0
        for cpu in os.listdir(trace + "per_cpu"):
            with open(f"{trace}per_cpu/{cpu}/stats", encoding="ascii") as file:
                said = dict(line.split(":", 1) for line in file)
            n += int(said["entries"]) + int(said["overrun"])
        return n
    event = f"{trace}events/{event}/"
    write_file(event + "filter", only)
    write_file(trace + "trace", "")
    write_file(event + "enable", 1)
    try:
        yield count
    finally:
        write_file(event + "enable", 0)


def runs_of_streams():
    """counted(): how often the worker of the streams has run."""
    worker, = (address for address, name in symbols() if name == "on_work")
    return counted("workqueue/workqueue_execute_start", f"function == 0x{worker}")


def link_failures_are_told_once(tun):
    """Streams that wait while no link is possible do not run again and again."""
    with party() as liar, contextlib.ExitStack() as stack:
        first, name, many = liar(tun), lesser_instance(), []
        stack.enter_context(setting("links_per_address", 1))
        for _ in range(100):
            many.append(said_hello(tun, instance=name)[0])
        runs = stack.enter_context(runs_of_streams())
        for each in many:
            each.peer.write(record(LINK))
        time.sleep(5)
        waiting, = (peer["waiting"] for peer in dump("peers") if peer["peer"] == name.hex())
        expect(waiting == len(many), f"each to wait, not {waiting}")
        count = runs()
        print(f"# {count} runs for {len(many)} connections")
        # LINK, then for each of its timers, whose pauses grow, that and a failure
        expect(count < 15 * len(many), f"few runs, not {count}")
        first.left_alone()
        for each in many:
            each.sock.close()
            each.peer.close()
        first.leave()
        liar.forgotten()


CHURN = """
import socket, time
for _ in range(200):
    with socket.socket(proto=257) as sock:
        sock.listen()
        time.sleep(0.01)
    time.sleep(0.01)
"""


def link_listener_in_a_loop(_):
    """A program in a namespace cannot make rdma_cm's listener come and go all the time."""
    subprocess.run(["ip", "netns", "add", "churn"], check=True)
    try:
        begin = time.monotonic()
        with counted("rdma_cma/cm_id_destroy") as ends:
            subprocess.run(["ip", "netns", "exec", "churn", sys.executable, "-c", CHURN],
                           check=True)
            count, passed = ends(), time.monotonic() - begin
        print(f"# {count} ids have ended in {passed:.1f} s")
        # once a second: for IPv4, IPv6, and one for each of two devices
        expect(count <= 6 * (passed + 1), f"few ids to end, not {count}")
    finally:
        subprocess.run(["ip", "netns", "del", "churn"], check=True)


def link_attempts_are_shared(tun):
    """Attempts to one address that never succeed leave some for another."""
    def attempts(remote):
        return sum(link["state"] == "connecting" and link["remote"].startswith(remote)
                   for link in dump("links"))
    nobody = gid(Linked.host)[:15]
    with setting("cm_timeout_ms", 20000), contextlib.ExitStack() as stack:
        for n in range(70):
            each = said_hello(tun, instance=lesser_instance(),
                              addresses=[nobody + bytes([100 + n])])[0]
            stack.callback(each.sock.close)
            stack.callback(each.peer.close)
            each.peer.write(record(LINK))
        most, stop = 0, time.monotonic() + 5
        while time.monotonic() < stop:
            most = max(most, attempts(""))
            time.sleep(0.1)
        print(f"# {most} attempts at once")
        expect(10 < most < 32, f"a share of 64 attempts, not {most}")


def link_revoke_ignored(tun):
    """A peer that continues to write after REVOKE can fill the ring once, and is reset."""
    beside = Linked(tun)
    for stops in False, True:
        linked = Linked(tun)
        linked.granted()
        linked.take(0)
        linked.make_grow()
        linked.revoked()
        read = linked.put_bytes
        until(lambda: linked.credited() == read, "credit of what was read")
        linked.put(bytes(linked.size))
        time.sleep(1)
        expect(linked.credited() == read, "no credit of what nobody reads")
        if stops:
            linked.peer.write(stopped(linked.epoch))
            until(lambda: linked.credited() == linked.put_bytes,
                  "credit of what has come, behind STOPPED")
        linked.put(bytes(1))
        linked.reset("ring-overrun", bytes(linked.size + 1))
        beside.left_alone()
    beside.leave()


def link_revoke_obeyed(tun):
    """After STOPPED and SWITCH, the program gets all data in order."""
    linked = Linked(tun)
    linked.granted()
    linked.take(0)
    linked.make_grow()
    linked.revoked()
    rest = os.urandom(linked.size)
    linked.put(rest)
    linked.peer.write(stopped(linked.epoch))
    until(lambda: linked.credited() == linked.put_bytes, "credit of what has come")
    size = linked.size
    linked.peer.write(switch(linked.put_bytes, 0))
    expect(linked.reads(len(rest)) == rest, "the peer's bytes")
    while struct.unpack("!QQ", linked.record(ACK_REC)[1])[1] < linked.put_bytes + 6:
        pass                    # until tcp's window counts again
    linked.peer.write(record(DATA, b"behind"))
    expect(linked.reads(6) == b"behind", "the peer's bytes on tcp")
    linked.granted()
    expect(linked.size > size, "a larger ring")
    linked.leave()


def tcp_memory():
    """Pages that TCP has charged."""
    return tcp_now("mem")


def link_single_bytes_after_stopped(tun):
    """Single bytes that are moved out of a ring do not take a page each."""
    count = 1000
    linked = Linked(tun)
    linked.granted()
    linked.take(0)
    linked.make_grow()
    linked.revoked()
    linked.peer.write(stopped(linked.epoch))
    before, crumbs = tcp_memory(), os.urandom(count)
    for crumb in crumbs:
        linked.put(bytes([crumb]))
        until(lambda: linked.credited() == linked.put_bytes, "credit of a byte")
        linked.end.listen_up()
    pages = tcp_memory() - before
    print(f"# {count} bytes: {pages} pages")
    expect(pages < count / 8, f"few pages, not {pages} for {count} bytes")
    expect(linked.reads(count) == crumbs, "the peer's bytes")
    linked.leave()


def link_unread_is_limited(tun):
    """Unread data is limited to a window and a ring: beyond a window, no new ring."""
    with party() as other:
        linked = other(tun)
        window = linked.ticket.host_window
        data = os.urandom(window)
        linked.granted()
        for at in range(0, window, 16384):
            linked.peer.write(record(DATA, data[at:at + 16384]))
        linked.take(window)
        rest = os.urandom(linked.size)
        linked.put(rest)
        other.no_end()
        got = struct.unpack("!IIQ", linked.record(RESUME)[1])
        expect(got == (linked.epoch, 0, len(rest)), "RESUME behind all of the ring")
        linked.peer.write(switch(window + len(rest), 0))
        again = other(tun)
        again.granted()
        expect(GRANT not in heard(linked.peer, 3), "no GRANT before the program has read")
        expect(linked.reads(window + len(rest)) == data + rest, "the peer's bytes")
        linked.granted()
        linked.leave()
        again.leave()
        other.forgotten()


def link_peeked_is_kept(tun):
    """The program reads what it has peeked at, even if the peer overwrites it."""
    linked = Linked(tun)
    linked.granted()
    linked.take(0)
    size = linked.size
    sent = os.urandom(size * 3 // 4)
    linked.put(sent)
    for n in 1, 5, 4096, 5000, size // 2:
        until(lambda n=n: len(linked.sock.recv(n, socket.MSG_PEEK)) == n, "bytes to peek at")
    evil = bytes(len(sent))
    linked.end.write(linked.addr, linked.rkey, evil)
    expect(linked.credited() == 0, "no credit of what is only peeked at")
    seen = sent[:size // 2]
    expect(linked.sock.recv(len(seen), socket.MSG_PEEK) == seen, "the same when peeked again")
    expect(linked.reads(len(seen)) == seen, "the same when read")
    until(lambda: linked.credited() >= size // 4, "credit of what was read")
    expect(len(linked.reads(len(sent) - len(seen))) == len(sent) - len(seen),
           "as many bytes as were said")
    for n in range(40):         # round its end, peeked at byte by byte
        piece = os.urandom(size // 16 + n)
        linked.put(piece)
        for some in range(1, 40):
            until(lambda some=some: len(linked.sock.recv(some, socket.MSG_PEEK)) == some,
                  "bytes to peek at")
        expect(linked.sock.recv(39, socket.MSG_PEEK) == piece[:39], "the peer's bytes")
        expect(linked.reads(len(piece)) == piece, "the peer's bytes")
    linked.left_alone()
    linked.leave()


def peeks_on(sock, at):
    """Sets the peek offset.  Return: whether the kernel supports it (since 6.9)."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_PEEK_OFF, at)
    except OSError:
        return False
    return True


def link_peeked_large_ring(tun):
    """All of a large ring can be peeked at piecewise, and is charged once."""
    linked = Linked(tun)
    expect(grows(linked), "a larger ring")
    expect(linked.size >= 1 << 18, f"a large ring, not of {linked.size} bytes")
    data = os.urandom(linked.size)
    linked.put(data)
    if peeks_on(linked.sock, 0):
        seen = b""
        while len(seen) < len(data):
            seen += linked.sock.recv(50000, socket.MSG_PEEK)
        expect(peeks_on(linked.sock, -1), "to begin anew")
    else:
        seen = linked.sock.recv(len(data), socket.MSG_PEEK | socket.MSG_WAITALL)
    expect(seen == data, "the peer's bytes")
    linked.end.write(linked.addr, linked.rkey, bytes(linked.size))
    expect(linked.sock.recv(len(data), socket.MSG_PEEK) == data, "all at once")
    expect(linked.reads(len(data)) == data, "the peer's bytes")
    linked.put(b"behind")
    expect(linked.reads(6) == b"behind", "the peer's bytes")
    linked.left_alone()
    linked.leave()


def starve(linked):
    """Uses up the host's receive credits.  Return: bytes received, one per message."""
    for count in range(linked.end.depth):
        linked.sock.sendall(b"x")
        if not linked.end.next(2):
            expect(count > linked.end.depth // 2, "so many messages without a credit")
            return count
    raise Failed("the host to have no credit any more")


def starved(liar, tun):
    """A connection on a ring of this test, and the result of starve()."""
    linked = liar(tun)
    linked.granted()
    linked.peer.write(linked.grant_room(1))
    linked.switched((0, 1))
    return linked, starve(linked)


def link_credits_withheld(tun):
    """A peer that never returns receive credits loses the link; its streams continue."""
    beside = Linked(tun)
    with party(depth=64, rq_credit=None) as liar:
        linked, count = starved(liar, tun)
        expect(linked.grown("stall-credit"), "the want of a credit to be counted")
        linked.sock.sendall(b"more")
        linked.over("peer gives no receive credits", 90)
        expect(linked.record(BROKEN)[1] == struct.pack("!II", 1, 0), "BROKEN")
        linked.peer.write(resume(1, count))
        linked.switched((count, 0))
        data = b""
        while len(data) < 5:
            data += linked.record(DATA)[1]
        expect(data == b"xmore", "what has not come by the ring")
        linked.leave()
        liar.forgotten()
    beside.left_alone()
    beside.leave()


def on_our_ring(tun, **options):
    """The program writes into a ring of ours, which nobody reads."""
    linked = Linked(tun)
    for option, value in options.items():
        linked.sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    linked.peer.write(linked.grant_room(1))
    linked.switched((0, 1))
    return linked


def link_peer_gone(tun):
    """What stays in a ring: the host asks on TCP whether the peer is still there, also if a part was
    credited after all was sent."""
    for size, credited in ((10, 0), (None, 0), (10, 5)):
        linked = on_our_ring(tun)
        fill(linked.sock, most=size)
        if credited:
            linked.credit(credited)
        linked.record(ACK_REC)
        linked.peer.close()
        fails(linked.sock, 104)
        linked.sock.close()


def link_peer_asked_once(tun):
    """An idle stream asks once whether the peer is there, and not again."""
    linked = on_our_ring(tun)
    linked.sock.sendall(b"0123456789")
    linked.record(ACK_REC)
    expect(not heard(linked.peer, 8), "no other record")
    linked.leave()


def link_full_for_long(tun):
    """TCP_USER_TIMEOUT limits the wait for a ring that the peer does not read."""
    linked = on_our_ring(tun, TCP_USER_TIMEOUT=3000)
    began = time.monotonic()
    fill(linked.sock)
    with linked.peer.answering(lambda: linked.peer.rst, 8):
        fails(linked.sock, 110)
    expect(time.monotonic() - began > 2, "the wait")
    linked.leave()


def link_end_before_data(tun):
    """A program that waits only for the end is woken when FIN and the data before it are here."""
    linked = Linked(tun)
    linked.granted()
    linked.take(0)
    with select.epoll() as events:
        events.register(linked.sock, select.EPOLLRDHUP)
        linked.peer.write(end(5))
        expect(not events.poll(1), "no end yet")
        linked.put(b"12345")
        expect(events.poll(WAIT), "the end")
    linked.leave()


def link_credits_too_few(tun):
    """A peer that returns too few receive credits loses the link, too."""
    beside = Linked(tun)
    with party(depth=64, rq_credit=None) as liar:
        linked, _ = starved(liar, tun)
        stop = time.monotonic() + 90
        while linked.links():
            expect(time.monotonic() < stop, "the link to end")
            liar.end.say(RQ_CREDIT, 1)
            while liar.end.next(2):         # that of the credit, then none
                linked.sock.sendall(b"x")
        linked.over("peer gives no receive credits", 5)
        linked.sock.close()
        linked.peer.close()
    beside.left_alone()
    beside.leave()


def link_ready_withheld(tun):
    """A peer that never sends READY has no link."""
    beside, name = Linked(tun), new_instance()
    beside.before = counters()
    with setting("cm_timeout_ms", 1000):
        named, ticket = said_hello(tun, instance=name)
        end_of_it = End(ticket, Linked.host).connect()
        until(lambda: all(link["peer"] != name.hex() for link in dump("links")),
              "the link to end")
    expect(beside.grown("links-failed") == 1, "a link that failed")
    expect(beside.grown("links-up") == 0, "no link, up")
    expect(not hears(end_of_it, READY), "READY to come too late")
    expect(not [link for link in dump("links") if link["peer"] == name.hex()],
           "no link of its")
    end_of_it.close()
    until(lambda: {rmb["link"] for rmb in dump("memory")} <=
          {link["id"] for link in dump("links")}, "its memory to be free")
    named.peer.write(record(DATA, b"abc"))
    expect(named.sock.recv(9) == b"abc", "bytes on tcp")
    named.sock.close()
    named.peer.close()
    beside.left_alone()
    beside.leave()


def link_freed_late(tun):
    """DONE and FREED that found no credit are sent later, once each."""
    with party(depth=64, rq_credit=None, freed=None) as liar:
        poor = liar(tun)
        poor.granted()
        poor.peer.write(poor.grant_room(1))
        poor.switched((0, 1))
        taken, left = liar(tun), liar(tun)
        left.granted()
        left.peer.write(left.grant(1, ring=80))
        left.switched((0, 1))
        _, ring, addr = taken.granted_where()
        starve(poor)
        taken.peer.write(switch(0, 0))
        liar.end.say(DONE, ring)
        left.leave()
        expect(liar.end.next(2) is None, "no message without a credit")
        again = liar(tun)
        expect(again.granted_where()[2] != addr, "no memory that FREED is owed for")
        liar.end.say(RQ_CREDIT, liar.end.returned)
        liar.end.returned = 0
        expect(liar.end.hear(FREED)[1] == ring, "FREED of this ring")
        expect(liar.end.hear(DONE)[1] == 80, "DONE of this ring")
        liar.end.say(FREED, 80)
        more = liar(tun)
        expect(more.granted_where()[2] == addr, "memory that FREED was said of")
        more.peer.write(more.grant(1, ring=80))
        more.switched((0, 1))
        more.left_alone()
        expect([kind for kind, _, _ in liar.end.heard if kind in (DONE, FREED)] == [],
               "nothing twice")
        for each in poor, taken, again, more:
            each.leave()
        liar.forgotten()


def link_freed_ever_later(tun):
    """A peer that sends FREED ever later loses the link, too."""
    beside = Linked(tun)
    with party(freed=None) as liar:
        stays = liar(tun)
        many = [liar(tun) for _ in range(8)]
        rings = range(90, 90 + len(many))
        for linked, ring in zip(many, rings):
            linked.granted()
            linked.peer.write(linked.grant(1, ring=ring))
            linked.switched((0, 1))
            linked.leave()
            expect(liar.end.hear(DONE)[1] == ring, "DONE of this ring")
        began = time.monotonic()
        for ring in rings:
            while time.monotonic() < began + 15 * (ring - rings[0] + 1):
                if not liar.links():
                    break
                time.sleep(0.5)
            if not liar.links():
                break
            expect(time.monotonic() < began + 80,
                   f"the link to end: {rings[-1] - ring + 1} rings are still owed")
            liar.end.say(FREED, ring)
        stays.over("peer never frees its rings")
        stays.leave()
        liar.forgotten()
    beside.left_alone()
    beside.leave()


def link_credits_of_single_bytes(tun):
    """Credits of single bytes do not cause messages of single bytes."""
    size, count = 4 << 20, 1000
    with party(memory=size + CELLS) as liar:
        linked = liar(tun)
        linked.granted()
        data = os.urandom(size + 65536)
        linked.sock.setsockopt(1, 33, 2 * len(data))    # SO_SNDBUFFORCE
        linked.peer.write(linked.grant_room(1, size=size))
        linked.switched((0, 1))
        linked.sock.sendall(data)
        came = 0
        while came < size:
            came += linked.end.any()[2]
        before, frags = counters()["wrs"], in_slab("rstream_frag")
        began = time.monotonic()
        for n in range(1, count + 1):
            linked.credit(n)
            linked.end.listen_up()
        # what has waited for 10 ms is written, be it little
        allowed = count / 3 + (time.monotonic() - began) / 0.01
        wrs = counters()["wrs"] - before
        frags = in_slab("rstream_frag") - frags
        print(f"# {count} credits of a byte: {wrs} work requests, {frags} frags more")
        expect(wrs < allowed, f"few work requests, not {wrs} for {count} credits")
        linked.credit(size)
        while came < len(data):
            came += linked.end.any()[2]
        ring = linked.end.qp.read(CELLS, 2 * 65536)
        expect(ring == data[size:] + data[65536:2 * 65536], "the program's bytes")
        linked.leave()
        liar.forgotten()


def free_memory():
    """Bytes."""
    with open("/proc/meminfo", encoding="ascii") as file:
        words = next(line.split() for line in file if line.startswith("MemFree:"))
    return int(words[1]) << 10


def link_reset_without_credit(tun):
    """A ring that its stream has left, for which not even DONE can be sent, keeps no data."""
    size = 16 << 20
    with party(memory=size + CELLS) as liar:
        linked = liar(tun)
        linked.granted()
        linked.end.lies["rq_credit"] = None
        linked.peer.write(linked.grant_room(1, size=size))
        linked.switched((0, 1))
        linked.sock.setsockopt(1, 32, size)     # SO_SNDBUFFORCE: the kernel doubles it
        before = free_memory()
        linked.sock.sendall(bytes(size - 4096))
        came = 0
        while came < size - 4096:
            came += linked.end.any()[2]
        # a receive for each of these, until there is none for DONE
        for count in range(1000):
            linked.sock.send(b"x")
            if not linked.end.next(0.5):
                break
        kept = before - free_memory()
        print(f"# after {count} messages, {kept >> 10} KiB are kept")
        expect(count < 999 and kept > size // 2, "data that is kept, and no receive")
        linked.peer.close()
        until(lambda: before - free_memory() < kept / 4, "the data to be freed", 10)
        linked.sock.close()
        liar.forgotten()


def link_credit_of_nothing(tun):
    """A peer whose answers bring no space is not asked as fast as it answers."""
    with party() as liar:
        linked = liar(tun)
        linked.granted()
        linked.peer.write(linked.grant_room(1))
        linked.switched((0, 1))
        data = os.urandom(3 * 65536)
        linked.sock.settimeout(None)
        sender = threading.Thread(target=linked.sock.sendall, args=(data,), daemon=True)
        linked.sock.setsockopt(1, 32, 4096)     # SO_SNDBUFFORCE
        sender.start()
        came = 0
        while came < 65536:
            came += linked.end.any()[2]
        linked.credit(0)        # the last of them has asked
        asked, stop = 0, time.monotonic() + 1
        while time.monotonic() < stop:
            message = linked.end.next(stop - time.monotonic())
            asked += bool(message)
            linked.credit(0)
        print(f"# asked {asked} times in a second")
        expect(asked < 200, f"few requests, not {asked}")
        expect(asked, "some requests")
        while came < len(data):
            linked.credit(came)
            came += linked.end.any()[2]
        sender.join()
        linked.leave()
        liar.forgotten()


def in_slab(name):
    """Objects of this kind in use; 0 if the kernel does not report them."""
    with open("/proc/slabinfo", encoding="ascii") as file:
        for line in file:
            if line.split()[0] == name:
                return int(line.split()[1])
    return 0


def registered():
    """Bytes of this namespace, also of links that have ended."""
    words = rsctl("memory").decode().split("rings:")[1].split()
    return float(words[0].rstrip("KMG")) * {"K": 1 << 10, "M": 1 << 20}.get(words[0][-1], 1)


@contextlib.contextmanager
def tcp_is_short():
    """TCP has no memory: what comes in large segments stays in its queue."""
    path = "/proc/sys/net/ipv4/tcp_mem"
    with open(path, encoding="ascii") as file:
        before = file.read()
    for end_of_wire in "wire0", "wire1":
        ip(f"link set {end_of_wire} mtu 9000")
    write_file(path, "1 1 1")
    try:
        yield
    finally:
        write_file(path, before)
        for end_of_wire in "wire0", "wire1":
            ip(f"link set {end_of_wire} mtu 1500")


def link_dead_keeps_no_memory(tun):
    """A program that does not read cannot keep links that have ended.

    SWITCH, to a ring of such a link, waits behind data for which there is no memory.  What was
    in the ring before it is not lost.
    """
    data, rest, many = os.urandom(6000), b"and the rest", []
    before = registered()
    with contextlib.ExitStack() as stack:
        for n in range(8):
            linked = stack.enter_context(party())(tun)
            linked.granted()
            linked.put_bytes, linked.landed = 0, os.urandom(700 * n)
            linked.put(linked.landed)
            many.append(linked)
        print(f"# {registered() - before:.0f} bytes are registered for {len(many)} links")
        with tcp_is_short():
            for linked in many:
                linked.peer.segment(ACK, record(DATA, data[:1]) + record(DATA, data[1:]) +
                                    linked.switch(len(data), linked.epoch))
                linked.no_end()
            until(lambda: registered() < before + 16384, "the memory of the links to be free")
            # nor do they count
            with setting("links_per_address", len(many)):
                stack.enter_context(party())(tun).leave()
            for linked in many:
                expect(linked.sock.recv(2000, socket.MSG_DONTWAIT) == data[:1],
                       "nothing to read but a byte")
        for linked in many:
            got = struct.unpack("!IIQ", linked.record(RESUME)[1])
            expect(got == (linked.epoch, 0, len(linked.landed)), "RESUME behind what has landed")
            linked.peer.write(switch(len(data + linked.landed), 0) + record(DATA, rest))
            said = data[1:] + linked.landed + rest
            expect(linked.reads(len(said)) == said, "the peer's bytes")
            linked.leave()


def link_grant_too_small(tun):
    """A tiny ring is refused."""
    refuse_each(tun, (
        (lambda linked, _: linked.grant(1, size=1), "bad-grant"),
        (lambda linked, _: linked.grant(1, size=2048), "bad-grant")))


def grows(linked):
    """Is a busy ring replaced by a larger one?"""
    linked.granted()
    linked.take(0)
    linked.make_grow()
    if REVOKE not in heard(linked.peer, 2):
        return False
    until(lambda: linked.credited() == linked.put_bytes, "credit of all")
    size = linked.size
    linked.peer.write(switch(linked.put_bytes, 0))
    linked.granted()
    linked.take(linked.put_bytes)
    return linked.size > size


def link_growth_is_shared(tun):
    """Many links of one address do not prevent the rings of another from growing."""
    links, refused = [], 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(setting("rmb_max", 32 << 20))
        while len(links) < 48 and refused < 3:
            links.append(stack.enter_context(party())(tun))
            if not grows(links[-1]):
                refused += 1
        print(f"# {len(links)} links, {len(links) - refused} with a larger ring:",
              sum(rmb["bytes"] for rmb in dump("memory")), "bytes")
        expect(refused, "an end of what one address gets")
        other = stack.enter_context(party())(Address(tun, "10.78.0.3"))
        expect(grows(other), "a larger ring for another address")
        other.leave()
        for linked in links:
            linked.leave()
            linked.forgotten()


# ---- iWARP: a message is a write and a SEND of eight bytes ----

def notice(end_of_it, kind, number, size, extra=b""):
    """A SEND that says that @size bytes were written."""
    value = kind << 28 | (end_of_it.number & 255) << 20 | number
    end_of_it.number += 1
    end_of_it.qp.ask("send", (struct.pack("!II", value, size) + extra).hex())


def iwarp_wrong_size(tun):
    """A SEND of another size ends the link."""
    for what in (b"", b"1234", bytes(7), bytes(9), bytes(16)):
        with party() as liar:
            linked = liar(tun)
            with contextlib.suppress(Refused):      # it may end before this has completed
                linked.end.qp.ask("send", what.hex())
            linked.over("message of a wrong size")
            linked.leave()
            liar.forgotten()


def iwarp_wrong_length(tun):
    """More bytes than were written are those of the ring; more than it has room for reset."""
    linked = Linked(tun)
    linked.granted()
    linked.take(0)
    linked.end.write(linked.addr, linked.rkey, b"said")
    notice(linked.end, MSG_DATA, linked.ring, 10)
    linked.put_bytes = 10
    expect(linked.reads(10) == b"said" + bytes(6), "what is in the ring")
    notice(linked.end, MSG_DATA, linked.ring, linked.size + 1)
    linked.reset("ring-overrun")
    for size in (0x80000000, 0xffffffff):
        linked = Linked(tun)
        linked.granted()
        linked.take(0)
        notice(linked.end, MSG_DATA, linked.ring, size)
        linked.reset("ring-overrun")


def iwarp_probes(tun):
    """A host without credits answers many probes at once; answers that it has not asked for do
    not matter."""
    with party(depth=64, rq_credit=None) as liar:
        linked = liar(tun)
        for _ in range(3):
            linked.end.say(PROBE_ACK)
        for _ in range(200):
            linked.end.say(PROBE)
            expect(linked.end.is_up(), "the link to stay")
        answers = 0
        while message := linked.end.next(2):
            answers += message[0] == PROBE_ACK
        expect(10 < answers <= 64, f"answers as far as there are credits, not {answers}")
        expect(linked.links(), "the link, up")
        linked.end.say(RQ_CREDIT, 60)
        linked.end.hear(PROBE_ACK)
        linked.leave()
        liar.forgotten()


def iwarp_probes_early(tun):
    """Probes before READY are answered behind it, so that they take no credits."""
    named, ticket = said_hello(tun, instance=new_instance())
    early = End(ticket, Linked.host, depth=64, rq_credit=None).connect()
    for _ in range(60):
        early.say(PROBE)
    expect(early.next(1) is None, "no answer before READY")
    early.ready()
    early.hear(PROBE_ACK)
    early.close()
    named.sock.close()
    named.peer.close()


def iwarp_other_service(tun):
    """An address in a HELLO is tried at our own port only: such a request is a TCP connection."""
    near, known = os.environ["ADDR4_1"], 4793
    nft = ("nft", "add table inet named; add chain inet named out { type filter hook output priority 0; };")
    subprocess.run([*nft[:1], nft[1] + "".join(
        f"add rule inet named out ip daddr {near} tcp dport {port} tcp flags syn counter;"
        for port in (known, 6380))], check=True)

    def sent(port):
        said = subprocess.run(["nft", "-n", "list", "chain", "inet", "named", "out"], check=True,
                              capture_output=True, text=True).stdout
        return int(said.split(f"dport {port} ", 1)[1].split("packets", 1)[1].split()[0])

    def named(port):
        # the lesser id: this host makes the links
        served, _ = said_hello(tun, instance=bytes(8) + os.urandom(8), port=port,
                               addresses=[gid(near)])
        served.peer.write(record(DATA, bytes(20000)))
        return served

    try:
        begun = time.monotonic()
        served = [named(known)]
        until(lambda: sent(known), "a request to the address that was named")
        took = time.monotonic() - begun
        served.append(named(6380))
        stop = time.monotonic() + max(3, 3 * took)
        while time.monotonic() < stop:
            expect(not sent(6380), "no request to another service")
            time.sleep(0.1)
        for each in served:
            each.sock.close()
            each.peer.close()
    finally:
        subprocess.run(["nft", "delete table inet named"], check=True)


def iwarp_silence(tun):
    """A peer that does not answer probes loses the link, and no other does."""
    beside = Linked(tun)
    with party(probe_ack=None) as liar:
        linked = liar(tun)
        # on a busy machine, the honest end may need seconds for its answer
        with setting("link_stall_ms", 5000):
            stop = time.monotonic() + 30
            while linked.links() and time.monotonic() < stop:
                beside.end.listen_up()
                time.sleep(0.05)
            linked.over("nothing completes", 0.1)
        beside.left_alone()
        linked.leave()
        liar.forgotten()
    beside.leave()


def link_probe_on_roce(tun):
    """A device answers probes of RoCE, so PROBE is unknown there."""
    if os.environ.get("RDMA") == "siw":
        raise Skipped("with iWARP, PROBE is known")
    with party() as liar:
        linked = liar(tun)
        hears(linked.end, PROBE)
        linked.over("unknown message")
        linked.leave()
        liar.forgotten()


if __name__ == "__main__":
    kinds = ("link_", "iwarp_") if os.environ.get("RDMA") == "siw" else "link_"
    sys.exit(run(chosen(globals(), kinds, "".join(sys.argv[1:2]))))
