// SPDX-License-Identifier: GPL-2.0-only
/* Records: any header and payload, and any content written. */
#include "fuzz.h"
#include "record.h"
#include "tap.h"

#define HEAD	8
#define LAST	12	/* of the known types */

/* big endian */
static u64 number(const u8 *at, unsigned int bytes)
{
	struct fuzz_input in = { at, bytes };

	return fuzz_number(&in, bytes);
}

/* Payload of each type, as "Records" of protocol.rst has it; -1: of a later version */
static int payload_of(u8 type)
{
	static const u8 len[] = { 16, 40, 40, 8, 8, 16, 8, 8, 0, 8, 8 };

	return type >= 2 && type <= LAST ? len[type - 2] : -1;
}

static int wanted_header(const u8 *head)
{
	u32 len = number(head + 4, 4);

	if (!head[0] || number(head + 1, 3))
		return -1;
	if (head[0] == 1)
		return len >= 1 && len <= 262144 ? 0 : -1;
	if (payload_of(head[0]) < 0)
		return head[0] < 128 && len <= 256 ? 0 : -1;
	return len == (u32)payload_of(head[0]) ? (int)len : -1;
}

static bool wanted_payload(u8 type, const u8 *at)
{
	switch (type) {
	case 2:
		return number(at + 8, 8) >= number(at, 8);
	case 3:
		return number(at, 4) &&
		       __builtin_popcountll(number(at + 24, 4)) == 1;
	case 5:
	case 6:
	case 7:
	case 11:
		return number(at, 4);
	case 12:
		return number(at, 8) >= 1 && number(at, 8) <= 1ULL << 40;
	default:
		return true;
	}
}

/* Reserved bytes, by type. */
static void clear_reserved(u8 type, u8 *payload)
{
	if (type == RSW_GRANT || type == RSW_SWITCH)
		memset(payload + 28, 0, 4);
	if (type == RSW_REVOKE || type == RSW_BROKEN || type == RSW_STOPPED ||
	    type == RSW_RESUME)
		memset(payload + 4, 0, 4);
}

/* Writing the parsed record gives the same bytes, except reserved ones. */
static void check_again(const struct rstream_record *rec, const u8 *raw,
			unsigned int len)
{
	u8 want[RSTREAM_RECORD_MAX], got[RSTREAM_RECORD_MAX];

	memcpy(want, raw, len);
	clear_reserved(rec->type, want + HEAD);
	EXPECT_EQ(rstream_record_write(got, rec), len);
	EXPECT(!memcmp(got, want, len));
}

static void check_read(const u8 *raw, size_t len)
{
	u8 whole[HEAD + 40] = {};
	struct rstream_record rec;
	int payload;

	if (len < HEAD)
		return;
	memcpy(whole, raw, len < sizeof(whole) ? len : sizeof(whole));
	payload = rstream_record_header(tap_edge(whole, HEAD), &rec);
	EXPECT_EQ(payload, wanted_header(whole));
	if (payload < 0)
		return;
	EXPECT_EQ(rec.type, whole[0]);
	EXPECT_EQ(rec.len, number(whole + 4, 4));
	EXPECT_EQ(rstream_record_unknown(&rec),
		  rec.type != 1 && payload_of(rec.type) < 0);
	if (rec.type == RSW_DATA || rstream_record_unknown(&rec))
		return;
	EXPECT_EQ(rstream_record_payload(tap_edge(whole + HEAD, payload), &rec),
		  wanted_payload(rec.type, whole + HEAD));
	check_again(&rec, whole, HEAD + payload);
}

/* Any content of a known type: writes the right number of bytes, which can be parsed. */
static void check_write(u8 type, const u8 *content, size_t len)
{
	struct rstream_record rec;
	u8 raw[HEAD + 40];
	unsigned int n;

	memset(&rec, 0, sizeof(rec));
	memcpy(&rec, content, len < sizeof(rec) ? len : sizeof(rec));
	rec.type = type;
	n = rstream_record_write(raw, &rec);
	EXPECT_EQ(n, HEAD + (type == RSW_DATA ? 0 : payload_of(type)));
	check_read(raw, n);
}

void fuzz_record(const u8 *data, size_t len)
{
	if (!len)
		return;
	check_read(data + 1, len - 1);
	check_write(data[0] % LAST + 1, data + 1, len - 1);
}
