// SPDX-License-Identifier: GPL-2.0-only
/*
 * The numbers that two hosts must agree on, as protocol.rst and links.rst write
 * them down.  Here they are written once more: the other tests use the names.
 */
#include "cm_data.h"
#include "imm.h"
#include "record.h"
#include "tap.h"

/* Field @name of @type is at @at, and has @n bytes. */
#define EXPECT_FIELD(type, name, at, n) do {				\
	EXPECT_EQ(offsetof(struct type, name), at);			\
	EXPECT_EQ(sizeof(((struct type *)NULL)->name), n);		\
} while (0)

TEST(wire__option)
{
	EXPECT_EQ(RSW_OPT_KIND, 254);
	EXPECT_EQ(RSW_OPT_LEN, 12);
	EXPECT_EQ(RSW_OPT_EXID, 0x5253);
	EXPECT_EQ(RSW_VERSION, 2);
	EXPECT_EQ(RSW_NONCE_MASK, 0xffffffffffffff);
	EXPECT_EQ(RSW_ROLE_SYN, 1);
	EXPECT_EQ(RSW_ROLE_SYNACK, 2);
	EXPECT_EQ(RSW_ROLE_CONFIRM, 3);
	EXPECT_EQ(RSW_OPT_PRELUDE, 8);
	EXPECT_FIELD(rsw_option, kind, 0, 1);
	EXPECT_FIELD(rsw_option, len, 1, 1);
	EXPECT_FIELD(rsw_option, exid, 2, 2);
	EXPECT_FIELD(rsw_option, vrn, 4, 4);
	EXPECT_FIELD(rsw_option, nonce, 8, 4);
}

TEST(wire__prelude)
{
	EXPECT_EQ(RSW_PRELUDE, 16384);
	EXPECT_EQ(RSW_FIRST_WINDOW, 65536);
}

TEST(wire__hello)
{
	static const u8 magic[] = {
		0xd5, 0x52, 0x53, 0x54, 0x52, 0x4d, 0x0d, 0x0a
	};

	EXPECT_EQ(RSW_MAGIC_LEN, sizeof(magic));
	EXPECT(!memcmp(RSW_MAGIC, magic, sizeof(magic)));
	EXPECT_EQ(RSW_HELLO_LEN, 80);
	EXPECT_EQ(RSW_HELLO_ADDRS, 4);
	EXPECT_EQ(RSW_SECRET_LEN, 16);
	EXPECT_EQ(RSW_HELLO_MAX, 80 + 4 * 16);
	EXPECT_EQ(RSW_CAP_IB, 1 << 0);
	EXPECT_EQ(RSW_CAP_URG, 1 << 1);
	EXPECT_EQ(RSW_CAP_DRAINED, 1 << 2);
	EXPECT_EQ(RSW_CAP_PLAIN, 1 << 3);
	EXPECT_EQ(RSW_CAP_IWARP, 1 << 4);
	EXPECT_FIELD(rsw_hello, magic, 0, 8);
	EXPECT_FIELD(rsw_hello, len, 8, 2);
	EXPECT_FIELD(rsw_hello, version_min, 10, 1);
	EXPECT_FIELD(rsw_hello, version_max, 11, 1);
	EXPECT_FIELD(rsw_hello, role_nonce, 12, 4);
	EXPECT_FIELD(rsw_hello, nonce, 16, 4);
	EXPECT_FIELD(rsw_hello, caps, 20, 4);
	EXPECT_FIELD(rsw_hello, cm_port, 24, 2);
	EXPECT_FIELD(rsw_hello, naddr, 26, 2);
	EXPECT_FIELD(rsw_hello, reserved, 28, 4);
	EXPECT_FIELD(rsw_hello, instance, 32, 16);
	EXPECT_FIELD(rsw_hello, token, 48, 8);
	EXPECT_FIELD(rsw_hello, window, 56, 8);
	EXPECT_FIELD(rsw_hello, secret, 64, 16);
}

TEST(wire__types)
{
	EXPECT_EQ(RSW_DATA, 1);
	EXPECT_EQ(RSW_ACK, 2);
	EXPECT_EQ(RSW_GRANT, 3);
	EXPECT_EQ(RSW_SWITCH, 4);
	EXPECT_EQ(RSW_REVOKE, 5);
	EXPECT_EQ(RSW_BROKEN, 6);
	EXPECT_EQ(RSW_RESUME, 7);
	EXPECT_EQ(RSW_FIN, 8);
	EXPECT_EQ(RSW_URG, 9);
	EXPECT_EQ(RSW_LINK, 10);
	EXPECT_EQ(RSW_STOPPED, 11);
	EXPECT_EQ(RSW_PLAIN, 12);
	EXPECT_EQ(RSW_SPAN_MAX, 1ULL << 40);
	EXPECT_EQ(RSW_TYPE_MUST, 128);
	EXPECT_EQ(RSW_DATA_MAX, 262144);
	EXPECT_EQ(RSW_CTL_MAX, 256);
}

