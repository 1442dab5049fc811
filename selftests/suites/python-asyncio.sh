# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# Python's own tests of asyncio.
# shellcheck source=selftests/suites/python.sh
. "$(dirname "${BASH_SOURCE[0]}")/python.sh"
needs="python3.11 libpython3.11-testsuite"
limit=1200
modules=test_asyncio
