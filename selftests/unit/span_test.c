// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every order of events of a connection that leaves its records for spans and comes back:
 * two ends, each with the states of carrier.c, do as plain.c does.
 *
 * What one end says to the other comes in order.  PLAIN and HELLO must be heard where they
 * are said and nowhere else, and nobody may look for a HELLO that never comes: bytes that
 * look like its beginning would be kept back for ever.
 */
#include "carrier.h"
#include "states.h"
#include "tap.h"

#include <stdio.h>

/* Bytes of a span; what can be under way. */
enum { SPAN = 2, QUEUE = 16 };

/* What is on the way.  END: FIN by record; FIN: TCP's. */
enum token { BYTE = 1, RECORD, PLAIN, HELLO, GRANT, SWITCH, LEFT, END, FIN };

struct half {
	struct rstream_phases dir;
	u8 bytes;		/* that its program has yet to write; then it ends */
	u8 sent;
	u8 begins;		/* spans that it may still begin by itself */
	u8 grants;
	u8 owed;		/* PLAIN is to be said */
	u8 granted;		/* a GRANT of ours is unanswered */
	u8 switching;		/* one of the peer's is: SWITCH is to be said */
	u8 on_ring;		/* what we send is */
	u8 rx_ring;		/* what comes is */
	u8 ended;		/* our stream has: END or FIN is said */
	u8 closed;		/* by FIN: nothing more can be said */
	u8 got;
	u8 got_end;
	u8 n;			/* tokens on their way to the other end */
	u8 way[QUEUE];
};

struct world {
	struct half half[2];
};

static unsigned int n_back, n_one_way;

static void say(struct half *h, enum token token)
{
	assert(h->n < QUEUE);
	EXPECT(!h->closed);
	h->way[h->n++] = token;
}

static void say_plain(struct half *h)
{
	h->owed = 0;
	say(h, PLAIN);
	if (rstream_span_tx(&h->dir, h->sent, SPAN)) {
		rstream_span_leave(&h->dir);
		say(h, HELLO);
	}
}

static void come_back(struct half *h)
{
	rstream_span_leave(&h->dir);
	say(h, HELLO);
	n_back++;
}

/* The events.  Return: false, and nothing has happened, if there is nothing to be done now. */

static bool writes(struct half *h)
{
	if (h->ended)
		return false;
	if (h->dir.tx == RSTREAM_RECORDS) {
		if (h->owed || h->switching)
			return false;	/* control records come first */
		say(h, h->bytes ? RECORD : END);
	} else if (!h->bytes) {
		if (h->switching || h->granted)
			return false;
		say(h, FIN);
		h->closed = 1;
		n_one_way += rstream_phase_tx_fin(&h->dir);
	} else if (h->sent == h->dir.tx_end) {
		return false;
	} else {
		say(h, BYTE);
	}
	if (h->bytes) {
		h->bytes--;
		h->sent++;
	} else {
		h->ended = 1;
	}
	return true;
}

static bool answers(struct half *h)
{
	if (!h->owed)
		return false;
	say_plain(h);
	return true;
}

static bool begins(struct half *h)
{
	if (!h->begins || h->ended || h->got_end || h->granted || h->switching ||
	    h->on_ring || h->rx_ring ||
	    !rstream_span_may_begin(&h->dir))
		return false;
	h->begins--;
	say_plain(h);
	return true;
}

static bool at_end(const struct half *h)
{
	return h->dir.tx == RSTREAM_SPAN && h->sent == h->dir.tx_end && h->bytes;
}

static bool goes_on(struct half *h)
{
	if (!at_end(h))
		return false;
	say_plain(h);
	return true;
}

static bool comes_back(struct half *h)
{
	if (!at_end(h) || h->got_end)
		return false;
	come_back(h);
	return true;
}

static bool grants(struct half *h)
{
	if (!h->grants || h->granted || h->rx_ring || h->got_end ||
	    h->dir.tx != RSTREAM_RECORDS)
		return false;
	h->grants--;
	h->granted = 1;
	say(h, GRANT);
	return true;
}

static void hears_fin(struct half *h)
{
	EXPECT(h->dir.rx == RSTREAM_SPAN);
	h->got_end = 1;
	h->granted = 0;
	if (rstream_phase_rx_fin(&h->dir))
		h->owed = 0;
}

static bool switches(struct half *h)
{
	if (!h->switching || h->owed)
		return false;
	h->switching = 0;
	if (h->dir.tx == RSTREAM_SPAN) {
		come_back(h);
		/* the FIN behind the GRANT has come: records go one way, and no answer counts */
		if (h->got_end && h->dir.rx == RSTREAM_SPAN) {
			EXPECT(rstream_phase_rx_fin(&h->dir));
			n_one_way++;
		}
	}
	if (h->dir.rx == RSTREAM_ENDED)
		return true;
	say(h, SWITCH);
	h->on_ring = 1;
	return true;
}

