// SPDX-License-Identifier: GPL-2.0-only
/* Records: layouts, round trips, and everything that is refused. */
#include "record.h"
#include "tap.h"

#define HEAD	sizeof(struct rsw_header)
#define LAST	RSW_PLAIN	/* of the known types */

/* Payload of each known control type; 0xff: not one. */
static u8 payload_of(u8 type)
{
	static const u8 len[] = {
		[RSW_ACK] = 16, [RSW_GRANT] = 40, [RSW_SWITCH] = 40,
		[RSW_REVOKE] = 8, [RSW_BROKEN] = 8, [RSW_RESUME] = 16,
		[RSW_FIN] = 8, [RSW_URG] = 8, [RSW_LINK] = 0,
		[RSW_STOPPED] = 8, [RSW_PLAIN] = 8,
	};

	return type >= RSW_ACK && type < ARRAY_SIZE(len) ? len[type] : 0xff;
}

static int header_of(u8 type, u8 flags, u16 reserved, u32 len,
		     struct rstream_record *rec)
{
	struct rsw_header head = {
		.type = type,
		.flags = flags,
		.reserved = cpu_to_be16(reserved),
		.len = cpu_to_be32(len),
	};

	return rstream_record_header(tap_edge(&head, sizeof(head)), rec);
}

static int header(u8 type, u32 len)
{
	struct rstream_record rec;

	return header_of(type, 0, 0, len, &rec);
}

/* Write @in, compare with the @len bytes of @want, read back into @out. */
static bool trip(const struct rstream_record *in, const u8 *want,
		 unsigned int len, struct rstream_record *out)
{
	u8 *raw = tap_edge(want, len);

	memset(raw, 0xff, len);
	if (!EXPECT_EQ(rstream_record_write(raw, in), len) ||
	    !EXPECT(!memcmp(raw, want, len)))
		return false;
	memset(out, 0xff, sizeof(*out));
	return EXPECT_EQ(rstream_record_header(raw, out), len - HEAD) &&
	       EXPECT_EQ(out->type, in->type) &&
	       EXPECT_EQ(out->len, len - HEAD) &&
	       EXPECT(rstream_record_payload(raw + HEAD, out));
}

TEST(record__data)
{
	struct rstream_record in = { .type = RSW_DATA, .len = 0x12345 }, out;
	static const u8 want[] = { 1, 0, 0, 0, 0, 1, 0x23, 0x45 };
	u8 *raw = tap_edge(want, sizeof(want));

	memset(raw, 0xff, sizeof(want));
	EXPECT_EQ(rstream_record_write(raw, &in), HEAD);
	EXPECT(!memcmp(raw, want, sizeof(want)));
	EXPECT_EQ(rstream_record_header(raw, &out), 0);
	EXPECT_EQ(out.type, RSW_DATA);
	EXPECT_EQ(out.len, 0x12345);
	EXPECT(!rstream_record_unknown(&out));
}

TEST(record__ack)
{
	struct rstream_record in = { .type = RSW_ACK }, out;
	static const u8 want[] = {
		2, 0, 0, 0, 0, 0, 0, 16,
		1, 2, 3, 4, 5, 6, 7, 8,
		1, 2, 3, 4, 5, 6, 7, 9,
	};

	in.ack.consumed = 0x0102030405060708;
	in.ack.limit = 0x0102030405060709;
	if (!trip(&in, want, sizeof(want), &out))
		return;
	EXPECT_EQ(out.ack.consumed, in.ack.consumed);
	EXPECT_EQ(out.ack.limit, in.ack.limit);
}

TEST(record__grant)
{
	struct rstream_record in = { .type = RSW_GRANT }, out;
	static const u8 want[] = {
		3, 0, 0, 0, 0, 0, 0, 40,
		0, 1, 2, 3, 4, 5, 6, 7,
		8, 9, 10, 11, 12, 13, 14, 15,
		16, 17, 18, 19, 20, 21, 22, 23,
		0, 1, 0, 0, 0, 0, 0, 0,
		24, 25, 26, 27, 28, 29, 30, 31,
	};

	in.grant.epoch = 0x00010203;
	in.grant.link = 0x04050607;
	in.grant.ring = 0x08090a0b;
	in.grant.rkey = 0x0c0d0e0f;
	in.grant.addr = 0x1011121314151617;
	in.grant.size = 0x10000;
	in.grant.proof = 0x18191a1b1c1d1e1f;
	if (!trip(&in, want, sizeof(want), &out))
		return;
	EXPECT_EQ(out.grant.epoch, in.grant.epoch);
	EXPECT_EQ(out.grant.link, in.grant.link);
	EXPECT_EQ(out.grant.ring, in.grant.ring);
	EXPECT_EQ(out.grant.rkey, in.grant.rkey);
	EXPECT_EQ(out.grant.addr, in.grant.addr);
	EXPECT_EQ(out.grant.size, in.grant.size);
	EXPECT_EQ(out.grant.proof, in.grant.proof);
}

