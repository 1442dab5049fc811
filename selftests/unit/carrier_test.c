// SPDX-License-Identifier: GPL-2.0-only
/* The rules of carriers and switches, one by one. */
#include "carrier.h"
#include "tap.h"

#define BIG	0x123456789aULL		/* an offset beyond 32 bits */

/* @call is refused for @reason and leaves @obj as it was. */
#define EXPECT_REFUSED(obj, call, reason) do {			\
	__typeof__(*(obj)) before_ = *(obj);			\
								\
	EXPECT_EQ(call, reason);				\
	EXPECT(!memcmp(&before_, obj, sizeof(before_)));	\
} while (0)

#define EXPECT_FINE(call) EXPECT_EQ(call, RSTREAM_R_NONE)

/* A receiver at BIG, which has consumed everything and allows @window more. */
static struct rstream_rx receiver(u64 window)
{
	struct rstream_rx rx;

	memset(&rx, 0, sizeof(rx));
	rx.arrived = BIG;
	rx.consumed = BIG;
	rx.limit = BIG + window;
	return rx;
}

/* The same on a ring since BIG. */
static struct rstream_rx on_ring(void)
{
	struct rstream_rx rx = receiver(10);

	rstream_rx_switch(&rx, BIG, rstream_rx_grant(&rx));
	EXPECT_EQ(rx.state, RSTREAM_ON_RING);
	return rx;
}

/* A sender at BIG that may send @window more. */
static struct rstream_tx sender(u64 window)
{
	struct rstream_tx tx;

	memset(&tx, 0, sizeof(tx));
	tx.written = BIG + 100;
	tx.sent = BIG;
	tx.acked = BIG - 4;
	tx.limit = BIG + window;
	return tx;
}

TEST(carrier__rx_data_up_to_the_window)
{
	struct rstream_rx rx = receiver(10);

	EXPECT_REFUSED(&rx, rstream_rx_data(&rx, 11), RSTREAM_R_BAD_WINDOW);
	EXPECT_REFUSED(&rx, rstream_rx_data(&rx, ~0U), RSTREAM_R_BAD_WINDOW);
	EXPECT_FINE(rstream_rx_data(&rx, 4));
	EXPECT_EQ(rx.arrived, BIG + 4);
	EXPECT_REFUSED(&rx, rstream_rx_data(&rx, 7), RSTREAM_R_BAD_WINDOW);
	EXPECT_FINE(rstream_rx_data(&rx, 6));
	EXPECT_EQ(rx.arrived, BIG + 10);
	EXPECT_REFUSED(&rx, rstream_rx_data(&rx, 1), RSTREAM_R_BAD_WINDOW);
}

TEST(carrier__rx_data_big_window)
{
	struct rstream_rx rx = receiver(0x200000000);

	EXPECT_FINE(rstream_rx_data(&rx, ~0U));
	EXPECT_EQ(rx.arrived, BIG + 0xffffffff);
	EXPECT_FINE(rstream_rx_data(&rx, ~0U));
	EXPECT_REFUSED(&rx, rstream_rx_data(&rx, 3), RSTREAM_R_BAD_WINDOW);
}

TEST(carrier__rx_data_while_granted)
{
	struct rstream_rx rx = receiver(10);

	EXPECT_EQ(rstream_rx_grant(&rx), 1);
	EXPECT_FINE(rstream_rx_data(&rx, 10));
	EXPECT_EQ(rx.state, RSTREAM_GRANTED);
}

TEST(carrier__rx_data_on_ring)
{
	struct rstream_rx rx = on_ring();

	EXPECT_REFUSED(&rx, rstream_rx_data(&rx, 1), RSTREAM_R_BAD_SWITCH);
}

TEST(carrier__rx_data_after_fin)
{
	struct rstream_rx rx = receiver(10);

	EXPECT_FINE(rstream_rx_fin(&rx, BIG));
	EXPECT_REFUSED(&rx, rstream_rx_data(&rx, 1), RSTREAM_R_BAD_OFFSET);
}

TEST(carrier__rx_grant_once)
{
	struct rstream_rx rx = receiver(10);

	EXPECT_EQ(rstream_rx_grant(&rx), 1);
	EXPECT_EQ(rx.state, RSTREAM_GRANTED);
	EXPECT_REFUSED(&rx, rstream_rx_grant(&rx), 0);
	EXPECT_FINE(rstream_rx_switch(&rx, BIG, 1));
	EXPECT_REFUSED(&rx, rstream_rx_grant(&rx), 0);
}

TEST(carrier__rx_grant_after_fin)
{
	struct rstream_rx rx = receiver(10);

	EXPECT_FINE(rstream_rx_fin(&rx, BIG));
	EXPECT_REFUSED(&rx, rstream_rx_grant(&rx), 0);
}

TEST(carrier__rx_ungrant_returns_the_epoch)
{
	struct rstream_rx rx = receiver(10), before;

	rx.epoch = 7;
	before = rx;
	EXPECT_EQ(rstream_rx_grant(&rx), 8);
	rstream_rx_ungrant(&rx);
	EXPECT(!memcmp(&rx, &before, sizeof(rx)));
	EXPECT_EQ(rstream_rx_grant(&rx), 8);
}