static bool leaves_ring(struct half *h)
{
	/* asked to, by a record */
	if (!h->on_ring || h->dir.rx != RSTREAM_RECORDS)
		return false;
	h->on_ring = 0;
	say(h, LEFT);
	return true;
}

static void hears_switch(struct half *h, bool to_ring)
{
	/* the loss of the ring would have to be told */
	EXPECT(!to_ring || !h->closed);
	h->granted = 0;
	h->rx_ring = to_ring;
}

static void hears(struct half *h, struct half *other)
{
	enum token token = other->way[0];
	bool answer;

	memmove(other->way, other->way + 1, --other->n);
	other->way[other->n] = 0;
	switch (token) {
	case BYTE:
		EXPECT(h->dir.rx == RSTREAM_SPAN && h->got < h->dir.rx_end);
		h->got++;
		break;
	case HELLO:
		EXPECT(h->dir.rx == RSTREAM_SPAN);
		EXPECT(h->got == h->dir.rx_end || rstream_phase_expects_hello(&h->dir, h->granted));
		if (rstream_phase_hello(&h->dir, h->closed))
			say(h, HELLO);
		break;
	case PLAIN:
		EXPECT_EQ(rstream_span_rx(&h->dir, h->got, SPAN, &answer), RSTREAM_R_NONE);
		/* as rstream_plain_span_received() has it */
		EXPECT(!h->rx_ring && !(answer && h->on_ring));
		if (answer && !h->ended)
			h->owed = 1;
		break;
	case FIN:
		hears_fin(h);
		break;
	default:
		EXPECT(h->dir.rx == RSTREAM_RECORDS);
		if (token == RECORD)
			h->got++;
		else if (token == END)
			h->got_end = 1;
		else if (token == GRANT)
			h->switching = !h->closed;
		else
			hears_switch(h, token == SWITCH);
	}
}

/* Nothing is under way: who looks for HELLO now will do so for ever. */
static void check_quiet(const struct world *w)
{
	int i;

	for (i = 0; i < 2; i++)
		if (w->half[i].n || w->half[i].owed || w->half[i].switching)
			return;
	for (i = 0; i < 2; i++) {
		const struct half *h = &w->half[i];

		EXPECT(h->dir.rx != RSTREAM_SPAN || h->got_end ||
		       !rstream_phase_expects_hello(&h->dir, h->granted));
		/* nor does the peer tell of its window behind its FIN */
		EXPECT(h->dir.rx != RSTREAM_SPAN || !h->got_end ||
		       h->dir.tx != RSTREAM_RECORDS);
		/* what one sends in records the other takes for records */
		EXPECT((h->dir.tx == RSTREAM_RECORDS) ==
		       (w->half[!i].dir.rx == RSTREAM_RECORDS));
	}
}

static void check_end(const struct world *w, const u8 bytes[2])
{
	int i;

	for (i = 0; i < 2; i++)
		EXPECT(w->half[i].ended && w->half[i].got_end && w->half[i].got == bytes[!i]);
}

static void explore(const struct world *w, const u8 bytes[2])
{
	static bool (*const events[])(struct half *h) = {
		writes, answers, begins, goes_on, comes_back, grants, switches, leaves_ring,
	};
	bool over = true;
	unsigned int i, k;

	if (tap_failed() || !states_add(w, sizeof(*w)))
		return;
	EXPECT(!host_warnings);
	check_quiet(w);
	for (i = 0; i < 2; i++) {
		for (k = 0; k <= ARRAY_SIZE(events); k++) {
			struct world next = *w;
			bool done = true;

			if (k < ARRAY_SIZE(events))
				done = events[k](&next.half[i]);
			else if (w->half[!i].n)
				hears(&next.half[i], &next.half[!i]);
			else
				done = false;
			if (!done)
				continue;
			over = false;
			explore(&next, bytes);
		}
	}
	if (over)
		check_end(w, bytes);
}

/* @begins, @grants: how often each end may; @most_bytes: of a program */
static void explore_all(unsigned int begins, unsigned int grants, unsigned int most_bytes)
{
	unsigned int most = 0;
	u8 bytes[2];

	n_back = 0;
	n_one_way = 0;
	for (bytes[0] = 0; bytes[0] <= most_bytes; bytes[0]++) {
		for (bytes[1] = 0; bytes[1] <= bytes[0]; bytes[1]++) {
			struct world w;
			int i;

			memset(&w, 0, sizeof(w));
			for (i = 0; i < 2; i++) {
				w.half[i].bytes = bytes[i];
				w.half[i].begins = begins;
				w.half[i].grants = grants;
			}
			states_begin(21);
			explore(&w, bytes);
			most = max(most, states_end());
		}
	}
	printf("# at most %u states; came back %u times, one way %u times\n",
	       most, n_back, n_one_way);
}

