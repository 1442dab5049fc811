#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A host that violates the protocol, also on RDMA.  Prints TAP.

It has its own queue pairs, sends wrong rdma_cm requests and RDMA messages, and claims to be
other hosts.  A case passes if this costs only its own link or connection, with the right
reason, and does not affect other hosts.  Needs root, the module, this host's RDMA address in
ADDR4_0, and streams with another host that always keep their rings.

rs_hostile [PATTERN]: the cases whose names match, a regular expression.
"""
import contextlib
import ctypes
import os
import select
import socket
import struct
import sys
import time

from rs_end import (CELLS, CM_PORT, CREDIT, DATA, DATA_WANT, DONE, FREED, READY, RQ_CREDIT,
                    WAIT, End, Linked, Qp, Refused, counters, dump, gid, heard, new_instance,
                    party, rsctl, said_hello, setting, until)
from rs_peer import (DATA as DATA_REC, GRANT, REVOKE, ROLE_SYN, STOPPED, Served, Tap,
                     Failed, chosen, expect, found, ip, option, record, run)


class Honest:
    """The links and rings of other hosts, which must not change."""

    def __init__(self):
        self.links = self.now()
        expect(self.links, "a link of others")

    @staticmethod
    def now():
        ours = Linked.instance.hex()
        return {(link["id"], link["qpn"], link["tx_rings"], link["rx_rings"])
                for link in dump("links")
                if link["state"] == "up" and link["peer"] != ours}

    def untouched(self):
        expect(self.now() >= self.links, f"{self.links} of others, not {self.now()}")


def refused(end, reason):
    before = counters()
    try:
        end.connect()
    except Refused as err:
        expect("REJECTED" in str(err), f"a refusal, not {err}")
    else:
        raise Failed("the request to be refused")
    finally:
        end.close()
    grown = {name: n - before.get(name, 0) for name, n in counters().items()}
    expect(grown["links-rejected"] == 1, "a refusal that is counted")
    until(lambda: counters().get("reason:" + reason, 0) > before.get("reason:" + reason, 0),
          f"reason {reason}")


def attack_requests_unproven(tun):
    """A request without a valid proof neither creates nor replaces a link."""
    linked, honest = Linked(tun), Honest()
    served, ticket = said_hello(tun)
    nobody = gid("10.77.0.77")
    for reason, lie in (
            ("link-unauthenticated", {"proof": 0}),
            ("link-unauthenticated", {"gids": (nobody, gid(Linked.host))}),
            ("link-unauthenticated", {"gids": (gid(Linked.host), nobody)}),
            ("link-unauthenticated", {"qpns": (7, 0)}),
            ("link-unknown", {"token": 12345}),
            ("link-unknown", {"token": ticket.token}),
            ("link-unknown", {"own_token": 12345}),
            ("link-unknown", {"own_token": linked.token}),
            ("link-malformed", {"version": 2}),
            ("link-malformed", {"depth": 1}),
            ("link-malformed", {"slot": 16}),
            ("link-malformed", {"link_id": 0})):
        end = End(ticket, Linked.host, **lie)
        if lie.get("depth"):
            end.qp.close()
            end.qp = Qp()
        refused(end, reason)
        linked.left_alone()
        honest.untouched()
    served.sock.close()


def attack_request_replayed(tun):
    """A valid request is replayed from another queue pair."""
    linked, honest = Linked(tun), Honest()
    served, ticket = said_hello(tun)
    said = End(ticket, Linked.host).connect().ready()
    until(lambda: not linked.links(), "the link in the same slot to be replaced")
    again = End(ticket, Linked.host, key=said.half, link_id=said.id,
                qpns=(said.qp.number, 0))
    refused(again, "link-unauthenticated")
    expect(said.is_up(), "the link that was made first, up")
    honest.untouched()
    said.close()
    served.sock.close()


def revoke(epoch):
    return record(REVOKE, struct.pack("!II", epoch, 0))


def on_our_ring(tun):
    """The host has written ten bytes into a ring of this test."""
    linked = Linked(tun)
    linked.granted()
    linked.peer.write(linked.grant_room(1))
    linked.switched((0, 1))
    linked.sock.sendall(b"0123456789")
    while linked.end.qp.read(CELLS, 10) != b"0123456789":
        linked.end.any()
    return linked


class Requests:
    """REQs that eth0 receives: destination and private data."""
    # IPv4, UDP to RoCE's port, queue pair 1: the connection manager's messages
    FILTER = ((0x30, 0, 0, 0), (0x15, 0, 8, 0x45), (0x30, 0, 0, 9),
              (0x15, 0, 6, 17), (0x28, 0, 0, 22), (0x15, 0, 4, 4791),
              (0x20, 0, 0, 32), (0x54, 0, 0, 0xffffff), (0x15, 0, 1, 1),
              (6, 0, 0, 65535), (6, 0, 0, 0))
    MAD = 20 + 8 + 12 + 8       # behind IP, UDP, BTH, DETH
    REQ = b"\0\x10"

    def __init__(self, dev="eth0"):
        code = ctypes.create_string_buffer(
            b"".join(struct.pack("HBBI", *step) for step in self.FILTER))
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        self.sock.setsockopt(socket.SOL_SOCKET, 26,     # SO_ATTACH_FILTER
                             struct.pack("HL", len(self.FILTER), ctypes.addressof(code)))
        self.sock.bind((dev, 3))
        self.sock.settimeout(WAIT)

    def next(self):
        while True:
            packet = self.sock.recv(4096)
            mad = packet[self.MAD:]
            at = mad.find(b"RSTL")
            if mad[16:18] == self.REQ and at >= 0:
                return socket.inet_ntoa(packet[16:20]), mad[at:at + 56]


def attack_request_of_others_replayed(_):
    """A sniffed request of another host is replayed from another queue pair."""
    requests = Requests()
    for _ in range(2):
        rsctl("drain on")
        rsctl("drain off")
        to, said = requests.next()
        until(Honest.now, "a link of others")
        time.sleep(1)
        honest, qp = Honest(), Qp()
        qp.ask("route", Linked.host, to, CM_PORT)
        try:
            qp.ask("connect", said.hex())
        except Refused as err:
            expect("REJECTED" in str(err), f"a refusal, not {err}")
        else:
            raise Failed("the request to be refused")
        honest.untouched()
        qp.close()


def attack_instance_of_another(tun):
    """A host that states another host's instance id gets no access to its links."""
    honest = Honest()
    for link in dump("links"):
        if link["peer"] == Linked.instance.hex():
            continue
        served, ticket = said_hello(tun, instance=bytes.fromhex(link["peer"]))
        expect(GRANT not in heard(served.peer, 2),
               "no grant of a link of the host's whose name it is")
        if not link["active"]:
            End(ticket, Linked.host).connect().ready().close()
        served.sock.close()
    honest.untouched()


