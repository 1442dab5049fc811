// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every order of events of the first bytes of a connection, until both of its directions
 * have ended: two ends, each with the states of carrier.c, do as plain.c does.
 *
 * What one end says to the other comes in order.  A HELLO must be heard for what it is,
 * nothing else be taken for one, and whatever happens both programs get all bytes.  Nobody may
 * look for a HELLO that never comes: bytes that look like its beginning would be kept back.
 */
#include "carrier.h"
#include "states.h"
#include "tap.h"

#include <stdio.h>

/* Bytes of a prelude, of a program at most; what can be under way. */
enum { PRELUDE = 2, BYTES = 4, QUEUE = 12 };

/* What is on the way: a byte of the program's, HELLO, a byte in a record, FIN by record, TCP's. */
enum token { BYTE = 1, HELLO, RECORD, END, FIN };

struct half {
	struct rstream_phases dir;
	u8 server;
	u8 sure;		/* it knows that the other end understands HELLO */
	u8 late;		/* and has waited for that */
	u8 plain_tcp;		/* it does not, and is not of ours */
	u8 bytes;		/* that its program has yet to write; then it ends */
	u8 sent;
	u8 fin;			/* our stream has ended, as far as we are to say so */
	u8 got;			/* bytes that have come */
	u8 got_fin;
	u8 n;			/* tokens on their way to the other end */
	u8 way[QUEUE];
};

struct world {
	struct half half[2];
};

static unsigned int n_records, n_plain, n_mixed;

static void say(struct half *h, enum token token)
{
	assert(h->n < QUEUE);
	h->way[h->n++] = token;
}

/* Return: false, and nothing has happened, if there is nothing to be written now. */
static bool writes(struct half *h, struct half *other)
{
	(void)other;
	if (h->fin)
		return false;
	if (h->dir.tx == RSTREAM_RECORDS && !h->plain_tcp) {
		say(h, h->bytes ? RECORD : END);
	} else if (!h->bytes) {
		say(h, FIN);		/* TCP's is the stream's */
	} else {
		if (h->dir.tx == RSTREAM_PRELUDE && h->sent == PRELUDE && !h->plain_tcp) {
			if (rstream_phase_full(&h->dir, h->got_fin, h->sure, h->late)) {
				say(h, HELLO);
				return true;
			}
			if (h->dir.tx == RSTREAM_PRELUDE)
				return false;	/* it waits */
		}
		say(h, BYTE);
	}
	if (h->bytes) {
		h->bytes--;
		h->sent++;
	} else {
		h->fin = 1;
	}
	return true;
}

/* A server has waited for long. */
static bool waits(struct half *h, struct half *other)
{
	(void)other;
	if (h->sure || h->late)
		return false;
	h->late = 1;
	return true;
}

static void hears_byte(struct half *h)
{
	if (h->dir.tx != RSTREAM_RECORDS && h->dir.rx == RSTREAM_PRELUDE && h->got == PRELUDE)
		rstream_phase_plain(&h->dir);
	EXPECT(h->dir.rx != RSTREAM_RECORDS);
	h->got++;
}

static bool hears(struct half *h, struct half *other)
{
	enum token token = other->way[0];

	if (!other->n)
		return false;
	memmove(other->way, other->way + 1, --other->n);
	other->way[other->n] = 0;
	switch (token) {
	case BYTE:
		hears_byte(h);
		break;
	case HELLO:
		EXPECT(!h->plain_tcp);
		EXPECT(h->dir.rx == RSTREAM_PRELUDE);	/* else the program gets it */
		EXPECT(h->got == PRELUDE || rstream_phase_expects_hello(&h->dir, false));
		h->sure = 1;
		if (rstream_phase_hello(&h->dir, h->fin))
			say(h, HELLO);
		break;
	case RECORD:
		EXPECT(h->dir.rx == RSTREAM_RECORDS);
		h->got++;
		break;
	case END:
		EXPECT(h->dir.rx == RSTREAM_RECORDS);
		h->got_fin = 1;
		break;
	case FIN:
		EXPECT(h->dir.rx != RSTREAM_RECORDS);
		h->got_fin = 1;
		if (!h->plain_tcp)
			rstream_phase_rx_fin(&h->dir);
		break;
	}
	return true;
}

/* Nothing is under way: who looks for HELLO now will do so for ever. */
static void check_quiet(const struct world *w)
{
	int i;

	if (w->half[0].n || w->half[1].n)
		return;
	for (i = 0; i < 2; i++) {
		const struct half *h = &w->half[i];

		EXPECT(h->dir.rx != RSTREAM_PRELUDE || h->got_fin ||
		       !rstream_phase_expects_hello(&h->dir, false));
	}
}

