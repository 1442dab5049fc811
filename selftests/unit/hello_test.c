// SPDX-License-Identifier: GPL-2.0-only
/* HELLO: writing it, and telling it from other first bytes of a connection. */
#include "record.h"
#include "tap.h"

#define NONCE	0xabcdef98765432

static const struct rstream_hello sample = {
	.version_min = 1,
	.version_max = 3,
	.role = RSW_ROLE_SYN,
	.nonce = NONCE,
	.caps = RSW_CAP_IB | 0x80000000,
	.cm_port = 0x1234,
	.instance = "0123456789abcde",
	.token = 0x1122334455667788,
	.window = 0x1000020000,
	.secret = "that nobody else",
};

static enum rstream_hello_state read_hello(const u8 *from, unsigned int len,
					   struct rstream_hello *hello,
					   unsigned int *used)
{
	return rstream_record_read_hello(tap_edge(from, len), len, RSW_ROLE_SYN,
					 NONCE, hello, used);
}

static enum rstream_hello_state state_of(const u8 *from, unsigned int len)
{
	struct rstream_hello hello;
	unsigned int used;

	return read_hello(from, len, &hello, &used);
}

/* A HELLO with @naddr addresses whose bytes are all different. */
static unsigned int with_addrs(u8 *to, unsigned int naddr)
{
	unsigned int i, len = RSW_HELLO_LEN + 16 * naddr;

	rstream_record_write_hello(to, &sample);
	to[9] = len;
	to[27] = naddr;
	for (i = RSW_HELLO_LEN; i < len; i++)
		to[i] = i;
	return len;
}

TEST(hello__layout)
{
	static const u8 want[RSW_HELLO_LEN] = {
		0xd5, 'R', 'S', 'T', 'R', 'M', '\r', '\n',
		0, 80, 1, 3,
		RSW_ROLE_SYN, 0xab, 0xcd, 0xef, 0x98, 0x76, 0x54, 0x32,
		0x80, 0, 0, 1,
		0x12, 0x34, 0, 0, 0, 0, 0, 0,
		'0', '1', '2', '3', '4', '5', '6', '7',
		'8', '9', 'a', 'b', 'c', 'd', 'e', 0,
		0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
		0, 0, 0, 0x10, 0, 2, 0, 0,
		't', 'h', 'a', 't', ' ', 'n', 'o', 'b',
		'o', 'd', 'y', ' ', 'e', 'l', 's', 'e',
	};
	u8 *to = tap_edge(want, sizeof(want));

	memset(to, 0xff, sizeof(want));
	rstream_record_write_hello(to, &sample);
	EXPECT(!memcmp(to, want, sizeof(want)));
}

TEST(hello__round_trip)
{
	static const u8 no_addr[RSW_HELLO_ADDRS][16];
	struct rstream_hello out;
	u8 raw[RSW_HELLO_LEN];
	unsigned int used = 0;

	rstream_record_write_hello(raw, &sample);
	memset(&out, 0xff, sizeof(out));
	EXPECT_EQ(read_hello(raw, sizeof(raw), &out, &used),
		  RSTREAM_HELLO_COMPLETE);
	EXPECT_EQ(used, RSW_HELLO_LEN);
	EXPECT_EQ(out.version_min, sample.version_min);
	EXPECT_EQ(out.version_max, sample.version_max);
	EXPECT_EQ(out.role, sample.role);
	EXPECT_EQ(out.nonce, sample.nonce);
	EXPECT_EQ(out.caps, sample.caps);
	EXPECT_EQ(out.cm_port, sample.cm_port);
	EXPECT_EQ(out.naddr, 0);
	EXPECT_EQ(out.token, sample.token);
	EXPECT_EQ(out.window, sample.window);
	EXPECT(!memcmp(out.instance, sample.instance, 16));
	EXPECT(!memcmp(out.secret, sample.secret, sizeof(out.secret)));
	EXPECT(!memcmp(out.addr, no_addr, sizeof(no_addr)));
}

