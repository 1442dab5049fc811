// SPDX-License-Identifier: GPL-2.0-only
/*
 * Encodes and decodes HELLO and records.  Pure: checks everything that can be checked
 * without the state of the connection; the other checks are in carrier.c.
 */
#include "record.h"

#ifdef __KERNEL__
#include <linux/string.h>
#include <linux/minmax.h>
#include <linux/log2.h>
#endif

static __be32 role_nonce(__u8 role, __u64 nonce)
{
	return cpu_to_be32((__u32)role << 24 |
			   (__u32)((nonce & RSW_NONCE_MASK) >> 32));
}

unsigned int rstream_record_write_hello(__u8 *to, const struct rstream_hello *hello)
{
	unsigned int addrs = sizeof(hello->addr[0]) * hello->naddr;
	struct rsw_hello raw = {
		.len = cpu_to_be16(sizeof(raw) + addrs),
		.naddr = cpu_to_be16(hello->naddr),
		.version_min = hello->version_min,
		.version_max = hello->version_max,
		.role_nonce = role_nonce(hello->role, hello->nonce),
		.nonce = cpu_to_be32((__u32)hello->nonce),
		.caps = cpu_to_be32(hello->caps),
		.cm_port = cpu_to_be16(hello->cm_port),
		.token = cpu_to_be64(hello->token),
		.window = cpu_to_be64(hello->window),
	};

	memcpy(raw.magic, RSW_MAGIC, RSW_MAGIC_LEN);
	memcpy(raw.instance, hello->instance, sizeof(raw.instance));
	memcpy(raw.secret, hello->secret, sizeof(raw.secret));
	memcpy(to, &raw, sizeof(raw));
	memcpy(to + sizeof(raw), hello->addr, addrs);
	return sizeof(raw) + addrs;
}

static bool hello_unpack(const __u8 *from, struct rstream_hello *hello,
			 unsigned int *used)
{
	struct rsw_hello raw;

	memcpy(&raw, from, sizeof(raw));
	*used = be16_to_cpu(raw.len);
	hello->version_min = raw.version_min;
	hello->version_max = raw.version_max;
	hello->role = be32_to_cpu(raw.role_nonce) >> 24;
	hello->nonce = (__u64)(be32_to_cpu(raw.role_nonce) & 0xffffff) << 32 |
		       be32_to_cpu(raw.nonce);
	hello->caps = be32_to_cpu(raw.caps);
	hello->cm_port = be16_to_cpu(raw.cm_port);
	hello->naddr = be16_to_cpu(raw.naddr);
	hello->token = be64_to_cpu(raw.token);
	hello->window = be64_to_cpu(raw.window);
	memcpy(hello->instance, raw.instance, sizeof(hello->instance));
	memcpy(hello->secret, raw.secret, sizeof(hello->secret));
	memset(hello->addr, 0, sizeof(hello->addr));
	return hello->naddr <= RSW_HELLO_ADDRS && hello->token &&
	       hello->version_min <= hello->version_max &&
	       hello->window < 1ULL << 62 &&
	       *used == sizeof(raw) + 16 * hello->naddr;
}

enum rstream_hello_state rstream_record_read_hello(const __u8 *from, unsigned int len,
						   __u8 role, __u64 nonce,
						   struct rstream_hello *hello,
						   unsigned int *used)
{
	static const unsigned int nonce_at =
		offsetof(struct rsw_hello, role_nonce);
	__be32 want[2] = { role_nonce(role, nonce), cpu_to_be32((__u32)nonce) };

	if (memcmp(from, RSW_MAGIC, min_t(unsigned int, len, RSW_MAGIC_LEN)))
		return RSTREAM_HELLO_NOT;
	if (len >= nonce_at + sizeof(want) &&
	    memcmp(from + nonce_at, want, sizeof(want)))
		return RSTREAM_HELLO_NOT;
	if (len < sizeof(struct rsw_hello))
		return RSTREAM_HELLO_PART;
	if (!hello_unpack(from, hello, used))
		return RSTREAM_HELLO_BAD;
	if (len < *used)
		return RSTREAM_HELLO_PART;
	memcpy(hello->addr, from + sizeof(struct rsw_hello),
	       sizeof(hello->addr[0]) * hello->naddr);
	return RSTREAM_HELLO_COMPLETE;
}

/* Return: length of the payload of a known control record, -1 for other types. */
static int payload_len(__u8 type)
{
	switch (type) {
	case RSW_ACK:
		return sizeof(struct rsw_ack);
	case RSW_GRANT:
		return sizeof(struct rsw_grant);
	case RSW_SWITCH:
		return sizeof(struct rsw_switch);
	case RSW_REVOKE:
	case RSW_BROKEN:
	case RSW_STOPPED:
		return sizeof(struct rsw_epoch);
	case RSW_RESUME:
		return sizeof(struct rsw_resume);
	case RSW_FIN:
	case RSW_URG:
		return sizeof(struct rsw_offset);
	case RSW_PLAIN:
		return sizeof(struct rsw_plain);
	case RSW_LINK:
		return 0;
	default:
		return -1;
	}
}

/* The payload of a control record: a union, so that one memcpy() is enough. */
union payload {
	struct rsw_ack ack;
	struct rsw_grant grant;
	struct rsw_switch sw;
	struct rsw_epoch epoch;
	struct rsw_resume resume;
	struct rsw_offset offset;
	struct rsw_plain plain;
};

