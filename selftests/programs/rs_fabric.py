#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Many connections between network namespaces, all open at once, and what they cost.

usage: rs_fabric [-p] COUNT HOST...

Each HOST is NAMESPACE=ADDRESS.  COUNT connections from each host to each later one; with -p plain
TCP.  Each carries a text both ways, again until all have rings or none has got one for a while.
Prints the memory of the kernel before, with all open, and after; how many have rings; the links
and registered memory of a host.
"""
import json
import os
import resource
import socket
import subprocess
import sys
import time

from space import enter_fd
from streams import IPPROTO_RDMASTREAM, receive

PER_PORT = 20000        # connections of a pair to one port
TEXT = bytes(range(256)) * 96
FEW = TEXT[:100]


class Host:
    def __init__(self, text):
        self.name, self.address = text.split("=")
        self.space = os.open(f"/run/netns/{self.name}", os.O_RDONLY)
        self.listeners = {}

    def enter(self):
        enter_fd(self.space, self.name)

    def listener(self, port):
        if port not in self.listeners:
            self.enter()
            sock = self.listeners[port] = new()
            sock.bind((self.address, port))
            sock.listen(64)
        return self.listeners[port]


def new():
    proto = 0 if plain else IPPROTO_RDMASTREAM
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, proto)
    sock.settimeout(60)
    return sock


def exchange(pairs, text):
    for pair in pairs:
        for sender, receiver in pair, pair[::-1]:
            sender.sendall(text)
            assert receive(receiver, len(text)) == text


def connect(client, server, count):
    for n in range(count):
        listener = server.listener(7000 + n // PER_PORT)
        if not n % PER_PORT:
            client.enter()
        sock = new()
        sock.connect(listener.getsockname())
        yield sock, listener.accept()[0]


def kernel_memory():
    """Bytes: all but free pages, files and processes."""
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as drop:
        drop.write("3\n")
    with open("/proc/meminfo", encoding="ascii") as told:
        info = {line.split(":")[0]: int(line.split()[1]) for line in told}
    with open("/proc/zoneinfo", encoding="ascii") as told:
        kept = sum(int(line.split()[1]) for line in told if line.split()[0] == "count:")
    return 1024 * (info["MemTotal"] - 4 * kept -
                   sum(info[name] for name in ("MemFree", "Buffers", "Cached", "AnonPages")))


def dump(what):
    told = subprocess.run(["rsctl", "-j", what], capture_output=True, check=True).stdout
    return json.loads(told)


def with_rings(hosts):
    """Ends of connections with a ring each way."""
    count = 0
    for host in hosts:
        host.enter()
        count += sum(bool(entry["remote"]) and entry["tx"]["carrier"] == "ring" and
                     entry["rx"]["carrier"] == "ring" for entry in dump("sockets"))
    return count


def told(what, value, each):
    print(f"{what}: {value} bytes, {value // each} each", flush=True)


def to_rings(hosts, pairs):
    began, had, tries = time.monotonic(), 0, 0
    while tries < 10:
        exchange(pairs, TEXT)
        has = with_rings(hosts)
        print(f"{time.monotonic() - began:.1f} s: {has} of {2 * len(pairs)} ends have rings", flush=True)
        if has == 2 * len(pairs):
            break
        tries, had = 0 if has > had else tries + 1, max(has, had)
        time.sleep(1)


def main():
    count, hosts = int(args[0]), [Host(text) for text in args[1:]]
    resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))
    before = kernel_memory()
    pairs = [pair for i, client in enumerate(hosts) for server in hosts[i + 1:]
             for pair in connect(client, server, count)]
    exchange(pairs, FEW)
    print(f"{len(pairs)} connections", flush=True)
    told("idle", kernel_memory() - before, len(pairs))
    if not plain and len(hosts) > 2:
        to_rings(hosts, pairs)
        told("on rings", kernel_memory() - before, len(pairs))
        hosts[0].enter()
        links, memory = dump("links"), dump("memory")
        print(f"{hosts[0].name}: {len(links)} links, {sum(m['bytes'] for m in memory)} bytes registered, "
              f"{sum(m['used'] for m in memory)} in use")
    for client, server in pairs:
        client.close()
        server.close()
    for host in hosts:
        for listener in host.listeners.values():
            listener.close()
    time.sleep(120)     # TIME-WAIT
    told("after", kernel_memory() - before, len(pairs))


plain = "-p" in sys.argv
args = [arg for arg in sys.argv[1:] if arg != "-p"]
main()
