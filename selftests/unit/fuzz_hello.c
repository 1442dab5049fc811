// SPDX-License-Identifier: GPL-2.0-only
/* HELLO: any first bytes of a direction, and one less of them. */
#include "fuzz.h"
#include "record.h"
#include "tap.h"

#define LEN	72

/* big endian */
static u64 number(const u8 *at, unsigned int bytes)
{
	struct fuzz_input in = { at, bytes };

	return fuzz_number(&in, bytes);
}

/* The table of "HELLO" in protocol.rst. */
static enum rstream_hello_state wanted(const u8 *at, size_t len, u8 role, u32 nonce)
{
	size_t whole, i;

	for (i = 0; i < len && i < 8; i++)
		if (at[i] != (u8)"\xd5RSTRM\r\n"[i])
			return RSTREAM_HELLO_NOT;
	if (len >= 16 && (at[12] != role || number(at + 13, 3) != nonce))
		return RSTREAM_HELLO_NOT;
	if (len < LEN)
		return RSTREAM_HELLO_PART;
	whole = number(at + 8, 2);
	if (number(at + 22, 2) > 4 || whole != LEN + 16 * number(at + 22, 2) ||
	    at[10] > at[11] || !number(at + 40, 8) || number(at + 48, 8) >> 40)
		return RSTREAM_HELLO_BAD;
	return len < whole ? RSTREAM_HELLO_PART : RSTREAM_HELLO_WHOLE;
}

static void check_fields(const struct rstream_hello *hello, const u8 *at)
{
	u8 again[RSW_HELLO_MAX];
	unsigned int len;

	EXPECT_EQ(hello->version_min, at[10]);
	EXPECT_EQ(hello->version_max, at[11]);
	EXPECT_EQ(hello->role, at[12]);
	EXPECT_EQ(hello->nonce, number(at + 13, 3));
	EXPECT_EQ(hello->caps, number(at + 16, 4));
	EXPECT_EQ(hello->cm_port, number(at + 20, 2));
	EXPECT_EQ(hello->naddr, number(at + 22, 2));
	EXPECT(!memcmp(hello->instance, at + 24, 16));
	EXPECT_EQ(hello->token, number(at + 40, 8));
	EXPECT_EQ(hello->window, number(at + 48, 8));
	EXPECT(!memcmp(hello->addr, at + LEN, 16 * hello->naddr));
	EXPECT(!memcmp(hello->secret, at + 56, 16));
	/* what is read is written again */
	len = rstream_hello_write(again, hello);
	EXPECT_EQ(len, number(at + 8, 2));
	EXPECT(!memcmp(again, at, len));
}

static enum rstream_hello_state check_read(const u8 *at, size_t len, u8 role,
					   u32 nonce)
{
	enum rstream_hello_state got;
	struct rstream_hello hello;
	unsigned int used = 0;

	/* above 24 bits a nonce says nothing */
	got = rstream_hello_read(tap_edge(at, len), len, role,
				 nonce | 0x5a000000, &hello, &used);
	EXPECT_EQ(got, wanted(at, len, role, nonce));
	if (got == RSTREAM_HELLO_WHOLE) {
		EXPECT_EQ(used, number(at + 8, 2));
		check_fields(&hello, at);
	}
	return got;
}

void fuzz_hello(const u8 *data, size_t len)
{
	struct fuzz_input in = { data, len };
	enum rstream_hello_state whole, part;
	u32 nonce = fuzz_number(&in, 3);
	u8 role = fuzz_byte(&in);

	whole = check_read(in.at, in.len, role, nonce);
	if (!in.len)
		return;
	/* one byte less: the same answer, or more are wanted */
	part = check_read(in.at, in.len - 1, role, nonce);
	EXPECT(part == whole || part == RSTREAM_HELLO_PART);
}