TEST(record__switch)
{
	struct rstream_record in = { .type = RSW_SWITCH }, out;
	static const u8 want[] = {
		4, 0, 0, 0, 0, 0, 0, 40,
		0, 1, 2, 3, 4, 5, 6, 7,
		8, 9, 10, 11, 12, 13, 14, 15,
		16, 17, 18, 19, 20, 21, 22, 23,
		24, 25, 26, 27, 0, 0, 0, 0,
		28, 29, 30, 31, 32, 33, 34, 35,
	};

	in.sw.offset = 0x0001020304050607;
	in.sw.epoch = 0x08090a0b;
	in.sw.ring = 0x0c0d0e0f;
	in.sw.cell_addr = 0x1011121314151617;
	in.sw.cell_rkey = 0x18191a1b;
	in.sw.proof = 0x1c1d1e1f20212223;
	if (!trip(&in, want, sizeof(want), &out))
		return;
	EXPECT_EQ(out.sw.offset, in.sw.offset);
	EXPECT_EQ(out.sw.epoch, in.sw.epoch);
	EXPECT_EQ(out.sw.ring, in.sw.ring);
	EXPECT_EQ(out.sw.cell_addr, in.sw.cell_addr);
	EXPECT_EQ(out.sw.cell_rkey, in.sw.cell_rkey);
	EXPECT_EQ(out.sw.proof, in.sw.proof);
}

TEST(record__revoke_and_broken)
{
	struct rstream_record in = { .epoch = 0x01020304 }, out;
	u8 want[] = { 0, 0, 0, 0, 0, 0, 0, 8, 1, 2, 3, 4, 0, 0, 0, 0 };

	for (in.type = RSW_REVOKE; in.type <= RSW_BROKEN; in.type++) {
		want[0] = in.type;
		if (trip(&in, want, sizeof(want), &out))
			EXPECT_EQ(out.epoch, in.epoch);
	}
}

TEST(record__stopped)
{
	struct rstream_record in = { .type = RSW_STOPPED, .epoch = 5 }, out;
	static const u8 want[] = { 11, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 5, 0, 0, 0, 0 };

	if (trip(&in, want, sizeof(want), &out))
		EXPECT_EQ(out.epoch, in.epoch);
}

TEST(record__resume)
{
	struct rstream_record in = { .type = RSW_RESUME }, out;
	static const u8 want[] = {
		7, 0, 0, 0, 0, 0, 0, 16,
		1, 2, 3, 4, 0, 0, 0, 0,
		5, 6, 7, 8, 9, 10, 11, 12,
	};

	in.resume.epoch = 0x01020304;
	in.resume.count = 0x05060708090a0b0c;
	if (!trip(&in, want, sizeof(want), &out))
		return;
	EXPECT_EQ(out.resume.epoch, in.resume.epoch);
	EXPECT_EQ(out.resume.count, in.resume.count);
}

TEST(record__fin_and_urg)
{
	struct rstream_record in = { .offset = 0x0102030405060708 }, out;
	u8 want[] = { 0, 0, 0, 0, 0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8 };

	for (in.type = RSW_FIN; in.type <= RSW_URG; in.type++) {
		want[0] = in.type;
		if (trip(&in, want, sizeof(want), &out))
			EXPECT_EQ(out.offset, in.offset);
	}
}

TEST(record__plain)
{
	struct rstream_record in = { .type = RSW_PLAIN, .span = 0x0102030405 }, out;
	static const u8 want[] = { 12, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 1, 2, 3, 4, 5 };

	if (trip(&in, want, sizeof(want), &out))
		EXPECT_EQ(out.span, in.span);
}

TEST(record__link)
{
	struct rstream_record in = { .type = RSW_LINK }, out;
	static const u8 want[] = { 10, 0, 0, 0, 0, 0, 0, 0 };

	trip(&in, want, sizeof(want), &out);
	EXPECT(!rstream_record_unknown(&out));
}

TEST(record__max_is_the_length_of_the_longest)
{
	struct rstream_record rec = {};
	unsigned int longest = 0, len;
	u8 raw[RSTREAM_RECORD_MAX];

	for (rec.type = RSW_DATA; rec.type <= LAST; rec.type++) {
		len = rstream_record_write(raw, &rec);
		if (len > longest)
			longest = len;
	}
	EXPECT_EQ(longest, RSTREAM_RECORD_MAX);
}

TEST(record__data_length)
{
	EXPECT_EQ(header(RSW_DATA, 0), -1);
	EXPECT_EQ(header(RSW_DATA, 1), 0);
	EXPECT_EQ(header(RSW_DATA, RSW_DATA_MAX), 0);
	EXPECT_EQ(header(RSW_DATA, RSW_DATA_MAX + 1), -1);
	EXPECT_EQ(header(RSW_DATA, 0x80000000), -1);
	EXPECT_EQ(header(RSW_DATA, ~0U), -1);
}

