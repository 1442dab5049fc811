/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What profile.c uses of QEMU's interface for plugins, version 1.  QEMU 7.2 as Debian
 * packages it has the functions, but not the header.
 */
#ifndef QEMU_PLUGIN_H
#define QEMU_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t plugin_id;

enum { PLUGIN_NO_REGS };
/* Of reads alone 7.2 tells nothing. */
enum { PLUGIN_MEM_RW = 3 };

/* The plugin's own, which QEMU looks for. */
extern int qemu_plugin_version;
int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
					   void (*cb)(plugin_id id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  void (*cb)(unsigned int cpu, void *data),
					  int flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*cb)(unsigned int cpu, void *data),
					    int flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      void (*cb)(unsigned int cpu, uint32_t info,
						 uint64_t addr, void *data),
				      int flags, int rw, void *data);
bool qemu_plugin_mem_is_store(uint32_t info);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

#endif
