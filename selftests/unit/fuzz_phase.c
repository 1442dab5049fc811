// SPDX-License-Identifier: GPL-2.0-only
/*
 * One end whose directions have records or not, with a peer that says anything.  Its callers do
 * what they do in plain.c, whenever they may.
 */
#include "carrier.h"
#include "fuzz.h"
#include "tap.h"

struct end {
	struct rstream_phases p;
	u64 sent, arrived;
	bool fin;		/* our stream has ended */
	bool owed;		/* PLAIN, as an answer */
};

/* A number that is often @n. */
static u64 about(struct fuzz_input *in, u64 n)
{
	u8 byte = fuzz_byte(in);

	return byte >= 0xf0 ? fuzz_number(in, 8) : n + (byte & 3) - 1;
}

/* By the picture in carrier.h: what may follow each state, also itself. */
static bool may_follow(u8 was, u8 is, bool rx)
{
	static const u8 next[] = { 0x11 | 0x02, 0x0f, 0x0d, 0x08, 0x19 };

	/* what comes is without records for good after that; as is what has ended */
	if (rx && was == RSTREAM_PLAIN && is == RSTREAM_RECORDS)
		return false;
	return next[was] >> is & 1;
}

static void check(const struct rstream_phases *p, const struct rstream_phases *was)
{
	u8 ahead = p->tx_spans - p->rx_spans;
	bool even = !ahead, both = p->tx == 0 && p->rx == 0;

	EXPECT(!host_warnings);
	EXPECT(may_follow(was->tx, p->tx, false) && may_follow(was->rx, p->rx, true));
	/* one has left as often as the other, or once more */
	EXPECT(ahead == 0 || ahead == 1 || ahead == 255);
	/* it has left and we have not: we have records, and may have ended */
	EXPECT(ahead != 255 || p->tx != RSTREAM_SPAN);
	EXPECT_EQ(rstream_span_may_begin(p), both && even);
	EXPECT_EQ(rstream_phase_expects_hello(p, false),
		  p->tx == 0 && (p->rx != RSTREAM_SPAN || even));
	EXPECT_EQ(rstream_phase_expects_hello(p, true), p->rx == RSTREAM_SPAN || p->tx == 0);
}

/* ---- what the peer says ---- */

static void hears_plain(struct end *e, struct fuzz_input *in)
{
	struct rstream_phases *p = &e->p, was = *p;
	u64 at = about(in, p->rx == RSTREAM_SPAN ? p->rx_end : e->arrived);
	u64 len = about(in, 5);
	bool answer, good;

	if (rstream_span_rx(p, at, len, &answer)) {
		EXPECT(!memcmp(p, &was, sizeof(was)));
		EXPECT(!answer);
		return;
	}
	if (was.rx == RSTREAM_SPAN)
		good = at == was.rx_end && p->rx_spans == was.rx_spans && !answer;
	else
		good = was.rx == RSTREAM_RECORDS && p->rx_spans == (u8)(was.rx_spans + 1) &&
		       answer == (was.tx_spans == was.rx_spans);
	EXPECT(good);
	EXPECT(p->rx == RSTREAM_SPAN && p->rx_end == at + len);
	/* it cannot make us leave within our own span */
	EXPECT(!answer || was.tx == RSTREAM_RECORDS);
	EXPECT(p->tx == was.tx && p->tx_end == was.tx_end && p->tx_spans == was.tx_spans);
	e->arrived = at;
	if (answer && !e->fin)
		e->owed = true;
}

static void hears_hello(struct end *e)
{
	struct rstream_phases *p = &e->p, was = *p;
	bool says;

	/* elsewhere these bytes are the program's */
	if (p->rx != RSTREAM_PRELUDE && p->rx != RSTREAM_SPAN)
		return;
	says = rstream_phase_hello(p, e->fin);
	EXPECT(p->rx == RSTREAM_RECORDS);
	EXPECT_EQ(says, was.tx != RSTREAM_RECORDS && was.tx != RSTREAM_ENDED && !e->fin);
	EXPECT_EQ(p->tx == RSTREAM_RECORDS, says || was.tx == RSTREAM_RECORDS);
}

