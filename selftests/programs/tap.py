# SPDX-License-Identifier: GPL-2.0-only
"""TAP from Python: ok() or fail() for each test, then sys.exit(done())."""

number = failed = 0


def ok(good, name, detail=""):
    """One test; the detail is for those that fail.  Return: good"""
    global number, failed
    number += 1
    print(("" if good else "not ") + f"ok {number} - {name}", flush=True)
    if not good:
        failed += 1
        for line in str(detail).splitlines():
            print("#", line, flush=True)
    return good


def done():
    """The plan.  Return: exit status"""
    print(f"1..{number}", flush=True)
    return failed != 0
