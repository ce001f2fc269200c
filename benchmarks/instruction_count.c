/* QEMU plugin (interface version 1): how many instructions a process executed.
 *
 *   cc -O2 -shared -fPIC -o instruction_count.so instruction_count.c
 *   qemu-aarch64 -plugin instruction_count.so,out=FILE program
 *
 * Every process, forked ones too, writes its count to FILE.<pid> when it exits.  QEMU's header is
 * not part of Debian's packages, so what is used of it is declared here. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t,
                                           void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, enum qemu_plugin_op, void *,
                                              uint64_t);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

static uint64_t total;
static char path[4096];

static void on_block(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &total,
                                             qemu_plugin_tb_n_insns(block));
}

static void on_exit_of_process(qemu_plugin_id_t id, void *user)
{
    char name[4200];
    (void)id;
    (void)user;
    snprintf(name, sizeof name, "%s.%d", path, (int)getpid());
    FILE *file = fopen(name, "w");
    if (file != NULL) {
        fprintf(file, "%" PRIu64 "\n", total);
        fclose(file);
    }
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], "out=", 4)) snprintf(path, sizeof path, "%s", argv[i] + 4);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
    qemu_plugin_register_atexit_cb(id, on_exit_of_process, NULL);
    return 0;
}
