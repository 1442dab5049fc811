/* SPDX-License-Identifier: GPL-2.0-only */
/* splice() to a pipe. */
#ifndef RSTREAM_STREAM_SPLICE_H
#define RSTREAM_STREAM_SPLICE_H

#include <linux/types.h>

struct pipe_inode_info;
struct socket;

ssize_t rstream_splice_read(struct socket *sock, loff_t *ppos,
			    struct pipe_inode_info *pipe, size_t len,
			    unsigned int flags);

#endif