MESSAGES = (
    ("unknown type", lambda linked: linked.end.say(8)),
    ("type 0", lambda linked: linked.end.say(0)),
    ("number again", lambda linked: linked.end.say(READY, step=0)),
    ("number left out", lambda linked: linked.end.say(READY, step=2)),
    ("DATA for no ring", lambda linked: linked.end.say(DATA, 77777)),
    ("DATA_WANT for no ring", lambda linked: linked.end.say(DATA_WANT, 77777)),
    ("CREDIT of no ring", lambda linked: linked.end.say(CREDIT, 77777)),
    ("FREED of no ring", lambda linked: linked.end.say(FREED, 77777)),
    ("credits that were not taken", lambda linked: linked.end.say(RQ_CREDIT, 400)),
    ("write where nothing is", lambda linked: linked.end.write(1 << 40, 1, b"x")),
    ("write behind its memory", lambda linked: linked.end.write(
        linked.addr + (1 << 30), linked.rkey, b"x")),
)


def attack_messages_invalid(tun):
    """Each invalid message ends its own link, and no other link."""
    honest = Honest()
    for what, lie in MESSAGES:
        linked = Linked(tun)
        linked.granted()
        try:
            lie(linked)
        except Refused:
            pass                # the device has refused it
        until(lambda: not linked.links(), f"the link to end: {what}")
        honest.untouched()
        linked.sock.close()
        linked.peer.close()


