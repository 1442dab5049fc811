/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef RSTREAM_NETLINK_H
#define RSTREAM_NETLINK_H

int rstream_netlink_init(void);
void rstream_netlink_exit(void);

#endif