static void check_end(const struct world *w, const u8 bytes[2])
{
	bool records[2];
	int i;

	for (i = 0; i < 2; i++) {
		const struct half *h = &w->half[i], *other = &w->half[!i];

		EXPECT(h->fin && h->got_fin && h->got == bytes[!i]);
		records[i] = h->dir.tx == RSTREAM_RECORDS && !h->plain_tcp;
		/* what one sends in records the other takes for records */
		EXPECT(records[i] == (other->dir.rx == RSTREAM_RECORDS && !other->plain_tcp));
	}
	if (records[0] && records[1])
		n_records++;
	else if (records[0] || records[1])
		n_mixed++;
	else
		n_plain++;
}

static void explore(const struct world *w, const u8 bytes[2])
{
	static bool (*const events[])(struct half *h, struct half *other) = { writes, hears, waits };
	bool must = false;
	unsigned int i, k;

	if (tap_failed() || !states_add(w, sizeof(*w)))
		return;
	EXPECT(!host_warnings);
	check_quiet(w);
	for (i = 0; i < 2; i++) {
		for (k = 0; k < ARRAY_SIZE(events); k++) {
			struct world next = *w;

			if (!events[k](&next.half[i], &next.half[!i]))
				continue;
			must = true;
			explore(&next, bytes);
		}
	}
	if (!must)
		check_end(w, bytes);
}

/* @plain_tcp: the client is no end of ours, or has not seen the option. */
static void explore_all(bool sure, bool plain_tcp)
{
	u8 bytes[2];

	n_records = 0;
	n_plain = 0;
	n_mixed = 0;
	for (bytes[0] = 0; bytes[0] <= BYTES; bytes[0]++) {
		for (bytes[1] = 0; bytes[1] <= BYTES; bytes[1]++) {
			struct world w;
			int i;

			memset(&w, 0, sizeof(w));
			for (i = 0; i < 2; i++) {
				rstream_phase_begin(&w.half[i].dir, PRELUDE);
				w.half[i].bytes = bytes[i];
			}
			w.half[0].sure = 1;
			w.half[0].plain_tcp = plain_tcp;
			w.half[1].server = 1;
			w.half[1].sure = sure;
			states_begin(17);
			explore(&w, bytes);
			states_end();
		}
	}
	printf("# ends: %u with records both ways, %u one way, %u without\n",
	       n_records, n_mixed, n_plain);
}

TEST(plain__both_sure)
{
	explore_all(true, false);
	EXPECT(n_records && n_mixed && n_plain);
}

TEST(plain__server_not_sure)
{
	explore_all(false, false);
	EXPECT(n_records && n_mixed && n_plain);
}

TEST(plain__client_without_records)
{
	explore_all(false, true);
	EXPECT(!n_records && !n_mixed && n_plain);
}

TEST(plain__nothing_out_of_turn)
{
	struct rstream_phases p = { 0 };

	EXPECT(!rstream_phase_full(&p, false, true, true));
	rstream_phase_plain(&p);
	EXPECT(host_warnings == 2);
	EXPECT(p.tx == RSTREAM_RECORDS && p.rx == RSTREAM_RECORDS);
	rstream_phase_begin(&p, PRELUDE);
	EXPECT(!rstream_phase_full(&p, false, false, false) && p.tx == RSTREAM_PRELUDE);
	EXPECT(!rstream_phase_full(&p, false, false, true) && p.tx == RSTREAM_PLAIN);
	EXPECT(!rstream_phase_rx_fin(&p) && p.rx == RSTREAM_PRELUDE);
	EXPECT(!rstream_phase_hello(&p, true));
	EXPECT(p.tx == RSTREAM_ENDED && p.rx == RSTREAM_RECORDS);
	host_warnings = 0;
}

TEST(plain__sure_too_late)
{
	struct rstream_phases p = { .tx = RSTREAM_PLAIN, .rx = RSTREAM_PRELUDE };

	EXPECT(!rstream_phase_full(&p, false, true, false) && p.tx == RSTREAM_PLAIN);
}

TEST(plain__peer_without_hello)
{
	struct rstream_phases p = { 0 };

	rstream_phase_begin(&p, PRELUDE);
	rstream_phase_plain(&p);
	EXPECT(p.tx == RSTREAM_PLAIN && p.rx == RSTREAM_PLAIN);

	/* our own prelude has ended before */
	p.rx = RSTREAM_PRELUDE;
	rstream_phase_plain(&p);
	EXPECT(p.tx == RSTREAM_PLAIN && p.rx == RSTREAM_PLAIN);
	EXPECT(!host_warnings);
}

TEST(plain__over_one_way)
{
	struct rstream_phases p = { .rx = RSTREAM_PRELUDE };

	EXPECT(rstream_phase_rx_fin(&p) && p.rx == RSTREAM_ENDED);
	p.rx = RSTREAM_RECORDS;
	EXPECT(!rstream_phase_rx_fin(&p) && p.rx == RSTREAM_RECORDS);
	EXPECT(host_warnings == 1);
	host_warnings = 0;
}
