#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Clients of PostgreSQL that commit rows, and look for each in both standbys at once.

usage: postgres.py GO PROGRESS PORT PRIMARY STANDBY...

Four clients, until the file GO is there.  What is committed with synchronous_commit=remote_apply
is seen by the standbys; each connection lasts from the beginning to the end.
"""
import hashlib
import os
import sys
import threading
import time

import psycopg2

go, progress, port, primary = sys.argv[1:5]
standbys = sys.argv[5:]
CLIENTS = 4
done = [0] * CLIENTS
slowest = [0.0] * CLIENTS
failures = []


def connect(host):
    conn = psycopg2.connect(host=host, port=port, user="postgres", dbname="postgres")
    conn.autocommit = True
    return conn.cursor()


def client(number):
    writer = connect(primary)
    readers = [connect(host) for host in standbys]
    while not os.path.exists(go) and not failures:
        seq = done[number] // 3
        text = hashlib.sha256(f"{number} {seq}".encode()).hexdigest() * (1 + seq % 200)
        since = time.monotonic()
        writer.execute("insert into checked values (%s, %s, %s)", (number, seq, text))
        slowest[number] = max(slowest[number], time.monotonic() - since)
        done[number] += 1
        for reader, host in zip(readers, standbys):
            reader.execute("select text from checked where client = %s and seq = %s", (number, seq))
            if reader.fetchall() != [(text,)]:
                raise ValueError(f"row {number} {seq} is not there, or is another one, in {host}")
            done[number] += 1


def guarded(number):
    try:
        client(number)
    except Exception as error:      # of any kind: nothing may fail
        failures.append(f"client {number}: {type(error).__name__}: {error}")


def main():
    setup = connect(primary)
    setup.execute("create table checked (client int, seq int, text text, primary key (client, seq))")
    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        with open(progress, "a", encoding="ascii") as file:
            print(sum(done), file=file)
        time.sleep(0.2)
    setup.execute("select count(*) from checked")
    rows = setup.fetchone()[0]
    committed = sum(-(-n // 3) for n in done)
    if rows != committed:
        failures.append(f"{committed} rows were committed, {rows} are there")
    print(f"{sum(done)} requests, {rows} rows; the slowest commit took {max(slowest) * 1000:.0f} ms")
    for failure in failures:
        print(failure)
    sys.exit(bool(failures))


main()
