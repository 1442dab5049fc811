// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model of spans, longer than every order of its events can be tried: programs that write more,
 * and ends that leave their records and grant rings as often as they may.
 */
#include "fuzz.h"
#include "span_model.h"
#include "tap.h"

/* Of a program at most. */
enum { BYTES = 60 };

static bool happens(struct world *w, unsigned int i, unsigned int event)
{
	struct half *h = &w->half[i], *other = &w->half[!i];
	bool done = true;

	/* what is heard must be, and may need an answer */
	if (event < SPAN_EVENTS)
		done = h->n < QUEUE / 2 && span_events[event](h);
	else if (other->n)
		span_hears(h, other);
	else
		return false;
	if (done)
		span_check_quiet(w);
	return done;
}

/* All that must happen does; no end begins anything by itself. */
static void come_to_an_end(struct world *w)
{
	unsigned int i, k;
	bool more;

	for (i = 0; i < 2; i++) {
		w->half[i].begins = 0;
		w->half[i].grants = 0;
	}
	do {
		more = false;
		for (i = 0; i < 2; i++)
			for (k = 0; k <= SPAN_EVENTS; k++)
				while (!tap_failed() && happens(w, i, k))
					more = true;
	} while (more && !tap_failed());
}

void fuzz_span(const u8 *data, size_t len)
{
	struct fuzz_input in = { data, len };
	u8 bytes[2], event, start;
	struct world w;
	int i;

	memset(&w, 0, sizeof(w));
	start = fuzz_byte(&in);
	for (i = 0; i < 2; i++) {
		bytes[i] = fuzz_byte(&in) % (BYTES + 1);
		w.half[i].bytes = bytes[i];
		w.half[i].begins = 255;
		w.half[i].grants = 255;
		/* their numbers wrap */
		w.half[i].dir.tx_spans = start;
		w.half[i].dir.rx_spans = start;
	}
	while (in.len && !tap_failed()) {
		event = fuzz_byte(&in);
		happens(&w, event & 1, (event >> 1) % (SPAN_EVENTS + 1));
	}
	if (!tap_failed())
		come_to_an_end(&w);
	if (!tap_failed())
		span_check_end(&w, bytes);
	EXPECT(!host_warnings);
}