TEST(wire__layouts)
{
	EXPECT_FIELD(rsw_header, type, 0, 1);
	EXPECT_FIELD(rsw_header, flags, 1, 1);
	EXPECT_FIELD(rsw_header, reserved, 2, 2);
	EXPECT_FIELD(rsw_header, len, 4, 4);
	EXPECT_FIELD(rsw_ack, consumed, 0, 8);
	EXPECT_FIELD(rsw_ack, limit, 8, 8);
	EXPECT_FIELD(rsw_grant, epoch, 0, 4);
	EXPECT_FIELD(rsw_grant, link, 4, 4);
	EXPECT_FIELD(rsw_grant, ring, 8, 4);
	EXPECT_FIELD(rsw_grant, rkey, 12, 4);
	EXPECT_FIELD(rsw_grant, addr, 16, 8);
	EXPECT_FIELD(rsw_grant, size, 24, 4);
	EXPECT_FIELD(rsw_grant, reserved, 28, 4);
	EXPECT_FIELD(rsw_grant, proof, 32, 8);
	EXPECT_FIELD(rsw_switch, offset, 0, 8);
	EXPECT_FIELD(rsw_switch, epoch, 8, 4);
	EXPECT_FIELD(rsw_switch, ring, 12, 4);
	EXPECT_FIELD(rsw_switch, cell_addr, 16, 8);
	EXPECT_FIELD(rsw_switch, cell_rkey, 24, 4);
	EXPECT_FIELD(rsw_switch, reserved, 28, 4);
	EXPECT_FIELD(rsw_switch, proof, 32, 8);
	EXPECT_FIELD(rsw_epoch, epoch, 0, 4);
	EXPECT_FIELD(rsw_epoch, reserved, 4, 4);
	EXPECT_FIELD(rsw_resume, epoch, 0, 4);
	EXPECT_FIELD(rsw_resume, reserved, 4, 4);
	EXPECT_FIELD(rsw_resume, count, 8, 8);
	EXPECT_FIELD(rsw_offset, offset, 0, 8);
	EXPECT_EQ(RSTREAM_RECORD_MAX, 8 + 40);
}

/* "The immediate value" of links.rst: type, number, id from the top */
TEST(wire__immediate_value)
{
	__be32 imm = rstream_imm(RSTREAM_IMM_READY, 0x12, 0x34567);

	EXPECT(!memcmp(&imm, "\x71\x23\x45\x67", 4));
	EXPECT_EQ(rstream_imm_type(imm), 7);
	EXPECT_EQ(rstream_imm_number(imm), 0x12);
	EXPECT_EQ(rstream_imm_id(imm), 0x34567);
	/* an id is cut, and reaches no other field */
	imm = rstream_imm(0, 0, 0xffffffff);
	EXPECT(!memcmp(&imm, "\x00\x0f\xff\xff", 4));
	imm = rstream_imm(15, 0xff, 0);
	EXPECT(!memcmp(&imm, "\xff\xf0\x00\x00", 4));
	EXPECT_EQ(rstream_imm_type(imm), 15);
	EXPECT_EQ(rstream_imm_number(imm), 0xff);
	EXPECT_EQ(rstream_imm_id(imm), 0);
	EXPECT_EQ(RSTREAM_IMM_ID_MAX, 0xfffff);
}

TEST(wire__immediate_types)
{
	EXPECT_EQ(RSTREAM_IMM_DATA, 1);
	EXPECT_EQ(RSTREAM_IMM_DATA_WANT, 2);
	EXPECT_EQ(RSTREAM_IMM_CREDIT, 3);
	EXPECT_EQ(RSTREAM_IMM_DONE, 4);
	EXPECT_EQ(RSTREAM_IMM_FREED, 5);
	EXPECT_EQ(RSTREAM_IMM_RQ_CREDIT, 6);
	EXPECT_EQ(RSTREAM_IMM_READY, 7);
	EXPECT_EQ(RSTREAM_IMM_PROBE, 8);
	EXPECT_EQ(RSTREAM_IMM_PROBE_ACK, 9);
	EXPECT_EQ(RSTREAM_IMM_RENEW, 10);
}

