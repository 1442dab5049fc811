// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plugin of QEMU that counts a guest's instructions by caller and function.
 *
 *	-plugin profile.so,symbols=FILE,out=PREFIX
 *
 * Counts from one mark to the next; marks are NOPs that do nothing elsewhere: mark() in
 * rs_bench.c.  FILE is a copy of the guest's /proc/kallsyms, there by the first mark.  At
 * the end of the Nth count, from 0, it writes PREFIX.N: lines "CALLER;...;FUNCTION
 * INSTRUCTIONS CALLS" have the instructions of that function, when called that way, without
 * what it calls.  Functions of a module have its name behind them, "function[module]";
 * programs are all "[user]".
 *
 * A call pushes its return address, and the matching return takes it from there: that
 * address tells both the thread, each of which has a stack of its own, and which calls are
 * over.  A jump to another function, an interrupt or a system call leaves the callers as
 * they are and replaces the function.
 *
 * One CPU only.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu_plugin.h"

int qemu_plugin_version = 1;

/* ---- symbols ---- */

#define KERNEL_SPACE 0xffff800000000000

struct symbol {
	uint64_t addr;
	char *name;
};

static const char *symbols_file, *out_prefix;
static struct symbol *symbols;		/* by address; the first one is of programs */
static size_t n_symbols;

