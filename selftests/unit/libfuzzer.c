// SPDX-License-Identifier: GPL-2.0-only
/* One target, TARGET, as libFuzzer calls it. */
#include "fuzz.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const u8 *data, size_t len);

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	TARGET(data, len);
	if (tap_failed()) {
		fflush(stdout);
		abort();
	}
	return 0;
}
