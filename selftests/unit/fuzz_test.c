// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random bytes and random events, from fixed seeds: a million rounds in all.
 * What is accepted must be what the writers would have written.
 */
#include "carrier.h"
#include "option.h"
#include "record.h"
#include "tap.h"

#define HEAD	sizeof(struct rsw_header)

static u64 seed;

static u32 below(u32 n)
{
	return (tap_random(&seed) >> 32) % n;
}

static void fill(u8 *to, unsigned int len)
{
	while (len--)
		*to++ = below(256);
}

/* Change a few bytes, or none. */
static void spoil(u8 *at, unsigned int len)
{
	unsigned int n = below(4);

	while (len && n--)
		at[below(len)] = below(2) ? below(256) : below(12);
}

/* Options of small kinds and lengths, ours among them. */
static unsigned int random_options(u8 *to)
{
	struct rstream_opt opt = {
		.version = below(3), .role = below(5), .nonce = below(1 << 24)
	};
	unsigned int len = below(41), at = 0;

	fill(to, len);
	while (at < len) {
		if (below(4) && len - at >= RSW_OPT_LEN) {
			rstream_opt_write(to + at, &opt);
			at += RSW_OPT_LEN;
		} else {
			to[at] = below(4);
			at += to[at] > 1 && len - at > 1 ?
			      (to[at + 1] = 2 + below(6)) : 1;
		}
	}
	spoil(to, len);
	return len;
}

/* How often are exactly these bytes in there? */
static unsigned int count_in(const u8 *opts, unsigned int len, const u8 *want)
{
	unsigned int i, n = 0;

	for (i = 0; i + RSW_OPT_LEN <= len; i++)
		n += !memcmp(opts + i, want, RSW_OPT_LEN);
	return n;
}

TEST(fuzz__option)
{
	unsigned int round, len, good = 0;
	u8 raw[RSW_OPT_LEN], opts[40];
	struct rstream_opt opt;

	seed = 0x6f7074696f6e;
	for (round = 0; round < 300000 && !tap_failed(); round++) {
		len = random_options(opts);
		if (rstream_opt_find(tap_edge(opts, len), len, &opt) !=
		    RSTREAM_OPT_GOOD)
			continue;
		good++;
		rstream_opt_write(raw, &opt);
		EXPECT(count_in(opts, len, raw));
		EXPECT(opt.version && opt.role && opt.role <= 3);
	}
	EXPECT(good > 1000);
}

static unsigned int random_hello(u8 *to)
{
	struct rstream_hello hello = {
		.version_min = below(3),
		.version_max = 1 + below(3),
		.role = RSW_ROLE_SYNACK,
		.nonce = 0x123456,
		.cm_port = below(65536),
		.token = tap_random(&seed),
		.window = tap_random(&seed) >> (20 + below(20)),
	};
	unsigned int naddr = below(6);

	rstream_hello_write(to, &hello);
	to[9] += 16 * naddr;
	to[23] = naddr;
	fill(to + RSW_HELLO_LEN, 16 * naddr);
	if (!below(3))
		spoil(to, RSW_HELLO_LEN);
	return below(RSW_HELLO_LEN + 16 * naddr + 1 + below(20));
}

/* Written from what was read, as the peer must have written it. */
static bool hello_is(const struct rstream_hello *hello, const u8 *raw)
{
	u8 again[RSW_HELLO_MAX];
	unsigned int len = rstream_hello_write(again, hello);

	return !memcmp(again, raw, len);
}

TEST(fuzz__hello)
{
	enum rstream_hello_state whole, part;
	unsigned int round, len, used, good = 0;
	u8 raw[RSW_HELLO_MAX + 64] = {};
	struct rstream_hello hello;

	seed = 0x68656c6c6f;
	for (round = 0; round < 100000 && !tap_failed(); round++) {
		len = random_hello(raw);
		whole = rstream_hello_read(tap_edge(raw, len), len,
					   RSW_ROLE_SYNACK, 0x123456,
					   &hello, &used);
		if (whole == RSTREAM_HELLO_WHOLE) {
			good++;
			EXPECT(used <= len && used <= RSW_HELLO_MAX);
			EXPECT(hello_is(&hello, raw));
		}
		if (!len)
			continue;
		/* one byte less: the same answer, or more are wanted */
		part = rstream_hello_read(tap_edge(raw, len - 1), len - 1,
					  RSW_ROLE_SYNACK, 0x123456,
					  &hello, &used);
		EXPECT(part == whole || part == RSTREAM_HELLO_PART);
	}
	EXPECT(good > 1000);
}