static int by_addr(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

static void add_symbol(uint64_t addr, const char *name, const char *module)
{
	if (!(n_symbols & (n_symbols - 1)))
		symbols = realloc(symbols, (n_symbols ? 2 * n_symbols : 1) * sizeof(*symbols));
	if (!symbols)
		abort();
	symbols[n_symbols].addr = addr;
	if (asprintf(&symbols[n_symbols++].name, "%s%s", name, module) < 0)
		abort();
}

static void read_symbols(void)
{
	char line[1024], name[512], module[128], type;
	FILE *f = fopen(symbols_file, "r");
	unsigned long long addr;

	add_symbol(0, "[user]", "");
	while (f && fgets(line, sizeof(line), f)) {
		module[0] = '\0';
		if (sscanf(line, "%llx %c %511s %127s", &addr, &type, name, module) >= 3 &&
		    addr >= KERNEL_SPACE && strchr("tTwW", type))
			add_symbol(addr, name, module);
	}
	if (n_symbols == 1)
		fprintf(stderr, "profile: no symbols in %s\n", symbols_file);
	if (f)
		fclose(f);
	qsort(symbols, n_symbols, sizeof(*symbols), by_addr);
}

static int symbol_at(uint64_t addr)
{
	size_t low = 0, high = n_symbols;

	if (addr < KERNEL_SPACE)
		return 0;
	while (high - low > 1) {
		size_t mid = (low + high) / 2;

		if (symbols[mid].addr <= addr)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* ---- callers and functions ---- */

struct node {
	struct node *caller, *first, *next;	/* callees are a list */
	int symbol;
	uint64_t instructions, calls;
};

static struct node root = { .symbol = -1 };
static struct node *now = &root;	/* what is being executed */
static bool entered;			/* a call has just been made by it */
static bool counting;

static struct node *callee(struct node *caller, int symbol)
{
	struct node **at, *node;

	for (at = &caller->first; (node = *at); at = &node->next)
		if (node->symbol == symbol)
			break;
	if (!node) {
		node = calloc(1, sizeof(*node));
		if (!node)
			abort();
		node->caller = caller;
		node->symbol = symbol;
	} else {
		*at = node->next;
	}
	/* what was called last is found first */
	node->next = caller->first;
	caller->first = node;
	return node;
}

/* ---- stacks ---- */

#define STACK_SIZE	(16 << 10)	/* THREAD_SIZE, to which stacks are aligned */
#define HASH		4096

struct frame {
	uint64_t addr;			/* of the return address */
	struct node *caller;
};

struct stack {
	struct stack *next;
	uint64_t base;
	size_t n;
	struct frame frames[STACK_SIZE / 8];	/* further down from one to the next */
};

static struct stack *stacks[HASH];

static void forget_calls(void)
{
	for (int i = 0; i < HASH; i++)
		for (struct stack *s = stacks[i]; s; s = s->next)
			s->n = 0;
}

static struct stack *stack_of(uint64_t addr)
{
	uint64_t base = addr / STACK_SIZE;
	struct stack **head = &stacks[base % HASH], *s;

	for (s = *head; s; s = s->next)
		if (s->base == base)
			return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		abort();
	s->base = base;
	s->next = *head;
	*head = s;
	return s;
}

/* What was called from further down has returned, or never will. */
static void drop_below(struct stack *s, uint64_t addr)
{
	while (s->n && s->frames[s->n - 1].addr < addr)
		s->n--;
}

/* ---- blocks of instructions ---- */

/* Only the last instruction of a block can be a call or a return. */
struct block {
	uint64_t addr;
	uint32_t instructions;
	int symbol;		/* -1: not looked up */
};

/*
 * The block whose call or return has not been seen.  QEMU 7.2 sometimes goes on to tell
 * what later instructions access.
 */
static const struct block *pending;

static void on_block(unsigned int cpu, void *data)
{
	struct block *block = data;

	if (!counting)
		return;
	if (block->symbol < 0)
		block->symbol = symbol_at(block->addr);
	if (!block->symbol) {
		now = callee(&root, 0);
	} else if (entered) {
		now = callee(now, block->symbol);
		now->calls++;
	} else if (now->symbol != block->symbol) {
		now = callee(now->caller ? now->caller : &root, block->symbol);
	}
	entered = false;
	now->instructions += block->instructions;
	pending = block;
}

static void on_call(unsigned int cpu, uint32_t info, uint64_t addr, void *data)
{
	struct stack *s;

	/* it may be read from memory, where to call */
	if (!counting || pending != data || !qemu_plugin_mem_is_store(info))
		return;
	pending = NULL;
	s = stack_of(addr);
	drop_below(s, addr + 1);
	s->frames[s->n++] = (struct frame){ addr, now };
	entered = true;
}

static void on_return(unsigned int cpu, uint32_t info, uint64_t addr, void *data)
{
	struct stack *s;

	if (!counting || pending != data)
		return;
	pending = NULL;
	s = stack_of(addr);
	drop_below(s, addr);
	entered = false;
	if (s->n && s->frames[s->n - 1].addr == addr)
		now = s->frames[--s->n].caller;
	else
		now = callee(&root, 0);	/* it was called before the count */
}

/* ---- marks ---- */

static void write_node(FILE *f, const struct node *node, char *path, size_t len)
{
	if (node->symbol >= 0)
		len += sprintf(path + len, "%s%s", len ? ";" : "", symbols[node->symbol].name);
	if (node->instructions)
		fprintf(f, "%s %llu %llu\n", path, (unsigned long long)node->instructions,
			(unsigned long long)node->calls);
	for (const struct node *n = node->first; n; n = n->next) {
		if (len > 60000)	/* a loop of calls that never return */
			break;
		write_node(f, n, path, len);
		path[len] = '\0';
	}
}

static void clear(struct node *node)
{
	node->instructions = 0;
	node->calls = 0;
	for (struct node *n = node->first; n; n = n->next)
		clear(n);
}

static void on_mark(unsigned int cpu, void *data)
{
	static char path[1 << 16], name[4096];
	static int n;
	FILE *f;

	if (!symbols)
		read_symbols();
	counting = !counting;
	if (counting) {
		forget_calls();
		clear(&root);
		now = callee(&root, 0);
		entered = false;
		return;
	}
	snprintf(name, sizeof(name), "%s.%d", out_prefix, n++);
	f = fopen(name, "w");
	if (!f) {
		perror(name);
		return;
	}
	path[0] = '\0';
	write_node(f, &root, path, 0);
	fclose(f);
}

/* nopl MARK(%rax) */
static bool is_mark(const uint8_t *code, size_t size)
{
	static const uint8_t mark[] = { 0x0f, 0x1f, 0x80, 'r', 's', 't', 'm' };

	return size == sizeof(mark) && !memcmp(code, mark, size);
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);
	struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, n - 1);
	const uint8_t *code = qemu_plugin_insn_data(last);
	size_t size = qemu_plugin_insn_size(last);
	struct block *block = malloc(sizeof(*block));

	if (!block)
		abort();
	*block = (struct block){ qemu_plugin_insn_vaddr(first), n, -1 };
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, PLUGIN_NO_REGS, block);
	if (block->addr < KERNEL_SPACE) {
		for (size_t i = 0; i < n; i++) {
			struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

			if (is_mark(qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn)))
				qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark,
								       PLUGIN_NO_REGS, NULL);
		}
		return;
	}
	/* behind a prefix of a segment or repetition, and REX */
	if (code[0] == 0x2e || code[0] == 0xf2 || code[0] == 0xf3) {
		code++;
		size--;
	}
	if (code[0] >= 0x40 && code[0] <= 0x4f) {
		code++;
		size--;
	}
	if (code[0] == 0xe8 || (size > 1 && code[0] == 0xff && (code[1] >> 3 & 7) == 2))
		qemu_plugin_register_vcpu_mem_cb(last, on_call, PLUGIN_NO_REGS, PLUGIN_MEM_RW,
						 block);
	else if (code[0] == 0xc3 || code[0] == 0xc2)
		qemu_plugin_register_vcpu_mem_cb(last, on_return, PLUGIN_NO_REGS, PLUGIN_MEM_RW,
						 block);
}

int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "symbols=", 8))
			symbols_file = strdup(argv[i] + 8);
		else if (!strncmp(argv[i], "out=", 4))
			out_prefix = strdup(argv[i] + 4);
	if (!symbols_file || !out_prefix) {
		fprintf(stderr, "profile: symbols= and out= are missing\n");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