TEST(carrier__epoch_wraps_to_one)
{
	struct rstream_rx rx = receiver(10);
	struct rstream_tx tx = sender(10);

	rx.epoch = ~0U - 1;
	tx.epoch = ~0U - 1;
	EXPECT_EQ(rstream_rx_grant(&rx), ~0U);
	EXPECT_FINE(rstream_tx_grant(&tx, ~0U));
	rx.state = RSTREAM_ON_TCP;
	rstream_tx_refuse(&tx);
	EXPECT_EQ(rstream_rx_grant(&rx), 1);
	rstream_rx_ungrant(&rx);
	EXPECT_EQ(rstream_rx_grant(&rx), 1);
	EXPECT_REFUSED(&tx, rstream_tx_grant(&tx, 0), RSTREAM_R_BAD_GRANT);
	EXPECT_FINE(rstream_tx_grant(&tx, 1));
	EXPECT_EQ(tx.epoch, 1);
	EXPECT_FINE(rstream_rx_switch(&rx, BIG, 1));
}

TEST(carrier__rx_switch)
{
	struct rstream_rx rx = receiver(10);

	rstream_rx_grant(&rx);
	EXPECT_FINE(rstream_rx_data(&rx, 3));
	EXPECT_FINE(rstream_rx_switch(&rx, BIG + 3, 1));
	EXPECT_EQ(rx.state, RSTREAM_ON_RING);
	EXPECT_EQ(rx.base, BIG + 3);
	EXPECT_EQ(rx.arrived, BIG + 3);
}

TEST(carrier__rx_switch_without_grant)
{
	struct rstream_rx rx = receiver(10);

	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, BIG, 0),
		       RSTREAM_R_BAD_SWITCH);
	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, BIG, 1),
		       RSTREAM_R_BAD_SWITCH);
}

TEST(carrier__rx_switch_wrong_epoch)
{
	struct rstream_rx rx = receiver(10);

	rx.epoch = 7;
	rstream_rx_grant(&rx);
	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, BIG, 7),
		       RSTREAM_R_BAD_SWITCH);
	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, BIG, 9),
		       RSTREAM_R_BAD_SWITCH);
	EXPECT_FINE(rstream_rx_switch(&rx, BIG, 8));
}

TEST(carrier__rx_switch_wrong_offset)
{
	struct rstream_rx rx = receiver(10);

	rstream_rx_grant(&rx);
	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, BIG - 1, 1),
		       RSTREAM_R_BAD_OFFSET);
	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, BIG + 1, 1),
		       RSTREAM_R_BAD_OFFSET);
	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, (u32)BIG, 1),
		       RSTREAM_R_BAD_OFFSET);
	EXPECT_FINE(rstream_rx_switch(&rx, BIG, 1));
}

TEST(carrier__rx_switch_twice)
{
	struct rstream_rx rx = on_ring();

	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, BIG, 1),
		       RSTREAM_R_BAD_SWITCH);
	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, BIG, 2),
		       RSTREAM_R_BAD_SWITCH);
}

TEST(carrier__rx_switch_after_fin)
{
	struct rstream_rx rx = receiver(10);

	rstream_rx_grant(&rx);
	EXPECT_FINE(rstream_rx_fin(&rx, BIG));
	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, BIG, 1),
		       RSTREAM_R_BAD_SWITCH);
}

TEST(carrier__rx_landed)
{
	struct rstream_rx rx = on_ring();

	EXPECT_FINE(rstream_rx_landed(&rx, 0));
	EXPECT_EQ(rx.arrived, BIG);
	EXPECT_FINE(rstream_rx_landed(&rx, 5));
	EXPECT_EQ(rx.arrived, BIG + 5);
	EXPECT_FINE(rstream_rx_landed(&rx, 5));
	EXPECT_FINE(rstream_rx_landed(&rx, 0x200000000));
	EXPECT_EQ(rx.arrived, BIG + 0x200000000);
}

TEST(carrier__rx_landed_decreases)
{
	struct rstream_rx rx = on_ring();

	EXPECT_FINE(rstream_rx_landed(&rx, 5));
	EXPECT_REFUSED(&rx, rstream_rx_landed(&rx, 4), RSTREAM_R_BAD_OFFSET);
}

TEST(carrier__rx_landed_before_switch)
{
	struct rstream_rx rx = receiver(10);

	EXPECT_REFUSED(&rx, rstream_rx_landed(&rx, 5), RSTREAM_R_NONE);
	rstream_rx_grant(&rx);
	EXPECT_REFUSED(&rx, rstream_rx_landed(&rx, 5), RSTREAM_R_NONE);
	EXPECT_FINE(rstream_rx_data(&rx, 2));
	EXPECT_FINE(rstream_rx_switch(&rx, BIG + 2, 1));
	EXPECT_EQ(rx.arrived, BIG + 2);
	EXPECT_FINE(rstream_rx_landed(&rx, 5));
	EXPECT_EQ(rx.arrived, BIG + 7);
}

