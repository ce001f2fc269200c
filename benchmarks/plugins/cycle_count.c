/* QEMU plugin (interface version 1) for firmware: how often each instruction ran between two
 * functions, and what the flash's buffers lacked.
 *
 *   cc -O2 -shared -fPIC -o cycle_count.so cycle_count.c
 *   qemu-system-arm ... -plugin cycle_count.so,begin=ADDRESS,end=ADDRESS,out=FILE,flash=END
 *
 * The file has "ADDRESS COUNT" lines after one of "code MISSES data MISSES": lines of 32 bytes below
 * END that were not among the 32 of code, or the 8 of data, that were used last (the ART accelerator
 * of ST's STM32L4 and F4).  The next line of code counts half: it is fetched ahead.
 * QEMU's header is not part of Debian's packages, so what is used of it is declared here. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_RW = 3 }; /* QEMU 7.2 takes one alone for the other */
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t,
                                           void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *),
                                            enum qemu_plugin_cb_flags, void *);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, enum qemu_plugin_op,
                                                void *, uint64_t);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *,
                                      void (*)(unsigned, qemu_plugin_meminfo_t, uint64_t, void *),
                                      enum qemu_plugin_cb_flags, enum qemu_plugin_mem_rw, void *);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;
#define SLOTS (1u << 18)
#define LINE 32
#define CODE_LINES 32
#define DATA_LINES 8

static struct { uint64_t address, count; int used; } table[SLOTS];
static uint64_t begin_at, end_at, flash_end;
static uint64_t code[CODE_LINES], data[DATA_LINES], code_halves, data_misses, last_code;
static int is_counting, is_done;
static char path[4096];

static uint64_t *count_of(uint64_t address)
{
    uint32_t i = (uint32_t)((address >> 1) * 2654435761u) & (SLOTS - 1);
    while (table[i].used && table[i].address != address) i = (i + 1) & (SLOTS - 1);
    table[i].used = 1, table[i].address = address;
    return &table[i].count;
}

static int is_held(uint64_t *lines, int count, uint64_t line)
{
    int i = 0;
    while (i < count - 1 && lines[i] != line) i++;
    int hit = lines[i] == line;
    memmove(lines + 1, lines, (size_t)i * sizeof *lines);
    lines[0] = line;
    return hit;
}

static void on_begin(unsigned cpu, void *user)
{
    (void)cpu, (void)user;
    for (uint32_t i = 0; i < SLOTS; i++) table[i].count = 0;
    code_halves = data_misses = 0;
    is_counting = 1;
}

static void on_end(unsigned cpu, void *user)
{
    FILE *file;
    (void)cpu, (void)user;
    is_counting = 0;
    if (is_done++ || (file = fopen(path, "w")) == NULL) return;
    fprintf(file, "code %" PRIu64 " data %" PRIu64 "\n", code_halves / 2, data_misses);
    for (uint32_t i = 0; i < SLOTS; i++)
        if (table[i].used && table[i].count)
            fprintf(file, "%" PRIx64 " %" PRIu64 "\n", table[i].address, table[i].count);
    (void)fclose(file);
}

static void on_line(unsigned cpu, void *line)
{
    uint64_t at = (uint64_t)(uintptr_t)line;
    (void)cpu;
    if (!is_counting) return;
    if (!is_held(code, CODE_LINES, at)) code_halves += at == last_code + 1 ? 1 : 2;
    last_code = at;
}

static void on_load(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *user)
{
    (void)cpu, (void)info, (void)user;
    /* Flash is not stored to. */
    if (is_counting && address < flash_end && !is_held(data, DATA_LINES, address / LINE + 1))
        data_misses++;
}

static void on_block(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    uint64_t before = 0;
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        struct qemu_plugin_insn *each = qemu_plugin_tb_get_insn(block, i);
        uint64_t at = qemu_plugin_insn_vaddr(each);
        if (at == begin_at)
            qemu_plugin_register_vcpu_insn_exec_cb(each, on_begin, QEMU_PLUGIN_CB_NO_REGS, NULL);
        if (at == end_at)
            qemu_plugin_register_vcpu_insn_exec_cb(each, on_end, QEMU_PLUGIN_CB_NO_REGS, NULL);
        if (at / LINE + 1 != before && at < flash_end) {
            before = at / LINE + 1;
            qemu_plugin_register_vcpu_insn_exec_cb(each, on_line, QEMU_PLUGIN_CB_NO_REGS,
                                                   (void *)(uintptr_t)before);
        }
        qemu_plugin_register_vcpu_insn_exec_inline(each, QEMU_PLUGIN_INLINE_ADD_U64, count_of(at), 1);
        qemu_plugin_register_vcpu_mem_cb(each, on_load, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW, NULL);
    }
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "begin=", 6)) begin_at = strtoull(argv[i] + 6, NULL, 16) & ~1ull;
        if (!strncmp(argv[i], "end=", 4)) end_at = strtoull(argv[i] + 4, NULL, 16) & ~1ull;
        if (!strncmp(argv[i], "flash=", 6)) flash_end = strtoull(argv[i] + 6, NULL, 16);
        if (!strncmp(argv[i], "out=", 4)) snprintf(path, sizeof path, "%s", argv[i] + 4);
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
    return 0;
}
