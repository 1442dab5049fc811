// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every order of events of the first bytes of a connection, in the model of plain_model.h.
 *
 * A HELLO must be heard for what it is, nothing else be taken for one, and whatever happens both
 * programs get all bytes.  Nobody may look for a HELLO that never comes: bytes that look like its
 * beginning would be kept back.
 */
#include "plain_model.h"
#include "states.h"
#include "tap.h"

#include <stdio.h>

/* Of a program at most. */
enum { BYTES = 4 };

static void explore(const struct world *w, const u8 bytes[2])
{
	bool must = false;
	unsigned int i, k;

	if (tap_failed() || !states_add(w, sizeof(*w)))
		return;
	EXPECT(!host_warnings);
	plain_check_quiet(w);
	for (i = 0; i < 2; i++) {
		for (k = 0; k < PLAIN_EVENTS; k++) {
			struct world next = *w;

			if (!plain_events[k](&next.half[i], &next.half[!i]))
				continue;
			must = true;
			explore(&next, bytes);
		}
	}
	if (!must)
		plain_check_end(w, bytes);
}

/* @plain_tcp: the client is no end of ours, or has not seen the option. */
static void explore_all(bool sure, bool plain_tcp)
{
	u8 bytes[2];

	plain_n_records = 0;
	plain_n_plain = 0;
	plain_n_mixed = 0;
	for (bytes[0] = 0; bytes[0] <= BYTES; bytes[0]++) {
		for (bytes[1] = 0; bytes[1] <= BYTES; bytes[1]++) {
			struct world w;

			plain_start(&w, bytes, sure, plain_tcp);
			states_begin(17);
			explore(&w, bytes);
			states_end();
		}
	}
	printf("# ends: %u with records both ways, %u one way, %u without\n",
	       plain_n_records, plain_n_mixed, plain_n_plain);
}

TEST(plain__both_sure)
{
	explore_all(true, false);
	EXPECT(plain_n_records && plain_n_mixed && plain_n_plain);
}

TEST(plain__server_not_sure)
{
	explore_all(false, false);
	EXPECT(plain_n_records && plain_n_mixed && plain_n_plain);
}

TEST(plain__client_without_records)
{
	explore_all(false, true);
	EXPECT(!plain_n_records && !plain_n_mixed && plain_n_plain);
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