TEST(record__control_length)
{
	unsigned int type, len, want;

	for (type = RSW_ACK; type <= LAST; type++) {
		want = payload_of(type);
		for (len = 0; len <= RSW_CTL_MAX + 1; len++)
			EXPECT_EQ(header(type, len),
				  len == want ? (int)len : -1);
		EXPECT_EQ(header(type, want | 0x80000000), -1);
		EXPECT_EQ(header(type, ~0U), -1);
	}
}

TEST(record__flags_and_reserved_are_zero)
{
	struct rstream_record rec;
	unsigned int type, bit;
	u32 len;

	for (type = 1; type <= 0xff; type++) {
		len = payload_of(type);
		len = len == 0xff ? 8 : len;
		for (bit = 0; bit < 8; bit++)
			EXPECT_EQ(header_of(type, 1 << bit, 0, len, &rec), -1);
		for (bit = 0; bit < 16; bit++)
			EXPECT_EQ(header_of(type, 0, 1 << bit, len, &rec), -1);
	}
}

TEST(record__type_zero)
{
	EXPECT_EQ(header(0, 0), -1);
	EXPECT_EQ(header(0, 8), -1);
}

TEST(record__unknown_types)
{
	struct rstream_record rec;
	unsigned int type, len;

	for (type = LAST + 1; type <= 0xff; type++) {
		for (len = 0; len <= RSW_CTL_MAX; len++) {
			EXPECT_EQ(header_of(type, 0, 0, len, &rec),
				  type & RSW_TYPE_MUST ? -1 : 0);
			EXPECT(rstream_record_unknown(&rec));
			EXPECT_EQ(rec.len, len);
		}
		EXPECT_EQ(header(type, RSW_CTL_MAX + 1), -1);
	}
}

TEST(record__known_types_are_known)
{
	struct rstream_record rec = {};

	for (rec.type = RSW_DATA; rec.type <= LAST; rec.type++)
		EXPECT(!rstream_record_unknown(&rec));
}

/* Is this payload of this type accepted? */
static bool accepts(u8 type, const struct rstream_record *in)
{
	struct rstream_record rec = *in, out;
	u8 raw[RSTREAM_RECORD_MAX];
	unsigned int len;

	rec.type = type;
	len = rstream_record_write(raw, &rec);
	EXPECT_EQ(rstream_record_header(raw, &out), len - HEAD);
	return rstream_record_payload(tap_edge(raw + HEAD, len - HEAD), &out);
}

TEST(record__ack_limit_below_consumed)
{
	struct rstream_record rec = {};

	rec.ack.consumed = 0x100000000;
	rec.ack.limit = 0xffffffff;
	EXPECT(!accepts(RSW_ACK, &rec));
	rec.ack.limit = rec.ack.consumed;
	EXPECT(accepts(RSW_ACK, &rec));
	rec.ack.limit = ~0ULL;
	EXPECT(accepts(RSW_ACK, &rec));
}

TEST(record__grant_size_is_a_power_of_two)
{
	struct rstream_record rec = {};
	unsigned int bit;

	rec.grant.epoch = 1;
	EXPECT(!accepts(RSW_GRANT, &rec));
	for (bit = 0; bit < 32; bit++) {
		rec.grant.size = 1U << bit;
		EXPECT(accepts(RSW_GRANT, &rec));
		rec.grant.size = 3U << bit;
		EXPECT_EQ(accepts(RSW_GRANT, &rec), bit == 31);
	}
	rec.grant.size = ~0U;
	EXPECT(!accepts(RSW_GRANT, &rec));
}

TEST(record__epoch_zero)
{
	struct rstream_record rec = {};

	rec.grant.size = 1;
	EXPECT(!accepts(RSW_GRANT, &rec));
	memset(&rec, 0, sizeof(rec));
	EXPECT(!accepts(RSW_REVOKE, &rec));
	EXPECT(!accepts(RSW_BROKEN, &rec));
	EXPECT(!accepts(RSW_STOPPED, &rec));
	rec.resume.count = 1;
	EXPECT(!accepts(RSW_RESUME, &rec));
	EXPECT(accepts(RSW_SWITCH, &rec));	/* 0 is the tcp carrier */
	rec.epoch = 1;
	EXPECT(accepts(RSW_REVOKE, &rec));
	EXPECT(accepts(RSW_BROKEN, &rec));
}

TEST(record__span_length)
{
	struct rstream_record rec = {};

	EXPECT(!accepts(RSW_PLAIN, &rec));
	rec.span = 1;
	EXPECT(accepts(RSW_PLAIN, &rec));
	rec.span = 1ULL << 40;
	EXPECT(accepts(RSW_PLAIN, &rec));
	rec.span++;
	EXPECT(!accepts(RSW_PLAIN, &rec));
	rec.span = ~0ULL;
	EXPECT(!accepts(RSW_PLAIN, &rec));
}

TEST(record__epoch_beyond_one_byte)
{
	struct rstream_record rec = { .epoch = 0x80000000 };

	EXPECT(accepts(RSW_REVOKE, &rec));
	rec.resume.epoch = 0x100;
	EXPECT(accepts(RSW_RESUME, &rec));
}
