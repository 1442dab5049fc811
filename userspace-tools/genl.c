// SPDX-License-Identifier: GPL-2.0-only
/* Questions to the kernel over generic netlink, and its events. */
#include <errno.h>
#include <linux/genetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rsctl.h"

#define REQUEST_SIZE	2048	/* more than WANTS_MAX of the greatest */
#define TRIES	8	/* to get a dump that nothing changed meanwhile */

static void keep(struct replies *r, const struct nlmsghdr *nlh)
{
	r->msg = realloc(r->msg, (r->n + 1) * sizeof(*r->msg));
	if (!r->msg) {
		complain("out of memory");
		exit(EXIT_FAILED);
	}
	r->msg[r->n] = xcalloc(1, nlh->nlmsg_len);
	memcpy(r->msg[r->n++], nlh, nlh->nlmsg_len);
}

void replies_free(struct replies *r)
{
	while (r->n)
		free(r->msg[--r->n]);
	free(r->msg);
	r->msg = NULL;
}

static const char *tlv_text(const struct nlmsghdr *nlh, size_t skip)
{
	const struct nlattr *attr;

	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS))
		return "";
	mnl_attr_for_each(attr, nlh, skip)
		if (mnl_attr_get_type(attr) == NLMSGERR_ATTR_MSG &&
		    !mnl_attr_validate(attr, MNL_TYPE_NUL_STRING))
			return mnl_attr_get_str(attr);
	return "";
}

/* Of a dump that ends with an error. */
static const char *done_text(const struct nlmsghdr *nlh)
{
	return tlv_text(nlh, sizeof(int));
}

/* The kernel's own words on an error, "" if there are none. */
static const char *extack_text(const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *err = mnl_nlmsg_get_payload(nlh);
	size_t skip = sizeof(*err);

	if (!(nlh->nlmsg_flags & NLM_F_CAPPED))
		skip += err->msg.nlmsg_len - sizeof(struct nlmsghdr);
	return tlv_text(nlh, skip);
}

static char kernel_text[256];	/* on the last error, or "" */

static void note_text(const char *text)
{
	snprintf(kernel_text, sizeof(kernel_text), "%s", text);
}

/* Return: 1 go on, 0 finished, negative errno. */
static int take(struct replies *r, const struct nlmsghdr *nlh, bool *changed)
{
	const struct nlmsgerr *err = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
		*changed = true;
	if (nlh->nlmsg_type == NLMSG_DONE) {
		int status = mnl_nlmsg_get_payload_len(nlh) >= sizeof(int) ?
			     *(int *)mnl_nlmsg_get_payload(nlh) : 0;

		if (status < 0)
			note_text(done_text(nlh));
		return status < 0 ? status : 0;
	}
	if (nlh->nlmsg_type == NLMSG_ERROR) {
		note_text(extack_text(nlh));
		return err->error;	/* 0 is an acknowledgment */
	}
	keep(r, nlh);
	return nlh->nlmsg_flags & NLM_F_MULTI ? 1 : 0;
}

static int receive(struct mnl_socket *nl, struct replies *r, bool *changed)
{
	static char buf[64 * 1024];
	const struct nlmsghdr *nlh;
	int len, ret = 1;

	note_text("");
	while (ret > 0) {
		len = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		if (len < 0)
			return -errno;
		for (nlh = (void *)buf; ret > 0 && mnl_nlmsg_ok(nlh, len);
		     nlh = mnl_nlmsg_next(nlh, &len))
			ret = take(r, nlh, changed);
	}
	return ret;
}

static int ask(struct mnl_socket *nl, struct nlmsghdr *nlh, struct replies *r,
	       bool *changed)
{
	*changed = false;
	nlh->nlmsg_seq++;
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	return receive(nl, r, changed);
}

static struct nlmsghdr *request(char *buf, uint16_t family, uint8_t cmd,
				uint8_t version, uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl;

	nlh->nlmsg_type = family;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = version;
	return nlh;
}

