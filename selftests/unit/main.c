// SPDX-License-Identifier: GPL-2.0-only
/* main() of a test program, which runs its cases; fuzzers have their own. */
#include "tap.h"

/*
 *	PROGRAM [-x] [CASE...]
 *
 * Only the cases whose names begin so; -x: ends with the first expectation that fails.
 */
int main(int argc, char **argv)
{
	bool stop = argc > 1 && !strcmp(argv[1], "-x");

	return tap_run(argv + 1 + stop, stop);
}
