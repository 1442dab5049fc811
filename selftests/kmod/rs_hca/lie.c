// SPDX-License-Identifier: GPL-2.0-only
/*
 * Forged requests of a malicious device: its peer must detect them.
 *
 * Owns nothing.  Called by the requester with a request that is about to be sent for the first
 * time.  Accesses outside the peer's registered memory are not forged, because any device refuses
 * them.
 */
#include "rs_hca.h"

/* A bit of it: one of the lowest, of the highest, or any. */
static __be32 other_imm(struct hca_dev *dev, __be32 imm)
{
	static const struct {
		u32 from, bits;
	} where[] = { { 0, 4 }, { 28, 4 }, { 0, 32 } };
	u32 i = hca_fault_random(dev, ARRAY_SIZE(where));

	return imm ^ cpu_to_be32(1U << (where[i].from + hca_fault_random(dev, where[i].bits)));
}

/**
 * hca_lie() - which lie is this request?
 * @dev:	the device that sends it
 * @wqe:	the request, which may become another one
 */
enum hca_lie hca_lie(struct hca_dev *dev, struct hca_wqe *wqe)
{
	enum hca_lie lie = 1 + hca_fault_random(dev, HCA_LIES - 1);

	if (lie == HCA_LIE_IMM)
		wqe->imm = other_imm(dev, wqe->imm);
	else if (lie == HCA_LIE_SHORT && wqe->len)
		wqe->len = hca_fault_random(dev, wqe->len);
	return lie;
}
