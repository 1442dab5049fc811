#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A connection whose program has closed it while its peer takes no data, or little.

Usage: rs_closed ADDRESS silent|still|drip

  silent  the peer's packets are lost from then on
  still   the peer does not read
  drip    the peer reads 8 KiB every 10 s, until the end

Prints the seconds until the closed socket is gone, and how the peer's connection ended:
"eof" after all bytes, "reset", or "open".  Meant for virtual time.
"""
import json
import socket
import subprocess
import sys
import time

IPPROTO_RDMASTREAM = 257
PORT = 7600
LIMIT = 6000    # s
LOSE = f"""table inet closed {{
    chain input {{
        type filter hook input priority 0
        tcp sport {PORT} drop
    }}
}}"""


def is_there(port):
    told = subprocess.run(["rsctl", "-j", "sockets"], capture_output=True, check=True).stdout
    return any(entry.get("local", "").endswith(f":{port}") and entry.get("remote")
               for entry in json.loads(told))


def fill(sock):
    """As much as it takes.  Return: bytes."""
    sock.setblocking(False)
    size, since = 0, time.monotonic()
    while time.monotonic() < since + 2:
        try:
            size += sock.send(bytes(65536))
        except BlockingIOError:
            time.sleep(0.1)
    return size


def drip(peer, got):
    """Return: how it has ended, or None; and the bytes so far."""
    try:
        piece = peer.recv(8192)
    except BlockingIOError:
        return None, got
    except ConnectionResetError:
        return "reset", got
    return (None, got + len(piece)) if piece else ("eof", got)


def main():
    address, how = sys.argv[1:]
    listener = socket.socket(proto=IPPROTO_RDMASTREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, PORT))
    listener.listen()
    client = socket.socket(proto=IPPROTO_RDMASTREAM)
    client.connect((address, PORT))
    peer, (_, port) = listener.accept()
    peer.setblocking(False)
    if how == "silent":
        subprocess.run(["nft", "-f", "-"], input=LOSE, text=True, check=True)
        size = client.send(bytes(16384))
    else:
        size = fill(client)
    client.close()
    since, end, got, gone = time.monotonic(), None, 0, None
    while end is None and time.monotonic() < since + LIMIT:
        time.sleep(10 if how == "drip" else 1)
        if gone is None and not is_there(port):
            gone = time.monotonic() - since
        if how == "drip":
            end, got = drip(peer, got)
        elif gone is not None:
            break
    if end == "eof" and got != size:
        end = f"{got} of {size} bytes"
    if how == "silent":
        subprocess.run(["nft", "delete", "table", "inet", "closed"], check=True)
    print("never" if gone is None else round(gone), end or "open", size)


main()
