#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""How long what is sent takes at most, in virtual time: nothing should wait for a timer.

rs_pauses ADDRESS [SEED]

One stream of a host with itself.  Each round sends up to twice the size of a ring in one or more
calls, from one end or from both, reads all of it in one or more calls, and checks it.  Prints the
number of rounds on rings, and the ms of the longest.
"""
import os
import random
import socket
import sys
import time

import streams

K = 1024
ROUNDS = 2000
WARM_UP = 200       # rounds in which the stream moves to rings


def connect(address):
    """The two ends of a stream; their calls do not wait."""
    ends = streams.pair(address)
    for sock in ends:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ends


class Half:
    """A direction of the stream."""

    def __init__(self, sender, receiver, dice):
        self.sender, self.receiver, self.dice = sender, receiver, dice

    def begin(self):
        size = self.dice.choice((1, 100, K, 8 * K, 20 * K, 31 * K, 33 * K, 64 * K))
        self.data = os.urandom(16) * (size // 16 + 1)
        self.part = max(size // self.dice.choice((1, 1, 2, 7)), 1)
        self.sent, self.size, self.got = 0, size, bytearray()

    def step(self):
        """Return: is it over?"""
        try:
            if self.sent < self.size:
                end = min(self.sent + self.part, self.size)
                self.sent += self.sender.send(self.data[self.sent:end])
        except BlockingIOError:
            pass
        try:
            self.got += self.receiver.recv(self.dice.choice((K, 128 * K)))
        except BlockingIOError:
            pass
        return len(self.got) == self.size

    def check(self):
        if self.got != self.data[:self.size]:
            sys.exit("other bytes than were sent")


def main():
    dice = random.Random(sys.argv[2] if len(sys.argv) > 2 else "1")
    near, far = connect(sys.argv[1])
    halves = [Half(near, far, dice), Half(far, near, dice)]
    longest = 0
    for n in range(WARM_UP + ROUNDS):
        now = dice.choice((halves[:1], halves[1:], halves))
        for half in now:
            half.begin()
        begin = time.monotonic()
        going = now
        while going := [half for half in going if not half.step()]:
            time.sleep(0.0001)
            if time.monotonic() > begin + 60:
                sys.exit("a round takes more than a minute")
        if n >= WARM_UP:
            longest = max(longest, time.monotonic() - begin)
        for half in now:
            half.check()
    print(ROUNDS, int(longest * 1000))


if __name__ == "__main__":
    main()