TEST(span__every_order)
{
	explore_all(2, 0, 3);
	EXPECT(n_back && n_one_way);
}

TEST(span__every_order_with_grants)
{
	explore_all(1, 1, 2);
	EXPECT(n_back && n_one_way);
}

TEST(span__peer_out_of_step)
{
	struct rstream_phases p = { 0 };
	bool answer;

	EXPECT_EQ(rstream_span_rx(&p, 10, 5, &answer), RSTREAM_R_NONE);
	EXPECT(answer && p.rx == RSTREAM_SPAN && p.rx_end == 15);
	/* not where it said that the next one would be */
	EXPECT_EQ(rstream_span_rx(&p, 14, 5, &answer), RSTREAM_R_BAD_RECORD);
	EXPECT_EQ(rstream_span_rx(&p, 15, 5, &answer), RSTREAM_R_NONE);
	EXPECT(!answer && p.rx_end == 20);
	/* it comes back, and leaves again, before we have said PLAIN; or HELLO */
	EXPECT(!rstream_phase_hello(&p, false));
	EXPECT_EQ(rstream_span_rx(&p, 20, 5, &answer), RSTREAM_R_BAD_RECORD);
	EXPECT(rstream_span_tx(&p, 0, 7));
	EXPECT_EQ(rstream_span_rx(&p, 20, 5, &answer), RSTREAM_R_BAD_RECORD);
	EXPECT(!rstream_span_may_begin(&p));
	rstream_span_leave(&p);
	EXPECT(rstream_span_may_begin(&p));
	EXPECT_EQ(p.tx_spans, 1);
	EXPECT_EQ(p.rx_spans, 1);
}

/* The values of tx and rx: 0 RECORDS, 1 PRELUDE, 2 PLAIN, 3 ENDED, 4 SPAN. */
TEST(span__begin)
{
	struct rstream_phases p = { 0 };

	rstream_phase_begin(&p, 1234);
	EXPECT(p.tx_end == 1234 && p.rx_end == 1234 && p.tx == 1 && p.rx == 1);
	EXPECT(!rstream_phase_full(&p, true, true, false) && p.tx == 2);
	p.tx = 1;
	EXPECT(rstream_phase_full(&p, false, true, true) && p.tx == 0);
}

TEST(span__fin)
{
	for (u8 tx = 0; tx <= 4; tx++) {
		for (u8 rx = 0; rx <= 4; rx++) {
			struct rstream_phases p = { .tx = tx, .rx = rx };
			bool one_way = tx == 4 && rx == 0;

			EXPECT_EQ(rstream_phase_tx_fin(&p), one_way);
			EXPECT_EQ(p.tx, one_way ? 3 : tx);
			EXPECT_EQ(p.rx, rx);
		}
	}
	EXPECT(!host_warnings);
}

TEST(span__expects_hello)
{
	/* outside of spans, neither their number nor a GRANT matters */
	struct rstream_phases p = { .rx = 1, .tx_spans = 1 };

	EXPECT(rstream_phase_expects_hello(&p, false));
	p.tx = 1;
	EXPECT(!rstream_phase_expects_hello(&p, true));
}

TEST(span__refused)
{
	struct rstream_phases p = { .tx = 1, .tx_end = 7, .rx = 1, .rx_end = 9 };
	bool answer;

	EXPECT(!rstream_span_tx(&p, 3, 5) && p.tx == 1 && p.tx_end == 7);
	EXPECT_EQ(host_warnings, 1);
	host_warnings = 0;
	EXPECT_EQ(rstream_span_rx(&p, 9, 5, &answer), RSTREAM_R_BAD_RECORD);
	p = (struct rstream_phases){ .tx = 4, .rx = 4, .rx_end = 9 };
	EXPECT_EQ(rstream_span_rx(&p, 10, 5, &answer), RSTREAM_R_BAD_RECORD);
	/* a further span is no reason for HELLO */
	p = (struct rstream_phases){ .tx = 4 };
	EXPECT(!rstream_span_tx(&p, 3, 5) && p.tx == 4 && p.tx_end == 8);
	/* it answers a PLAIN of ours that is too old */
	p = (struct rstream_phases){ .tx = 4, .tx_spans = 5, .rx_spans = 1 };
	EXPECT_EQ(rstream_span_rx(&p, 0, 5, &answer), RSTREAM_R_BAD_RECORD);
	/* numbers wrap */
	p = (struct rstream_phases){ .tx = 4, .tx_spans = 0, .rx_spans = 255 };
	EXPECT_EQ(rstream_span_rx(&p, 0, 5, &answer), RSTREAM_R_NONE);
	EXPECT(!answer && p.rx == 4 && p.rx_spans == 0);
	EXPECT(!host_warnings);
}