def attack_ring_overrun(tun):
    """More data than the ring has room for resets the connection; others continue."""
    honest = Honest()
    linked = Linked(tun)
    epoch = linked.granted()
    linked.peer.write(linked.switch(0, epoch))
    linked.end.say(DATA, linked.ring, linked.addr, linked.rkey, bytes(linked.size))
    expect(linked.sock.recv(1), "a byte of the ring")
    linked.end.say(DATA, linked.ring, linked.addr, linked.rkey, bytes(linked.size))
    expect(linked.peer.until(lambda: linked.peer.rst), "RST")
    expect(linked.grown("reason:ring-overrun") == 1, "reason ring-overrun")
    linked.sock.close()
    honest.untouched()


def attack_message_beyond_the_end(tun):
    """A message beyond the end of a ring ends the link, even if the ring is empty."""
    honest = Honest()
    with party() as other:
        linked = other(tun)
        linked.granted()
        linked.take(0)
        most = linked.size * 3 // 4
        linked.put(bytes(most))
        linked.reads(most)
        until(lambda: linked.credited() == most, "credit of what was read")
        with contextlib.suppress(Refused):      # it may not be acknowledged any more
            linked.end.say(DATA, linked.ring, linked.addr, linked.rkey, bytes(linked.size))
        linked.over("data beyond the end of a ring")
        linked.leave()
    honest.untouched()


def attack_revoke_invalid(tun):
    """REVOKE without a grant, or twice, is refused."""
    honest, beside = Honest(), Linked(tun)
    for epoch, why in (1, "bad-switch"), (0, "bad-record"):
        linked = Linked(tun)
        linked.granted()
        linked.refused(revoke(epoch), why)
    for epochs, why in (((2,), "bad-switch"), ((0,), "bad-record"),
                        (((1 << 32) - 1,), "bad-switch"), ((1, 1), "bad-switch")):
        linked = on_our_ring(tun)
        linked.refused(b"".join(map(revoke, epochs)), why)
    # one that crosses SWITCH is old news
    linked = on_our_ring(tun)
    linked.peer.write(revoke(1))
    linked.record(STOPPED)
    linked.credit(10)
    linked.switched((10, 0))
    linked.peer.write(revoke(1))
    linked.sock.sendall(b"answer")
    expect(linked.record(DATA_REC)[1] == b"answer", "our bytes in DATA")
    linked.leave()
    beside.left_alone()
    honest.untouched()
    beside.leave()


def attack_stopped_invalid(tun):
    """STOPPED without REVOKE, or twice, is refused."""
    honest, beside = Honest(), Linked(tun)
    for asked, epochs, why in ((False, (1,), "bad-switch"), (True, (2,), "bad-switch"),
                               (True, (0,), "bad-record"), (True, (1, 1), "bad-switch")):
        linked = Linked(tun)
        linked.granted()
        linked.take(0)
        if asked:
            linked.make_grow()
            linked.revoked()
        linked.peer.write(b"".join(record(STOPPED, struct.pack("!II", epoch, 0))
                                   for epoch in epochs))
        linked.reset(why, bytes(linked.put_bytes))
    beside.left_alone()
    honest.untouched()
    beside.leave()


def attack_credits_invalid(tun):
    """A credit beyond what was written resets; a smaller or incomplete one is ignored."""
    honest, beside = Honest(), Linked(tun)
    linked = on_our_ring(tun)
    linked.credit(5)
    for value, check in (4, None), (0, None), (10, 0), (1 << 63, 5):
        linked.credit(value, check)
    sent = [sock["tx"] for sock in dump("sockets")
            if sock["remote"].endswith(f":{linked.peer.port}")]
    expect([tx["acked"] for tx in sent] == [5], f"5 bytes that are credited, not {sent}")
    linked.credit(11)
    linked.reset("bad-credit")
    linked = on_our_ring(tun)
    linked.credit((1 << 64) - 1)
    linked.reset("bad-credit")
    beside.left_alone()
    honest.untouched()
    beside.leave()


class Grants:
    """GRANTs that this host sends to other hosts over eth0: rkey and address."""

    def __init__(self, dev="eth0"):
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        self.sock.bind((dev, 3))
        self.sock.settimeout(WAIT)

    def next(self):
        head = struct.pack("!BBHI", GRANT, 0, 0, 40)
        while True:
            packet, source = self.sock.recvfrom(65536)
            at = packet.find(head)
            if source[2] == socket.PACKET_OUTGOING and packet[9] == 6 and at >= 0:
                return struct.unpack("!IQ", packet[at + 20:at + 32])