void want(struct wants *w, uint16_t type, const void *data, size_t len)
{
	if (w->n == WANTS_MAX || len > sizeof(w->list[0].data)) {
		complain("too many attributes in a request");
		exit(EXIT_USAGE);
	}
	w->list[w->n].type = type;
	w->list[w->n].len = len;
	memcpy(w->list[w->n++].data, data, len);
}

static void put_wants(struct nlmsghdr *nlh, const struct wants *w)
{
	unsigned int i;

	for (i = 0; w && i < w->n; i++)
		mnl_attr_put(nlh, w->list[i].type, w->list[i].len,
			     w->list[i].data);
}

/* Of the answer about our family: the number of the group "events". */
static uint32_t events_group(const struct attrs *family)
{
	const struct nlattr *attr;
	const char *name;
	struct attrs a;
	uint64_t id;

	if (!family->tb[CTRL_ATTR_MCAST_GROUPS])
		return 0;
	mnl_attr_for_each_nested(attr, family->tb[CTRL_ATTR_MCAST_GROUPS]) {
		attrs_nested(&a, attr);
		name = attr_str(&a, CTRL_ATTR_MCAST_GRP_NAME);
		if (name && !strcmp(name, RDMASTREAM_MCGRP_EVENTS) &&
		    attr_uint(&a, CTRL_ATTR_MCAST_GRP_ID, &id))
			return id;
	}
	return 0;
}

static int find_family(struct mnl_socket *nl, uint16_t *family, uint32_t *group)
{
	struct replies r = { 0 };
	struct nlmsghdr *nlh;
	char buf[256] = "";
	struct attrs a;
	bool changed;
	uint64_t id;
	int err;

	nlh = request(buf, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, 0);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, RDMASTREAM_FAMILY_NAME);
	err = ask(nl, nlh, &r, &changed);
	if (!err && r.n) {
		attrs_of(&a, r.msg[0]);
		err = attr_uint(&a, CTRL_ATTR_FAMILY_ID, &id) ? 0 : -EPROTO;
		if (!err) {
			*family = id;
			*group = events_group(&a);
		}
	}
	replies_free(&r);
	return err;
}

static int open_nl(struct mnl_socket **nl)
{
	int one = 1;

	*nl = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!*nl)
		return -errno;
	mnl_socket_setsockopt(*nl, NETLINK_EXT_ACK, &one, sizeof(one));
	mnl_socket_setsockopt(*nl, NETLINK_CAP_ACK, &one, sizeof(one));
	mnl_socket_setsockopt(*nl, NETLINK_GET_STRICT_CHK, &one, sizeof(one));
	return mnl_socket_bind(*nl, 0, MNL_SOCKET_AUTOPID) ? -errno : 0;
}

static int ask_until_stable(struct mnl_socket *nl, struct nlmsghdr *nlh,
			    struct replies *r)
{
	bool changed = true;
	int err = 0, i;

	for (i = 0; i < TRIES && changed && !err; i++) {
		replies_free(r);
		err = ask(nl, nlh, r, &changed);
	}
	if (changed && !err)
		complain("entries changed during the dump, some may be missing");
	return err;
}

/* Complains itself; the socket is there if the result is EXIT_OK. */
static int open_family(struct mnl_socket **nl, uint16_t *family,
		       uint32_t *group)
{
	int err = open_nl(nl);

	if (!err)
		err = find_family(*nl, family, group);
	if (!err)
		return EXIT_OK;
	if (*nl)
		mnl_socket_close(*nl);
	if (err == -ENOENT) {
		complain("the module rdmastream is not loaded (modprobe rdmastream)");
		return EXIT_NO_MODULE;
	}
	complain("netlink: %s", strerror(-err));
	return EXIT_FAILED;
}

static int failed(int err)
{
	if (*kernel_text)
		complain("%s (%s)", kernel_text, strerror(-err));
	else if (err == -EOPNOTSUPP)
		complain("this version of the module cannot do that");
	else
		complain("netlink: %s", strerror(-err));
	return EXIT_FAILED;
}

