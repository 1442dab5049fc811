// SPDX-License-Identifier: GPL-2.0-only
/* See span_model.h. */
#include "span_model.h"
#include "tap.h"

unsigned int span_n_back, span_n_one_way;

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
	span_n_back++;
}

/* ---- the events ---- */

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
		span_n_one_way += rstream_phase_tx_fin(&h->dir);
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
			span_n_one_way++;
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

void span_hears(struct half *h, struct half *other)
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

span_event *const span_events[SPAN_EVENTS] = {
	writes, answers, begins, goes_on, comes_back, grants, switches, leaves_ring,
};

/* Nothing is under way: an end that looks for HELLO now will do so for ever. */
void span_check_quiet(const struct world *w)
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

void span_check_end(const struct world *w, const u8 bytes[2])
{
	int i;

	for (i = 0; i < 2; i++)
		EXPECT(w->half[i].ended && w->half[i].got_end && w->half[i].got == bytes[!i]);
}