static void random_record(u8 *to)
{
	static const u8 len[] = { 0, 1, 16, 40, 40, 8, 8, 16, 8, 8, 0, 12 };
	u8 type = below(ARRAY_SIZE(len));

	fill(to, HEAD + RSW_CTL_MAX / 4);
	memset(to, 0, HEAD);
	to[0] = type;
	to[7] = len[type];
	if (type == RSW_ACK)
		to[HEAD] = 0;
	if (type == RSW_GRANT) {
		memset(to + HEAD + 24, 0, 4);
		to[HEAD + 24 + below(4)] = 1 << below(8);
	}
	if (!below(3))
		spoil(to, HEAD);
}

/* Bytes that say nothing, by type. */
static void clear_reserved(u8 *raw)
{
	switch (raw[0]) {
	case RSW_GRANT:
	case RSW_SWITCH:
		memset(raw + HEAD + 28, 0, 4);
		break;
	case RSW_REVOKE:
	case RSW_BROKEN:
	case RSW_STOPPED:
	case RSW_RESUME:
		memset(raw + HEAD + 4, 0, 4);
		break;
	}
}

TEST(fuzz__record)
{
	u8 raw[HEAD + RSW_CTL_MAX], again[RSTREAM_RECORD_MAX];
	unsigned int round, good = 0;
	struct rstream_record rec;
	int len;

	seed = 0x7265636f7264;
	for (round = 0; round < 300000 && !tap_failed(); round++) {
		random_record(raw);
		len = rstream_record_header(tap_edge(raw, HEAD), &rec);
		if (len < 0 || rec.type == RSW_DATA ||
		    rstream_record_unknown(&rec))
			continue;
		EXPECT_EQ(len, rec.len);
		if (!rstream_record_payload(tap_edge(raw + HEAD, len), &rec))
			continue;
		good++;
		clear_reserved(raw);
		EXPECT_EQ(rstream_record_write(again, &rec), HEAD + len);
		EXPECT(!memcmp(again, raw, HEAD + len));
	}
	EXPECT(good > 1000);
}

/* An offset that is often right, or nearly. */
static u64 near(u64 offset)
{
	return below(16) ? offset + below(5) - 2 : tap_random(&seed);
}

static enum rstream_reason rx_event(struct rstream_rx *rx)
{
	switch (below(7)) {
	case 0:
		return rstream_rx_data(rx, below(8) ? below(20) : ~below(9));
	case 1:
		rstream_rx_grant(rx);
		return RSTREAM_R_NONE;
	case 2:
		return rstream_rx_switch(rx, near(rx->arrived),
					 below(3) ? near(rx->epoch) : 0);
	case 3:
		return rstream_rx_landed(rx, near(rx->arrived - rx->base) &
					 ~0ULL >> 8);
	case 4:
		return below(20) ? RSTREAM_R_NONE :
		       rstream_rx_fin(rx, near(rx->arrived));
	case 5:
		if (!below(4))
			rstream_rx_lost(rx, rx->state == RSTREAM_ON_RING ?
					    rx->arrived - rx->base : below(9));
		else if (!below(3))
			rstream_rx_revoke(rx);
		return RSTREAM_R_NONE;
	default:
		rx->consumed += below(rx->arrived - rx->consumed < 20 ?
				      rx->arrived - rx->consumed + 1 : 20);
		rx->limit = rx->consumed + 40 > rx->limit ?
			    rx->consumed + 40 : rx->limit;
		return RSTREAM_R_NONE;
	}
}

