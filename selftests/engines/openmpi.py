#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Loads for Open MPI.

usage: openmpi.py load SECONDS          prints "NAME VALUE" lines
       openmpi.py work GO PROGRESS      checks each byte until the file GO is there
"""
import os
import random
import sys
import time

from mpi4py import MPI

comm = MPI.COMM_WORLD
me, size = comm.Get_rank(), comm.Get_size()
right, left = (me + 1) % size, (me - 1) % size


def repeated(seconds, step):
    """How many steps a second; rank 0 says when it is over."""
    steps, more = 0, True
    comm.Barrier()
    since = time.monotonic()
    while more:
        for _ in range(10):
            step()
        steps += 10
        more = comm.bcast(time.monotonic() - since < seconds if me == 0 else None)
    return steps / (time.monotonic() - since)


def token(length):
    """Once around the ring."""
    data = bytearray(length)

    def step():
        if me == 0:
            comm.Send(data, right)
            comm.Recv(data, left)
        else:
            comm.Recv(data, left)
            comm.Send(data, right)
    return step


def everybody(length):
    out, got = bytearray(length * size), bytearray(length * size)
    return lambda: comm.Alltoall(out, got)


def load(seconds):
    figures = {
        "ring-64B": repeated(seconds, token(64)),
        "ring-1M-MB/s": repeated(seconds, token(1 << 20)) * size * (1 << 20) / 1e6,
        "alltoall-64B": repeated(seconds, everybody(64)),
        "alltoall-256K-MB/s": repeated(seconds, everybody(256 << 10)) * size * (size - 1) * (256 << 10) / 1e6,
        "allreduce-8B": repeated(seconds, lambda: comm.allreduce(1)),
    }
    if me == 0:
        for name, value in figures.items():
            print(name, value)


def pattern(step, sender, receiver):
    """What one sends another in a step, which all can tell."""
    rand = random.Random(f"{step} {sender} {receiver}")
    return rand.randbytes(rand.choice((1, 100, 5000, 70000, 400000)))


def check(got, want, what):
    if got != want:
        print(f"rank {me}: {what}: other bytes than were sent", flush=True)
        comm.Abort(1)


def work(go, progress):
    step, slowest, told, more = 0, 0.0, 0.0, True
    while more:
        since = time.monotonic()
        outgoing = [pattern(step, me, other) for other in range(size)]
        check(comm.alltoall(outgoing), [pattern(step, other, me) for other in range(size)], "alltoall")
        got = bytearray(len(pattern(step, left, me)))
        comm.Sendrecv(outgoing[right], right, recvbuf=got, source=left)
        check(bytes(got), pattern(step, left, me), "ring")
        check(comm.allreduce(step * size + me), sum(step * size + n for n in range(size)), "allreduce")
        step += 1
        slowest = max(slowest, time.monotonic() - since)
        if me == 0 and time.monotonic() - told > 0.2:
            told = time.monotonic()
            with open(progress, "a", encoding="ascii") as file:
                print(step * 3, file=file)
        more = comm.bcast(not os.path.exists(go) if me == 0 else None)
    if me == 0:
        print(f"{step} steps of three collective operations; the slowest step took {slowest * 1000:.0f} ms")


if sys.argv[1] == "load":
    load(float(sys.argv[2]))
else:
    work(*sys.argv[2:4])
