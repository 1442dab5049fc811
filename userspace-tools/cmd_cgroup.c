// SPDX-License-Identifier: GPL-2.0-only
/*
 * rsctl cgroup: give processes of a cgroup rdmastream sockets, with a BPF program on the
 * kernel's update_socket_protocol().  See Documentation/run.rst.
 *
 * The program is a few instructions, which are written here by hand, so that building
 * rsctl takes no compiler for BPF.  A link keeps it attached.  The link is pinned in the
 * BPF file system under the cgroup's id, so the pins are the list of cgroups.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/rdmastream.h>
#include <mntent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "rsctl.h"

#define HOOK		"update_socket_protocol"
#define BPF_ROOT	"/sys/fs/bpf"
#define PINS		BPF_ROOT "/rdmastream-cgroup"
#define FILEID_KERNFS	0xfe	/* the handle of a cgroup is its id */
#define FAMILY_FILE	"/proc/sys/net/rdmastream/family"

/* ---- what the kernel calls things ---- */

/* The number of the function in the kernel's BTF; 0: there is none. */
static unsigned int find_hook(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id;

	if (!btf) {
		complain("cannot read the kernel's BTF: %s", strerror(errno));
		return 0;
	}
	id = btf__find_by_name_kind(btf, HOOK, BTF_KIND_FUNC);
	btf__free(btf);
	if (id <= 0) {
		complain("this kernel has no " HOOK "()");
		return 0;
	}
	return id;
}

/* The address of the kernel's table of socket families; 0: unknown. */
static uint64_t find_families(void)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	unsigned long long at = 0;
	char line[512], name[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx %*c %255s", &at, name) == 2 &&
		    !strcmp(name, "net_families"))
			break;
		at = 0;
	}
	if (file)
		fclose(file);
	if (!at)
		complain("cannot find the address of net_families in /proc/kallsyms");
	return at;
}

/* The module's, or the one that it would use. */
static unsigned int family_number(void)
{
	unsigned int family = AF_RDMASTREAM;
	FILE *file = fopen(FAMILY_FILE, "re");

	if (file && fscanf(file, "%u", &family) != 1)
		family = AF_RDMASTREAM;
	if (file)
		fclose(file);
	return family;
}

/* ---- the program ---- */

#define INSN(op, to, from, offset, value) \
	{ .code = (op), .dst_reg = (to), .src_reg = (from), .off = (offset), .imm = (value) }
/* Arguments of the hook, 8 bytes each, of which 4 mean something. */
#define LOAD(to, from, offset)	INSN(BPF_LDX | BPF_DW | BPF_MEM, to, from, offset, 0)
#define MOVE(to, from)		INSN(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0)
#define SET(to, value)		INSN(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value)
#define ADD(to, value)		INSN(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, value)
#define AND32(to, value)	INSN(BPF_ALU | BPF_AND | BPF_K, to, 0, 0, value)
#define IF32(how, what, value, skip) \
	INSN(BPF_JMP32 | (how) | BPF_K, what, 0, skip, value)
#define IF(how, what, value, skip) \
	INSN(BPF_JMP | (how) | BPF_K, what, 0, skip, value)
#define SET64(to, kind, value) \
	INSN(BPF_LD | BPF_DW | BPF_IMM, to, kind, 0, (uint32_t)(value)), \
	INSN(0, 0, 0, 0, (uint64_t)(value) >> 32)
#define CALL(what)		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, what)
#define EXIT			INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

enum { R0, R1, R2, R3, R6 = 6, R10 = 10 };

/*
 * The program returns the protocol; 0: unchanged.  The module may come and go: while its
 * family is not registered, no socket is changed.
 *
 * @map: contains the cgroup.  @family: where the kernel keeps the pointer to our family.
 */