static void payload_pack(union payload *p, const struct rstream_record *rec)
{
	memset(p, 0, sizeof(*p));
	switch (rec->type) {
	case RSW_ACK:
		p->ack.consumed = cpu_to_be64(rec->ack.consumed);
		p->ack.limit = cpu_to_be64(rec->ack.limit);
		break;
	case RSW_GRANT:
		p->grant.epoch = cpu_to_be32(rec->grant.epoch);
		p->grant.link = cpu_to_be32(rec->grant.link);
		p->grant.ring = cpu_to_be32(rec->grant.ring);
		p->grant.rkey = cpu_to_be32(rec->grant.rkey);
		p->grant.addr = cpu_to_be64(rec->grant.addr);
		p->grant.size = cpu_to_be32(rec->grant.size);
		p->grant.proof = cpu_to_be64(rec->grant.proof);
		break;
	case RSW_SWITCH:
		p->sw.offset = cpu_to_be64(rec->sw.offset);
		p->sw.epoch = cpu_to_be32(rec->sw.epoch);
		p->sw.ring = cpu_to_be32(rec->sw.ring);
		p->sw.cell_addr = cpu_to_be64(rec->sw.cell_addr);
		p->sw.cell_rkey = cpu_to_be32(rec->sw.cell_rkey);
		p->sw.proof = cpu_to_be64(rec->sw.proof);
		break;
	case RSW_REVOKE:
	case RSW_BROKEN:
	case RSW_STOPPED:
		p->epoch.epoch = cpu_to_be32(rec->epoch);
		break;
	case RSW_RESUME:
		p->resume.epoch = cpu_to_be32(rec->resume.epoch);
		p->resume.count = cpu_to_be64(rec->resume.count);
		break;
	case RSW_FIN:
	case RSW_URG:
		p->offset.offset = cpu_to_be64(rec->offset);
		break;
	case RSW_PLAIN:
		p->plain.len = cpu_to_be64(rec->span);
		break;
	}
}

unsigned int rstream_record_write(__u8 *to, const struct rstream_record *rec)
{
	int len = rec->type == RSW_DATA ? 0 : payload_len(rec->type);
	struct rsw_header head = {
		.type = rec->type,
		.len = cpu_to_be32(rec->type == RSW_DATA ? rec->len : len),
	};
	union payload p;

	payload_pack(&p, rec);
	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), &p, len);
	return sizeof(head) + len;
}

bool rstream_record_unknown(const struct rstream_record *rec)
{
	return rec->type != RSW_DATA && payload_len(rec->type) < 0;
}

int rstream_record_header(const __u8 *from, struct rstream_record *rec)
{
	struct rsw_header head;

	memcpy(&head, from, sizeof(head));
	rec->type = head.type;
	rec->len = be32_to_cpu(head.len);
	if (head.flags || head.reserved || !rec->type)
		return -1;
	if (rec->type == RSW_DATA)
		return rec->len && rec->len <= RSW_DATA_MAX ? 0 : -1;
	if (rec->len > RSW_CTL_MAX)
		return -1;
	if (rstream_record_unknown(rec))
		return rec->type & RSW_TYPE_MUST ? -1 : 0;
	return rec->len == payload_len(rec->type) ? (int)rec->len : -1;
}

bool rstream_record_payload(const __u8 *from, struct rstream_record *rec)
{
	union payload p;

	memcpy(&p, from, rec->len);
	switch (rec->type) {
	case RSW_ACK:
		rec->ack.consumed = be64_to_cpu(p.ack.consumed);
		rec->ack.limit = be64_to_cpu(p.ack.limit);
		return rec->ack.limit >= rec->ack.consumed;
	case RSW_GRANT:
		rec->grant.epoch = be32_to_cpu(p.grant.epoch);
		rec->grant.link = be32_to_cpu(p.grant.link);
		rec->grant.ring = be32_to_cpu(p.grant.ring);
		rec->grant.rkey = be32_to_cpu(p.grant.rkey);
		rec->grant.addr = be64_to_cpu(p.grant.addr);
		rec->grant.size = be32_to_cpu(p.grant.size);
		rec->grant.proof = be64_to_cpu(p.grant.proof);
		return rec->grant.epoch && rec->grant.size &&
		       !(rec->grant.size & (rec->grant.size - 1));
	case RSW_SWITCH:
		rec->sw.offset = be64_to_cpu(p.sw.offset);
		rec->sw.epoch = be32_to_cpu(p.sw.epoch);
		rec->sw.ring = be32_to_cpu(p.sw.ring);
		rec->sw.cell_addr = be64_to_cpu(p.sw.cell_addr);
		rec->sw.cell_rkey = be32_to_cpu(p.sw.cell_rkey);
		rec->sw.proof = be64_to_cpu(p.sw.proof);
		return true;
	case RSW_REVOKE:
	case RSW_BROKEN:
	case RSW_STOPPED:
		rec->epoch = be32_to_cpu(p.epoch.epoch);
		return rec->epoch;
	case RSW_RESUME:
		rec->resume.epoch = be32_to_cpu(p.resume.epoch);
		rec->resume.count = be64_to_cpu(p.resume.count);
		return rec->resume.epoch;
	case RSW_FIN:
	case RSW_URG:
		rec->offset = be64_to_cpu(p.offset.offset);
		return true;
	case RSW_PLAIN:
		rec->span = be64_to_cpu(p.plain.len);
		return rec->span && rec->span <= RSW_SPAN_MAX;
	default:
		return true;
	}
}
