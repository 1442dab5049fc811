# SPDX-License-Identifier: GPL-2.0-only
# What the headers here have to know of the kernel, where its version does not tell.
# 7.0 and stable kernels in mid-series: syn_recv_sock has one argument more ("tcp: fix
# potential race in tcp_v6_syn_recv_sock()")
ifneq ($(shell grep -s opt_child_init $(srctree)/include/net/inet_connection_sock.h),)
ccflags-y += -DRSTREAM_HAVE_OPT_CHILD_INIT
endif
# 6.18: so has sending an ACK ("tcp: accecn: AccECN negotiation")
ifneq ($(shell grep -s '__tcp_send_ack(.*flags)' $(srctree)/include/net/tcp.h),)
ccflags-y += -DRSTREAM_HAVE_ACK_FLAGS
endif
# 7.x: IPv6 is no module any more ("ipv6: remove ipv6_stub infrastructure completely")
ifneq ($(wildcard $(srctree)/include/net/ipv6_stubs.h),)
ccflags-y += -DRSTREAM_HAVE_IPV6_STUBS
endif
# 6.9: a header of its own ("net: introduce include/net/rps.h")
ifneq ($(wildcard $(srctree)/include/net/rps.h),)
ccflags-y += -DRSTREAM_HAVE_RPS
endif
# 6.10: a header of its own ("net: add <net/proto_memory.h>")
ifneq ($(wildcard $(srctree)/include/net/proto_memory.h),)
ccflags-y += -DRSTREAM_HAVE_PROTO_MEMORY
endif
# 6.15: only to IPv6, if that is a module ("tcp: use EXPORT_IPV6_MOD[_GPL]()")
ifneq ($(shell grep -sw inet_csk_destroy_sock $(objtree)/Module.symvers),)
ccflags-y += -DRSTREAM_HAVE_DESTROY_SOCK
endif
# 6.5 and stable 6.1: the end of a splice() ("splice, net: Add a splice_eof op to file-ops and
# socket-ops")
ifneq ($(shell grep -sw splice_eof $(srctree)/include/linux/net.h),)
ccflags-y += -DRSTREAM_HAVE_SPLICE_EOF
endif
# 7.1: SO_RCVBUF tells TCP ("tcp: update window_clamp when SO_RCVBUF is set")
ifneq ($(shell grep -sw set_rcvbuf $(srctree)/include/linux/net.h),)
ccflags-y += -DRSTREAM_HAVE_SET_RCVBUF
endif
