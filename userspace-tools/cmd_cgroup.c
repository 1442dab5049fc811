// SPDX-License-Identifier: GPL-2.0-only
/*
 * rsctl cgroup: TCP sockets of a cgroup become ours, by a BPF program on the
 * kernel's update_socket_protocol().  See Documentation/run.rst.
 *
 * The program is a few instructions, written by hand below.  What keeps it attached
 * is its link, pinned in the BPF file system under the cgroup's id; so that is
 * where it is known which cgroups there are.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/magic.h>
#include <linux/rdmastream.h>
#include <mntent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "rsctl.h"

#define HOOK		"update_socket_protocol"
#define BPF_ROOT	"/sys/fs/bpf"
#define PINS		BPF_ROOT "/rdmastream-cgroup"
#define FILEID_KERNFS	0xfe	/* the handle of a cgroup is its id */
#define FAMILY_FILE	"/proc/sys/net/rdmastream/family"

static long bpf(int cmd, union bpf_attr *attr)
{
	return syscall(__NR_bpf, cmd, attr, sizeof(*attr));
}

/* ---- what the kernel calls things ---- */

static size_t type_size(const struct btf_type *t)
{
	size_t n = BTF_INFO_VLEN(t->info);

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_INT:
		return sizeof(*t) + sizeof(__u32);
	case BTF_KIND_ARRAY:
		return sizeof(*t) + sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return sizeof(*t) + n * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return sizeof(*t) + n * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return sizeof(*t) + n * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return sizeof(*t) + n * sizeof(struct btf_param);
	case BTF_KIND_VAR:
		return sizeof(*t) + sizeof(struct btf_var);
	case BTF_KIND_DATASEC:
		return sizeof(*t) + n * sizeof(struct btf_var_secinfo);
	case BTF_KIND_DECL_TAG:
		return sizeof(*t) + sizeof(struct btf_decl_tag);
	default:
		return sizeof(*t);
	}
}

/* The number of a function in @btf, which is the kernel's; 0: there is none. */
static unsigned int find_function(const char *btf, size_t size, const char *name)
{
	const struct btf_header *h = (const void *)btf;
	const char *names, *at, *end;
	unsigned int id;

	if (size < sizeof(*h) || h->magic != BTF_MAGIC ||
	    h->hdr_len + (size_t)h->str_off + h->str_len > size ||
	    h->hdr_len + (size_t)h->type_off + h->type_len > size)
		return 0;
	names = btf + h->hdr_len + h->str_off;
	at = btf + h->hdr_len + h->type_off;
	end = at + h->type_len;
	for (id = 1; at + sizeof(struct btf_type) <= end; id++) {
		const struct btf_type *t = (const void *)at;

		if (BTF_INFO_KIND(t->info) == BTF_KIND_FUNC &&
		    t->name_off < h->str_len && !strcmp(names + t->name_off, name))
			return id;
		at += type_size(t);
	}
	return 0;
}

static unsigned int find_hook(void)
{
	FILE *file = fopen("/sys/kernel/btf/vmlinux", "re");
	unsigned int id = 0;
	struct stat st;
	char *btf;

	if (!file || fstat(fileno(file), &st)) {
		complain("/sys/kernel/btf/vmlinux: %s", strerror(errno));
	} else {
		btf = xcalloc(1, st.st_size);
		if (fread(btf, 1, st.st_size, file) == (size_t)st.st_size)
			id = find_function(btf, st.st_size, HOOK);
		free(btf);
		if (!id)
			complain("this kernel has no " HOOK "()");
	}
	if (file)
		fclose(file);
	return id;
}

/* Where the kernel keeps the socket families; 0: it does not tell. */
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

/* That of the module, or the one that it would take. */
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
 * What it returns is the protocol, 0: as it was.  The module may come and go: while
 * its family is not registered all sockets stay as they are.
 *
 * @map: of one cgroup.  @family: where the kernel has the pointer to our family.
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
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_TRACING,
		.expected_attach_type = BPF_MODIFY_RETURN,
		.attach_btf_id = hook,
		.insns = (uintptr_t)insns,
		.insn_cnt = sizeof(insns) / sizeof(insns[0]),
		.license = (uintptr_t)"GPL",
		.prog_name = "rdmastream",
	};
	int fd = bpf(BPF_PROG_LOAD, &attr);

	if (fd < 0)
		complain("cannot load the BPF program: %s", strerror(errno));
	return fd;
}

static int make_map(int cgroup)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_CGROUP_ARRAY,
		.key_size = 4,
		.value_size = 4,
		.max_entries = 1,
	};
	int fd = bpf(BPF_MAP_CREATE, &attr);
	__u32 key = 0;

	if (fd >= 0) {
		attr = (union bpf_attr){
			.map_fd = fd,
			.key = (uintptr_t)&key,
			.value = (uintptr_t)&cgroup,
		};
		if (!bpf(BPF_MAP_UPDATE_ELEM, &attr))
			return fd;
		close(fd);
	}
	complain("cannot create the BPF map: %s", strerror(errno));
	return -1;
}