TEST(carrier__rx_fin_on_tcp)
{
	struct rstream_rx rx = receiver(10);

	EXPECT_FINE(rstream_rx_data(&rx, 3));
	EXPECT_REFUSED(&rx, rstream_rx_fin(&rx, BIG + 2), RSTREAM_R_BAD_OFFSET);
	EXPECT_REFUSED(&rx, rstream_rx_fin(&rx, BIG + 4), RSTREAM_R_BAD_OFFSET);
	EXPECT_FINE(rstream_rx_fin(&rx, BIG + 3));
	EXPECT(rx.fin);
	EXPECT_EQ(rx.fin_at, BIG + 3);
	EXPECT(!rstream_rx_eof(&rx));
	rx.consumed = BIG + 3;
	EXPECT(rstream_rx_eof(&rx));
}

TEST(carrier__rx_fin_while_granted)
{
	struct rstream_rx rx = receiver(10);

	rstream_rx_grant(&rx);
	EXPECT_REFUSED(&rx, rstream_rx_fin(&rx, BIG + 1), RSTREAM_R_BAD_OFFSET);
	EXPECT_FINE(rstream_rx_fin(&rx, BIG));
	EXPECT(rstream_rx_eof(&rx));
}

TEST(carrier__rx_fin_on_ring_before_its_bytes)
{
	struct rstream_rx rx = on_ring();

	EXPECT_FINE(rstream_rx_landed(&rx, 5));
	EXPECT_REFUSED(&rx, rstream_rx_fin(&rx, BIG + 4), RSTREAM_R_BAD_OFFSET);
	EXPECT_FINE(rstream_rx_fin(&rx, BIG + 8));
	EXPECT_EQ(rx.fin_at, BIG + 8);
	rx.consumed = BIG + 5;
	EXPECT(!rstream_rx_eof(&rx));
	EXPECT_FINE(rstream_rx_landed(&rx, 7));
	EXPECT_REFUSED(&rx, rstream_rx_landed(&rx, 9), RSTREAM_R_BAD_OFFSET);
	EXPECT_FINE(rstream_rx_landed(&rx, 8));
	rx.consumed = BIG + 8;
	EXPECT(rstream_rx_eof(&rx));
}

TEST(carrier__rx_fin_on_ring_after_its_bytes)
{
	struct rstream_rx rx = on_ring();

	EXPECT_FINE(rstream_rx_landed(&rx, 5));
	EXPECT_FINE(rstream_rx_fin(&rx, BIG + 5));
	EXPECT_REFUSED(&rx, rstream_rx_landed(&rx, 6), RSTREAM_R_BAD_OFFSET);
}

static const struct rstream_rx *reader;
static u64 published;		/* fin_at when fin was published */

static void note_fin(const void *p)
{
	if (p == &reader->fin && !reader->fin)
		published = reader->fin_at;
}

/* poll() reads fin first, on another CPU; the order of the stores has no other effect here. */
TEST(carrier__rx_fin_is_published_with_its_offset)
{
	struct rstream_rx rx = receiver(10);

	reader = &rx;
	host_published = note_fin;
	EXPECT_FINE(rstream_rx_fin(&rx, BIG));
	host_published = NULL;
	EXPECT_EQ(published, BIG);
}

TEST(carrier__rx_fin_twice)
{
	struct rstream_rx rx = receiver(10);

	EXPECT_FINE(rstream_rx_fin(&rx, BIG));
	EXPECT_REFUSED(&rx, rstream_rx_fin(&rx, BIG), RSTREAM_R_BAD_OFFSET);
	rx = on_ring();
	EXPECT_FINE(rstream_rx_fin(&rx, BIG + 1));
	EXPECT_REFUSED(&rx, rstream_rx_fin(&rx, BIG + 2), RSTREAM_R_BAD_OFFSET);
}

TEST(carrier__rx_eof_needs_fin)
{
	struct rstream_rx rx;

	memset(&rx, 0, sizeof(rx));
	EXPECT(!rstream_rx_eof(&rx));
	EXPECT_FINE(rstream_rx_fin(&rx, 0));
	EXPECT(rstream_rx_eof(&rx));
}

TEST(carrier__tx_ack)
{
	struct rstream_tx tx = sender(10);

	EXPECT_FINE(rstream_tx_ack(&tx, BIG - 4, BIG + 10));
	EXPECT_FINE(rstream_tx_ack(&tx, BIG, BIG + 14));
	EXPECT_EQ(tx.acked, BIG);
	EXPECT_EQ(tx.limit, BIG + 14);
	EXPECT_EQ(rstream_tx_window(&tx), 14);
}

TEST(carrier__tx_ack_beyond_sent)
{
	struct rstream_tx tx = sender(10);

	EXPECT_REFUSED(&tx, rstream_tx_ack(&tx, BIG + 1, BIG + 10),
		       RSTREAM_R_BAD_CREDIT);
	EXPECT_REFUSED(&tx, rstream_tx_ack(&tx, ~0ULL, ~0ULL),
		       RSTREAM_R_BAD_CREDIT);
}

TEST(carrier__tx_ack_overtaken_by_credits)
{
	struct rstream_tx tx = sender(10);

	EXPECT_FINE(rstream_tx_ack(&tx, BIG - 5, BIG + 11));
	EXPECT_EQ(tx.acked, BIG - 4);
	EXPECT_EQ(tx.limit, BIG + 11);
}

