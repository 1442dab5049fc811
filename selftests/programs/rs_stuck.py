#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Programs that occupy their sockets: what they send has to be read first, and nobody does.

Usage: rs_stuck ADDRESS N CMD...

N connections with records.  A thread for each sends from a page that userfaultfd withholds, so the
socket is owned all the time.  Meanwhile their streams get work to do by CMD, whose exit status is
that of this program.  Then the pages come (zeroes), and all must arrive.
"""
import resource
import socket
import subprocess
import sys
import threading

import streams
from withheld import PAGE, Withheld


def main():
    address, n, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    resource.setrlimit(resource.RLIMIT_NOFILE, (4 * n, 4 * n))
    threading.stack_size(256 * 1024)
    listener = streams.listening(address, n)
    pairs = []
    for _ in range(n):
        client, server = streams.connected(listener)
        client.sendall(b"first")
        server.sendall(server.recv(5, socket.MSG_WAITALL))
        client.recv(5, socket.MSG_WAITALL)
        pairs.append((client, server))
    streams.wait_until(lambda: streams.framed() >= 2 * n, 60, "there are no records")
    withheld = Withheld(n)
    threads = [threading.Thread(target=client.sendall, args=(withheld.page(i),), daemon=True)
               for i, (client, _) in enumerate(pairs)]
    for thread in threads:
        thread.start()
    withheld.wait_for(n)
    status = subprocess.run(command, check=False).returncode
    withheld.come()
    for client, server in pairs:
        if server.recv(PAGE, socket.MSG_WAITALL) != bytes(PAGE):
            sys.exit("what was sent has not come")
        client.close()
        server.close()
    sys.exit(status)


main()
