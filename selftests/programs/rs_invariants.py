#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What must hold of the module's state at any time, as rsctl tells it.

usage: rs_invariants [-e] [-l] NAMESPACE...

Of each network namespace: sockets, links and registered memory agree about what each has.  Of
all of them: the two ends of a connection agree about what was sent and received, and by which
carrier; with -l, the last namespace lies, and its connections are not compared.  They are asked
for one after the other, so what does not agree is looked at again for some seconds.  With -e all
sockets are closed, and all that was theirs must have been given back.  Prints what is wrong.
"""
import json
import os
import subprocess
import sys
import time

from space import enter

PATIENCE = 5    # s
PATIENCE_END = 600      # a closed stream may take that long
# s; a peer says DONE and FREED within milliseconds, unless its connection was reset before GRANT
# arrived.  Then the memory comes back when the link ends, because it is idle.
OWED = int(os.environ.get("OWED", "600"))
LINK_STATES = {"connecting", "up", "broken", "dead"}
MODES = {"unconnected", "listen", "connecting", "hello", "framed", "fallback", "prelude", "closed"}
CARRIERS = {"tcp", "ring", None}


def dump(what):
    told = subprocess.run(["rsctl", "-j", what], capture_output=True, check=True).stdout
    return json.loads(told)


def sums(entries, key, value):
    found = {}
    for entry in entries:
        found[entry[key]] = found.get(entry[key], 0) + value(entry)
    return found


def rings(sockets, way, value):
    return sums([s[way] for s in sockets if s.get(way) and s[way]["link"]], "link", value)


def wrong():
    """What does not agree in this namespace: sentences."""
    sockets, links, memory = dump("sockets"), dump("links"), dump("memory")
    known = {link["id"] for link in links}
    for link in links:
        if link["state"] not in LINK_STATES:
            yield f"link {link['id']}: state {link['state']}"
    for sock in sockets:
        if sock["mode"] not in MODES:
            yield f"socket {sock['local']}: mode {sock['mode']}"
        for way in "tx", "rx":
            if sock.get(way) and sock[way]["carrier"] not in CARRIERS:
                yield f"socket {sock['local']}: carrier {sock[way]['carrier']}"
    for way in "tx", "rx":
        count = rings(sockets, way, lambda _: 1)
        for link in links:
            have, told = link[f"{way}_rings"] or 0, count.get(link["id"], 0)
            if have != told:
                yield f"link {link['id']} has {have} {way} rings, its sockets {told}"
    size = rings(sockets, "rx", lambda ring: ring["ring_size"] or 0)
    used = sums([m for m in memory if m["kind"] == "rings"], "link", lambda m: m["used"])
    for link, most in size.items():
        if link in known and used.get(link, 0) < most:
            yield f"link {link}: rings of {most} bytes in {used.get(link, 0)}"
    for entry in memory:
        if entry["used"] > entry["bytes"]:
            yield f"link {entry['link']}: {entry['used']} of {entry['bytes']} bytes"


def ends(names):
    """The streams of all namespaces, by their addresses."""
    found = {}
    for name in names:
        enter(f"/run/netns/{name}")
        found.update({(s["local"], s["remote"]): s for s in dump("sockets")
                      if s.get("remote") and s.get("tx") and s.get("rx")})
    return found


def differ(names):
    """What the ends of a connection do not agree about: sentences."""
    # receivers before senders: what is received meanwhile was sent before
    receivers, senders = ends(names), ends(names)
    for (local, remote), end in receivers.items():
        if (remote, local) not in senders:
            continue
        whats = "offset", "tcp_bytes", "ring_bytes"
        rx = {what: end["rx"][what] or 0 for what in whats}
        tx = {what: senders[remote, local]["tx"][what] or 0 for what in whats}
        for what in whats:
            if rx[what] > tx[what]:
                yield f"{remote} to {local}: {what}: {rx[what]} received, {tx[what]} sent"
        if rx["offset"] != tx["offset"]:
            continue
        # all is read; a ring's bytes count twice if they are sent again
        if rx["tcp_bytes"] != tx["tcp_bytes"] or rx["tcp_bytes"] + rx["ring_bytes"] != rx["offset"]:
            yield (f"{remote} to {local}: all {rx['offset']} bytes were read, {rx['tcp_bytes']} by "
                   f"TCP and {rx['ring_bytes']} by rings; {tx['tcp_bytes']} were sent by TCP")


def left():
    """What is still held, though no socket is open."""
    for link in dump("links"):
        for what in "tx_rings", "rx_rings", "rmb_used":
            if link[what]:
                yield f"link {link['id']}: {what} {link[what]}"
    for entry in dump("memory"):
        if entry["used"]:
            yield f"link {entry['link']}: {entry['used']} bytes of {entry['kind']}"


def look(name):
    """What does not agree for PATIENCE."""
    enter(f"/run/netns/{name}")
    return patiently(wrong)


def patiently(check, *args):
    end = time.monotonic() + PATIENCE
    while True:
        found = list(check(*args))
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.1)


def look_left(name):
    """What is held for PATIENCE_END, or for OWED by a link without rings."""
    enter(f"/run/netns/{name}")
    begun, since = time.monotonic(), {}
    while True:
        found, now = list(left()), time.monotonic()
        owed = [link["id"] for link in dump("links")
                if link["rmb_used"] and not link["tx_rings"] and not link["rx_rings"]]
        since = {link: since.get(link, now) for link in owed}
        if any(now - then > OWED for then in since.values()):
            return found + ["a peer has not said that it has done"]
        if not found or now > begun + PATIENCE_END:
            return found
        time.sleep(1)


def main():
    names = [name for name in sys.argv[1:] if name[0] != "-"]
    bad = False
    for name in names:
        for sentence in look_left(name) if "-e" in sys.argv else look(name):
            print(f"{name}: {sentence}")
            bad = True
    if "-e" not in sys.argv:
        for sentence in patiently(differ, names[:-1] if "-l" in sys.argv else names):
            print(sentence)
            bad = True
    return bad


if __name__ == "__main__":
    sys.exit(main())
