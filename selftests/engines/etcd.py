#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Clients of etcd, by its JSON interface; each keeps one connection to one member.

usage: etcd.py load SECONDS ENDPOINTS       prints "NAME VALUE" lines
       etcd.py work GO PROGRESS ENDPOINTS   until the file GO is there: what one client has put, all
                                            others must get at once, and revisions must grow
"""
import base64
import hashlib
import http.client
import json
import os
import sys
import threading
import time
import urllib.parse

endpoints = sys.argv[-1].split(",")
CLIENTS = 6
LEADER_CHANGES = "leader", "proposal dropped", "request timed out"
failures = []


def code(text):
    return base64.b64encode(text.encode()).decode()


def changed_since(then):
    """Has the leader been changed by intention since then, or is it being changed?"""
    if sys.argv[1] != "work":
        return False
    try:
        with open(sys.argv[2] + ".changed", encoding="ascii") as file:
            return float(file.read()) >= then
    except FileNotFoundError:
        return os.path.exists(sys.argv[2] + ".changing")


class Client:
    def __init__(self, endpoint):
        self.conn = http.client.HTTPConnection(urllib.parse.urlsplit(endpoint).netloc, timeout=60)
        self.conn.connect()
        # http.client would connect anew, and so hide a lost connection
        self.conn.auto_open = 0

    def call(self, method, **args):
        """Asks again if, and only if, the leader was changed by intention meanwhile.

        etcd then loses or refuses what is on its way to the former leader.
        """
        while True:
            since = time.time()
            self.conn.request("POST", "/v3/kv/" + method, json.dumps(args))
            answer = self.conn.getresponse()
            text = answer.read().decode()
            if answer.status == 200:
                return json.loads(text)
            if not changed_since(since) or not any(why in text for why in LEADER_CHANGES):
                raise ValueError(f"{method}: {answer.status} {text[:200]}")

    def put(self, key, value):
        return int(self.call("put", key=code(key), value=code(value))["header"]["revision"])

    def get(self, key):
        kvs = self.call("range", key=code(key)).get("kvs", [])
        return base64.b64decode(kvs[0]["value"]).decode() if kvs else None


def in_parallel(step, ended):
    """step(client, number, count) by each client until ended(); returns the sum of the counts."""
    counts = [0] * CLIENTS

    def run(number):
        try:
            clients = [Client(endpoint) for endpoint in endpoints]
            own = number % len(clients)
            while not ended() and not failures:
                step(clients[own:] + clients[:own], number, counts[number])
                counts[number] += 1
        except Exception as error:      # of any kind: nothing may fail
            failures.append(f"client {number}, step {counts[number]}: {type(error).__name__}: {error}")
    threads = [threading.Thread(target=run, args=(n,)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        yield sum(counts)
        time.sleep(0.1)
    yield sum(counts)


def load(seconds):
    def put(clients, number, count):
        clients[0].put(f"load{number}/{count % 100}", "v" * 256)

    def get(clients, number, count):
        clients[0].get(f"load{number}/{count % 100}")
    for name, step in ("put-256B", put), ("get-256B", get):
        since = time.monotonic()
        *_, count = in_parallel(step, lambda: time.monotonic() - since > seconds)
        print(name, count / (time.monotonic() - since))


def work(go, progress):
    slowest = [0.0]
    revisions = [0] * CLIENTS

    def step(clients, number, count):
        key = f"work{number}/{count % 50}"
        value = hashlib.sha256(f"{number} {count}".encode()).hexdigest() * (1 + count % 100)
        since = time.monotonic()
        revision = clients[0].put(key, value)
        slowest[0] = max(slowest[0], time.monotonic() - since)
        if revision <= revisions[number]:
            raise ValueError(f"revision {revision} behind {revisions[number]}")
        revisions[number] = revision
        for client in clients:
            if client.get(key) != value:
                raise ValueError(f"{key}: another value than was put")
    for count in in_parallel(step, lambda: os.path.exists(go)):
        with open(progress, "a", encoding="ascii") as file:
            print(count * (1 + len(endpoints)), file=file)
    print(f"{count} values put, each got from all members; the slowest put took {slowest[0] * 1000:.0f} ms")


if sys.argv[1] == "load":
    load(float(sys.argv[2]))
else:
    work(*sys.argv[2:4])
for failure in failures:
    print(failure)
sys.exit(bool(failures))