TEST(carrier__tx_ack_shrinks_the_window)
{
	struct rstream_tx tx = sender(10);

	EXPECT_REFUSED(&tx, rstream_tx_ack(&tx, BIG, BIG + 9),
		       RSTREAM_R_BAD_WINDOW);
}

TEST(carrier__tx_grant)
{
	struct rstream_tx tx = sender(10);

	EXPECT_REFUSED(&tx, rstream_tx_grant(&tx, 0), RSTREAM_R_BAD_GRANT);
	EXPECT_REFUSED(&tx, rstream_tx_grant(&tx, 2), RSTREAM_R_BAD_GRANT);
	EXPECT_FINE(rstream_tx_grant(&tx, 1));
	EXPECT_EQ(tx.state, RSTREAM_GRANTED);
	EXPECT_EQ(tx.epoch, 1);
	EXPECT_EQ(rstream_tx_window(&tx), 10);
}

TEST(carrier__tx_grant_twice)
{
	struct rstream_tx tx = sender(10);

	EXPECT_FINE(rstream_tx_grant(&tx, 1));
	EXPECT_REFUSED(&tx, rstream_tx_grant(&tx, 1), RSTREAM_R_BAD_GRANT);
	EXPECT_REFUSED(&tx, rstream_tx_grant(&tx, 2), RSTREAM_R_BAD_GRANT);
}

TEST(carrier__tx_grant_on_ring)
{
	struct rstream_tx tx = sender(10);

	EXPECT_FINE(rstream_tx_grant(&tx, 1));
	rstream_tx_switch(&tx);
	EXPECT_REFUSED(&tx, rstream_tx_grant(&tx, 2), RSTREAM_R_BAD_GRANT);
}

TEST(carrier__tx_grant_after_refusal)
{
	struct rstream_tx tx = sender(10);

	EXPECT_FINE(rstream_tx_grant(&tx, 1));
	rstream_tx_refuse(&tx);
	EXPECT_EQ(tx.state, RSTREAM_ON_TCP);
	EXPECT_EQ(rstream_tx_window(&tx), 10);
	EXPECT_REFUSED(&tx, rstream_tx_grant(&tx, 1), RSTREAM_R_BAD_GRANT);
	EXPECT_FINE(rstream_tx_grant(&tx, 2));
}

/* It crosses with the own FIN, which is not the peer's fault. */
TEST(carrier__tx_grant_after_fin)
{
	struct rstream_tx tx = sender(10);

	tx.fin = true;
	EXPECT_FINE(rstream_tx_grant(&tx, 1));
}

TEST(carrier__tx_switch)
{
	struct rstream_tx tx = sender(10);

	EXPECT_FINE(rstream_tx_grant(&tx, 1));
	tx.sent += 3;
	rstream_tx_switch(&tx);
	EXPECT_EQ(tx.state, RSTREAM_ON_RING);
	EXPECT_EQ(tx.base, BIG + 3);
	EXPECT_EQ(tx.epoch, 1);
}

TEST(carrier__tx_window)
{
	struct rstream_tx tx = sender(0);

	EXPECT_EQ(rstream_tx_window(&tx), 0);
	tx.limit++;
	EXPECT_EQ(rstream_tx_window(&tx), 1);
	tx.limit = ~0ULL;
	EXPECT_EQ(rstream_tx_window(&tx), ~0ULL - BIG);
	tx.limit = BIG - 1;	/* does not limit ring bytes */
	EXPECT_EQ(rstream_tx_window(&tx), 0);
	tx.limit = BIG + 9;
	EXPECT_FINE(rstream_tx_grant(&tx, 1));
	EXPECT_EQ(rstream_tx_window(&tx), 9);
	rstream_tx_switch(&tx);
	EXPECT_EQ(rstream_tx_window(&tx), 0);
}

TEST(carrier__tx_ack_on_ring)
{
	struct rstream_tx tx = sender(10);

	EXPECT_FINE(rstream_tx_grant(&tx, 1));
	rstream_tx_switch(&tx);
	tx.sent += 50;
	EXPECT_FINE(rstream_tx_ack(&tx, BIG + 50, BIG + 60));
	EXPECT_EQ(tx.acked, BIG + 50);
	EXPECT_EQ(rstream_tx_window(&tx), 0);
}

/* A sender on a ring since BIG that has written 20 bytes there. */
static struct rstream_tx writer(void)
{
	struct rstream_tx tx = sender(10);

	rstream_tx_grant(&tx, 1);
	rstream_tx_switch(&tx);
	tx.sent += 20;
	return tx;
}

TEST(carrier__rx_refused)
{
	struct rstream_rx rx = receiver(10);

	rstream_rx_grant(&rx);
	EXPECT_FINE(rstream_rx_data(&rx, 3));
	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, BIG, 0),
		       RSTREAM_R_BAD_OFFSET);
	EXPECT_FINE(rstream_rx_switch(&rx, BIG + 3, 0));
	EXPECT_EQ(rx.state, RSTREAM_ON_TCP);
	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, BIG + 3, 1),
		       RSTREAM_R_BAD_SWITCH);
	EXPECT_EQ(rstream_rx_grant(&rx), 2);
}