TEST(hello__every_prefix)
{
	u8 raw[RSW_HELLO_MAX];
	unsigned int naddr, len, n;

	for (naddr = 0; naddr <= RSW_HELLO_ADDRS; naddr++) {
		len = with_addrs(raw, naddr);
		for (n = 0; n < len; n++)
			EXPECT_EQ(state_of(raw, n), RSTREAM_HELLO_PART);
		EXPECT_EQ(state_of(raw, len), RSTREAM_HELLO_COMPLETE);
	}
}

TEST(hello__following_bytes_are_kept)
{
	u8 raw[RSW_HELLO_LEN + 20] = {};
	struct rstream_hello hello;
	unsigned int used = 0;

	rstream_record_write_hello(raw, &sample);
	EXPECT_EQ(read_hello(raw, sizeof(raw), &hello, &used),
		  RSTREAM_HELLO_COMPLETE);
	EXPECT_EQ(used, RSW_HELLO_LEN);
}

TEST(hello__addresses_are_kept)
{
	u8 raw[RSW_HELLO_MAX];
	struct rstream_hello hello;
	unsigned int naddr, len, used;

	for (naddr = 1; naddr <= RSW_HELLO_ADDRS; naddr++) {
		len = with_addrs(raw, naddr);
		EXPECT_EQ(read_hello(raw, len, &hello, &used),
			  RSTREAM_HELLO_COMPLETE);
		EXPECT_EQ(used, len);
		EXPECT_EQ(hello.naddr, naddr);
		EXPECT(!memcmp(hello.addr, raw + RSW_HELLO_LEN, 16 * naddr));
	}
}

TEST(hello__addresses_are_written)
{
	struct rstream_hello in = sample, out;
	u8 raw[RSW_HELLO_MAX];
	unsigned int used, i;

	for (i = 0; i < sizeof(in.addr); i++)
		in.addr[i / 16][i % 16] = i + 1;
	for (in.naddr = 0; in.naddr <= RSW_HELLO_ADDRS; in.naddr++) {
		u8 *to = tap_edge(raw, RSW_HELLO_LEN + 16 * in.naddr);

		EXPECT_EQ(rstream_record_write_hello(to, &in),
			  RSW_HELLO_LEN + 16 * in.naddr);
		EXPECT_EQ(read_hello(to, RSW_HELLO_LEN + 16 * in.naddr, &out,
				     &used), RSTREAM_HELLO_COMPLETE);
		EXPECT_EQ(out.naddr, in.naddr);
		EXPECT(!memcmp(out.addr, in.addr, 16 * in.naddr));
	}
}

TEST(hello__each_byte_wrong)
{
	u8 raw[RSW_HELLO_LEN];
	unsigned int at, n, bit;

	for (bit = 0; bit < 8; bit++) {
		for (at = 0; at < 20; at++) {
			if (at >= RSW_MAGIC_LEN && at < 12)
				continue;	/* len and versions */
			rstream_record_write_hello(raw, &sample);
			raw[at] ^= 1 << bit;
			/* detected as soon as the field has arrived, and from then on */
			n = at < RSW_MAGIC_LEN ? at + 1 : 20;
			EXPECT_EQ(state_of(raw, n - 1), RSTREAM_HELLO_PART);
			for (; n <= sizeof(raw); n++)
				EXPECT_EQ(state_of(raw, n), RSTREAM_HELLO_NOT);
		}
	}
}

TEST(hello__wrong_role)
{
	struct rstream_hello hello;
	u8 raw[RSW_HELLO_LEN];
	unsigned int used;

	rstream_record_write_hello(raw, &sample);
	EXPECT_EQ(rstream_record_read_hello(raw, sizeof(raw), RSW_ROLE_SYNACK, NONCE,
					    &hello, &used), RSTREAM_HELLO_NOT);
}

