// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accepts a connection in the kernel, from a listener that a program has made, as nfsd does.
 *
 *	insmod rs_acceptor.ko
 *	echo FD >/sys/module/rs_acceptor/parameters/take	(-1: gives the last one back)
 *	echo FD >/sys/module/rs_acceptor/parameters/echo
 *
 * "take" replaces the callback of the listener.  "echo" accepts one connection, sends the first
 * bytes that arrive back, and closes it; if the listener is taken, with TCP's own callbacks.
 */
#include <linux/file.h>
#include <linux/module.h>
#include <linux/net.h>
#include <net/sock.h>

static struct socket *taken;
static void (*old_data_ready)(struct sock *sk);

static void data_ready(struct sock *sk)
{
	old_data_ready(sk);
}

static void give_back(void)
{
	struct sock *sk;

	if (!taken)
		return;
	sk = taken->sk;
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready = old_data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	sockfd_put(taken);
	taken = NULL;
}

static int take(const char *val, const struct kernel_param *kp)
{
	struct sock *sk;
	int fd, err;

	if (kstrtoint(val, 0, &fd))
		return -EINVAL;
	give_back();
	if (fd < 0)
		return 0;
	taken = sockfd_lookup(fd, &err);
	if (!taken)
		return err;
	sk = taken->sk;
	write_lock_bh(&sk->sk_callback_lock);
	old_data_ready = sk->sk_data_ready;
	sk->sk_data_ready = data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	return 0;
}

static int echo_once(struct socket *sock)
{
	char buf[64];
	struct kvec vec = { .iov_base = buf, .iov_len = sizeof(buf) };
	struct msghdr msg = {};
	int n;

	sock->sk->sk_rcvtimeo = 10 * HZ;
	n = kernel_recvmsg(sock, &msg, &vec, 1, sizeof(buf), 0);
	if (n <= 0)
		return n;
	vec.iov_len = n;
	msg = (struct msghdr){};
	n = kernel_sendmsg(sock, &msg, &vec, 1, n);
	return min(n, 0);
}

static int echo(const char *val, const struct kernel_param *kp)
{
	struct socket *listener, *sock;
	int fd, err;

	if (kstrtoint(val, 0, &fd))
		return -EINVAL;
	listener = sockfd_lookup(fd, &err);
	if (!listener)
		return err;
	err = kernel_accept(listener, &sock, 0);
	if (!err) {
		if (listener == taken)
			sock->sk->sk_data_ready = old_data_ready;
		err = echo_once(sock);
		sock_release(sock);
	}
	sockfd_put(listener);
	return err;
}

static const struct kernel_param_ops take_ops = { .set = take };
static const struct kernel_param_ops echo_ops = { .set = echo };

module_param_cb(take, &take_ops, NULL, 0200);
module_param_cb(echo, &echo_ops, NULL, 0200);

static int __init acceptor_init(void)
{
	return 0;
}

static void __exit acceptor_exit(void)
{
	give_back();
}

module_init(acceptor_init);
module_exit(acceptor_exit);
MODULE_DESCRIPTION("Accepts connections in the kernel");
MODULE_LICENSE("GPL");
