# SPDX-License-Identifier: GPL-2.0-only
"""Memory whose pages are not there until they are given: who touches one waits (userfaultfd)."""
import ctypes
import mmap
import os
import struct
from fcntl import ioctl

USERFAULTFD = 323               # x86-64
UFFDIO_API, UFFDIO_REGISTER, UFFDIO_ZEROPAGE = 0xc018aa3f, 0xc020aa00, 0xc020aa04
UFFD_API, MISSING = 0xaa, 1
PAGE = mmap.PAGESIZE


class Withheld:
    """Pages that are not there until "come"."""

    def __init__(self, n):
        self.map = mmap.mmap(-1, n * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.fd = ctypes.CDLL(None, use_errno=True).syscall(USERFAULTFD, os.O_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "userfaultfd")
        ioctl(self.fd, UFFDIO_API, bytearray(struct.pack("QQQ", UFFD_API, 0, 0)))
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        ioctl(self.fd, UFFDIO_REGISTER,
              bytearray(struct.pack("QQQQ", self.start, n * PAGE, MISSING, 0)))

    def page(self, i):
        return memoryview(self.map)[i * PAGE:(i + 1) * PAGE]

    def wait_for(self, n):
        """Wait until that many have been asked for."""
        while n:
            n -= len(os.read(self.fd, 32)) // 32

    def give(self, i):
        """This page, with zeroes."""
        ioctl(self.fd, UFFDIO_ZEROPAGE,
              bytearray(struct.pack("QQQq", self.start + i * PAGE, PAGE, 0, 0)))

    def come(self):
        """All."""
        os.close(self.fd)
