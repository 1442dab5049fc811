// SPDX-License-Identifier: GPL-2.0-only
/* The model of the first bytes, with programs that write more than every order allows. */
#include "fuzz.h"
#include "plain_model.h"
#include "tap.h"

/* Of a program at most. */
enum { BYTES = 40 };

static bool happens(struct world *w, unsigned int i, unsigned int event)
{
	struct half *h = &w->half[i];

	/* what is heard must be, and may need an answer */
	if ((h->n >= QUEUE / 2 && event != PLAIN_HEARS) || !plain_events[event](h, &w->half[!i]))
		return false;
	plain_check_quiet(w);
	return true;
}

static void come_to_an_end(struct world *w)
{
	unsigned int i, k;
	bool more;

	do {
		more = false;
		for (i = 0; i < 2; i++)
			for (k = 0; k < PLAIN_EVENTS; k++)
				while (!tap_failed() && happens(w, i, k))
					more = true;
	} while (more && !tap_failed());
}

void fuzz_plain(const u8 *data, size_t len)
{
	struct fuzz_input in = { data, len };
	u8 how = fuzz_byte(&in), event, bytes[2];
	struct world w;

	bytes[0] = fuzz_byte(&in) % (BYTES + 1);
	bytes[1] = fuzz_byte(&in) % (BYTES + 1);
	/* an end that is sure has no peer that is plain TCP */
	plain_start(&w, bytes, how % 3 == 1, how % 3 == 2);
	while (in.len && !tap_failed()) {
		event = fuzz_byte(&in);
		happens(&w, event & 1, (event >> 1) % PLAIN_EVENTS);
	}
	if (!tap_failed())
		come_to_an_end(&w);
	if (!tap_failed())
		plain_check_end(&w, bytes);
	EXPECT(!host_warnings);
}