TEST(carrier__rx_back_to_tcp)
{
	struct rstream_rx rx = on_ring();

	EXPECT_FINE(rstream_rx_landed(&rx, 20));
	/* without REVOKE */
	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, BIG + 20, 0),
		       RSTREAM_R_BAD_SWITCH);
	EXPECT(rstream_rx_revoke(&rx));
	EXPECT(!rstream_rx_revoke(&rx));
	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, BIG + 19, 0),
		       RSTREAM_R_BAD_OFFSET);
	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, BIG + 21, 0),
		       RSTREAM_R_BAD_OFFSET);
	EXPECT_FINE(rstream_rx_switch(&rx, BIG + 20, 0));
	EXPECT_EQ(rx.state, RSTREAM_LEAVING);
	rstream_rx_left(&rx);
	EXPECT_EQ(rx.state, RSTREAM_ON_TCP);
	/* more than tcp's window has arrived in the ring */
	EXPECT_REFUSED(&rx, rstream_rx_data(&rx, 1), RSTREAM_R_BAD_WINDOW);
	rx.limit = BIG + 22;
	EXPECT_REFUSED(&rx, rstream_rx_data(&rx, 3), RSTREAM_R_BAD_WINDOW);
	EXPECT_FINE(rstream_rx_data(&rx, 2));
}

TEST(carrier__rx_lost_on_ring)
{
	struct rstream_rx rx = on_ring();

	EXPECT_FINE(rstream_rx_landed(&rx, 7));
	EXPECT(rstream_rx_lost(&rx, 7));
	EXPECT_EQ(rx.count, 7);
	EXPECT(!rstream_rx_lost(&rx, 9));
	EXPECT_EQ(rx.count, 7);
	EXPECT_REFUSED(&rx, rstream_rx_data(&rx, 1), RSTREAM_R_BAD_SWITCH);
	EXPECT_FINE(rstream_rx_switch(&rx, BIG + 7, 0));
	EXPECT(rx.recall == RSTREAM_KEPT);
	rstream_rx_left(&rx);
	EXPECT_FINE(rstream_rx_data(&rx, 3));
}

TEST(carrier__rx_lost_while_revoked)
{
	struct rstream_rx rx = on_ring();

	EXPECT(rstream_rx_revoke(&rx));
	EXPECT(rstream_rx_lost(&rx, 0));
	EXPECT_REFUSED(&rx, rstream_rx_lost(&rx, 0), false);
	EXPECT_REFUSED(&rx, rstream_rx_revoke(&rx), false);
	EXPECT_REFUSED(&rx, rstream_rx_landed(&rx, 7), RSTREAM_R_NONE);
	/* it was sent before the sender knew of the loss */
	EXPECT_FINE(rstream_rx_stopped(&rx, 1, 20));
	EXPECT_REFUSED(&rx, rstream_rx_stopped(&rx, 1, 20), RSTREAM_R_BAD_SWITCH);
}

TEST(carrier__rx_fin_on_lost_ring)
{
	struct rstream_rx rx = on_ring();

	EXPECT_FINE(rstream_rx_landed(&rx, 7));
	EXPECT(rstream_rx_lost(&rx, 7));
	EXPECT_REFUSED(&rx, rstream_rx_fin(&rx, BIG + 6), RSTREAM_R_BAD_OFFSET);
	EXPECT_FINE(rstream_rx_fin(&rx, BIG + 20));
}

/* The sender is on tcp, but unread bytes are in the ring: those of tcp have to wait. */
TEST(carrier__rx_leaving)
{
	struct rstream_rx rx = on_ring();

	EXPECT_FINE(rstream_rx_landed(&rx, 7));
	EXPECT(rstream_rx_lost(&rx, 7));
	EXPECT_FINE(rstream_rx_switch(&rx, BIG + 7, 0));
	EXPECT_EQ(rx.state, RSTREAM_LEAVING);
	EXPECT_REFUSED(&rx, rstream_rx_data(&rx, 1), RSTREAM_R_BAD_SWITCH);
	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, BIG + 7, 0), RSTREAM_R_BAD_SWITCH);
	EXPECT_REFUSED(&rx, rstream_rx_switch(&rx, BIG + 7, 1), RSTREAM_R_BAD_SWITCH);
	EXPECT_REFUSED(&rx, rstream_rx_stopped(&rx, 1, 20), RSTREAM_R_BAD_SWITCH);
	EXPECT_REFUSED(&rx, rstream_rx_fin(&rx, BIG + 8), RSTREAM_R_BAD_OFFSET);
	EXPECT_REFUSED(&rx, rstream_rx_landed(&rx, 8), RSTREAM_R_NONE);
	EXPECT_REFUSED(&rx, rstream_rx_lost(&rx, 7), false);
	EXPECT_REFUSED(&rx, rstream_rx_revoke(&rx), false);
	EXPECT_REFUSED(&rx, rstream_rx_grant(&rx), 0);
	EXPECT_FINE(rstream_rx_fin(&rx, BIG + 7));
}

