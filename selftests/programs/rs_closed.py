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
import subprocess
import sys
import time

import streams

PORT = 7600
LIMIT = 6000    # s
LOSE = f"""table inet closed {{
    chain input {{
        type filter hook input priority 0
        tcp sport {PORT} drop
    }}
}}"""


def is_there(port):
    return any(entry.get("local", "").endswith(f":{port}") and entry.get("remote")
               for entry in streams.told())


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
    listener = streams.listening(address, port=PORT)
    client, peer = streams.connected(listener)
    port = client.getsockname()[1]
    peer.setblocking(False)
    if how == "silent":
        subprocess.run(["nft", "-f", "-"], input=LOSE, text=True, check=True)
        size = client.send(bytes(16384))
    else:
        size = streams.fill(client, patience=2)
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