static int load_program(unsigned int hook, int map, uint64_t family)
{
	const struct bpf_insn insns[] = {
		MOVE(R6, R1),
		LOAD(R1, R6, 0),
		IF32(BPF_JEQ, R1, AF_INET, 1),
		IF32(BPF_JNE, R1, AF_INET6, 22),
		LOAD(R1, R6, 8),
		AND32(R1, 0xf),			/* without SOCK_NONBLOCK and so on */
		IF32(BPF_JNE, R1, SOCK_STREAM, 19),
		LOAD(R1, R6, 16),
		IF32(BPF_JEQ, R1, 0, 1),
		IF32(BPF_JNE, R1, IPPROTO_TCP, 16),
		SET64(R1, BPF_PSEUDO_MAP_FD, map),
		SET(R2, 0),
		CALL(BPF_FUNC_current_task_under_cgroup),
		IF(BPF_JNE, R0, 1, 11),
		MOVE(R1, R10),
		ADD(R1, -8),
		SET(R2, 8),
		SET64(R3, 0, family),
		CALL(BPF_FUNC_probe_read_kernel),
		IF(BPF_JNE, R0, 0, 4),
		LOAD(R1, R10, -8),
		IF(BPF_JEQ, R1, 0, 2),
		SET(R0, IPPROTO_RDMASTREAM),
		EXIT,
		SET(R0, 0),
		EXIT,
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		.expected_attach_type = BPF_MODIFY_RETURN,
		.attach_btf_id = hook,
	);
	int fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "rdmastream", "GPL", insns,
			       sizeof(insns) / sizeof(insns[0]), &opts);

	if (fd < 0)
		complain("cannot load the BPF program: %s", strerror(errno));
	return fd;
}

static int make_map(int cgroup)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_CGROUP_ARRAY, "rdmastream", sizeof(__u32),
				sizeof(__u32), 1, NULL);
	__u32 key = 0;

	if (fd >= 0) {
		if (!bpf_map_update_elem(fd, &key, &cgroup, BPF_ANY))
			return fd;
		close(fd);
	}
	complain("cannot create the BPF map: %s", strerror(errno));
	return -1;
}

/* Return: the link, which holds references to the rest; or -1. */
static int attach(int cgroup)
{
	unsigned int hook = find_hook();
	uint64_t families = hook ? find_families() : 0;
	int map, program, link;

	if (!families)
		return -1;
	map = make_map(cgroup);
	if (map < 0)
		return -1;
	program = load_program(hook, map, families + family_number() * sizeof(void *));
	close(map);
	if (program < 0)
		return -1;
	link = bpf_link_create(program, 0, BPF_MODIFY_RETURN, NULL);
	if (link < 0)
		complain("cannot attach the BPF program to " HOOK "(): %s", strerror(errno));
	close(program);
	return link;
}

/* ---- cgroups ---- */

/* Where the unified hierarchy is. */
static char *cgroup_root(void)
{
	FILE *file = setmntent("/proc/self/mounts", "r");
	struct mntent *mount;
	char *root = NULL;

	while (file && !root && (mount = getmntent(file)))
		if (!strcmp(mount->mnt_type, "cgroup2"))
			root = xprintf("%s", mount->mnt_dir);
	if (file)
		endmntent(file);
	return root;
}

/*
 * The caller's below the root, as ExecStartPre= of a service needs it.  A service that
 * delegates DelegateSubgroup= has its commands in .control.  NULL: complained.
 */
static char *own_cgroup(const char *root)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX + 8], *path = NULL;
	const char *wrong = NULL;
	size_t len;

	while (file && !path && fgets(line, sizeof(line), file))
		if (!strncmp(line, "0::", 3))
			path = line + 3;
	if (file)
		fclose(file);
	len = path ? strcspn(path, "\n") : 0;
	if (len >= 9 && !strncmp(path + len - 9, "/.control", 9))
		len -= 9;
	if (!path || !root)
		wrong = "there are no cgroups (version 2)";
	else if (!strncmp(path, "/..", 3))
		wrong = "this process is outside of its cgroup namespace";
	else if (len < 2)
		wrong = "this process is in the root of the cgroups";
	if (!wrong)
		return xprintf("%s%.*s", root, (int)len, path);
	complain("self: %s", wrong);
	return NULL;
}

/*
 * @name: "self", a path, or a name below the root, where systemd's begin with a slash.
 * Return: the path, or NULL.
 */