static void hears_fin(struct end *e)
{
	struct rstream_phases *p = &e->p, was = *p;

	/* among records, FIN is a record; and nothing follows the end */
	if (p->rx == RSTREAM_RECORDS || p->rx == RSTREAM_ENDED || p->rx == RSTREAM_PLAIN)
		return;
	EXPECT_EQ(rstream_phase_rx_fin(p), was.tx == RSTREAM_RECORDS);
	EXPECT(p->rx == (was.tx == RSTREAM_RECORDS ? RSTREAM_ENDED : was.rx));
	if (p->rx == RSTREAM_ENDED)
		e->owed = false;
}

/* ---- what we do ---- */

static void says_plain(struct end *e, struct fuzz_input *in)
{
	struct rstream_phases *p = &e->p, was = *p;
	u64 len = fuzz_byte(in);
	bool back, over;

	if (e->fin || (!e->owed && p->tx != RSTREAM_SPAN && !rstream_span_may_begin(p)))
		return;
	e->owed = false;
	back = rstream_span_tx(p, e->sent, len);
	EXPECT(p->tx == RSTREAM_SPAN && p->tx_end == e->sent + len);
	EXPECT_EQ(p->tx_spans, (u8)(was.tx_spans + (was.tx == RSTREAM_RECORDS)));
	EXPECT(p->rx == was.rx && p->rx_spans == was.rx_spans);
	/* it is back already, so that our span is over at once */
	over = was.tx == RSTREAM_RECORDS && was.rx == RSTREAM_RECORDS;
	EXPECT_EQ(back, over && (u8)(was.tx_spans + 1) == was.rx_spans);
	if (back)
		rstream_span_leave(p);
}

static void ends(struct end *e)
{
	struct rstream_phases was = e->p;
	bool one_way = was.tx == RSTREAM_SPAN && was.rx == RSTREAM_RECORDS;

	if (e->fin)
		return;
	e->fin = true;
	EXPECT_EQ(rstream_phase_tx_fin(&e->p), one_way);
	EXPECT(e->p.tx == (one_way ? RSTREAM_ENDED : was.tx));
}

static void is_full(struct end *e, u8 how)
{
	struct rstream_phases *p = &e->p, was = *p;
	bool fin = how & 1, sure = how & 2, late = how & 4;

	EXPECT_EQ(rstream_phase_full(p, fin, sure, late),
		  was.tx == RSTREAM_PRELUDE && !fin && sure);
	if (was.tx == RSTREAM_PRELUDE)
		EXPECT(p->tx == (fin || (!sure && late) ? RSTREAM_PLAIN :
				 sure ? RSTREAM_RECORDS : RSTREAM_PRELUDE));
	else
		EXPECT(p->tx == was.tx);
	EXPECT(p->rx == was.rx);
}

static void event(struct end *e, struct fuzz_input *in)
{
	struct rstream_phases *p = &e->p;

	switch (fuzz_byte(in) % 8) {
	case 0:
		return hears_plain(e, in);
	case 1:
		return hears_hello(e);
	case 2:
		return hears_fin(e);
	case 3:
		return says_plain(e, in);
	case 4:
		if (p->tx == RSTREAM_SPAN && !e->fin)
			rstream_span_leave(p);
		return;
	case 5:
		return ends(e);
	case 6:
		return is_full(e, fuzz_byte(in));
	default:
		/* no HELLO follows the peer's prelude */
		if (p->rx == RSTREAM_PRELUDE && p->tx != RSTREAM_RECORDS &&
		    p->tx != RSTREAM_ENDED)
			rstream_phase_plain(p);
		return;
	}
}

void fuzz_phase(const u8 *data, size_t len)
{
	struct fuzz_input in = { data, len };
	struct rstream_phases was;
	struct end e = { 0 };

	e.sent = (u64)fuzz_byte(&in) << 28;
	e.arrived = (u64)fuzz_byte(&in) << 28;
	e.p.tx_spans = fuzz_byte(&in) % 3 - 2;
	e.p.rx_spans = e.p.tx_spans;
	if (fuzz_byte(&in) & 1)
		rstream_phase_begin(&e.p, fuzz_byte(&in));
	while (in.len && !tap_failed()) {
		was = e.p;
		event(&e, &in);
		e.sent += e.p.tx == RSTREAM_SPAN;
		check(&e.p, &was);
	}
}
