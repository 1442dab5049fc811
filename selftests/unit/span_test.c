// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every order of events of a connection that leaves its records for spans and comes back, in
 * the model of span_model.h.
 *
 * PLAIN and HELLO must be heard where they are said and nowhere else, and nobody may look for a
 * HELLO that never comes: bytes that look like its beginning would be kept back for ever.
 */
#include "span_model.h"
#include "states.h"
#include "tap.h"

#include <stdio.h>

static void explore(const struct world *w, const u8 bytes[2])
{
	bool over = true;
	unsigned int i, k;

	if (tap_failed() || !states_add(w, sizeof(*w)))
		return;
	EXPECT(!host_warnings);
	span_check_quiet(w);
	for (i = 0; i < 2; i++) {
		for (k = 0; k <= SPAN_EVENTS; k++) {
			struct world next = *w;
			bool done = true;

			if (k < SPAN_EVENTS)
				done = span_events[k](&next.half[i]);
			else if (w->half[!i].n)
				span_hears(&next.half[i], &next.half[!i]);
			else
				done = false;
			if (!done)
				continue;
			over = false;
			explore(&next, bytes);
		}
	}
	if (over)
		span_check_end(w, bytes);
}

/* @begins, @grants: how often each end may; @most_bytes: of a program */
static void explore_all(unsigned int begins, unsigned int grants, unsigned int most_bytes)
{
	unsigned int most = 0;
	u8 bytes[2];

	span_n_back = 0;
	span_n_one_way = 0;
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
	       most, span_n_back, span_n_one_way);
}

TEST(span__every_order)
{
	explore_all(2, 0, 3);
	EXPECT(span_n_back && span_n_one_way);
}

TEST(span__every_order_with_grants)
{
	explore_all(1, 1, 2);
	EXPECT(span_n_back && span_n_one_way);
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
