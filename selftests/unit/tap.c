// SPDX-License-Identifier: GPL-2.0-only
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

unsigned int host_warnings;	/* host.h */
void (*host_published)(const void *p);

#define CASES_MAX	128
#define EDGE_MAX	1024

static struct {
	const char *name;
	void (*run)(void);
} cases[CASES_MAX];

static unsigned int n_cases;
static bool failed, stop_early;

void tap_add(const char *name, void (*run)(void))
{
	assert(n_cases < CASES_MAX);
	cases[n_cases].name = name;
	cases[n_cases++].run = run;
}

bool tap_failed(void)
{
	return failed;
}

bool tap_expect(bool good, const char *text, const char *file, int line)
{
	if (!good) {
		printf("# %s:%d: expected %s\n", file, line, text);
		if (stop_early)
			exit(EXIT_FAILURE);
		failed = true;
	}
	return good;
}

bool tap_expect_eq(u64 got, u64 want, const char *text, const char *file,
		   int line)
{
	if (!tap_expect(got == want, text, file, line))
		printf("#   got %#llx, wanted %#llx\n", got, want);
	return got == want;
}

u8 *tap_edge(const void *from, size_t len)
{
	static u8 *block;

	if (!block)
		block = malloc(EDGE_MAX);
	assert(block && len <= EDGE_MAX);
	return memcpy(block + EDGE_MAX - len, from, len);
}

u64 tap_random(u64 *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * 0x2545f4914f6cdd1dULL;
}

static bool is_wanted(const char *name, char *const *only)
{
	if (!*only)
		return true;
	for (; *only; only++) {
		if (!strncmp(name, *only, strlen(*only)))
			return true;
	}
	return false;
}

int tap_run(char *const *only, bool stop)
{
	unsigned int i, n, n_failed = 0;

	stop_early = stop;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0, n = 0; i < n_cases; i++) {
		if (is_wanted(cases[i].name, only))
			cases[n++] = cases[i];
	}
	n_cases = n;
	printf("TAP version 13\n1..%u\n", n_cases);
	for (i = 0; i < n_cases; i++) {
		failed = false;
		cases[i].run();
		tap_expect(!host_warnings, "no warning of the kernel", __FILE__, __LINE__);
		host_warnings = 0;
		n_failed += failed;
		printf("%sok %u - %s\n", failed ? "not " : "", i + 1,
		       cases[i].name);
	}
	return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
