#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""All-reduce with torch.distributed and gloo; rank and addresses are in the environment.

usage: gloo.py load SECONDS SUMS        prints "NAME VALUE" lines, writes a digest of each result
       gloo.py work GO PROGRESS SUMS    until the file GO is there: results must have these digests
"""
import hashlib
import os
import sys
import time

import torch
import torch.distributed as dist

SIZES = [1 << 10, 16 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20]
rank = int(os.environ["RANK"])


def numbers(size):
    """Of this rank: floats of which a sum depends on the order."""
    generator = torch.Generator().manual_seed(size * 10 + rank)
    return torch.rand(size // 4, generator=generator) * 1e6


def digest(tensor):
    return hashlib.sha256(tensor.numpy().tobytes()).hexdigest()


def reduced(tensor):
    copy = tensor.clone()
    dist.all_reduce(copy)
    return copy


def goes_on(condition):
    """What rank 0 thinks of it."""
    flag = torch.tensor([int(rank == 0 and condition())])
    dist.broadcast(flag, 0)
    return bool(flag)


def load(seconds, path):
    sums = {}
    for size in SIZES:
        tensor = numbers(size)
        sums[size] = digest(reduced(tensor))
        steps, since = 0, time.monotonic()
        while goes_on(lambda: time.monotonic() - since < seconds / 2):
            reduced(tensor)
            steps += 1
        rate = steps / (time.monotonic() - since)
        if rank == 0:
            print(f"allreduce-{size >> 10}K {rate}")
    everybody = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, sums)
    if any(other != sums for other in everybody):
        sys.exit("ranks have different results")
    if rank == 0:
        with open(path, "w", encoding="ascii") as file:
            for size, value in sums.items():
                print(size, value, file=file)


def work(go, progress, path):
    with open(path, encoding="ascii") as file:
        sums = {int(size): value for size, value in map(str.split, file)}
    tensors = {size: numbers(size) for size in SIZES}
    steps, slowest, told = 0, 0.0, 0.0
    while goes_on(lambda: not os.path.exists(go)):
        # the largest one now and then
        for size in SIZES if steps % 120 == 0 else SIZES[:4]:
            since = time.monotonic()
            result = reduced(tensors[size])
            slowest = max(slowest, time.monotonic() - since)
            if digest(result) != sums[size]:
                sys.exit(f"rank {rank}, step {steps}: another sum of {size} bytes than by TCP")
            steps += 1
        if rank == 0 and time.monotonic() - told > 0.2:
            told = time.monotonic()
            with open(progress, "a", encoding="ascii") as file:
                print(steps, file=file)
    if rank == 0:
        print(f"{steps} results, each as by TCP; the slowest took {slowest * 1000:.0f} ms")


torch.set_num_threads(1)
dist.init_process_group("gloo")
if sys.argv[1] == "load":
    load(float(sys.argv[2]), sys.argv[3])
else:
    work(*sys.argv[2:5])
dist.destroy_process_group()
