/* SPDX-License-Identifier: GPL-2.0-only */
/* What the commands of rsctl share. */
#ifndef RSCTL_H
#define RSCTL_H

#include <libmnl/libmnl.h>
#include <linux/rdmastream.h>
#include <linux/rdmastream_netlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit status, as rsctl(8) documents it. */
enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,	/* the kernel or the system refused */
	EXIT_USAGE = 2,
	EXIT_NO_MODULE = 3,
	EXIT_NO_RDMA = 4,	/* check: not by RDMA */
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

struct options {
	bool json, pretty, stats, details, numeric, oneline, color;
	unsigned int watch;	/* seconds, 0: no */
};
extern struct options opt;

struct command {
	const char *name;
	const char *args;	/* for the usage line, may be "" */
	const char *text;
	int (*run)(int argc, char **argv);	/* argv[0] is the name */
};
extern const struct command commands[];

int cmd_links(int argc, char **argv);
int cmd_sockets(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_drain(int argc, char **argv);
int cmd_monitor(int argc, char **argv);
int cmd_peers(int argc, char **argv);
int cmd_devices(int argc, char **argv);
int cmd_memory(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_set(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_cgroup(int argc, char **argv);

/* To stderr, behind "rsctl: ". */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *xcalloc(size_t n, size_t size);
char *xprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int no_arguments(int argc, char **argv);	/* 0 or EXIT_USAGE */
bool begins(const char *word, const char *with);	/* an abbreviation? */
int64_t now_ms(void);			/* of a clock that only goes on */
void pause_ms(unsigned int ms);

/* ---- genl.c ---- */

struct replies {
	size_t n;
	struct nlmsghdr **msg;
};

/**
 * genl_ask() - send a command without attributes and collect all answers
 *
 * A dump that the kernel flags as changed meanwhile is asked for again.
 * Complains itself.  Return: EXIT_OK, EXIT_FAILED or EXIT_NO_MODULE.
 */
int genl_ask(uint8_t cmd, bool dump, struct replies *replies);
void replies_free(struct replies *replies);

/* Attributes of a request. */
#define WANTS_MAX	16
struct wants {
	unsigned int n;
	struct {
		uint16_t type;
		uint16_t len;
		uint8_t data[80];
	} list[WANTS_MAX];
};

void want(struct wants *wants, uint16_t type, const void *data, size_t len);

/* genl_ask() with attributes; without an answer, for what changes something. */
int genl_ask_for(uint8_t cmd, bool dump, const struct wants *wants,
		 struct replies *replies);
int genl_set(uint8_t cmd, const struct wants *wants);

/**
 * genl_listen() - hand each event to @told, for ever
 * @ready:	called once, when no event is missed any more
 * @told:	with NULL: some were missed
 *
 * Return: when one of the two does not return EXIT_OK, or with an error.
 */
int genl_listen(int (*ready)(void), int (*told)(const struct nlmsghdr *msg));

/* ---- attr.c: attributes by number; NULL where one is left out ---- */

#define ATTRS_MAX	64		/* types above it are not seen */

struct attrs {
	const struct nlmsghdr *msg;	/* one of both is NULL */
	const struct nlattr *nest;
	unsigned int max;
	const struct nlattr *tb[ATTRS_MAX + 1];
};

void attrs_of(struct attrs *a, const struct nlmsghdr *msg);
bool attrs_nested(struct attrs *a, const struct nlattr *nest);
bool attr_uint(const struct attrs *a, unsigned int type, uint64_t *val);
const char *attr_str(const struct attrs *a, unsigned int type);
char *attr_hex(const struct attrs *a, unsigned int type);
/* "address:port", NULL if left out; the caller frees all these */
char *attr_endpoint(const struct attrs *a, unsigned int type);
char *attr_address(const struct attrs *a, unsigned int type);	/* no port */
/* The address as IPv6, which IPv4 is mapped into; false if left out. */
bool attr_in6(const struct attrs *a, unsigned int type, struct in6_addr *addr);
/* As text, of one attribute among several of a type. */
char *endpoint_of(const struct nlattr *nest, bool port);
/* The words that commands share; NULL if left out */
char *attr_word(const struct attrs *a, unsigned int type, int list);
char *attr_reason(const struct attrs *a, unsigned int type);
char *attr_number(const struct attrs *a, unsigned int type);
/* Of the message; the first half, which tells peers apart well enough, without -d */
char *attr_peer(const struct attrs *a, unsigned int type);
/* For each of several attributes of @type in @msg. */
#define each_attr(attr, msg, type)					\
	mnl_attr_for_each(attr, msg, sizeof(struct genlmsghdr))		\
		if (mnl_attr_get_type(attr) == (type))

/* ---- names.c: words for numbers ---- */

enum word {
	WORD_MODE, WORD_CARRIER, WORD_DIR, WORD_LINK_STATE, WORD_TCP_STATE,
	WORD_PROBLEM, WORD_RMB_KIND
};

/* An allocated word; the number itself if it is newer than we are. */
char *word_of(enum word list, uint64_t val);

/* The contrary; false: there is no such word. */
bool number_of(enum word list, const char *word, uint32_t *val);
char *all_words(enum word list);	/* "one, two, three" */
/* The word for @val, or NULL.  Return: whether there may be more. */
bool word_at(enum word list, uint32_t val, const char **word);

struct item {
	const char *name;	/* as in the netlink spec */
	const char *text;
};
char *reason_name(uint64_t reason);
const struct item *reason_item(uint64_t reason);	/* NULL: unknown */
const char *reason_cause(uint64_t reason);	/* cmd_explain.c */
const char *reason_remedy(uint64_t reason);
const char *device_advice(uint64_t problem);	/* cmd_devices.c; or NULL */
const struct item *counter_item(uint64_t counter);
bool same_name(const char *a, const char *b);	/* NO_ROOM is no-option-space */

/* ---- json.c: a stream of JSON on stdout ---- */

void json_array(void);
void json_array_in(const char *key);	/* ended as the other */
void json_array_end(void);
void json_object(const char *key);	/* NULL in an array */
void json_object_end(void);
/* NULL values become null. */
void json_str(const char *key, const char *val);
void json_uint(const char *key, const uint64_t *val);
void json_bool(const char *key, bool val);
void json_double(const char *key, const double *val);
void json_take(const char *key, char *val);	/* frees @val */
/* @val, not NULL, is one of @all, which ends with NULL. */
void json_choice(const char *key, const char *val, const char *const *all);
/* An attribute; null if it was left out. */
void json_attr(const char *key, const struct attrs *a, unsigned int type);
void json_attr_str(const char *key, const struct attrs *a, unsigned int type);
void json_attr_reason(const char *key, const struct attrs *a, unsigned int type);
void json_attr_word(const char *key, const struct attrs *a, unsigned int type, int list);
void json_attr_id(const char *key, const struct attrs *a, unsigned int type);
void json_attr_endpoint(const char *key, const struct attrs *a, unsigned int type);
void json_attr_address(const char *key, const struct attrs *a, unsigned int type);
/* An array of u32 */
void json_counts(const char *key, const struct attrs *a, unsigned int type);
/* An array with an @item for each attribute of @type; one of them writes its address. */
void json_list(const char *key, const struct attrs *a, unsigned int type,
	       void (*item)(const struct nlattr *attr));
void json_address(const struct nlattr *attr);
/*
 * From now on write types in place of values, which may be null where NULL is passed.  The
 * type of the next object or array is written as @key, or without one.
 */
void json_schema(bool on, const char *key);

/* ---- schema.c ---- */

void schema_write(void);
/* What the commands write: one object; of monitor, one of each kind. */
void links_json(void);
void sockets_json(void);
void stats_json(void);
void stats_watch_json(void);
void peers_json(void);
void devices_json(void);
void memory_json(void);
void show_json(void);
void explain_json(void);
void version_json(void);
void drain_json(void);
void cgroup_json(void);
void check_json(void);
void monitor_json(void);

/* ---- out.c: tables ---- */

enum paint { PAINT_NONE, PAINT_GOOD, PAINT_WARN, PAINT_BAD };

struct column {
	const char *head;
	bool right;
};

struct table;
struct table *table_new(const struct column *columns, unsigned int n);
/* Fill the next cell.  @text is freed; NULL prints "-". */
void table_cell(struct table *t, char *text, enum paint paint);
void table_num(struct table *t, const struct attrs *a, unsigned int type);
void table_bytes(struct table *t, const struct attrs *a, unsigned int type);
/* A line below the row begun last; @text is freed. */
void table_note(struct table *t, char *text);
void table_print(struct table *t);		/* and free */
/*
 * Of @text, which begins in column @at, as many words as fit a line; the others on
 * lines of their own, @indent deep.
 */
void print_folded(const char *text, unsigned int at, unsigned int indent);

char *human_bytes(uint64_t bytes);
char *human_number(uint64_t val);	/* thousands: k, M; plain with -n */
char *spark(const double *vals, unsigned int n);	/* a line as high as they are */

/* ---- filter.c: which entries, told as words behind the command ---- */

enum filter_kind {
	FILTER_PEER,	/* beginning of an instance id */
	FILTER_STRING,	/* name of a device */
	FILTER_PORT,
	FILTER_END,	/* address and port; @type: of the entry's endpoint */
	FILTER_STATE,	/* mode of a socket, or state of TCP */
	FILTER_U32,
	FILTER_REASON,
	FILTER_WORD,	/* + enum word: FILTER_WORD must be last */
};
#define FILTER_ASKED	0x100	/* |: what answers do not tell */

struct filter_key {
	const char *name;
	int kind;
	uint16_t type;
};

struct filter_end {
	uint16_t type;		/* of the endpoint in an entry */
	bool unequal;
	unsigned int bytes;	/* 4 or 16; 0: any address */
	unsigned int bits;
	uint8_t addr[16];
	uint32_t scope;		/* 0: any */
	bool has_port;
	uint16_t port;
};

struct filter {
	struct wants wants;		/* the kernel chooses by these */
	struct wants unwanted;		/* what is left, we */
	struct filter_end ends[WANTS_MAX];
	unsigned int n_ends;
	uint32_t not_states;		/* of TCP, as bits */
};

/*
 * @keys end with a NULL name, @f is all 0.  Return: EXIT_OK, or what was
 * complained about.
 */
int filter_parse(int argc, char **argv, const struct filter_key *keys,
		 struct filter *f);
/* Is the entry @a one of those that the kernel could not choose? */
bool filter_fits(const struct filter *f, const struct attrs *a);

/* ---- entries.c: what is asked for, and shown as a table or as JSON ---- */

/* genl_ask() for what has one answer, which fills @a and is freed with @r. */
int ask_one(uint8_t cmd, struct replies *r, struct attrs *a);

struct entries {
	uint8_t cmd;
	const struct filter_key *keys;
	const struct column *columns;
	unsigned int n_columns;
	void (*row)(struct table *t, const struct attrs *a);
	void (*object)(const struct attrs *a);
};

void entries_schema(const struct entries *e);	/* an entry's JSON schema */

/* Those that fit the words behind the command.  Return: exit status */
int entries_show(const struct entries *e, int argc, char **argv);
/* All, or those with one word behind the command, which is of the first key. */
int entries_show_one(const struct entries *e, int argc, char **argv);
/* The same step by step; the table is NULL for JSON. */
struct table *entries_begin(const struct column *columns, unsigned int n);
void entry_show(const struct entries *e, struct table *t, const struct attrs *a);
void entries_end(struct table *t);

#endif