static char *cgroup_path(const char *name)
{
	char *root = cgroup_root(), *path;

	if (!strcmp(name, "self")) {
		path = own_cgroup(root);
		free(root);
		return path;
	}
	path = xprintf("%s/%s", root ? root : "", name + (*name == '/'));
	free(root);
	if (*name != '/' || (access(name, F_OK) && !access(path, F_OK)))
		return path;
	free(path);
	return xprintf("%s", name);
}

struct cgroup {
	int fd;
	char *path;
	char id[24];	/* its pin is called so */
};

static void close_cgroup(struct cgroup *cgroup)
{
	if (cgroup->fd >= 0)
		close(cgroup->fd);
	free(cgroup->path);
}

/* Return: false, with nothing to close, after a complaint. */
static bool open_cgroup(const char *name, struct cgroup *cgroup)
{
	struct statfs fs;
	struct stat st;

	cgroup->path = cgroup_path(name);
	if (!cgroup->path)
		return false;
	cgroup->fd = open(cgroup->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup->fd < 0 || fstatfs(cgroup->fd, &fs) || fstat(cgroup->fd, &st)) {
		complain("%s: %s", cgroup->path, strerror(errno));
	} else if (fs.f_type != CGROUP2_SUPER_MAGIC) {
		complain("%s is not a cgroup (version 2)", cgroup->path);
	} else {
		snprintf(cgroup->id, sizeof(cgroup->id), "%ju", (uintmax_t)st.st_ino);
		return true;
	}
	close_cgroup(cgroup);
	return false;
}

/* ---- pins ---- */

/*
 * If others may write to the directory above, they may have created this one.
 * Return: a descriptor; -ENOENT: there is none; or an error that was complained about.
 */
