/* QEMU plugin (interface version 1): how many instructions a process executed.
 *
 *   cc -O2 -shared -fPIC -o instruction_count.so instruction_count.c
 *   qemu-aarch64 -plugin instruction_count.so,out=FILE[,marks=on][,hot=on] program
 *
 * Every process, forked ones too, writes its count to FILE.<pid> when it exits.  With marks, a line
 * of FILE.<pid> is what was executed between close(-7001) and close(-7002), for each such pair; with
 * hot, the blocks that were executed most between them follow, as the disassembler shows them.
 * QEMU's header is not part of Debian's packages, so what is used of it is declared here. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t,
                                           void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
char *qemu_plugin_insn_disas(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, enum qemu_plugin_op, void *,
                                              uint64_t);
void qemu_plugin_register_vcpu_syscall_cb(
    qemu_plugin_id_t, void (*)(qemu_plugin_id_t, unsigned, int64_t, uint64_t, uint64_t, uint64_t,
                               uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

#define MARK_BEGIN (-7001)
#define MARK_END (-7002)
#define SHOWN 6 /* hot blocks */

struct block {
    uint64_t executed;
    size_t length;
    struct block *next;
    char *text[];
};

static uint64_t total, begun;
static char path[4096];
static int marks, hot;
static struct block *blocks;

static void on_block(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    size_t length = qemu_plugin_tb_n_insns(block);
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &total, length);
    if (hot) {
        struct block *made = calloc(1, sizeof *made + length * sizeof(char *));
        made->length = length;
        made->next = blocks;
        blocks = made;
        for (size_t i = 0; i < length; i++)
            made->text[i] = qemu_plugin_insn_disas(qemu_plugin_tb_get_insn(block, i));
        qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &made->executed,
                                                 1);
    }
}

static void append(const char *mode, void (*print)(FILE *))
{
    char name[4200];
    snprintf(name, sizeof name, "%s.%d", path, (int)getpid());
    FILE *file = fopen(name, mode);
    if (file != NULL) {
        print(file);
        fclose(file);
    }
}

static void print_total(FILE *file) { fprintf(file, "%" PRIu64 "\n", total); }

static void print_marked(FILE *file)
{
    fprintf(file, "%" PRIu64 "\n", total - begun);
    for (int shown = 0; hot && shown < SHOWN; shown++) {
        struct block *most = blocks;
        for (struct block *b = blocks; b != NULL; b = b->next)
            if (b->executed * b->length > most->executed * most->length) most = b;
        fprintf(file, "  %" PRIu64 " times:\n", most->executed);
        for (size_t i = 0; i < most->length; i++) fprintf(file, "    %s\n", most->text[i]);
        most->executed = 0;
    }
}

static void on_system_call(qemu_plugin_id_t id, unsigned cpu, int64_t number, uint64_t first,
                           uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,
                           uint64_t a7, uint64_t a8)
{
    (void)id, (void)cpu, (void)number;
    (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if ((int32_t)first == MARK_BEGIN) {
        begun = total;
        for (struct block *b = blocks; b != NULL; b = b->next) b->executed = 0;
    } else if ((int32_t)first == MARK_END) {
        append("a", print_marked);
    }
}

static void on_exit_of_process(qemu_plugin_id_t id, void *user)
{
    (void)id, (void)user;
    append("w", print_total);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "out=", 4)) snprintf(path, sizeof path, "%s", argv[i] + 4);
        marks |= !strcmp(argv[i], "marks=on");
        hot |= !strcmp(argv[i], "hot=on");
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
    if (marks)
        qemu_plugin_register_vcpu_syscall_cb(id, on_system_call);
    else
        qemu_plugin_register_atexit_cb(id, on_exit_of_process, NULL);
    return 0;
}
