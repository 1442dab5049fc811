#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A third host that tries to intercept the link between two others.  Prints TAP.

rs_impostor V S M PORT

V, S: the addresses of the two, with rdmastream listeners at PORT and a stream between
them that uses rings.  M: the address of this host.  It has a connection to each in the
name of the other, and claims the other's RDMA address.  V and S must route 10.78.0.0/24
to M.  A case passes if both refuse M; the caller checks that the stream between V and S is
not affected.
"""
import os
import struct
import sys
import time

from rs_end import CM_PORT, End, Qp, Refused, Ticket, gid
from rs_peer import (DATA, GRANT, MAGIC, ROLE_CONFIRM, ROLE_SYN, SWITCH, Failed, Peer,
                     expect, hello, option, read_hello, record, run)

OUR_PORT = 4794                 # of rdma_cm, as our HELLOs say


class Half:
    """The connection to one of the two."""

    def __init__(self, tun, host, port, instance, addresses=()):
        self.host, self.ticket = host, Ticket()
        self.peer = Peer(tun, host)
        self.peer.connect(port, option(ROLE_SYN), option(ROLE_CONFIRM))
        self.peer.write(hello(ROLE_SYN, instance=instance, token=self.ticket.token,
                              secret=self.ticket.secret, port=OUR_PORT,
                              addresses=addresses))
        said = read_hello(self.peer)
        expect(said.startswith(MAGIC), "HELLO")
        self.ticket.heard(said)

    def record(self, kind):
        """The payload of the next one of this kind."""
        while True:
            got, _, _, size = struct.unpack("!BBHI", self.peer.read(8))
            payload = self.peer.read(size)
            if got == kind:
                return payload


def listens_for(half):
    """An end, and the first REQ that comes to it."""
    end = End(half.ticket, half.host, Between.ours)
    try:
        return end, *end.listen(OUR_PORT).asked(60)
    except Refused:
        end.close()
        raise


class Between:
    """Connections to both, each in the name of the other."""
    hosts, port, ours = None, None, None

    def __init__(self, tun):
        names = [Half(tun, host, self.port, bytes([n]) * 16).ticket.host_instance
                 for n, host in enumerate(self.hosts, 1)]
        halves = [Half(tun, host, self.port, names[1 - n], [gid(self.ours)])
                  for n, host in enumerate(self.hosts)]
        # the one with the greater id makes the links
        self.passive, self.active = sorted(halves, key=lambda half:
                                           half.ticket.host_instance)
        self.end, self.theirs, self.req = listens_for(self.active)


def must_refuse(host, ours, req):
    qp = Qp()
    qp.ask("route", ours, host, CM_PORT)
    try:
        qp.ask("connect", req.hex())
    except Refused as err:
        expect("REJECTED" in str(err), f"a refusal, not {err}")
    else:
        raise Failed("the request to be refused")
    finally:
        qp.close()


def impostor_forwards_requests(between):
    """Requests of one host, forwarded to the other, are refused."""
    must_refuse(between.passive.host, between.ours, between.req)


def impostor_forwards_grants(between):
    """Grants of one host, forwarded to the other, are refused: their proofs are of another link.

    The impostor has a link with each host.  It chooses the ids of its ends so that the grant of
    one host names, to the other one, the link between that one and the impostor.
    """
    one, two = between.active, between.passive
    named_by_one, = struct.unpack("!I", between.req[24:28])
    other = End(two.ticket, two.host, between.ours, link_id=named_by_one)
    try:
        other.connect().ready()
        between.end.id = other.host_id
        between.end.accept(between.theirs, between.req).ready()
        for half in one, two:
            half.peer.write(record(DATA, bytes(20000)))
        grants = one.record(GRANT), two.record(GRANT)
        for grant, link in zip(grants, (other, between.end)):
            expect(struct.unpack("!II", grant[:8]) == (1, link.host_id),
                   "a grant that names the link of the other one")
        for half, grant in zip((two, one), grants):
            half.peer.write(record(GRANT, grant))
            offset, epoch = struct.unpack("!QI", half.record(SWITCH)[:12])
            expect((offset, epoch) == (0, 0), "the grant of another to be refused")
        expect(other.is_up() and between.end.is_up(), "both links, up")
    finally:
        # a host that does not know would make the next case wait
        other.leave()
        between.end.leave()


def asked_for(half):
    """An end, and the REQ for it; requests for other connections are refused."""
    limit = time.monotonic() + 120
    while time.monotonic() < limit:
        end, theirs, req = listens_for(half)
        if struct.unpack("!Q", req[8:16]) == (half.ticket.token,):
            return end, theirs, req
        end.close()
    raise Failed("a request for this connection")


def answers(**lie):
    """A host connects a link to M, which answers without a valid proof.  Return: a case."""
    def case(tun):
        # a name that is less than that of the host, which makes the links then
        half = Half(tun, Between.hosts[0], Between.port, bytes(4) + os.urandom(12),
                    [gid(Between.ours)])
        end, theirs, req = asked_for(half)
        try:
            end.accept(theirs, req, **lie)
            heard = end.next(3)
        except Refused:
            return              # it has ended already
        finally:
            end.close()
        expect(heard is None, f"not a word on this link, not {heard}")
    return case


nobody = gid("10.77.0.77")
answer_without_proof = answers(proof=0)
answer_for_another_address = answers(gids=(nobody, nobody))
answer_for_another_queue_pair = answers(qpns=(7, 7))


def with_both(case):
    def run_case(tun):
        between = Between(tun)
        try:
            case(between)
        finally:
            between.end.close()
    return run_case


if __name__ == "__main__":
    Between.hosts, Between.ours, Between.port = sys.argv[1:3], sys.argv[3], int(sys.argv[4])
    sys.exit(run([(name, with_both(fn)) for name, fn in sorted(globals().items())
                  if name.startswith("impostor_")] +
                 [(name, fn) for name, fn in sorted(globals().items())
                  if name.startswith("answer_")]))