TEST(wire__notice)
{
	static const u8 want[] = { 0x71, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef };
	struct rstream_notice n;
	__be32 imm = 0;
	u32 len = 0;

	EXPECT_FIELD(rstream_notice, imm, 0, 4);
	EXPECT_FIELD(rstream_notice, len, 4, 4);
	EXPECT_EQ(sizeof(n), sizeof(want));
	rstream_notice_write(&n, rstream_imm(RSTREAM_IMM_READY, 0x12, 0x34567), 0x89abcdef);
	EXPECT(!memcmp(&n, want, sizeof(want)));
	rstream_notice_read(&n, &imm, &len);
	EXPECT(!memcmp(&imm, want, 4));
	EXPECT_EQ(len, 0x89abcdef);
}

TEST(wire__cm_layouts)
{
	EXPECT_EQ(RSTREAM_CM_MAGIC, 0x5253544c);
	EXPECT_EQ(RSTREAM_CM_VERSION, 3);
	EXPECT_EQ(RSTREAM_CM_BAD_REQ, 1);
	EXPECT_EQ(RSTREAM_CM_BAD_TOKEN, 2);
	EXPECT_EQ(RSTREAM_CM_BUSY, 3);
	EXPECT_EQ(RSTREAM_CM_DRAINED, 4);
	EXPECT_FIELD(rstream_cm_hello, magic, 0, 4);
	EXPECT_FIELD(rstream_cm_hello, version, 4, 1);
	EXPECT_FIELD(rstream_cm_hello, slot, 5, 1);
	EXPECT_FIELD(rstream_cm_hello, rq_depth, 6, 2);
	EXPECT_FIELD(rstream_cm_hello, token, 8, 8);
	EXPECT_FIELD(rstream_cm_hello, own_token, 16, 8);
	EXPECT_FIELD(rstream_cm_hello, link_id, 24, 4);
	EXPECT_FIELD(rstream_cm_hello, reserved, 28, 4);
	EXPECT_FIELD(rstream_cm_hello, key, 32, 8);
	EXPECT_FIELD(rstream_cm_hello, proof, 40, 8);
	EXPECT_FIELD(rstream_cm_reject, magic, 0, 4);
	EXPECT_FIELD(rstream_cm_reject, version, 4, 1);
	EXPECT_FIELD(rstream_cm_reject, why, 5, 1);
	EXPECT_FIELD(rstream_cm_reject, reserved, 6, 2);
	EXPECT_EQ(RSTREAM_CM_SECRET_LEN, 16);
	EXPECT_EQ(RSTREAM_CM_PROOF_REQ, 1);
	EXPECT_EQ(RSTREAM_CM_PROOF_REP, 2);
	EXPECT_EQ(RSTREAM_CM_KEY_ACTIVE, 3);
	EXPECT_EQ(RSTREAM_CM_KEY_PASSIVE, 5);
	EXPECT_FIELD(rstream_cm_transcript, passive_secret, 0, 16);
	EXPECT_FIELD(rstream_cm_transcript, req, 16, 48);
	EXPECT_FIELD(rstream_cm_transcript, rep, 64, 48);
	EXPECT_FIELD(rstream_cm_transcript, active_gid, 112, 16);
	EXPECT_FIELD(rstream_cm_transcript, passive_gid, 128, 16);
	EXPECT_FIELD(rstream_cm_transcript, active_qpn, 144, 4);
	EXPECT_FIELD(rstream_cm_transcript, passive_qpn, 148, 4);
	EXPECT_FIELD(rstream_cm_transcript, purpose, 152, 4);
	EXPECT_FIELD(rstream_cm_transcript, zero, 156, 4);
}

static const struct rstream_cm_fields cm_sample = {
	.token = 0x1122334455667788,
	.own_token = 0x99aabbccddeeff01,
	.key = 0x0123456789abcdef,
	.proof = 0xfedcba9876543210,
	.link_id = 0x0a0b0c0d,
	.rq_depth = 0x1234,
	.slot = 0x0e,
};

static const u8 cm_bytes[] = {
	'R', 'S', 'T', 'L', 3, 0x0e, 0x12, 0x34,
	0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
	0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x01,
	0x0a, 0x0b, 0x0c, 0x0d, 0, 0, 0, 0,
	0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
	0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10,
};

TEST(wire__cm_hello)
{
	struct rstream_cm_hello hello;
	struct rstream_cm_fields got;

	EXPECT_EQ(sizeof(hello), sizeof(cm_bytes));
	memset(&hello, 0xff, sizeof(hello));
	rstream_cm_hello_write(&hello, &cm_sample);
	EXPECT(!memcmp(&hello, cm_bytes, sizeof(cm_bytes)));

	memset(&got, 0xff, sizeof(got));
	memcpy(&hello, cm_bytes, sizeof(cm_bytes));
	EXPECT(rstream_cm_hello_read(&hello, sizeof(hello), &got));
	EXPECT_EQ(got.token, cm_sample.token);
	EXPECT_EQ(got.own_token, cm_sample.own_token);
	EXPECT_EQ(got.key, cm_sample.key);
	EXPECT_EQ(got.proof, cm_sample.proof);
	EXPECT_EQ(got.link_id, cm_sample.link_id);
	EXPECT_EQ(got.rq_depth, cm_sample.rq_depth);
	EXPECT_EQ(got.slot, cm_sample.slot);
}