TEST(carrier__rx_over)
{
	struct rstream_rx rx = on_ring();

	rstream_rx_over(&rx);
	EXPECT_EQ(rx.state, RSTREAM_ON_TCP);
	rx = on_ring();
	EXPECT(rstream_rx_revoke(&rx));
	rstream_rx_over(&rx);
	EXPECT_EQ(rx.state, RSTREAM_ON_TCP);
	EXPECT_EQ(rx.recall, RSTREAM_KEPT);
	rx = on_ring();
	EXPECT(rstream_rx_lost(&rx, 7));
	rstream_rx_over(&rx);
	EXPECT_EQ(rx.state, RSTREAM_ON_TCP);
	rx = receiver(10);
	EXPECT(rstream_rx_grant(&rx));
	rstream_rx_over(&rx);
	EXPECT_EQ(rx.state, RSTREAM_ON_TCP);
}

TEST(carrier__illegal_changes)
{
	struct rstream_rx rx = receiver(10);
	struct rstream_tx tx = sender(10);

	EXPECT_REFUSED(&rx, (rstream_rx_left(&rx), 0), 0);
	rx = on_ring();
	EXPECT_REFUSED(&rx, (rstream_rx_left(&rx), 0), 0);
	EXPECT_REFUSED(&tx, (rstream_tx_refuse(&tx), 0), 0);
	tx = writer();
	EXPECT_REFUSED(&tx, (rstream_tx_refuse(&tx), 0), 0);
	EXPECT_EQ(host_warnings, 4);
	host_warnings = 0;
}

TEST(carrier__rx_lost_before_switch)
{
	struct rstream_rx rx = receiver(30);

	rstream_rx_grant(&rx);
	EXPECT_REFUSED(&rx, rstream_rx_lost(&rx, 7), false);
	EXPECT_FINE(rstream_rx_data(&rx, 3));
	EXPECT_FINE(rstream_rx_switch(&rx, BIG + 3, 1));
	EXPECT_FINE(rstream_rx_landed(&rx, 7));
	EXPECT(rstream_rx_lost(&rx, 7));
	EXPECT_FINE(rstream_rx_switch(&rx, BIG + 10, 0));
	EXPECT_EQ(rx.arrived, BIG + 10);
}

TEST(carrier__rx_lost_without_switch)
{
	struct rstream_rx rx = receiver(10);

	rstream_rx_grant(&rx);
	EXPECT_REFUSED(&rx, rstream_rx_lost(&rx, 7), false);
	EXPECT_FINE(rstream_rx_switch(&rx, BIG, 0));
	EXPECT_FINE(rstream_rx_data(&rx, 3));
}

TEST(carrier__rx_lost_on_tcp)
{
	struct rstream_rx rx = receiver(10);

	EXPECT_REFUSED(&rx, rstream_rx_lost(&rx, 0), false);
}

TEST(carrier__rx_lost_data_after_fin)
{
	struct rstream_rx rx = on_ring();

	rx.limit = BIG + 100;
	EXPECT_FINE(rstream_rx_landed(&rx, 7));
	EXPECT_FINE(rstream_rx_fin(&rx, BIG + 20));
	EXPECT(rstream_rx_lost(&rx, 7));
	EXPECT_FINE(rstream_rx_switch(&rx, BIG + 7, 0));
	rstream_rx_left(&rx);
	EXPECT_REFUSED(&rx, rstream_rx_data(&rx, 14), RSTREAM_R_BAD_OFFSET);
	EXPECT_FINE(rstream_rx_data(&rx, 13));
	EXPECT_REFUSED(&rx, rstream_rx_data(&rx, 1), RSTREAM_R_BAD_OFFSET);
	rx.consumed = rx.arrived;
	EXPECT(rstream_rx_eof(&rx));
}

TEST(carrier__tx_lost_then_resumed)
{
	struct rstream_tx tx = writer();

	rstream_tx_credited(&tx, 5);
	EXPECT(rstream_tx_lost(&tx));
	EXPECT(!rstream_tx_lost(&tx));
	EXPECT_EQ(rstream_tx_window(&tx), 0);
	EXPECT_REFUSED(&tx, rstream_tx_resume(&tx, 1, 4), RSTREAM_R_BAD_RESUME);
	EXPECT_REFUSED(&tx, rstream_tx_resume(&tx, 1, 21), RSTREAM_R_BAD_RESUME);
	EXPECT_REFUSED(&tx, rstream_tx_resume(&tx, 1, ~0ULL),
		       RSTREAM_R_BAD_RESUME);
	EXPECT_REFUSED(&tx, rstream_tx_resume(&tx, 0, 5), RSTREAM_R_BAD_RESUME);
	EXPECT_REFUSED(&tx, rstream_tx_resume(&tx, 2, 5), RSTREAM_R_BAD_RESUME);
	EXPECT_FINE(rstream_tx_resume(&tx, 1, 12));
	EXPECT_REFUSED(&tx, rstream_tx_resume(&tx, 1, 12), RSTREAM_R_BAD_RESUME);
	EXPECT_EQ(rstream_tx_rewind(&tx), 8);
	EXPECT_EQ(tx.sent, BIG + 12);
	EXPECT_EQ(tx.state, RSTREAM_ON_TCP);
	EXPECT_REFUSED(&tx, rstream_tx_resume(&tx, 1, 12), RSTREAM_R_BAD_RESUME);
	EXPECT_FINE(rstream_tx_grant(&tx, 2));
}

