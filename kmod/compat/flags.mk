# SPDX-License-Identifier: GPL-2.0-only
# What the headers here have to know of the kernel, where its version does not tell.
# stable kernels added an argument to syn_recv_sock in mid-series
ifneq ($(shell grep -s opt_child_init $(srctree)/include/net/inet_connection_sock.h),)
ccflags-y += -DRSTREAM_HAVE_OPT_CHILD_INIT
endif
# and one to sending an ACK
ifneq ($(shell grep -s '__tcp_send_ack(.*flags)' $(srctree)/include/net/tcp.h),)
ccflags-y += -DRSTREAM_HAVE_ACK_FLAGS
endif
# headers that only some have
ifneq ($(wildcard $(srctree)/include/net/ipv6_stubs.h),)
ccflags-y += -DRSTREAM_HAVE_IPV6_STUBS
endif
ifneq ($(wildcard $(srctree)/include/net/proto_memory.h),)
ccflags-y += -DRSTREAM_HAVE_PROTO_MEMORY
endif
# newer ones keep the end of an orphan to TCP
ifneq ($(shell grep -sw inet_csk_destroy_sock $(objtree)/Module.symvers),)
ccflags-y += -DRSTREAM_HAVE_DESTROY_SOCK
endif