TEST(wire__cm_hello_of_others)
{
	struct rstream_cm_hello hello;
	struct rstream_cm_fields got;
	unsigned int at, bit;

	EXPECT(!rstream_cm_hello_read(NULL, sizeof(hello), &got));
	memcpy(&hello, cm_bytes, sizeof(cm_bytes));
	EXPECT(!rstream_cm_hello_read(&hello, sizeof(hello) - 1, &got));
	EXPECT(rstream_cm_hello_read(&hello, 255, &got));	/* rdma_cm pads it */
	for (at = 0; at < 5; at++) {			/* magic, version */
		for (bit = 0; bit < 8; bit++) {
			memcpy(&hello, cm_bytes, sizeof(cm_bytes));
			((u8 *)&hello)[at] ^= 1 << bit;
			EXPECT(!rstream_cm_hello_read(&hello, sizeof(hello), &got));
		}
	}
}

/* "Proof" of links.rst: both ends hash the same bytes, whatever their byte order. */
TEST(wire__cm_transcript)
{
	static const char active[] = "active's secret.", passive[] = "passive's secret";
	static const u8 qpns[] = { 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0 };
	u8 want[160] = { 0 }, i;
	struct rstream_cm_transcript t;
	u64 key[2];

	memset(&t, 0, sizeof(t));
	rstream_cm_hello_write(&t.req, &cm_sample);
	rstream_cm_hello_write(&t.rep, &cm_sample);
	t.rep.proof = 0;
	for (i = 0; i < 16; i++) {
		t.active_gid[i] = 0x40 + i;
		t.passive_gid[i] = 0x50 + i;
	}
	rstream_cm_transcript_qpns(&t, 0x12345678, 0x9abcdef0);
	rstream_cm_transcript_for(&t, RSTREAM_CM_PROOF_REP, (const u8 *)active,
				  (const u8 *)passive, key);

	memcpy(want, passive, 16);
	memcpy(want + 16, cm_bytes, 48);
	memcpy(want + 64, cm_bytes, 40);
	for (i = 0; i < 32; i++)
		want[112 + i] = 0x40 + i;
	memcpy(want + 144, qpns, 8);
	want[155] = 2;
	EXPECT_EQ(sizeof(t), sizeof(want));
	EXPECT(!memcmp(&t, want, sizeof(want)));
	/* "two little-endian words": "active's", " secret." */
	EXPECT_EQ(key[0], 0x7327657669746361);
	EXPECT_EQ(key[1], 0x2e74657263657320);

	/* for the next hash */
	rstream_cm_transcript_for(&t, RSTREAM_CM_KEY_PASSIVE, (const u8 *)active,
				  (const u8 *)passive, key);
	want[155] = 5;
	EXPECT(!memcmp(&t, want, sizeof(want)));
}

TEST(wire__cm_reject)
{
	static const u8 want[] = { 'R', 'S', 'T', 'L', 3, 4, 0, 0 };
	struct rstream_cm_reject rej;
	unsigned int at;

	EXPECT_EQ(sizeof(rej), sizeof(want));
	memset(&rej, 0xff, sizeof(rej));
	rstream_cm_reject_write(&rej, RSTREAM_CM_DRAINED);
	EXPECT(!memcmp(&rej, want, sizeof(want)));
	EXPECT_EQ(rstream_cm_reject_read(&rej, sizeof(rej)), RSTREAM_CM_DRAINED);
	EXPECT_EQ(rstream_cm_reject_read(&rej, 255), RSTREAM_CM_DRAINED);
	EXPECT_EQ(rstream_cm_reject_read(&rej, sizeof(rej) - 1), 0);
	EXPECT_EQ(rstream_cm_reject_read(NULL, sizeof(rej)), 0);
	for (at = 0; at < 4; at++) {
		memcpy(&rej, want, sizeof(want));
		((u8 *)&rej)[at] ^= 1;
		EXPECT_EQ(rstream_cm_reject_read(&rej, sizeof(rej)), 0);
	}
	/* a later version is understood, too */
	memcpy(&rej, want, sizeof(want));
	rej.version = 4;
	EXPECT_EQ(rstream_cm_reject_read(&rej, sizeof(rej)), RSTREAM_CM_DRAINED);
}
