// SPDX-License-Identifier: GPL-2.0-only
/* A test program runs the cases that it is made of; a fuzzer has a main() of its own. */
#include "tap.h"

int main(void)
{
	return tap_run();
}
