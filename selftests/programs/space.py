# SPDX-License-Identifier: GPL-2.0-only
"""For programs that act in several network namespaces: entering one."""
import ctypes
import os

CLONE_NEWNET = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)


def enter_fd(fd, name):
    """From now on this thread is there: its new sockets, what it runs."""
    if libc.setns(fd, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"setns to {name}")


def enter(path):
    fd = os.open(path, os.O_RDONLY)
    enter_fd(fd, path)
    os.close(fd)