def attack_writes_outside_the_ring(tun):
    """Memory around the ring belongs to the same peer or is not writable."""
    honest = Honest()
    one, two = Linked(tun), Linked(tun)
    for linked in one, two:
        linked.granted()
        linked.take(0)
    one.end.write(two.addr, two.rkey, b"evil")
    one.end.say(DATA, one.ring, two.addr, two.rkey, b"more")
    expect(len(one.reads(4)) == 4, "as many bytes as are said")
    expect(not select.select([two.sock], [], [], 0.5)[0], "nothing to read for the other")
    two.put(b"true")
    expect(two.reads(4) == b"true", "the other's bytes")
    honest.untouched()
    for linked in one, two:
        linked.leave()
    # where rings of others are
    grants = Grants()
    rsctl("drain on")
    rsctl("drain off")
    rkey, addr = grants.next()
    until(Honest.now, "a link of others")
    time.sleep(1)
    honest = Honest()
    for key, at in (rkey, addr), (rkey, addr + 4096), (rkey ^ 1, addr), (0, addr):
        linked = Linked(tun)
        linked.granted()
        try:
            linked.end.write(at, key, b"evil" * 16)
        except Refused:
            pass
        else:
            raise Failed("memory of others to be out of reach")
        until(lambda: not linked.links(), "the link to end")
        honest.untouched()
        linked.leave()


def attack_writes_after_done(tun):
    """After DONE, a peer can write only to its own memory."""
    honest = Honest()
    with party() as liar:
        linked = liar(tun)
        linked.granted()
        linked.take(0)
        linked.put(b"abc")
        expect(linked.reads(3) == b"abc", "the peer's bytes")
        linked.end.say(DONE, linked.ring)
        expect(linked.end.hear(FREED)[1] == linked.ring, "FREED of this ring")
        with contextlib.suppress(Refused):      # it ends before this is acknowledged
            linked.put(b"x")
        linked.over("data for an unknown ring")
        honest.untouched()
        linked.leave()
        liar.forgotten()
    with party() as liar:
        first = liar(tun)
        first.granted()
        first.leave()
        first.end.say(DONE, first.ring)
        expect(first.end.hear(FREED)[1] == first.ring, "FREED of this ring")
        second = liar(tun)
        second.granted()
        expect(second.addr == first.addr, "the same memory for the next one")
        second.take(0)
        first.end.write(first.addr, first.rkey, b"evil")
        second.put(b"true")
        expect(second.reads(4) == b"true", "what was said last")
        honest.untouched()
        second.leave()
        second.end.say(DONE, second.ring)
        # it is given back as soon as no ring is in it
        stays = Linked(tun)
        until(lambda: all(rmb["link"] != second.link["id"] or rmb["kind"] != "rings"
                          for rmb in dump("memory")), "the memory to be given back", 30)
        try:
            first.end.write(first.addr, first.rkey, b"evil")
        except Refused:
            pass
        else:
            raise Failed("memory that was given back to be out of reach")
        until(lambda: not liar.links(), "the link to end")
        stays.left_alone()
        stays.leave()
        liar.forgotten()
    honest.untouched()


def attack_many_instances(tun):
    """Any number of instance ids, links and slots does not affect other hosts."""
    honest, beside = Honest(), Linked(tun)
    peers = len(dump("peers"))
    many = []
    while len(many) < 200 or not (len(many) == 260 or beside.grown("reason:peer-limit")):
        many.append(said_hello(tun, instance=new_instance())[0])
    print(f"# {len(many)} instances besides {peers} peers")
    expect(200 < len(many) <= 257, f"257 instances at most, not {len(many)}")
    for _ in range(3):
        many.append(said_hello(tun, instance=new_instance())[0])
    until(lambda: beside.grown("reason:peer-limit") == 4, "each to be counted")
    many[-1].peer.write(record(DATA_REC, b"abc"))
    expect(many[-1].sock.recv(9) == b"abc", "bytes on tcp")
    again = Linked(tun)
    again.granted()
    for linked in beside, again:
        linked.left_alone()
        linked.leave()
    honest.untouched()
    for each in many:
        each.sock.close()
        each.peer.close()
    until(lambda: len(dump("peers")) <= peers, "peers to be as many as before", 30)