/* Return: the link, which holds all the rest, or -1. */
static int attach(int cgroup)
{
	union bpf_attr attr = { .link_create.attach_type = BPF_MODIFY_RETURN };
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
	attr.link_create.prog_fd = program;
	link = bpf(BPF_LINK_CREATE, &attr);
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

/* A path, or a name below the root.  Return: a descriptor, or -1. */
static int open_cgroup(const char *name, char **pin)
{
	char *root = cgroup_root();
	char *path = *name == '/' || !root ? xprintf("%s", name) :
					     xprintf("%s/%s", root, name);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;
	struct stat st;

	if (fd < 0 || fstatfs(fd, &fs) || fstat(fd, &st)) {
		complain("%s: %s", path, strerror(errno));
	} else if (fs.f_type != CGROUP2_SUPER_MAGIC) {
		complain("%s is not a cgroup (version 2)", path);
	} else {
		*pin = xprintf(PINS "/%ju", (uintmax_t)st.st_ino);
		free(path);
		free(root);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	free(path);
	free(root);
	return -1;
}

/* ---- pins ---- */

/* Where anybody may write beside them, somebody else may have made their directory. */
static bool check_pins(void)
{
	struct stat st;

	if (lstat(PINS, &st)) {
		if (errno == ENOENT)
			return true;
		complain(PINS ": %s", strerror(errno));
	} else if (!S_ISDIR(st.st_mode) || st.st_uid || st.st_mode & (S_IWGRP | S_IWOTH)) {
		complain(PINS " is not a directory that only root can change");
	} else {
		return true;
	}
	return false;
}

/* The path of a cgroup; NULL: there is none to tell.  @gone: because it was removed. */
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

/* A cgroup that was removed stays in memory for its pin, and so does the program. */
static void prune_pins(void)
{
	DIR *dir = opendir(PINS);
	struct dirent *entry;
	bool gone;

	while (dir && (entry = readdir(dir))) {
		if (*entry->d_name == '.')
			continue;
		free(find_path(entry->d_name, &gone));
		if (gone)
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

static int pin_link(int link, const char *pin)
{
	union bpf_attr attr = { .pathname = (uintptr_t)pin, .bpf_fd = link };

	if ((mkdir(PINS, 0700) && errno != EEXIST) || bpf(BPF_OBJ_PIN, &attr)) {
		complain("%s: %s%s", pin, strerror(errno),
			 errno == EPERM ? " (is a BPF file system mounted at " BPF_ROOT "?)" : "");
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

/* ---- the commands ---- */

static int cgroup_on(const char *name)
{
	char *pin;
	int cgroup = open_cgroup(name, &pin), link, ret = EXIT_FAILED;

	if (cgroup < 0)
		return EXIT_FAILED;
	if (!access(pin, F_OK)) {
		ret = EXIT_OK;		/* it is on */
	} else {
		link = attach(cgroup);
		if (link >= 0) {
			ret = pin_link(link, pin);
			close(link);
		}
	}
	close(cgroup);
	free(pin);
	return ret;
}

/* Of a cgroup, or of an id as the list shows it.  NULL: complained about. */
static char *find_pin(const char *name)
{
	char *pin = xprintf(PINS "/%s", name);
	int cgroup;

	if (!name[strspn(name, "0123456789")] && !access(pin, F_OK))
		return pin;
	free(pin);
	cgroup = open_cgroup(name, &pin);
	if (cgroup < 0)
		return NULL;
	close(cgroup);
	return pin;
}

static int cgroup_off(const char *name)
{
	char *pin = find_pin(name);
	int ret = EXIT_OK;

	if (!pin)
		return EXIT_FAILED;
	if (unlink(pin)) {
		complain("%s: %s", name, errno == ENOENT ? "not switched on" : strerror(errno));
		ret = EXIT_FAILED;
	}
	free(pin);
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

static int cgroup_list(void)
{
	static const struct column columns[] = { { "ID", true }, { "CGROUP", false } };
	struct table *table = NULL;
	DIR *dir = opendir(PINS);
	struct dirent *entry;

	if (!dir && errno != ENOENT) {
		complain(PINS ": %s", strerror(errno));
		return EXIT_FAILED;
	}
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

int cmd_cgroup(int argc, char **argv)
{
	bool on = argc == 3 && !strcmp(argv[1], "on");
	bool off = argc == 3 && !strcmp(argv[1], "off");

	if (argc != 1 && !on && !off) {
		complain("cgroup takes \"on CGROUP\", \"off CGROUP\" or no argument");
		return EXIT_USAGE;
	}
	if (!check_pins())
		return EXIT_FAILED;
	if (off)
		return cgroup_off(argv[2]);
	prune_pins();
	return on ? cgroup_on(argv[2]) : cgroup_list();
}
