/* SPDX-License-Identifier: GPL-2.0-only */
/* HELLO and the records as bytes: written and checked.  Pure. */
#ifndef RSTREAM_RECORD_H
#define RSTREAM_RECORD_H

#include "wire.h"

/* HELLO in host order. */
struct rstream_hello {
	__u8 version_min, version_max;
	__u8 role;		/* RSW_ROLE_SYN: client, RSW_ROLE_SYNACK: server */
	__u64 nonce;
	__u32 caps;
	__u16 cm_port;
	__u16 naddr;
	__u8 addr[RSW_HELLO_ADDRS][16];	/* IPv6 or v4-mapped */
	__u8 instance[16];
	__u64 token;
	__u64 window;
	__u8 secret[RSW_SECRET_LEN];
};

/* Write a HELLO.  Return: bytes written, at most RSW_HELLO_MAX. */
unsigned int rstream_hello_write(__u8 *to, const struct rstream_hello *hello);

enum rstream_hello_state {
	RSTREAM_HELLO_NOT,	/* these bytes can't become a HELLO of @nonce */
	RSTREAM_HELLO_PART,	/* they may, more are needed */
	RSTREAM_HELLO_BAD,	/* a HELLO, but a malformed one */
	RSTREAM_HELLO_WHOLE,
};

/**
 * rstream_hello_read() - are these first bytes of a direction a HELLO?
 * @from: the bytes so far
 * @len: how many they are
 * @role: role that the sender must state
 * @nonce: nonce that it must state
 * @hello: filled when RSTREAM_HELLO_WHOLE
 * @used: bytes of the HELLO, when RSTREAM_HELLO_WHOLE
 */
enum rstream_hello_state rstream_hello_read(const __u8 *from, unsigned int len,
					    __u8 role, __u64 nonce,
					    struct rstream_hello *hello,
					    unsigned int *used);

/* A record in host order; which fields count is told by type. */
struct rstream_record {
	__u8 type;
	__u32 len;		/* payload */
	union {
		struct { __u64 consumed, limit; } ack;
		struct {
			__u64 addr, proof;
			__u32 epoch, link, ring, rkey, size;
		} grant;
		struct {
			__u64 offset, cell_addr, proof;
			__u32 epoch, ring, cell_rkey;
		} sw;
		__u32 epoch;
		struct { __u64 count; __u32 epoch; } resume;
		__u64 offset;
		__u64 span;
	};
};

#define RSTREAM_RECORD_MAX (sizeof(struct rsw_header) + 40)

/* Write header and, for all but DATA, the payload.  Return: bytes written. */
unsigned int rstream_record_write(__u8 *to, const struct rstream_record *rec);

/**
 * rstream_record_header() - check a header
 * @from: sizeof(struct rsw_header) bytes
 * @rec: type and len are filled
 *
 * Return: payload bytes that rstream_record_payload() needs (0 for DATA and
 * for what has to be passed over), -1 if the record is malformed or its type
 * must be understood and is not.
 */
int rstream_record_header(const __u8 *from, struct rstream_record *rec);

/* Is the payload of this record passed over (a type of a later version)? */
bool rstream_record_unknown(const struct rstream_record *rec);

/* Fill the rest of @rec from its payload. Return: false if malformed. */
bool rstream_record_payload(const __u8 *from, struct rstream_record *rec);

#endif