int genl_ask(uint8_t cmd, bool dump, struct replies *r)
{
	return genl_ask_for(cmd, dump, NULL, r);
}

int genl_ask_for(uint8_t cmd, bool dump, const struct wants *wants,
		 struct replies *r)
{
	char buf[REQUEST_SIZE] = "";
	struct mnl_socket *nl;
	struct nlmsghdr *nlh;
	uint16_t family;
	uint32_t group;
	int err;

	memset(r, 0, sizeof(*r));
	err = open_family(&nl, &family, &group);
	if (err)
		return err;
	nlh = request(buf, family, cmd, RDMASTREAM_FAMILY_VERSION,
		      dump ? NLM_F_DUMP : 0);
	put_wants(nlh, wants);
	err = ask_until_stable(nl, nlh, r);
	mnl_socket_close(nl);
	if (!err)
		return EXIT_OK;
	replies_free(r);
	return failed(err);
}

int genl_set(uint8_t cmd, const struct wants *wants)
{
	char buf[REQUEST_SIZE] = "";
	struct replies r = { 0 };
	struct mnl_socket *nl;
	struct nlmsghdr *nlh;
	uint16_t family;
	uint32_t group;
	bool changed;
	int err;

	err = open_family(&nl, &family, &group);
	if (err)
		return err;
	nlh = request(buf, family, cmd, RDMASTREAM_FAMILY_VERSION, NLM_F_ACK);
	put_wants(nlh, wants);
	err = ask(nl, nlh, &r, &changed);
	replies_free(&r);
	mnl_socket_close(nl);
	return err ? failed(err) : EXIT_OK;
}

/* ---- events ---- */

/* nlctrl's group "notify" tells that a family goes. */
static bool family_gone(const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);
	struct attrs a;
	const char *name;

	if (nlh->nlmsg_type != GENL_ID_CTRL || genl->cmd != CTRL_CMD_DELFAMILY)
		return false;
	attrs_of(&a, nlh);
	name = attr_str(&a, CTRL_ATTR_FAMILY_NAME);
	return name && !strcmp(name, RDMASTREAM_FAMILY_NAME);
}

static int listen_on(struct mnl_socket *nl, uint16_t family,
		     int (*told)(const struct nlmsghdr *msg))
{
	static char buf[64 * 1024];
	const struct nlmsghdr *nlh;
	int len, ret = EXIT_OK;

	while (!ret) {
		len = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno != ENOBUFS)
			return failed(-errno);
		if (len < 0) {
			ret = told(NULL);
			continue;
		}
		for (nlh = (void *)buf; !ret && mnl_nlmsg_ok(nlh, len);
		     nlh = mnl_nlmsg_next(nlh, &len)) {
			if (family_gone(nlh)) {
				complain("the module was unloaded");
				return EXIT_NO_MODULE;
			}
			if (nlh->nlmsg_type == family)
				ret = told(nlh);
		}
	}
	return ret;
}

int genl_listen(int (*ready)(void), int (*told)(const struct nlmsghdr *msg))
{
	int control = GENL_ID_CTRL;	/* the group has the family's number */
	struct mnl_socket *nl;
	uint16_t family;
	uint32_t group;
	int ret = open_family(&nl, &family, &group);

	if (ret)
		return ret;
	if (!group) {
		complain("this version of the module has no events");
		ret = EXIT_FAILED;
	} else if (mnl_socket_setsockopt(nl, NETLINK_ADD_MEMBERSHIP, &control,
					 sizeof(control)) ||
		   mnl_socket_setsockopt(nl, NETLINK_ADD_MEMBERSHIP, &group,
					 sizeof(group))) {
		ret = failed(-errno);
	}
	if (!ret)
		ret = ready();
	if (!ret)
		ret = listen_on(nl, family, told);
	mnl_socket_close(nl);
	return ret;
}