TEST(carrier__tx_resumed_before_lost)
{
	struct rstream_tx tx = writer();

	EXPECT_FINE(rstream_tx_resume(&tx, 1, 20));
	EXPECT(!rstream_tx_lost(&tx));
	EXPECT_EQ(tx.state, RSTREAM_LOST);
	EXPECT_EQ(rstream_tx_rewind(&tx), 0);
}

TEST(carrier__tx_resume_of_a_grant)
{
	struct rstream_tx tx = sender(10);

	rstream_tx_grant(&tx, 1);
	EXPECT_REFUSED(&tx, rstream_tx_resume(&tx, 1, 1), RSTREAM_R_BAD_RESUME);
	EXPECT_FINE(rstream_tx_resume(&tx, 1, 0));
	EXPECT(!rstream_tx_lost(&tx));
	rstream_tx_refuse(&tx);
	EXPECT_REFUSED(&tx, rstream_tx_resume(&tx, 1, 0), RSTREAM_R_BAD_RESUME);
	EXPECT_FINE(rstream_tx_grant(&tx, 2));
	rstream_tx_refuse(&tx);
	EXPECT_REFUSED(&tx, rstream_tx_resume(&tx, 2, 1), RSTREAM_R_BAD_RESUME);
	EXPECT_FINE(rstream_tx_resume(&tx, 2, 0));
	EXPECT_REFUSED(&tx, rstream_tx_resume(&tx, 2, 0), RSTREAM_R_BAD_RESUME);
}

TEST(carrier__tx_resume_without_a_grant)
{
	struct rstream_tx tx = sender(10);

	EXPECT_REFUSED(&tx, rstream_tx_resume(&tx, 0, 0), RSTREAM_R_BAD_RESUME);
	EXPECT_REFUSED(&tx, rstream_tx_resume(&tx, 1, 0), RSTREAM_R_BAD_RESUME);
}

TEST(carrier__rx_revoke_needs_a_ring)
{
	struct rstream_rx rx = receiver(10);

	EXPECT_REFUSED(&rx, rstream_rx_revoke(&rx), false);
	rstream_rx_grant(&rx);
	EXPECT(rstream_rx_revoke(&rx));
	EXPECT_FINE(rstream_rx_switch(&rx, BIG, 0));
	EXPECT(rx.recall == RSTREAM_KEPT);
	rstream_rx_grant(&rx);
	EXPECT_FINE(rstream_rx_switch(&rx, BIG, 2));
	EXPECT(rstream_rx_lost(&rx, 0));
	EXPECT_REFUSED(&rx, rstream_rx_revoke(&rx), false);
}

TEST(carrier__rx_stopped_needs_revoke)
{
	struct rstream_rx rx = on_ring();

	EXPECT_REFUSED(&rx, rstream_rx_stopped(&rx, 1, 20), RSTREAM_R_BAD_SWITCH);
	EXPECT(rstream_rx_revoke(&rx));
	EXPECT_REFUSED(&rx, rstream_rx_stopped(&rx, 2, 20), RSTREAM_R_BAD_SWITCH);
	EXPECT_FINE(rstream_rx_stopped(&rx, 1, 20));
	EXPECT_REFUSED(&rx, rstream_rx_stopped(&rx, 1, 20), RSTREAM_R_BAD_SWITCH);
	/* earlier writes may still arrive */
	EXPECT_FINE(rstream_rx_landed(&rx, 20));
	EXPECT_FINE(rstream_rx_switch(&rx, BIG + 20, 0));
	EXPECT(rx.recall == RSTREAM_KEPT);
	rstream_rx_left(&rx);
	rstream_rx_grant(&rx);
	EXPECT(rstream_rx_revoke(&rx));
	/* there was no SWITCH to that ring */
	EXPECT_REFUSED(&rx, rstream_rx_stopped(&rx, 2, 20), RSTREAM_R_BAD_SWITCH);
}

TEST(carrier__epoch_of_an_earlier_grant)
{
	struct rstream_rx rx = receiver(10);
	struct rstream_tx tx = sender(10);

	rx.epoch = 7;
	EXPECT_EQ(rstream_rx_grant(&rx), 8);
	EXPECT_FINE(rstream_rx_switch(&rx, BIG, 8));
	EXPECT(rstream_rx_revoke(&rx));
	EXPECT_REFUSED(&rx, rstream_rx_stopped(&rx, 7, 0), RSTREAM_R_BAD_SWITCH);
	tx.epoch = 7;
	EXPECT_FINE(rstream_tx_grant(&tx, 8));
	rstream_tx_switch(&tx);
	EXPECT_REFUSED(&tx, rstream_tx_revoke(&tx, 7), RSTREAM_R_BAD_SWITCH);
	EXPECT_REFUSED(&tx, rstream_tx_resume(&tx, 7, 0), RSTREAM_R_BAD_RESUME);
}

TEST(carrier__tx_revoked_without_a_grant)
{
	struct rstream_tx tx = sender(10);

	EXPECT_REFUSED(&tx, rstream_tx_revoke(&tx, 0), RSTREAM_R_BAD_SWITCH);
	EXPECT_REFUSED(&tx, rstream_tx_revoke(&tx, 1), RSTREAM_R_BAD_SWITCH);
}

