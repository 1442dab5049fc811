/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What two hosts send to each other over TCP: the option, HELLO, the records.
 *
 * Everything is in network byte order.  Documentation/protocol.rst explains
 * when each is sent.  This header and the two files that encode and decode what
 * it describes, option.c and record.c, are pure: they are also compiled for the
 * unit tests in user space.
 */
#ifndef RSTREAM_WIRE_H
#define RSTREAM_WIRE_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/types.h>
#include <asm/byteorder.h>
#else
#include "host.h"
#endif

/*
 * TCP option, RFC 6994: kind 254 (experiments), a 16-bit experiment id.
 *
 *   0        1        2                 4        5                        12
 *   +--------+--------+--------+--------+--------+--------+--------+- - -+
 *   |  254   |   12   |   ExID 0x5253   |ver|role|          nonce         |
 *   +--------+--------+--------+--------+--------+--------+--------+- - -+
 *
 * ver: 4 bits, the highest supported version.  role: 4 bits, enum rsw_role in the lower
 * three, RSW_OPT_PRELUDE is the fourth.
 * nonce: 56 bits.  The client's (SYN) and the server's (SYNACK) are random; those of
 * CONFIRM and of both HELLOs are computed from these two, see rstream_role_nonce().
 */
#define RSW_OPT_KIND	254
#define RSW_OPT_LEN	12
#define RSW_OPT_EXID	0x5253
#define RSW_VERSION	2
#define RSW_NONCE_MASK	((1ULL << 56) - 1)

#define RSW_OPT_PRELUDE	8	/* both directions begin without records */

enum rsw_role {
	RSW_ROLE_SYN = 1,	/* client's SYN: offers the protocol */
	RSW_ROLE_SYNACK = 2,	/* server's SYN-ACK: accepts */
	RSW_ROLE_CONFIRM = 3,	/* client's next segments: has seen the server's option */
};

struct rsw_option {
	__u8 kind;
	__u8 len;
	__be16 exid;
	__be32 vrn;		/* version, role, upper 24 bits of the nonce */
	__be32 nonce;		/* lower 32 bits of the nonce */
};

static_assert(sizeof(struct rsw_option) == RSW_OPT_LEN);

/* Maximum length of a prelude: the bytes of a direction before its HELLO. */
#define RSW_PRELUDE	16384

/* Start of a HELLO, which comes first in each direction, or after a prelude or span. */
#define RSW_MAGIC	"\xd5RSTRM\r\n"
#define RSW_MAGIC_LEN	8
#define RSW_HELLO_LEN	80
#define RSW_HELLO_ADDRS	4		/* at most */
#define RSW_SECRET_LEN	16
#define RSW_HELLO_MAX	(RSW_HELLO_LEN + 16 * RSW_HELLO_ADDRS)

/* Stream bytes that the end that sends HELLO first may send before it receives the other's. */
#define RSW_FIRST_WINDOW	65536

#define RSW_CAP_IB	0x1		/* has an InfiniBand or RoCE device */
#define RSW_CAP_URG	0x2		/* understands URG */
#define RSW_CAP_DRAINED	0x4		/* is currently drained of RDMA */
#define RSW_CAP_PLAIN	0x8		/* understands PLAIN */
#define RSW_CAP_IWARP	0x10		/* has an iWARP device */

/**
 * struct rsw_hello - fixed part of a HELLO
 * @magic:	RSW_MAGIC
 * @len:	bytes of the whole HELLO, including the addresses that follow
 * @version_min: lowest supported protocol version
 * @version_max: highest supported protocol version
 * @role_nonce:	enum rsw_role of the sender (SYN or SYNACK), upper 24 bits of the
 *		nonce for this role
 * @nonce:	lower 32 bits of the nonce
 * @caps:	RSW_CAP_*; unknown bits are ignored
 * @cm_port:	rdma_cm port (RDMA_PS_TCP) at which links are accepted
 * @naddr:	number of RDMA addresses that follow, 16 bytes each, IPv6 or v4-mapped:
 *		addresses besides that of the TCP connection
 * @reserved:	0
 * @instance:	random id of the network namespace
 * @token:	random, identifies this connection, never 0
 * @window:	stream bytes that may be sent before the first ACK record
 * @secret:	random, new for each connection, sent nowhere else
 */
struct rsw_hello {
	__u8 magic[RSW_MAGIC_LEN];
	__be16 len;
	__u8 version_min;
	__u8 version_max;
	__be32 role_nonce;
	__be32 nonce;
	__be32 caps;
	__be16 cm_port;
	__be16 naddr;
	__be32 reserved;
	__u8 instance[16];
	__be64 token;
	__be64 window;
	__u8 secret[RSW_SECRET_LEN];
};

