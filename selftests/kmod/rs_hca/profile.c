// SPDX-License-Identifier: GPL-2.0-only
/*
 * Properties of real devices, and of two artificial ones.
 *
 * Owns the table.  Documentation/rs_hca.rst gives the source of each value.
 */
#include <linux/sizes.h>

#include "rs_hca.h"

static const struct hca_profile profiles[] = {
	{	/* no restrictions, and as fast as possible */
		.name = "plain",
		.page_size_cap = ~(u64)(SZ_4K - 1),
		.max_send_sge = 16,
		.max_recv_sge = 16,
		.max_qp_wr = 16384,
		.max_cqe = 65535,
		.max_reg_pages = 1024,
		.imm_opcode = IB_WC_RECV_RDMA_WITH_IMM,
	}, {	/* everything that devices may do, but that users might not expect */
		.name = "odd",
		.page_size_cap = SZ_4K,
		.max_send_sge = 2,
		.max_recv_sge = 1,
		.max_qp_wr = 512,	/* rdma_cm needs this many for its datagrams */
		.max_cqe = 640,
		.max_reg_pages = 64,
		.imm_opcode = IB_WC_RECV,
		.stale_sge = true,
		.tail_first = true,
		.rq_first = true,
		.moder_count = 16,
		.moder_us = 100,
		.flush_us = 20000,
	}, {
		.name = "mlx5",
		.driver = RDMA_DRIVER_MLX5,
		.page_size_cap = ~(u64)(SZ_4K - 1),
		.max_send_sge = 30,
		.max_recv_sge = 32,
		.max_qp_wr = 8192,
		.max_cqe = 4194303,
		.max_reg_pages = 65536,
		.max_inline = 128,
		.imm_opcode = IB_WC_RECV_RDMA_WITH_IMM,
	}, {	/* mlx5 on InfiniBand */
		.name = "ib",
		.driver = RDMA_DRIVER_MLX5,
		.ib = true,
		.page_size_cap = ~(u64)(SZ_4K - 1),
		.max_send_sge = 30,
		.max_recv_sge = 32,
		.max_qp_wr = 8192,
		.max_cqe = 4194303,
		.max_reg_pages = 65536,
		.max_inline = 128,
		.imm_opcode = IB_WC_RECV_RDMA_WITH_IMM,
	}, {
		.name = "irdma",
		.driver = RDMA_DRIVER_IRDMA,
		.page_size_cap = SZ_4K | SZ_2M | SZ_1G,
		.max_send_sge = 13,
		.max_recv_sge = 13,
		.max_qp_wr = 4063,
		.max_cqe = 1048574,
		.max_reg_pages = 262144,
		.max_inline = 101,
		.imm_opcode = IB_WC_RECV_RDMA_WITH_IMM,
		.stale_sge = true,
		.flush_us = 20000,
	}, {
		.name = "irdma-iwarp",
		.driver = RDMA_DRIVER_IRDMA,
		.iwarp = true,
		.page_size_cap = SZ_4K | SZ_2M | SZ_1G,
		.max_send_sge = 13,
		.max_recv_sge = 13,
		.max_qp_wr = 4063,
		.max_cqe = 1048574,
		.max_reg_pages = 262144,
		.max_inline = 101,
		.imm_opcode = IB_WC_RECV_RDMA_WITH_IMM,
		.stale_sge = true,
		.flush_us = 20000,
	}, {
		.name = "siw",
		.driver = RDMA_DRIVER_SIW,
		.iwarp = true,
		.page_size_cap = PAGE_SIZE,
		.max_send_sge = 6,
		.max_recv_sge = 6,
		.max_qp_wr = 32768,
		.max_cqe = 3276800,
		.max_reg_pages = 256,
		.max_inline = 80,
		.imm_opcode = IB_WC_RECV,
	}, {
		.name = "bnxt_re",
		.driver = RDMA_DRIVER_BNXT_RE,
		.page_size_cap = 0x7ffff000,
		.max_send_sge = 6,
		.max_recv_sge = 6,
		.max_qp_wr = 4351,
		.max_cqe = 1048575,
		.max_reg_pages = 512,
		.max_inline = 96,
		.imm_opcode = IB_WC_RECV_RDMA_WITH_IMM,
	}, {
		.name = "hns",
		.driver = RDMA_DRIVER_HNS,
		.page_size_cap = 0xffff000,
		.max_send_sge = 64,
		.max_recv_sge = 64,
		.max_qp_wr = 32768,
		.max_cqe = 4194304,
		.max_reg_pages = 512,
		.max_inline = 128,
		.imm_opcode = IB_WC_RECV,
	}, {
		.name = "qedr",
		.driver = RDMA_DRIVER_QEDR,
		.page_size_cap = 0xfffff000,
		.max_send_sge = 4,
		.max_recv_sge = 4,
		.max_qp_wr = 32767,
		.max_cqe = 32766,
		.max_reg_pages = 16384,
		.max_inline = 128,
		.imm_opcode = IB_WC_RECV_RDMA_WITH_IMM,
	},
};

const struct hca_profile *hca_profile_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(profiles); i++)
		if (sysfs_streq(name, profiles[i].name))
			return &profiles[i];
	return NULL;
}
