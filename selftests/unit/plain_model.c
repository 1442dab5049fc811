// SPDX-License-Identifier: GPL-2.0-only
/* See plain_model.h. */
#include "plain_model.h"
#include "tap.h"

unsigned int plain_n_records, plain_n_plain, plain_n_mixed;

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

plain_event *const plain_events[PLAIN_EVENTS] = {
	[PLAIN_WRITES] = writes,
	[PLAIN_HEARS] = hears,
	[PLAIN_WAITS] = waits,
};

void plain_start(struct world *w, const u8 bytes[2], bool sure, bool plain_tcp)
{
	int i;

	memset(w, 0, sizeof(*w));
	for (i = 0; i < 2; i++) {
		rstream_phase_begin(&w->half[i].dir, PRELUDE);
		w->half[i].bytes = bytes[i];
	}
	w->half[0].sure = 1;
	w->half[0].plain_tcp = plain_tcp;
	w->half[1].server = 1;
	w->half[1].sure = sure;
}

/* Nothing is under way: an end that looks for HELLO now will do so for ever. */
void plain_check_quiet(const struct world *w)
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

void plain_check_end(const struct world *w, const u8 bytes[2])
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
		plain_n_records++;
	else if (records[0] || records[1])
		plain_n_mixed++;
	else
		plain_n_plain++;
}
