// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every order of events of one small stream.
 *
 * From every state of the model all that may happen next is tried, until no new
 * state is found.
 *
 * Every event makes something grow (bytes sent, arrived, read, told), uses up a
 * grant or a loss, or empties a channel, so no history is endless, and "never
 * stuck" means: where nothing that must happen is left, all is done.
 */
#include "model.h"
#include "states.h"
#include "tap.h"

#include <stdio.h>

static bool ended_on_tcp, ended_on_ring;

static void explore(const struct world *w)
{
	bool must = false;
	struct world next;
	unsigned int i;
	u8 n;

	if (tap_failed() || !states_add(w, sizeof(*w)))
		return;
	model_check(w);
	for (i = 0; i < EVENTS; i++) {
		for (n = 1; ; n++) {
			memcpy(&next, w, sizeof(next));
			if (!model_events[i].run(&next, n))
				break;
			must |= model_events[i].flags & MUST;
			explore(&next);
			if (tap_failed()) {	/* the last event comes first */
				printf("# after %s %u\n", model_events[i].name, n);
				return;
			}
		}
	}
	if (must)
		return;
	model_check_end(w);
	if (w->rx.state == RSTREAM_ON_RING)
		ended_on_ring = true;
	else
		ended_on_tcp = true;
}

static void explore_shape(const struct shape *s)
{
	struct world w;

	states_begin(23);
	ended_on_tcp = false;
	ended_on_ring = false;
	model_start(&w, s);
	explore(&w);
	EXPECT(ended_on_tcp && ended_on_ring);
	EXPECT(model_resent == (shape.losses && shape.bytes));
	printf("# %u bytes, window %u, ring %u; grants %u, losses %u, revokes %u: %u states\n",
	       shape.bytes, shape.window, shape.ring, shape.grants,
	       shape.losses, shape.revokes, states_end());
}

TEST(explore__empty_stream)
{
	explore_shape(&(struct shape){
		.bytes = 0, .window = 1, .ring = 1,
		.grants = 1
	});
}

TEST(explore__window_of_one_byte)
{
	explore_shape(&(struct shape){
		.bytes = 6, .window = 1, .ring = 1,
		.grants = 1
	});
}

TEST(explore__ring_wraps)
{
	explore_shape(&(struct shape){
		.bytes = 7, .window = 3, .ring = 2,
		.grants = 1
	});
}

TEST(explore__ring_larger_than_stream)
{
	explore_shape(&(struct shape){
		.bytes = 6, .window = 2, .ring = 4,
		.grants = 1
	});
}

TEST(explore__window_larger_than_stream)
{
	explore_shape(&(struct shape){
		.bytes = 5, .window = 6, .ring = 1,
		.grants = 1
	});
}

TEST(explore__epoch_wraps)
{
	explore_shape(&(struct shape){
		.bytes = 4, .window = 2, .ring = 2, .grants = 1,
		.epoch = ~0U
	});
}

TEST(explore__offset_beyond_32_bits)
{
	explore_shape(&(struct shape){
		.bytes = 4, .window = 2, .ring = 2, .grants = 1,
		.start = 0xffffffff
	});
}

TEST(explore__refused_and_granted_again)
{
	explore_shape(&(struct shape){
		.bytes = 4, .window = 2, .ring = 2, .grants = 2
	});
}

TEST(explore__link_lost)
{
	explore_shape(&(struct shape){
		.bytes = 5, .window = 2, .ring = 3, .grants = 1, .losses = 1
	});
}

TEST(explore__link_lost_at_both_ends)
{
	explore_shape(&(struct shape){
		.bytes = 4, .window = 2, .ring = 2, .grants = 1, .losses = 2
	});
}

TEST(explore__link_lost_and_ring_granted_again)
{
	explore_shape(&(struct shape){
		.bytes = 3, .window = 2, .ring = 2, .grants = 2, .losses = 2,
		.epoch = ~0U
	});
}

TEST(explore__ring_revoked)
{
	explore_shape(&(struct shape){
		.bytes = 5, .window = 2, .ring = 3, .grants = 1, .revokes = 1
	});
}

TEST(explore__ring_revoked_and_granted_again)
{
	explore_shape(&(struct shape){
		.bytes = 4, .window = 2, .ring = 2, .grants = 2, .revokes = 2
	});
}

TEST(explore__link_lost_while_ring_is_revoked)
{
	explore_shape(&(struct shape){
		.bytes = 3, .window = 2, .ring = 2, .grants = 2, .losses = 1,
		.revokes = 1
	});
}
