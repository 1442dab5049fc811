/* SPDX-License-Identifier: GPL-2.0-only */
/* Encodes, decodes and checks HELLO and records.  Pure. */
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

/* Writes a HELLO.  Return: bytes written, at most RSW_HELLO_MAX. */
unsigned int rstream_record_write_hello(__u8 *to, const struct rstream_hello *hello);

enum rstream_hello_state {
	RSTREAM_HELLO_NOT,	/* these bytes do not begin a HELLO with this role and nonce */
	RSTREAM_HELLO_PART,	/* they may, but more bytes are needed */
	RSTREAM_HELLO_BAD,	/* a malformed HELLO */
	RSTREAM_HELLO_COMPLETE,
};

/**
 * rstream_record_read_hello() - are these bytes a HELLO?
 * @from: the bytes so far
 * @len: number of bytes in @from
 * @role: role that the HELLO must contain
 * @nonce: nonce that the HELLO must contain
 * @hello: filled in if RSTREAM_HELLO_COMPLETE is returned
 * @used: set to the length of the HELLO if RSTREAM_HELLO_COMPLETE is returned
 */
enum rstream_hello_state rstream_record_read_hello(const __u8 *from, unsigned int len,
						   __u8 role, __u64 nonce,
						   struct rstream_hello *hello,
						   unsigned int *used);

/* A record in host order; @type determines which member of the union is valid. */
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

/* Writes the header and, except for DATA, the payload.  Return: bytes written. */
unsigned int rstream_record_write(__u8 *to, const struct rstream_record *rec);

/**
 * rstream_record_header() - read and check a header
 * @from: sizeof(struct rsw_header) bytes
 * @rec: type and len are filled in
 *
 * Return: bytes of payload that rstream_record_payload() needs (0 for DATA and
 * for records to skip), or -1 if the record is malformed, or of an unknown type
 * that must not be skipped.
 */
int rstream_record_header(const __u8 *from, struct rstream_record *rec);

/* Is this record of an unknown type (of a later version), so that its payload must be skipped? */
bool rstream_record_unknown(const struct rstream_record *rec);

/* Fills in the rest of @rec from its payload.  Return: false if malformed. */
bool rstream_record_payload(const __u8 *from, struct rstream_record *rec);

#endif
