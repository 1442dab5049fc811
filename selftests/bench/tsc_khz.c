// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints the frequency of this machine's time stamp counter, which emulated
 * machines share.  On a busy host a guest that finds it out by itself may be wrong
 * by a factor of two, and so would be all its times.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

struct moment {
	double seconds;
	uint64_t ticks;
};

/* The shortest of some tries: nothing came in between. */
static struct moment moment_now(void)
{
	struct moment best = { 0 };
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 100; i++) {
		uint64_t before = __rdtsc(), after;
		struct timespec ts;

		clock_gettime(CLOCK_MONOTONIC, &ts);
		after = __rdtsc();
		if (after - before >= least)
			continue;
		least = after - before;
		best.seconds = ts.tv_sec + ts.tv_nsec / 1e9;
		best.ticks = before + least / 2;
	}
	return best;
}

int main(void)
{
	const struct timespec pause = { .tv_nsec = 200000000 };
	struct moment start = moment_now(), end;

	nanosleep(&pause, NULL);
	end = moment_now();
	printf("%.0f\n", (end.ticks - start.ticks) /
	       (end.seconds - start.seconds) / 1e3);
	return 0;
}