static void rx_check(const struct rstream_rx *rx, const struct rstream_rx *was,
		     enum rstream_reason reason)
{
	if (reason)
		EXPECT(!memcmp(rx, was, sizeof(*rx)));
	EXPECT(rx->arrived >= was->arrived);
	EXPECT(rx->state == RSTREAM_ON_RING || rx->arrived <= rx->limit ||
	       rx->arrived == was->arrived);
	EXPECT(rx->state != RSTREAM_ON_RING || rx->base <= rx->arrived);
	EXPECT(rx->state != RSTREAM_ON_RING || was->state != RSTREAM_ON_TCP);
	EXPECT(rx->state != RSTREAM_GRANTED || was->state != RSTREAM_ON_RING);
	EXPECT(!rx->lost || rx->state != RSTREAM_ON_TCP);
	EXPECT(!rx->revoked || rx->state != RSTREAM_ON_TCP);
	EXPECT(!was->fin || (rx->fin && rx->fin_at == was->fin_at));
	EXPECT(!rx->fin || rx->arrived <= rx->fin_at);
	EXPECT(!rstream_rx_eof(rx) || rx->arrived == rx->consumed);
}

TEST(fuzz__rx)
{
	struct rstream_rx rx, was;
	unsigned int round;

	seed = 0x7278;
	for (round = 0; round < 200000 && !tap_failed(); round++) {
		if (round % 50 == 0) {
			memset(&rx, 0, sizeof(rx));
			rx.limit = 30;
			rx.epoch = below(2) - 1;
		}
		was = rx;
		rx_check(&rx, &was, rx_event(&rx));
	}
}

static enum rstream_reason tx_event(struct rstream_tx *tx)
{
	u64 window = rstream_tx_window(tx);

	switch (below(7)) {
	case 0:
		return rstream_tx_ack(tx, near(tx->acked), near(tx->limit));
	case 1:
		return rstream_tx_grant(tx, near(tx->epoch + 1));
	case 2:
		if (tx->state == RSTREAM_GRANTED)
			below(2) ? rstream_tx_switch(tx) :
				   rstream_tx_refuse(tx);
		return RSTREAM_R_NONE;
	case 3:
		if (!below(3))
			rstream_tx_lost(tx);
		return RSTREAM_R_NONE;
	case 4:
		return rstream_tx_resume(tx, near(tx->epoch),
					 near(tx->sent - tx->base));
	case 5:
		if (tx->state == RSTREAM_LOST && tx->resumed)
			rstream_tx_rewind(tx);
		else if (!below(3))
			return rstream_tx_revoke(tx, near(tx->epoch));
		else
			rstream_tx_left(tx, near(tx->sent - tx->base));
		return RSTREAM_R_NONE;
	default:
		if (tx->state == RSTREAM_ON_RING)
			window = 20;
		tx->sent += below(window < 20 ? window + 1 : 20);
		return RSTREAM_R_NONE;
	}
}

static void tx_check(const struct rstream_tx *tx, const struct rstream_tx *was,
		     enum rstream_reason reason)
{
	if (reason)
		EXPECT(!memcmp(tx, was, sizeof(*tx)));
	EXPECT(tx->acked <= tx->sent);
	EXPECT(tx->acked >= was->acked);
	EXPECT(tx->limit >= was->limit);
	EXPECT(tx->state == RSTREAM_ON_RING || tx->sent <= tx->limit ||
	       tx->sent <= was->sent);
	EXPECT(!tx->resumed || tx->acked <= tx->resume_at);
	EXPECT(tx->state != RSTREAM_GRANTED || tx->epoch);
}

TEST(fuzz__tx)
{
	struct rstream_tx tx, was;
	unsigned int round;

	seed = 0x7478;
	for (round = 0; round < 100000 && !tap_failed(); round++) {
		if (round % 50 == 0) {
			memset(&tx, 0, sizeof(tx));
			tx.limit = 30;
			tx.epoch = below(2) - 1;
		}
		was = tx;
		tx_check(&tx, &was, tx_event(&tx));
	}
}
