#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A host that lies on RDMA as well, in TAP.

It has queue pairs of its own, and lies to rdma_cm, in messages, and about who it is.
A case passes if what it does costs it its own link or connection, for a reason that
is told, and nobody else anything.  Needs root, the module, this host's RDMA address in
ADDR4_0, and streams with another host that keep their rings all the time.

rs_hostile [PATTERN]: the cases whose names have PATTERN in them.
"""
import ctypes
import os
import select
import socket
import struct
import subprocess
import sys
import time

from rs_end import (CM_PORT, CREDIT, DATA, DATA_WANT, FREED, READY, RQ_CREDIT, WAIT,
                    End, Linked, Qp, Refused, Ticket, counters, dump, gid, rsctl, until)
from rs_peer import (DATA as DATA_REC, GRANT, Failed, agreed, chosen, expect,
                     read_hello, record, run)


class Honest:
    """The links and rings of others: who has what, and that they keep it."""

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


def said_hello(tun, **how):
    """A connection, and what names it."""
    ticket = Ticket()
    served = agreed(tun, token=ticket.token, secret=ticket.secret,
                    **{"instance": Linked.instance, **how})
    ticket.heard(read_hello(served.peer))
    return served, ticket


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
    expect(grown["cm-rejected"] == 1, "a refusal that is counted")
    until(lambda: counters().get("reason:" + reason, 0) > before.get("reason:" + reason, 0),
          f"reason {reason}")


def lie_in_requests(tun):
    """What is not proven makes no link, and replaces none in its slot."""
    linked, honest = Linked(tun), Honest()
    served, ticket = said_hello(tun)
    nobody = gid("10.77.0.77")
    for reason, lie in (
            ("link-unproven", {"proof": 0}),
            ("link-unproven", {"gids": (nobody, gid(Linked.host))}),
            ("link-unproven", {"gids": (gid(Linked.host), nobody)}),
            ("link-unproven", {"qpns": (7, 0)}),
            ("link-stranger", {"token": 12345}),
            ("link-stranger", {"token": ticket.token}),
            ("link-stranger", {"own_token": 12345}),
            ("link-stranger", {"own_token": linked.token}),
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


def lie_by_repeating(tun):
    """A request that was proven, from another queue pair."""
    linked, honest = Linked(tun), Honest()
    served, ticket = said_hello(tun)
    said = End(ticket, Linked.host).connect().ready()
    until(lambda: not linked.links(), "the link in the same slot to be replaced")
    again = End(ticket, Linked.host, key=said.half, link_id=said.id,
                qpns=(said.qp.number, 0))
    refused(again, "link-unproven")
    expect(said.is_up(), "the link that was made first, up")
    honest.untouched()
    said.close()
    served.sock.close()


def heard(peer, seconds):
    """Types of the records that come."""
    peer.until(lambda: False, seconds)
    kinds = set()
    while len(peer.data) >= 8:
        kind, _, _, size = struct.unpack("!BBHI", peer.read(8))
        peer.read(size)
        kinds.add(kind)
    return kinds


class Requests:
    """What eth0 hears of REQs: to whom, and what rdma_cm's user has said in them."""
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


def lie_by_repeating_others(_):
    """A request of others, as it was heard on the wire, from another queue pair."""
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


def lie_about_the_name(tun):
    """Who takes the name of another host gets no share of what that has."""
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


def lie_in_messages(tun):
    """Each ends the link that it came by, and no other."""
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


def lie_about_space(tun):
    """More than the ring holds resets the connection; others are served on."""
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


class Sniffer:
    """What leaves this host for RoCE's port."""

    def __init__(self, dev="eth0"):
        # what is sent is seen by who wants all protocols only
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        self.sock.bind((dev, 3))

    def sent_to(self, seconds):
        """The addresses, for so long."""
        found, end = set(), time.monotonic() + seconds
        while time.monotonic() < end:
            if not select.select([self.sock], [], [], 0.1)[0]:
                continue
            packet, source = self.sock.recvfrom(2048)
            if source[1] == 0x0800 and source[2] == socket.PACKET_OUTGOING and packet[9] == 17 and \
               packet[22:24] == struct.pack("!H", 4791):
                found.add(socket.inet_ntoa(packet[16:20]))
        return found


def lie_about_addresses(tun):
    """What a HELLO names is tried only on networks of ours."""
    far, near = "192.0.2.1", os.environ["ADDR4_1"]
    setting = "/proc/sys/net/rdmastream/take_addresses"
    subprocess.run(["ip", "route", "replace", "192.0.2.0/24", "via", near], check=True)
    wrong = ("10.77.0.255", "224.0.0.9", "255.255.255.255", "127.0.0.1", "0.0.0.0",
             Linked.host)
    try:
        for take, names, wanted in ((1, wrong[:4], set()), (1, wrong[4:], set()),
                                    (1, (far,), set()), (0, (far,), set()),
                                    (2, (far,), {far})):
            with open(setting, "w", encoding="ascii") as file:
                file.write(str(take))
            sniffer = Sniffer()
            # the lesser id: this host makes the links
            served, _ = said_hello(tun, instance=bytes(8) + os.urandom(8),
                                   addresses=[gid(name) for name in names])
            served.peer.write(record(DATA_REC, bytes(20000)))
            seen = sniffer.sent_to(5) - {near}
            expect(seen == wanted, f"requests to {wanted}, not {seen}, of {names}")
            served.sock.close()
            served.peer.close()
    finally:
        with open(setting, "w", encoding="ascii") as file:
            file.write("1")
        subprocess.run(["ip", "route", "del", "192.0.2.0/24"], check=True)


def lie_and_leave(_):
    """Of all that nothing is left but what others have."""
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
    sys.exit(run(chosen(globals(), "lie_", "".join(sys.argv[1:2]))))
