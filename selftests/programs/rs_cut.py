#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What a program sees when somebody cuts its connection.

rs_cut -s -k KIND -p PORT                   echoes
rs_cut -c HOST -k KIND -p PORT --cut CMD [--mend CMD] CASE

Prints one line, without times: the same for each kind if they behave alike.
"""
import argparse
import errno
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time

from streams import IPPROTO_RDMASTREAM

KINDS = {
    "tcp4": (socket.AF_INET, 0), "tcp6": (socket.AF_INET6, 0),
    "inet": (socket.AF_INET, IPPROTO_RDMASTREAM),
    "inet6": (socket.AF_INET6, IPPROTO_RDMASTREAM),
}
SIOCOUTQ = 0x5411
LIMIT = 100 * int(os.environ.get("SLOW", 1))     # seconds that anything may take


def name_of(call, *args):
    """The call's result, or the name of its error."""
    try:
        return str(call(*args))
    except OSError as err:
        return errno.errorcode.get(err.errno, str(err))


def events(sock, mask, seconds):
    poll = select.poll()
    poll.register(sock, mask)
    got = poll.poll(seconds * 1000)
    return got[0][1] if got else 0


def echo(sock):
    try:
        while data := sock.recv(65536):
            sock.sendall(data)
    except OSError:
        pass
    sock.close()


def serve(kind, port):
    family, proto = KINDS[kind]
    listener = socket.socket(family, socket.SOCK_STREAM, proto)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", port))
    listener.listen(8)
    while True:
        threading.Thread(target=echo, args=(listener.accept()[0],),
                         daemon=True).start()


def exchange(sock, size, times):
    for _ in range(times):
        data = bytes(size)
        sock.sendall(data)
        got = 0
        while got < size:
            part = sock.recv(size - got)
            if not part:
                sys.exit("the end came too early")
            got += len(part)


def ended(sock):
    """Wait for the end; what the calls then say."""
    if not events(sock, 0, LIMIT) & select.POLLERR:
        return "nothing happens"
    poll = events(sock, select.POLLIN | select.POLLOUT | select.POLLRDHUP, 0)
    return (f"poll {poll:x} recv {name_of(sock.recv, 1)} then "
            f"{name_of(sock.recv, 1)} send {name_of(sock.send, b'x')}")


def talk_until_ended(sock):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end and not events(sock, 0, 0.1) & select.POLLERR:
        if name_of(sock.send, b"x") != "1":
            return "send failed"
    return ended(sock)


def case_rejected(sock, cut, _):
    cut()
    return talk_until_ended(sock)


def case_killed(sock, cut, _):
    cut()
    return ended(sock)


def case_user_timeout(sock, cut, _):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 2000)
    cut()
    sock.send(b"x")
    return ended(sock)


def case_keepalive(sock, cut, _):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2)
    cut()
    return ended(sock)


def case_outage(sock, cut, mend):
    cut()
    sock.send(bytes(1000))
    early = events(sock, select.POLLIN, 4)      # the subject is time
    mend()
    exchange_rest = 1000
    while exchange_rest:
        exchange_rest -= len(sock.recv(exchange_rest))
    exchange(sock, 1000, 10)
    return f"survived, early {early:x}"


def case_fin(sock, cut, mend):
    """Has the peer's kernel our FIN?  Not before it can come through."""
    def state():
        return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]

    def unacked():
        return struct.unpack("i", fcntl.ioctl(sock, SIOCOUTQ, bytes(4)))[0] > 0

    cut()
    sock.shutdown(socket.SHUT_WR)
    seen = set()
    end = time.monotonic() + 2                  # the subject is time
    while time.monotonic() < end:
        seen.add((state(), unacked()))
        time.sleep(0.05)
    mend()
    return f"{sorted(seen)} then {sock.recv(1)}"


def client(args):
    family, proto = KINDS[args.kind]
    sock = socket.socket(family, socket.SOCK_STREAM, proto)
    sock.settimeout(None)
    sock.connect((args.client, args.port))
    exchange(sock, 1, 20)
    exchange(sock, 16384, 8)
    place = {"%LPORT": str(sock.getsockname()[1])}

    def run(command):
        for key, value in place.items():
            command = command.replace(key, value)
        subprocess.run(command, shell=True, check=True,
                       stdout=subprocess.DEVNULL)
    print(globals()["case_" + args.case](sock, lambda: run(args.cut),
                                         lambda: run(args.mend)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-s", "--server", action="store_true")
    parser.add_argument("-c", "--client")
    parser.add_argument("-k", "--kind", default="tcp4", choices=KINDS)
    parser.add_argument("-p", "--port", type=int, default=7400)
    parser.add_argument("--cut", default="true")
    parser.add_argument("--mend", default="true")
    parser.add_argument("case", nargs="?")
    args = parser.parse_args()
    if args.server:
        serve(args.kind, args.port)
    else:
        client(args)


main()