TEST(hello__nonce_beyond_56_bits_is_cut)
{
	struct rstream_hello hello = sample;
	u8 raw[RSW_HELLO_LEN];
	unsigned int used;

	hello.nonce |= 0x7fULL << 56;
	rstream_record_write_hello(raw, &hello);
	EXPECT_EQ(state_of(raw, sizeof(raw)), RSTREAM_HELLO_COMPLETE);
	EXPECT_EQ(rstream_record_read_hello(raw, sizeof(raw), RSW_ROLE_SYN,
					    NONCE | 0x55ULL << 56, &hello, &used),
		  RSTREAM_HELLO_COMPLETE);
}

TEST(hello__bad_length)
{
	u8 raw[RSW_HELLO_MAX] = {};
	unsigned int len;

	for (len = 0; len < 0x10000; len += len < 256 ? 1 : 256) {
		rstream_record_write_hello(raw, &sample);
		raw[8] = len >> 8;
		raw[9] = len;
		EXPECT_EQ(state_of(raw, sizeof(raw)), len == RSW_HELLO_LEN ?
			  RSTREAM_HELLO_COMPLETE : RSTREAM_HELLO_BAD);
	}
}

TEST(hello__bad_address_count)
{
	u8 raw[RSW_HELLO_MAX];
	unsigned int n;

	for (n = 0; n <= 0xffff; n++) {
		with_addrs(raw, 2);
		raw[26] = n >> 8;
		raw[27] = n;
		EXPECT_EQ(state_of(raw, sizeof(raw)), n == 2 ?
			  RSTREAM_HELLO_COMPLETE : RSTREAM_HELLO_BAD);
	}
}

TEST(hello__too_many_addresses)
{
	u8 raw[RSW_HELLO_MAX + 16] = {};

	with_addrs(raw, RSW_HELLO_ADDRS + 1);
	EXPECT_EQ(state_of(raw, sizeof(raw)), RSTREAM_HELLO_BAD);
}

TEST(hello__no_token)
{
	struct rstream_hello hello = sample;
	u8 raw[RSW_HELLO_LEN];

	hello.token = 0;
	rstream_record_write_hello(raw, &hello);
	EXPECT_EQ(state_of(raw, sizeof(raw)), RSTREAM_HELLO_BAD);
	hello.token = 1ULL << 63;
	rstream_record_write_hello(raw, &hello);
	EXPECT_EQ(state_of(raw, sizeof(raw)), RSTREAM_HELLO_COMPLETE);
}

TEST(hello__version_range)
{
	struct rstream_hello hello = sample;
	u8 raw[RSW_HELLO_LEN];

	hello.version_min = 4;
	rstream_record_write_hello(raw, &hello);
	EXPECT_EQ(state_of(raw, sizeof(raw)), RSTREAM_HELLO_BAD);
	hello.version_min = hello.version_max;
	rstream_record_write_hello(raw, &hello);
	EXPECT_EQ(state_of(raw, sizeof(raw)), RSTREAM_HELLO_COMPLETE);
}

TEST(hello__window_limit)
{
	struct rstream_hello hello = sample;
	u8 raw[RSW_HELLO_LEN];

	hello.window = 1ULL << 62;
	rstream_record_write_hello(raw, &hello);
	EXPECT_EQ(state_of(raw, sizeof(raw)), RSTREAM_HELLO_BAD);
	hello.window = ~0ULL;
	rstream_record_write_hello(raw, &hello);
	EXPECT_EQ(state_of(raw, sizeof(raw)), RSTREAM_HELLO_BAD);
	hello.window = (1ULL << 62) - 1;
	rstream_record_write_hello(raw, &hello);
	EXPECT_EQ(state_of(raw, sizeof(raw)), RSTREAM_HELLO_COMPLETE);
	hello.window = 0;
	rstream_record_write_hello(raw, &hello);
	EXPECT_EQ(state_of(raw, sizeof(raw)), RSTREAM_HELLO_COMPLETE);
}

TEST(hello__reserved_is_ignored)
{
	u8 raw[RSW_HELLO_LEN];

	rstream_record_write_hello(raw, &sample);
	memset(raw + 28, 0xff, 4);
	EXPECT_EQ(state_of(raw, sizeof(raw)), RSTREAM_HELLO_COMPLETE);
}