static int open_pins(void)
{
	int fd = open(PINS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), err = errno;
	struct stat st;

	if (fd < 0 && err != ENOTDIR) {
		if (err != ENOENT)
			complain(PINS ": %s", strerror(err));
		return -err;
	}
	if (fd >= 0 && !fstat(fd, &st) && !st.st_uid && !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return fd;
	complain(PINS " is not a directory that only root can change");
	if (fd >= 0)
		close(fd);
	return -EPERM;
}

/* As open_pins(), but there is one then, in which nobody else can have put anything. */
static int make_pins(void)
{
	if (geteuid()) {
		complain("only root may switch a cgroup on");
		return -EPERM;
	}
	if (mkdir(PINS, 0700) && errno != EEXIST) {
		complain(PINS ": %s%s", strerror(errno),
			 errno == EPERM ? " (is a BPF file system mounted at " BPF_ROOT "?)" : "");
		return -EPERM;
	}
	return open_pins();
}

/* The path of a cgroup; NULL: unknown.  @gone: because the cgroup was removed. */
static char *find_path(const char *id, bool *gone)
{
	union {
		struct file_handle head;
		char room[sizeof(struct file_handle) + sizeof(uint64_t)];
	} handle = {
		.head = { .handle_bytes = sizeof(uint64_t), .handle_type = FILEID_KERNFS },
	};
	uint64_t number = strtoull(id, NULL, 10);
	char *root = cgroup_root(), *link, path[PATH_MAX];
	int mount = root ? open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, fd;
	ssize_t n;

	memcpy(handle.head.f_handle, &number, sizeof(number));
	fd = open_by_handle_at(mount, &handle.head, O_PATH | O_CLOEXEC);
	*gone = fd < 0 && errno == ESTALE;
	link = xprintf("/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	free(link);
	free(root);
	if (mount >= 0)
		close(mount);
	if (fd >= 0)
		close(fd);
	return n < 0 ? NULL : xprintf("%.*s", (int)n, path);
}

/* What closedir() closes is another descriptor than @pins. */
static DIR *list_pins(int pins)
{
	int fd = openat(pins, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !dir)
		close(fd);
	return dir;
}

/* A pin keeps a removed cgroup, and its BPF program, in memory. */
static void prune_pins(int pins)
{
	DIR *dir = list_pins(pins);
	struct dirent *entry;
	bool gone;

	while (dir && (entry = readdir(dir))) {
		if (*entry->d_name == '.')
			continue;
		free(find_path(entry->d_name, &gone));
		if (gone)
			unlinkat(pins, entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

/* Somebody else may have switched it on meanwhile. */
static int pin_link(int link, const char *id)
{
	char *pin = xprintf(PINS "/%s", id);
	int ret = EXIT_OK;

	if (bpf_obj_pin(link, pin) && errno != EEXIST) {
		complain("%s: %s", pin, strerror(errno));
		ret = EXIT_FAILED;
	}
	free(pin);
	return ret;
}

/* ---- the commands ---- */

static int cgroup_on(const struct cgroup *cgroup)
{
	int pins = make_pins(), link, ret = EXIT_FAILED;

	if (pins < 0)
		return EXIT_FAILED;
	prune_pins(pins);
	if (!faccessat(pins, cgroup->id, F_OK, 0)) {
		ret = EXIT_OK;		/* it is on */
	} else {
		link = attach(cgroup->fd);
		if (link >= 0) {
			ret = pin_link(link, cgroup->id);
			close(link);
		}
	}
	close(pins);
	return ret;
}

static int remove_pin(int pins, const char *id, const char *name)
{
	if (pins >= 0 && !unlinkat(pins, id, 0))
		return EXIT_OK;
	complain("%s: %s", name,
		 pins < 0 || errno == ENOENT ? "not switched on" : strerror(errno));
	return EXIT_FAILED;
}

/* @name: a cgroup, or an id as listed. */
static int cgroup_off(int pins, const char *name)
{
	struct cgroup cgroup;
	int ret;

	if (!name[strspn(name, "0123456789")] && !faccessat(pins, name, F_OK, 0))
		return remove_pin(pins, name, name);
	if (!open_cgroup(name, &cgroup))
		return EXIT_FAILED;
	ret = remove_pin(pins, cgroup.id, cgroup.path);
	close_cgroup(&cgroup);
	return ret;
}

static void object(uint64_t id, char *path)
{
	json_object(NULL);
	json_uint("id", &id);
	json_take("cgroup", path);
	json_object_end();
}

void cgroup_json(void)
{
	object(0, NULL);
}

static int cgroup_list(int pins)
{
	static const struct column columns[] = { { "ID", true }, { "CGROUP", false } };
	struct table *table = NULL;
	DIR *dir = list_pins(pins);
	struct dirent *entry;

	if (opt.json)
		json_array();
	else
		table = table_new(columns, 2);
	while (dir && (entry = readdir(dir))) {
		uint64_t id = strtoull(entry->d_name, NULL, 10);
		char *path;
		bool gone;

		if (*entry->d_name == '.')
			continue;
		path = find_path(entry->d_name, &gone);
		if (opt.json) {
			object(id, path);
		} else {
			table_cell(table, xprintf("%s", entry->d_name), PAINT_NONE);
			table_cell(table, path, PAINT_NONE);
		}
	}
	if (dir)
		closedir(dir);
	if (opt.json)
		json_array_end();
	else
		table_print(table);
	return EXIT_OK;
}

static int switch_on(const char *name)
{
	struct cgroup cgroup;
	int ret;

	if (!open_cgroup(name, &cgroup))
		return EXIT_FAILED;
	ret = cgroup_on(&cgroup);
	close_cgroup(&cgroup);
	return ret;
}

int cmd_cgroup(int argc, char **argv)
{
	bool named = argc == 3 && *argv[2];
	bool on = named && !strcmp(argv[1], "on");
	bool off = named && !strcmp(argv[1], "off");
	int pins, ret = EXIT_OK;

	if (argc != 1 && !on && !off) {
		complain("cgroup takes \"on CGROUP\", \"off CGROUP\" or no argument");
		return EXIT_USAGE;
	}
	libbpf_set_print(NULL);	/* its messages are for developers */
	if (on)
		return switch_on(argv[2]);
	pins = open_pins();
	if (pins < 0 && pins != -ENOENT)
		return EXIT_FAILED;
	if (off) {
		ret = cgroup_off(pins, argv[2]);
	} else {
		prune_pins(pins);
		ret = cgroup_list(pins);
	}
	if (pins >= 0)
		close(pins);
	return ret;
}
