#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Peers that make this host send requests: to addresses that they name, and as often as they can.
And peers that make links as often as they can.  Prints TAP.

A case passes if requests go only where they may, no more often than security.rst says, and if
others get links meanwhile.  Needs root, the module, this host's RDMA addresses in ADDR4_0 and
ADDR6_0, nobody else on eth0, and virtual time.

rs_named [PATTERN]: the cases whose names match, a regular expression.
"""
import contextlib
import os
import select
import socket
import struct
import sys
import time

from rs_end import (MAGIC, SIZE, WAIT, Address, End, Linked, Refused, counters, dump, gid,
                    new_instance, party, said_hello, setting, until)
from rs_peer import LINK, chosen, expect, ip, record, run
from streams import pair, ring_size, take_turns

HOST6 = os.environ["ADDR6_0"]
GATEWAY6 = "fd77::2"
# no addresses of a single other host
UNUSABLE = ("::", "::1", "ff02::1", "ff05::2", "ff0e::101", "fe80::1", "febf::1",
            "0.0.0.0", "127.0.0.1", "127.9.9.9", "169.254.1.1", "224.0.0.9",
            "239.1.1.1", "255.255.255.255")
# how some are routed
ROUTES = (("2001:db8:1::/48", f"via {GATEWAY6}"), ("unreachable 2001:db8:2::/48", ""),
          ("anycast 2001:db8:3::1", "dev eth0"))
UNROUTED = (HOST6, "2001:db8:1::1", "2001:db8:2::1", "2001:db8:3::1", "2001:db8:9::1",
            "::10.77.0.9", "0.1.2.3", "10.77.0.255", Linked.host)
NEAR = "10.77.0.77", "fd77::77", *(f"10.77.0.{n}" for n in range(101, 117))


class Asked:
    """Requests of rdma_cm that this host sends over eth0."""

    def __init__(self):
        # what is sent is seen by who wants all protocols only
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        self.sock.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)    # SO_RCVBUFFORCE
        self.sock.bind(("eth0", 3))
        self.keys = set()
        self.seen = []          # when, to which address; each attempt once

    def take(self, seconds):
        """What comes within that time."""
        end = time.monotonic() + seconds
        while select.select([self.sock], [], [], max(0, end - time.monotonic()))[0]:
            packet, source = self.sock.recvfrom(4096)
            at = packet.find(struct.pack("!I", MAGIC))
            if source[2] != socket.PACKET_OUTGOING or at < 0:
                continue
            # the number that its sender adds to a REQ is another one in each attempt
            key = packet[at + 32:at + SIZE - 8]
            if key not in self.keys:
                self.keys.add(key)
                self.seen.append((time.monotonic(), self.target(packet)))

    @staticmethod
    def target(packet):
        if packet[0] >> 4 == 4:
            return socket.inet_ntoa(packet[16:20])
        return socket.inet_ntop(socket.AF_INET6, packet[24:40])

    def targets(self, seconds=0):
        self.take(seconds)
        return {address for _, address in self.seen}

    def close(self):
        self.sock.close()


class Named:
    """A peer that names addresses in its HELLOs, and waits for links that this host makes."""

    def __init__(self, tun, *addresses):
        self.tun, self.streams = tun, []
        self.instance = bytes(8) + os.urandom(8)        # the lesser id: this host makes the links
        if addresses:
            self.names(*addresses)

    def names(self, *addresses):
        self.streams.append(said_hello(self.tun, instance=self.instance,
                                       addresses=[gid(each) for each in addresses])[0])

    def waits(self):
        self.streams[-1].peer.write(record(LINK))
        return self

    def paths(self, own=False):
        """What is remembered of each address that it has named, or of its @own."""
        peer, = (peer for peer in dump("peers") if peer["peer"] == self.instance.hex())
        return {path["remote"].rpartition(":")[0].strip("[]"): path for path in peer["paths"]
                if path["tcp"] == own}

    def failed(self, own=False):
        return sum(path["fails"] for path in self.paths(own).values())

    def leave(self):
        for each in self.streams:
            each.sock.close()
            each.peer.close()


def attempts():
    return sum(link["state"] == "connecting" for link in dump("links"))


@contextlib.contextmanager
def asked(**settings):
    with contextlib.ExitStack() as stack:
        for name, value in settings.items():
            stack.enter_context(setting(name, value))
        requests = stack.enter_context(contextlib.closing(Asked()))
        # what rdma_cm still sends for attempts of the last case
        while requests.targets(2):
            requests.seen.clear()
        yield requests
    until(lambda: not attempts(), "the attempts to end", 60)


def named_unusable(tun):
    """What is no address of one other host is not remembered, and not tried."""
    with asked() as requests:
        for address in UNUSABLE:
            peer = Named(tun, address).waits()
            until(lambda peer=peer: peer.failed(own=True) > 1, "attempts")
            expect(not peer.paths(), f"no path to {address}")
            expect(not requests.targets(), f"no request to {address}, not {requests.seen}")
            peer.leave()


def named_unrouted(tun):
    """What does not lead to another host of a network of this one is not asked."""
    with asked() as requests:
        for address in UNROUTED:
            peer = Named(tun, address).waits()
            until(lambda peer=peer: peer.failed() > 1, f"attempts to {address} that fail")
            expect(list(peer.paths()) == [address], f"{address} alone, not {peer.paths()}")
            expect(not requests.targets(), f"no request to {address}, not {requests.seen}")
            peer.leave()


def gaps(requests, address):
    times = [when for when, to in requests.seen if to == address]
    return [later - earlier for earlier, later in zip(times, times[1:])]


def named_seven(tun):
    """A peer gets seven addresses asked, each of them ever less often, and none instead."""
    with asked(cm_timeout_ms=400) as requests:
        peer = Named(tun)
        for first in 2, 6, 10:
            peer.names(*NEAR[first:first + 4])
        expect(len(peer.paths()) == 7, f"seven paths, not {len(peer.paths())}")
        peer.waits()
        requests.take(300)
        expect(requests.targets() == set(peer.paths()), "requests to these seven")
        for address in requests.targets():
            between = gaps(requests, address)
            print(f"# {address}: " + " ".join(f"{gap:.1f}" for gap in between))
            expect(len(between) > 9, "attempts until the pause is the longest")
            for n, gap in enumerate(between):
                expect(gap >= min(0.1 * 2 ** n, 30), f"pause {n}, not {gap:.2f} s")
        # the pauses are not forgotten for another address
        until(lambda: all("retry_ms" in path for path in peer.paths().values()),
              "all to have to wait", 60)
        before = set(peer.paths())
        peer.names(*NEAR[14:])
        expect(set(peer.paths()) == before, f"{before}, not {peer.paths()}")
        peer.leave()


def others_get_links(tun):
    """One that this host makes, and one that its peer makes."""
    began = time.monotonic()
    with setting("loopback", 1), party() as other:
        linked = other(tun)
        linked.granted()
        client, server = pair(Linked.host)
        while not ring_size(client):
            expect(time.monotonic() < began + WAIT, "a ring of others in time")
            take_turns(client, server, 1)
        print(f"# others have rings after {time.monotonic() - began:.1f} s")
        client.close()
        server.close()
        linked.leave()
        other.forgotten()


def crowd(tun, stack, names=NEAR[2:6]):
    """Peers at one address, which name four addresses each."""
    for _ in range(70):
        peer = Named(tun, *names)
        stack.callback(peer.leave)
        peer.waits()


def per_second(requests, names, seconds):
    """Requests to these addresses in all and, at most, in one second."""
    times = [when for when, to in requests.seen if to in names]
    most = max((sum(begin <= when < begin + 1 for when in times) for begin in times), default=0)
    print(f"# {len(times)} requests to {names[0]} and others in {seconds} s, "
          f"at most {most} in one second")
    return len(times), most


def named_rate(tun):
    """An address gets half of what is left of 32 requests a second to addresses that it names."""
    seconds, crowds = 20, []
    with asked(cm_timeout_ms=100) as requests, contextlib.ExitStack() as stack:
        # 11 leave 21, of which another address gets 7, or it asks first
        for names, remote, least in ((NEAR[2:6], tun, 11),
                                     (NEAR[6:10], Address(tun, "10.78.0.3"), 7)):
            crowd(remote, stack, names)
            crowds.append(names)
            requests.take(5)
            requests.seen.clear()
            requests.take(seconds)
            for each in crowds:
                count, most = per_second(requests, each, seconds)
                expect(0.8 * least * seconds < count <= 11 * (seconds + 1),
                       f"{least} to 11 a second, not {count} in {seconds} s")
                expect(most <= 22, f"22 at the change of seconds, not {most}")
        others_get_links(tun)


def named_at_once(tun):
    """An address gets half of what is left of 64 attempts at the same time."""
    with asked(cm_timeout_ms=20000), contextlib.ExitStack() as stack:
        # 22 leave 42; then 14 leave 28
        for remote, wanted in (tun, 22), (Address(tun, "10.78.0.3"), 36):
            crowd(remote, stack)
            until(lambda wanted=wanted: attempts() >= wanted, f"{wanted} attempts")
            end, most = time.monotonic() + 5, 0
            while time.monotonic() < end:
                most = max(most, attempts())
                time.sleep(0.1)
            print(f"# {most} attempts at once")
            expect(most == wanted, f"{wanted} attempts at once, not {most}")
        others_get_links(tun)


def brief_link(remote):
    """Return: does this host accept a link that the peer at that address makes, and ends?"""
    instance = new_instance()
    named, ticket = said_hello(remote, instance=instance)
    end = End(ticket, Linked.host)
    try:
        end.connect()
    except Refused:
        return False
    finally:
        end.close()
        named.sock.close()
        named.peer.close()
    until(lambda: all(link["peer"] != instance.hex() for link in dump("links")), "its end")
    return True


def named_young(tun):
    """Of the links that an address makes, 128 in 30 s may end at once, whoever makes them."""
    until(lambda: not dump("links"), "the end of what earlier cases have made", 120)
    time.sleep(31)              # it is forgotten
    before = counters()["reason:link-busy"]
    begin = time.monotonic()
    n = 0
    while brief_link(tun):
        n += 1
        expect(n < 200, "a link to be refused")
    print(f"# {n} links in {time.monotonic() - begin:.1f} s, then none")
    expect(n >= 128, f"128 links or a few more, not {n}")
    expect(counters()["reason:link-busy"] == before + 1, "reason link-busy")
    expect(brief_link(Address(tun, "10.78.0.3")), "a link of another address")
    until(lambda: brief_link(tun), "a link after the 30 s", 60)


def named_tried(tun):
    """Other addresses are asked, as far as accept_addrs lets them."""
    near, far = NEAR[:2], "2001:db8:1::1"
    for take, names, wanted in (0, (*near, far), set()), (1, near, set(near)), (2, (far,), {far}):
        with asked(accept_addrs=take) as requests:
            peer = Named(tun, *names).waits()
            until(lambda peer=peer: peer.failed(own=True) > 2, "attempts")
            expect(set(peer.paths()) == wanted, f"{wanted}, not {peer.paths()}")
            end = time.monotonic() + WAIT
            while requests.targets(1) != wanted and time.monotonic() < end:
                pass
            expect(requests.targets() == wanted, f"requests to {wanted}, not {requests.seen}")
            peer.leave()


def add_neighbours():
    """They do not answer, but what is sent to them is sent."""
    for address in (*NEAR, GATEWAY6):
        ip(f"neigh replace {address} lladdr 52:54:00:77:00:77 nud permanent dev eth0")
    # until the end: when rdma_cm sends something to an address whose route is gone, soft-RoCE's
    # queue pair 1 sends nothing any more
    for what, how in ROUTES:
        ip(f"-6 route add {what} {how}")


if __name__ == "__main__":
    add_neighbours()
    sys.exit(run(chosen(globals(), "named_", "".join(sys.argv[1:2]))))