static_assert(sizeof(struct rsw_hello) == RSW_HELLO_LEN);

/* Records: this header, then len bytes. */
struct rsw_header {
	__u8 type;		/* enum rsw_type */
	__u8 flags;		/* 0 */
	__be16 reserved;	/* 0 */
	__be32 len;
};

static_assert(sizeof(struct rsw_header) == 8);

enum rsw_type {
	RSW_DATA = 1,		/* bytes of the stream */
	RSW_ACK = 2,		/* struct rsw_ack */
	RSW_GRANT = 3,		/* struct rsw_grant */
	RSW_SWITCH = 4,		/* struct rsw_switch */
	RSW_REVOKE = 5,		/* struct rsw_epoch: return to tcp */
	RSW_BROKEN = 6,		/* struct rsw_epoch: that ring is lost */
	RSW_RESUME = 7,		/* struct rsw_resume */
	RSW_FIN = 8,		/* struct rsw_offset: the stream ends there */
	RSW_URG = 9,		/* struct rsw_offset: urgent byte just before there */
	RSW_LINK = 10,		/* no payload: request for a link */
	RSW_STOPPED = 11,	/* struct rsw_epoch: no more writes into that ring */
	RSW_PLAIN = 12,		/* struct rsw_plain: the next bytes are in no record */
};

/*
 * Later versions may add types.  An unknown type with this bit resets the connection; one
 * without is skipped.
 */
#define RSW_TYPE_MUST	0x80
#define RSW_DATA_MAX	(256 * 1024)	/* payload of a DATA record */
#define RSW_CTL_MAX	256		/* payload of any other */

/**
 * struct rsw_ack - progress of the receiver
 * @consumed:	stream offset up to which its program has read
 * @limit:	stream offset up to which the sender may send on the tcp carrier
 */
struct rsw_ack {
	__be64 consumed;
	__be64 limit;
};

static_assert(sizeof(struct rsw_ack) == 16);

/**
 * struct rsw_grant - the receiver offers a ring
 * @epoch:	one more than that of the last grant in this direction; never 0
 * @link:	link id of the receiver of this record
 * @ring:	ring id for the immediate data
 * @rkey:	remote key of the ring's memory
 * @addr:	remote address of its first byte
 * @size:	bytes, a power of two
 * @reserved:	0
 * @proof:	shows that this record comes from the other end of @link
 */
struct rsw_grant {
	__be32 epoch;
	__be32 link;
	__be32 ring;
	__be32 rkey;
	__be64 addr;
	__be32 size;
	__be32 reserved;
	__be64 proof;
};

static_assert(sizeof(struct rsw_grant) == 40);

/**
 * struct rsw_switch - the sender changes carriers
 * @offset:	first stream offset on the new carrier
 * @epoch:	of the grant that is taken up; 0: the tcp carrier
 * @ring:	sender's id of its end, for interrupting credits
 * @cell_addr:	remote address of the credit cell, to which the receiver writes how much
 *		of the ring it has consumed: 8 bytes, then their complement
 * @cell_rkey:	remote key of the cell
 * @reserved:	0
 * @proof:	shows that this record comes from the other end of the ring's link; 0 for tcp
 */
struct rsw_switch {
	__be64 offset;
	__be32 epoch;
	__be32 ring;
	__be64 cell_addr;
	__be32 cell_rkey;
	__be32 reserved;
	__be64 proof;
};

static_assert(sizeof(struct rsw_switch) == 40);

struct rsw_epoch {
	__be32 epoch;
	__be32 reserved;
};

static_assert(sizeof(struct rsw_epoch) == 8);

/**
 * struct rsw_resume - answer to BROKEN
 * @epoch:	of the lost ring
 * @reserved:	0
 * @count:	bytes of the ring that had arrived when no more could
 */
struct rsw_resume {
	__be32 epoch;
	__be32 reserved;
	__be64 count;
};

static_assert(sizeof(struct rsw_resume) == 16);

struct rsw_offset {
	__be64 offset;
};

static_assert(sizeof(struct rsw_offset) == 8);

/* Maximum length of a span, bytes. */
#define RSW_SPAN_MAX	0x10000000000ULL

/**
 * struct rsw_plain - the next bytes on TCP are stream data without records
 * @len:	number of these bytes, 1 to RSW_SPAN_MAX; then follows PLAIN or HELLO
 */
struct rsw_plain {
	__be64 len;
};

static_assert(sizeof(struct rsw_plain) == 8);

#endif
