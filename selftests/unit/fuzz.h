/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What fuzzers run: each target takes any bytes, feeds a pure file of the module
 * with them and expects what must hold whatever they are.  fuzz_test.c runs them
 * from fixed seeds, libfuzzer.c guided by coverage.
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
	X(pair, 150)

#define X(name, max) void fuzz_##name(const u8 *data, size_t len);
FUZZ_TARGETS(X)
#undef X

/* The bytes that are left; behind the last one come zeros. */
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
