#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Bytes that nobody has read yet stay as they are, whatever the sender's device does again.

usage: rs_late_read DEVICE NAMESPACE ADDRESS: the sender's device of rs_hca; where the reader is

The sender's acknowledgements are lost while the ring is filled, read, and filled again: what was
placed first is placed once more before that completes.  A sender that has written to the same
place by then would have its new bytes changed under the reader's eyes, for a while.
"""
import os
import sys
import time

from space import enter, enter_fd
from streams import listening, new, receive, ring_size

PARAMS = "/sys/module/rs_hca/parameters/"
SOME = 16384


def put(name, value):
    with open(PARAMS + name, "w", encoding="ascii") as param:
        param.write(value)


def turn(sender, reader, size):
    first, second = b"1" * size, b"2" * size
    put("fault_replace_at", "1")
    sender.sendall(first)
    assert receive(reader, size) == first
    sender.setblocking(False)
    sent = sender.send(second)
    sender.setblocking(True)
    # not by MSG_PEEK: what was peeked is kept
    for _ in range(sent // 50):
        time.sleep(0.01)
        assert receive(reader, 50) == second[:50], "bytes of before, over those that came later"
    receive(reader, sent % 50)


def main():
    device, space, address = sys.argv[1:]
    home = f"/proc/{os.getpid()}/ns/net"
    with open(home, encoding="ascii") as here:
        enter(f"/run/netns/{space}")
        listener = listening(address)
        enter_fd(here.fileno(), home)
    sender = new(address)
    sender.connect(listener.getsockname())
    reader = listener.accept()[0]
    while not ring_size(sender):
        sender.sendall(bytes(SOME))
        receive(reader, SOME)
        time.sleep(0.1)
    time.sleep(5)       # all has completed
    size = ring_size(sender)
    put("fault_dev", device)
    put("fault_delay_us", "1000000")
    for _ in range(8):
        turn(sender, reader, size)
    put("fault_replace_at", "0")
    put("fault_delay_us", "1000")
    put("fault_dev", "\n")


main()