TEST(carrier__tx_leaves_when_all_is_credited)
{
	struct rstream_tx tx = writer();

	EXPECT_REFUSED(&tx, rstream_tx_left(&tx, 20), false);
	EXPECT_FINE(rstream_tx_revoke(&tx, 1));
	EXPECT_REFUSED(&tx, rstream_tx_left(&tx, 21), false);
	/* from now on, RESUME decides */
	EXPECT(rstream_tx_lost(&tx));
	EXPECT_REFUSED(&tx, rstream_tx_left(&tx, 20), false);
}

TEST(carrier__rx_written_after_stopped)
{
	struct rstream_rx rx = on_ring();

	EXPECT(rstream_rx_revoke(&rx));
	/* a sender that has not received it may continue within its credit */
	EXPECT_FINE(rstream_rx_landed(&rx, 19));
	EXPECT_FINE(rstream_rx_stopped(&rx, 1, 20));
	EXPECT_FINE(rstream_rx_landed(&rx, 20));
	EXPECT_REFUSED(&rx, rstream_rx_landed(&rx, 21), RSTREAM_R_RING_OVERRUN);
}

TEST(carrier__tx_revoked)
{
	struct rstream_tx tx = writer();

	EXPECT_REFUSED(&tx, rstream_tx_revoke(&tx, 0), RSTREAM_R_BAD_SWITCH);
	EXPECT_REFUSED(&tx, rstream_tx_revoke(&tx, 2), RSTREAM_R_BAD_SWITCH);
	EXPECT_FINE(rstream_tx_revoke(&tx, 1));
	EXPECT_EQ(tx.state, RSTREAM_LEAVING);
	EXPECT_EQ(rstream_tx_window(&tx), 0);
	EXPECT_REFUSED(&tx, rstream_tx_revoke(&tx, 1), RSTREAM_R_BAD_SWITCH);
	EXPECT_REFUSED(&tx, rstream_tx_left(&tx, 19), false);
	EXPECT(rstream_tx_left(&tx, 20));
	EXPECT_EQ(tx.state, RSTREAM_ON_TCP);
	/* it crossed the own SWITCH */
	EXPECT_FINE(rstream_tx_revoke(&tx, 1));
	EXPECT_EQ(tx.state, RSTREAM_ON_TCP);
}

TEST(carrier__tx_lost_while_revoked)
{
	struct rstream_tx tx = writer();

	rstream_tx_revoke(&tx, 1);
	EXPECT(rstream_tx_lost(&tx));
	EXPECT_FINE(rstream_tx_resume(&tx, 1, 3));
	EXPECT_EQ(rstream_tx_rewind(&tx), 17);
}

TEST(carrier__tx_resumed_while_revoked)
{
	struct rstream_tx tx = writer();

	rstream_tx_revoke(&tx, 1);
	EXPECT_FINE(rstream_tx_resume(&tx, 1, 20));
	EXPECT_REFUSED(&tx, rstream_tx_left(&tx, 20), false);
	EXPECT(!rstream_tx_lost(&tx));
	EXPECT_EQ(rstream_tx_rewind(&tx), 0);
	EXPECT_EQ(tx.resume, RSTREAM_RESUME_OVER);
}

/* A peer that resumes before it can know of our SWITCH cannot do so again. */
TEST(carrier__tx_resumed_before_switch)
{
	struct rstream_tx tx = sender(10);

	EXPECT_FINE(rstream_tx_grant(&tx, 1));
	EXPECT_FINE(rstream_tx_resume(&tx, 1, 0));
	rstream_tx_switch(&tx);
	EXPECT_FINE(rstream_tx_revoke(&tx, 1));
	EXPECT(rstream_tx_left(&tx, 0));
	EXPECT_FINE(rstream_tx_grant(&tx, 2));
	EXPECT_FINE(rstream_tx_resume(&tx, 2, 0));
	rstream_tx_switch(&tx);
	EXPECT(rstream_tx_lost(&tx));
}

TEST(carrier__tx_unanswered)
{
	struct rstream_tx tx = writer();

	EXPECT(rstream_tx_lost(&tx));
	rstream_tx_unanswered(&tx);
	EXPECT_EQ(rstream_tx_rewind(&tx), 0);
	EXPECT_EQ(tx.state, RSTREAM_ON_TCP);
	/* it was on its way all the same */
	EXPECT_FINE(rstream_tx_resume(&tx, 1, 20));
	EXPECT_REFUSED(&tx, rstream_tx_resume(&tx, 1, 20), RSTREAM_R_BAD_RESUME);
}

TEST(carrier__tx_resumed_although_unanswered)
{
	struct rstream_tx tx = writer();

	EXPECT(rstream_tx_lost(&tx));
	rstream_tx_unanswered(&tx);
	EXPECT_FINE(rstream_tx_resume(&tx, 1, 3));
	EXPECT_EQ(rstream_tx_rewind(&tx), 17);
	EXPECT_REFUSED(&tx, rstream_tx_resume(&tx, 1, 3), RSTREAM_R_BAD_RESUME);
}
