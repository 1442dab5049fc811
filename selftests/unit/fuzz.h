/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Targets of the fuzzers: each one passes arbitrary bytes to a pure file of the module, and
 * checks properties that must hold for all input.  fuzz_test.c runs them with fixed seeds,
 * libfuzzer.c guided by coverage.
 */
#ifndef RSTREAM_FUZZ_H
#define RSTREAM_FUZZ_H

#include "host.h"

/* name, longest input that makes sense */
#define FUZZ_TARGETS(X)	\
	X(option, 64)	\
	X(hello, 172)	\
	X(record, 80)	\
	X(rx, 120)	\
	X(tx, 120)	\
	X(pair, 150)	\
	X(phase, 120)	\
	X(plain, 120)	\
	X(span, 200)

#define X(name, max) void fuzz_##name(const u8 *data, size_t len);
FUZZ_TARGETS(X)
#undef X

/* The remaining bytes; zeros after the last one. */
struct fuzz_input {
	const u8 *at;
	size_t len;
};

static inline u8 fuzz_byte(struct fuzz_input *in)
{
	if (!in->len)
		return 0;
	in->len--;
	return *in->at++;
}

static inline u64 fuzz_number(struct fuzz_input *in, unsigned int bytes)
{
	u64 n = 0;

	while (bytes--)
		n = n << 8 | fuzz_byte(in);
	return n;
}

#endif
