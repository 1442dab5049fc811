// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owns a socket that no program has accepted yet, for as long as one likes.  accept() does so
 * while it charges the control group of its caller, which may sleep.
 *
 *	insmod rs_owner.ko; echo FD MS >/sys/module/rs_owner/parameters/own
 *
 * FD is a listener of the writer.  When the write returns, the first socket of its queue is owned,
 * for MS milliseconds.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/workqueue.h>
#include <net/inet_connection_sock.h>

static struct sock *child;
static unsigned int own_ms;
static DECLARE_COMPLETION(owned);

/* Referenced, or NULL. */
static struct sock *first_child(struct sock *listener)
{
	struct request_sock_queue *queue = &inet_csk(listener)->icsk_accept_queue;
	struct sock *first = NULL;

	spin_lock_bh(&queue->rskq_lock);
	if (queue->rskq_accept_head) {
		first = queue->rskq_accept_head->sk;
		sock_hold(first);
	}
	spin_unlock_bh(&queue->rskq_lock);
	return first;
}

static void own_work(struct work_struct *work)
{
	lock_sock(child);
	complete(&owned);
	msleep(own_ms);
	release_sock(child);
	sock_put(child);
}

static DECLARE_WORK(work, own_work);

static int own(const char *val, const struct kernel_param *kp)
{
	struct socket *listener;
	int fd, err;

	flush_work(&work);
	if (sscanf(val, "%d %u", &fd, &own_ms) != 2)
		return -EINVAL;
	listener = sockfd_lookup(fd, &err);
	if (!listener)
		return err;
	child = listener->sk->sk_state == TCP_LISTEN ? first_child(listener->sk) : NULL;
	sockfd_put(listener);
	if (!child)
		return -ENOENT;
	reinit_completion(&owned);
	schedule_work(&work);
	wait_for_completion(&owned);
	return 0;
}

static const struct kernel_param_ops own_ops = { .set = own };

module_param_cb(own, &own_ops, NULL, 0200);

static int __init owner_init(void)
{
	return 0;
}

static void __exit owner_exit(void)
{
	flush_work(&work);
}

module_init(owner_init);
module_exit(owner_exit);
MODULE_DESCRIPTION("Owns a socket that is not accepted yet");
MODULE_LICENSE("GPL");
