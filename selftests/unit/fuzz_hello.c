// SPDX-License-Identifier: GPL-2.0-only
/* HELLO: any first bytes of a direction, also with one byte less. */
#include "fuzz.h"
#include "record.h"
#include "tap.h"

#define LEN	80

/* big endian */
static u64 number(const u8 *at, unsigned int bytes)
{
	struct fuzz_input in = { at, bytes };

	return fuzz_number(&in, bytes);
}

/* The table of "HELLO" in protocol.rst. */
static enum rstream_hello_state wanted(const u8 *at, size_t len, u8 role, u64 nonce)
{
	size_t whole, i;

	for (i = 0; i < len && i < 8; i++)
		if (at[i] != (u8)"\xd5RSTRM\r\n"[i])
			return RSTREAM_HELLO_NOT;
	if (len >= 20 && (at[12] != role || number(at + 13, 7) != nonce))
		return RSTREAM_HELLO_NOT;
	if (len < LEN)
		return RSTREAM_HELLO_PART;
	whole = number(at + 8, 2);
	if (number(at + 26, 2) > 4 || whole != LEN + 16 * number(at + 26, 2) ||
	    at[10] > at[11] || !number(at + 48, 8) || number(at + 56, 8) >> 62)
		return RSTREAM_HELLO_BAD;
	return len < whole ? RSTREAM_HELLO_PART : RSTREAM_HELLO_COMPLETE;
}

static void check_fields(const struct rstream_hello *hello, const u8 *at)
{
	u8 again[RSW_HELLO_MAX];
	unsigned int len;

	EXPECT_EQ(hello->version_min, at[10]);
	EXPECT_EQ(hello->version_max, at[11]);
	EXPECT_EQ(hello->role, at[12]);
	EXPECT_EQ(hello->nonce, number(at + 13, 7));
	EXPECT_EQ(hello->caps, number(at + 20, 4));
	EXPECT_EQ(hello->cm_port, number(at + 24, 2));
	EXPECT_EQ(hello->naddr, number(at + 26, 2));
	EXPECT(!memcmp(hello->instance, at + 32, 16));
	EXPECT_EQ(hello->token, number(at + 48, 8));
	EXPECT_EQ(hello->window, number(at + 56, 8));
	EXPECT(!memcmp(hello->addr, at + LEN, 16 * hello->naddr));
	EXPECT(!memcmp(hello->secret, at + 64, 16));
	/* writing the parsed HELLO gives the same bytes, except reserved ones */
	len = rstream_record_write_hello(again, hello);
	EXPECT_EQ(len, number(at + 8, 2));
	EXPECT(!memcmp(again, at, 28) && !number(again + 28, 4) &&
	       !memcmp(again + 32, at + 32, len - 32));
}

static enum rstream_hello_state check_read(const u8 *at, size_t len, u8 role,
					   u64 nonce)
{
	enum rstream_hello_state got;
	struct rstream_hello hello;
	unsigned int used = 0;

	/* only 56 bits of a nonce count */
	got = rstream_record_read_hello(tap_edge(at, len), len, role,
					nonce | 0x5aULL << 56, &hello, &used);
	EXPECT_EQ(got, wanted(at, len, role, nonce));
	if (got == RSTREAM_HELLO_COMPLETE) {
		EXPECT_EQ(used, number(at + 8, 2));
		check_fields(&hello, at);
	}
	return got;
}

void fuzz_hello(const u8 *data, size_t len)
{
	struct fuzz_input in = { data, len };
	enum rstream_hello_state whole, part;
	u64 nonce = fuzz_number(&in, 7);
	u8 role = fuzz_byte(&in);

	whole = check_read(in.at, in.len, role, nonce);
	if (!in.len)
		return;
	/* with one byte less: the same result, or more bytes are needed */
	part = check_read(in.at, in.len - 1, role, nonce);
	EXPECT(part == whole || part == RSTREAM_HELLO_PART);
}
