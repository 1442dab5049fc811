/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests that report in TAP.  A test program is tap.c and one *_test.c with
 *
 *	TEST(file__case)
 *	{
 *		EXPECT(condition);
 *		EXPECT_EQ(got, wanted);
 *	}
 *
 * A failed expectation prints where and goes on; the case is "not ok".
 */
#ifndef RSTREAM_TAP_H
#define RSTREAM_TAP_H

#include "host.h"

void tap_add(const char *name, void (*run)(void));
bool tap_expect(bool good, const char *text, const char *file, int line);
bool tap_expect_eq(u64 got, u64 want, const char *text, const char *file,
		   int line);
/* has the present case failed? (to leave loops that would print for ever) */
bool tap_failed(void);

#define TEST(name)						\
	static void name(void);					\
	__attribute__((constructor)) static void add_##name(void)	\
	{							\
		tap_add(#name, name);				\
	}							\
	static void name(void)

#define EXPECT(cond) ({						\
	bool good_ = (cond);					\
								\
	if (!good_)						\
		tap_expect(false, #cond, __FILE__, __LINE__);	\
	good_;							\
})
#define EXPECT_EQ(got, want) \
	tap_expect_eq(got, want, #got " == " #want, __FILE__, __LINE__)

/*
 * Run the cases whose names begin as one of @only, which NULL ends; all, if there is none.
 * @stop: exit at the first expectation that fails.  Return: the program's exit status
 */
int tap_run(char *const *only, bool stop);

/*
 * @len bytes that end where the heap block ends, so that the address sanitizer
 * sees the first byte read behind them.  Valid until the next call.
 */
u8 *tap_edge(const void *from, size_t len);

/* xorshift64*: the same numbers in each run */
u64 tap_random(u64 *seed);

#endif