def attack_many_requests(tun):
    """Any number of requests that never complete."""
    honest, beside = Honest(), Linked(tun)
    name, ends = new_instance(), []
    with setting("cm_timeout_ms", 60000):
        named, ticket = said_hello(tun, instance=name)
        try:
            for n in range(40):
                ends.append(End(ticket, Linked.host, slot=n % 16))
                ends[-1].connect()
        except Refused as err:
            expect("REJECTED" in str(err), f"a refusal, not {err}")
        print(f"# {len(ends) - 1} links that nobody says READY of")
        expect(len(ends) == 33, f"32 links of one peer, not {len(ends) - 1}")
        until(lambda: beside.grown("reason:link-busy") == 1, "reason link-busy")
        beside.left_alone()
        honest.untouched()
        for each in ends:
            each.close()
    until(lambda: all(link["peer"] != name.hex() for link in dump("links")),
          "the links to end", 30)
    until(lambda: {rmb["link"] for rmb in dump("memory")} <=
          {link["id"] for link in dump("links")}, "their memory to be free")
    beside.left_alone()
    beside.leave()
    named.sock.close()
    named.peer.close()
    honest.untouched()


class Sniffer:
    """Packets from this host to RoCE's port."""

    def __init__(self, dev="eth0"):
        # only a socket for all protocols sees what is sent
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        self.sock.bind((dev, 3))

    def sent_to(self, seconds):
        """The addresses, for that long."""
        found, end = set(), time.monotonic() + seconds
        while time.monotonic() < end:
            if not select.select([self.sock], [], [], 0.1)[0]:
                continue
            packet, source = self.sock.recvfrom(2048)
            if source[1] == 0x0800 and source[2] == socket.PACKET_OUTGOING and packet[9] == 17 and \
               packet[22:24] == struct.pack("!H", 4791):
                found.add(socket.inet_ntoa(packet[16:20]))
        return found


def attack_addresses_invalid(tun):
    """Addresses in a HELLO are tried only on networks of this host; no HELLO in a tunnel."""
    far, near = "192.0.2.1", os.environ["ADDR4_1"]
    ip(f"route replace 192.0.2.0/24 via {near}")
    wrong = ("10.77.0.255", "224.0.0.9", "255.255.255.255", "127.0.0.1", "0.0.0.0",
             Linked.host)
    tried = {near}
    tunnel = Tap()
    try:
        for wire, take, names, wanted in (
                (tun, 1, wrong[:4], set()), (tun, 1, wrong[4:], set()),
                (tun, 1, (far,), set()), (tun, 0, (far,), set()),
                (tun, 2, (far,), {far})):
            with setting("accept_addrs", take):
                sniffer = Sniffer()
                # the lesser id: this host makes the links
                served, _ = said_hello(wire, instance=bytes(8) + os.urandom(8),
                                       addresses=[gid(name) for name in names])
                served.peer.write(record(DATA_REC, bytes(20000)))
                seen = sniffer.sent_to(5)
            expect(wanted <= seen <= wanted | tried,
                   f"requests to {wanted}, not {seen}, of {names}")
            tried |= wanted
            served.sock.close()
            served.peer.close()
        served = Served(tunnel, option(ROLE_SYN))
        expect(not found(served.answer), "no option through a tunnel")
        served.echo_plain()
        served.peer.close()
    finally:
        tunnel.close()
        ip("route del 192.0.2.0/24")


def attack_nothing_remains(_):
    """At the end, only the links of other hosts remain."""
    honest = Honest()
    if Linked.end:
        Linked.end.close()
        Linked.end = None
    ours = Linked.instance.hex()
    until(lambda: all(link["peer"] != ours for link in dump("links")), "its links to end")
    until(lambda: {rmb["link"] for rmb in dump("memory")} <=
          {link["id"] for link in dump("links")}, "its memory to be free")
    honest.untouched()


if __name__ == "__main__":
    sys.exit(run(chosen(globals(), "attack_", "".join(sys.argv[1:2]))))
