/* QEMU plugin: the clock of an emulated AArch64 program is that of a modelled core.
 *
 *   qemu-aarch64 -plugin core_clock.so,table=FILE program
 *
 * CLOCK_MONOTONIC gives the real time of the start plus the modelled time since then, so that what
 * measures itself (time_evaluator, a profile) reads the model, without noise.
 *
 * The model: a block's cycles are those of its steady repetition, its instructions put one after the
 * other on the core's pipes when what they read is there; in order, or out of order within a window.
 * Each line of memory that the first-level cache lacks costs more, less where the line is the next of
 * a stream.  Instructions are told apart by the disassembler's text.  The table is written by
 * core_clock.py, which has the sources of its numbers.
 *
 * QEMU's header is not part of Debian's packages, so what is used of it is declared here. */
#define _GNU_SOURCE
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t,
                                           void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
char *qemu_plugin_insn_disas(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, enum qemu_plugin_op, void *,
                                              uint64_t);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *,
                                      void (*)(unsigned, qemu_plugin_meminfo_t, uint64_t, void *),
                                      enum qemu_plugin_cb_flags, enum qemu_plugin_mem_rw, void *);
void qemu_plugin_register_vcpu_syscall_cb(
    qemu_plugin_id_t, void (*)(qemu_plugin_id_t, unsigned, int64_t, uint64_t, uint64_t, uint64_t,
                               uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t,
                                              void (*)(qemu_plugin_id_t, unsigned, int64_t, int64_t));

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

#define CLOCK_GETTIME 113 /* of AArch64 */
#define UNITS 16          /* parts of a cycle that a block is counted in */
#define REGISTERS 66      /* 0..31 integer, 32..63 vector, 64 flags, 65 none */
#define FLAGS 64
#define NONE 65
#define MOST 512 /* instructions of a block that are looked at */
#define REPEATS 8 /* at least: out of order as many as fill the window some times */
#define STREAMS 8
#define PIPES 16

/* What the table says. */
struct kind {
    char name[16];
    int group, latency, sum_latency, busy; /* cycles; sum_latency: to the next addition to a sum */
};
static struct kind kinds[64];
static int kind_count;
static struct {
    int width, window, in_order, mhz;
    int pipes[PIPES]; /* of each group */
    int line, l1_sets, l1_ways, l2_sets, l2_ways;
    int l2_cost, memory_cost, l2_stream, memory_stream; /* sixteenths of a cycle for a line */
} core;

static uint64_t units; /* of modelled time, sixteenths of a cycle */
static struct timespec started;

/* ---- instructions ---- */

struct step {
    const struct kind *kind;
    int reads[6], writes[3]; /* registers, NONE at the end */
    int sum;                 /* read late, NONE for none */
    int base;                /* an address that is counted up, NONE for none */
};

static const struct kind *kind_named(const char *name)
{
    for (int i = 0; i < kind_count; i++)
        if (!strcmp(kinds[i].name, name)) return &kinds[i];
    fprintf(stderr, "core_clock: the table has no kind %s\n", name);
    exit(1);
}

static int starts(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }

static int one_of(const char *word, const char *const *words)
{
    for (; *words != NULL; words++)
        if (!strcmp(word, *words)) return 1;
    return 0;
}

/* Return the register that a token names, NONE if it names none; `bytes` is a vector's length. */
static int register_of(const char *token, int *bytes)
{
    static const char letters[] = "bhsdq";
    int number;
    const char *found = strchr("wx", token[0]);
    if (!strcmp(token, "sp")) return 31;
    if (token[0] == 0 || !isdigit((unsigned char)token[1])) return NONE;
    number = atoi(token + 1);
    if (number > 31) return NONE;
    if (found != NULL) return number;
    if (token[0] == 'v') {
        const char *arrangement = strchr(token, '.');
        *bytes = 16;
        if (arrangement != NULL && (starts(arrangement, ".8b") || starts(arrangement, ".4h") ||
                                    starts(arrangement, ".2s") || starts(arrangement, ".1d")))
            *bytes = 8;
        return 32 + number;
    }
    found = strchr(letters, token[0]);
    if (found == NULL) return NONE;
    *bytes = 1 << (found - letters);
    return 32 + number;
}

static const char *kind_of(const char *word, int vectors, int first_is_vector, int bytes, int count)
{
    static const char *const fma[] = {"fmla", "fmls", "fmadd", "fmsub", "fnmadd", "fnmsub", NULL};
    static const char *const dot[] = {"sdot", "udot", "usdot", "smmla", "ummla", "bfdot",
                                      "bfmmla", NULL};
    static const char *const mac[] = {"mla", "mls", "smlal", "umlal", "smlal2", "umlal2", "smlsl",
                                      "sadalp", "uadalp", NULL};
    static const char *const multiply[] = {"mul", "smull", "umull", "smull2", "umull2", "sqdmulh",
                                           "sqrdmulh", "pmull", NULL};
    static const char *const slow[] = {"fdiv", "fsqrt", NULL};
    static const char *const move[] = {"fmov", "umov", "smov", NULL};
    static const char *const permute[] = {"zip1", "zip2", "uzp1", "uzp2", "trn1", "trn2", "ext",
                                          "dup", "ins", "mov", "tbl", "rev64", "rev32", "xtn",
                                          "xtn2", "movi", "mvni", NULL};
    int q = bytes == 16;
    if (starts(word, "ldp") || starts(word, "ldnp"))
        return !first_is_vector ? "load_pair" : q ? "load_pair_q" : "load_pair_d";
    if (starts(word, "stp") || starts(word, "stnp"))
        return !first_is_vector ? "store_pair" : q ? "store_pair_q" : "store_pair_d";
    if (starts(word, "ld") && isdigit((unsigned char)word[2]))
        return count > 2 ? "load_many" : count > 1 ? "load_pair_q" : "load_q";
    if (starts(word, "st") && isdigit((unsigned char)word[2]))
        return count > 1 ? "store_pair_q" : "store_q";
    if (starts(word, "ld")) return !first_is_vector ? "load" : q ? "load_q" : "load_d";
    if (starts(word, "st")) return !first_is_vector ? "store" : q ? "store_q" : "store_d";
    if (word[0] == 'b' && (word[1] == 0 || word[1] == '.' || !strcmp(word, "bl") ||
                           !strcmp(word, "br") || !strcmp(word, "blr")))
        return "branch";
    if (starts(word, "cb") || starts(word, "tb") || !strcmp(word, "ret"))
        if (!vectors) return "branch";
    if (!vectors) {
        if (starts(word, "sdiv") || starts(word, "udiv")) return "divide";
        if (starts(word, "madd") || starts(word, "msub") || starts(word, "smadd") ||
            starts(word, "umadd") || starts(word, "mul") || starts(word, "smul") ||
            starts(word, "umul"))
            return "multiply";
        return "alu";
    }
    if (one_of(word, fma)) return q ? "fma_q" : "fma_d";
    if (one_of(word, dot)) return q ? "dot_q" : "dot_d";
    if (one_of(word, mac)) return q ? "mac_q" : "mac_d";
    if (one_of(word, multiply)) return q ? "vmul_q" : "vmul_d";
    if (one_of(word, slow)) return q ? "slow_q" : "slow_d";
    if (one_of(word, move)) return "move";
    if (one_of(word, permute)) return q ? "permute_q" : "permute_d";
    if (starts(word, "scvtf") || starts(word, "ucvtf") || starts(word, "fcvt") ||
        starts(word, "frint"))
        return q ? "convert_q" : "convert_d";
    if (word[0] == 'f') return q ? "float_q" : "float_d";
    return q ? "vint_q" : "vint_d";
}

static void add(int *list, int limit, int value)
{
    int i = 0;
    while (i < limit - 1 && list[i] != NONE) i++;
    if (i < limit - 1 && value != NONE) list[i] = value, list[i + 1] = NONE;
}

/* Say of an instruction what it is, reads and writes; `text` is the disassembler's. */
static void decode(char *text, struct step *step)
{
    char *save = NULL;
    char *word = strtok_r(text, " \t", &save);
    char *token;
    int count = 0, vectors = 0, first_is_vector = 0, bytes = 8, in_address = 0, operands = 0;
    int is_store, is_pair, sets_flags, writes_back = 0, base = NONE;
    step->reads[0] = step->writes[0] = step->sum = step->base = NONE;
    if (word == NULL) word = (char *)"nop";
    is_store = starts(word, "st");
    is_pair = starts(word, "ldp") || starts(word, "ldnp");
    sets_flags = !strcmp(word, "cmp") || !strcmp(word, "cmn") || !strcmp(word, "tst") ||
                 !strcmp(word, "fcmp") || !strcmp(word, "ccmp") || !strcmp(word, "fcmpe");
    while ((token = strtok_r(NULL, " ,\t{}", &save)) != NULL) {
        int is_open = *token == '[', length, size = 8, found;
        char *start = token + is_open;
        length = (int)strlen(start);
        if (is_open) in_address = 1;
        if (in_address && length > 0 && start[length - 1] == '!') writes_back = 1, length--;
        if (in_address && strchr(start, ']') != NULL && strchr(token, '.') == NULL) {
            char *after = save;
            while (after != NULL && (*after == ' ' || *after == ',')) after++;
            if (after != NULL && *after != 0) writes_back = 1; /* [x0], #16 */
        }
        start[strcspn(start, "]!")] = 0;
        found = register_of(start, &size);
        if (found == NONE) continue;
        if (found >= 32) {
            vectors = 1;
            if (size > bytes || operands == 0) bytes = size;
        }
        if (in_address) {
            add(step->reads, 6, found);
            if (base == NONE) base = found;
        } else if (sets_flags || is_store || starts(word, "cb") || starts(word, "tb")) {
            if (operands == 0) first_is_vector = found >= 32;
            add(step->reads, 6, found);
            count++;
        } else if (operands == 0 || (is_pair && operands == 1) ||
                   (starts(word, "ld") && isdigit((unsigned char)word[2]))) {
            if (operands == 0) first_is_vector = found >= 32;
            add(step->writes, 3, found);
            count++;
        } else {
            add(step->reads, 6, found);
        }
        operands++;
    }
    if (sets_flags || !strcmp(word, "subs") || !strcmp(word, "adds") || !strcmp(word, "ands"))
        add(step->writes, 3, FLAGS);
    if (starts(word, "b.") || starts(word, "cs") || starts(word, "cinc") || starts(word, "fcsel"))
        add(step->reads, 6, FLAGS);
    if (writes_back) step->base = base;
    step->kind = kind_named(kind_of(word, vectors, first_is_vector, bytes, count));
    if (step->kind->sum_latency > 0) {
        if (starts(word, "fmadd") || starts(word, "fmsub") || starts(word, "fnm")) {
            for (int i = 0; step->reads[i] != NONE; i++)
                if (step->reads[i + 1] == NONE) { /* the last operand is added to */
                    step->sum = step->reads[i];
                    step->reads[i] = NONE;
                    break;
                }
        } else {
            step->sum = step->writes[0];
        }
    }
}

/* ---- the pipes ---- */

static double largest(double a, double b) { return a > b ? a : b; }

/* Return the sixteenths of a cycle that a block takes, repeated. */
static uint64_t cost_of(const struct step *steps, size_t count)
{
    static double done[MOST];           /* when each of the last instructions is complete */
    double ready[REGISTERS] = {0};      /* when a register can be read */
    double summed[REGISTERS] = {0};     /* when a sum can be added to */
    double free_at[PIPES][4] = {{0}};   /* when a pipe takes the next */
    double now = 0, begun = 0, retired = 0;
    int used = 0;
    size_t number = 0;
    int rounds = REPEATS;
    if (count == 0) return 0;
    if (!core.in_order && (size_t)core.window * 6 > count * REPEATS)
        rounds = (int)((size_t)core.window * 6 / count) & ~1;
    memset(done, 0, sizeof done);
    for (int round = 0; round < rounds; round++) {
        if (round == rounds / 2) begun = core.in_order ? now : retired;
        for (size_t i = 0; i < count; i++, number++) {
            const struct step *step = &steps[i];
            const struct kind *kind = step->kind;
            double at, *pipe = &free_at[kind->group][0];
            if (used == core.width) now += 1, used = 0;
            if (!core.in_order && done[number % (size_t)core.window] > now)
                now = done[number % (size_t)core.window], used = 0;
            at = now;
            for (int r = 0; step->reads[r] != NONE; r++) at = largest(at, ready[step->reads[r]]);
            if (step->sum != NONE) at = largest(at, summed[step->sum]);
            for (int p = 1; p < core.pipes[kind->group]; p++)
                if (free_at[kind->group][p] < *pipe) pipe = &free_at[kind->group][p];
            at = largest(at, *pipe);
            *pipe = at + kind->busy / (double)UNITS;
            for (int w = 0; step->writes[w] != NONE; w++) {
                ready[step->writes[w]] = at + kind->latency;
                summed[step->writes[w]] = at + (kind->sum_latency ? kind->sum_latency : kind->latency);
            }
            if (step->base != NONE) ready[step->base] = at + 1;
            if (core.in_order && at > now) now = at, used = 0;
            used++;
            retired = largest(retired, at + 1);
            done[number % (size_t)core.window] = retired;
        }
    }
    return (uint64_t)(((core.in_order ? now : retired) - begun) / (rounds / 2) * UNITS + 0.5);
}

/* ---- the caches ---- */

static uint64_t l1[1 << 14], l2[1 << 18]; /* lines by set, the latest first; 0: none */
static uint64_t streams[STREAMS], last_line;
static unsigned next_stream;

static int touched(uint64_t *cache, int sets, int ways, uint64_t line)
{
    uint64_t *set = cache + (line % (uint64_t)sets) * (uint64_t)ways;
    int way = 0;
    while (way < ways - 1 && set[way] != line) way++;
    int hit = set[way] == line;
    memmove(set + 1, set, (size_t)way * sizeof *set);
    set[0] = line;
    return hit;
}

static void on_access(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *user)
{
    uint64_t line = address / (uint64_t)core.line + 1;
    int is_stream = 0, in_l2;
    (void)cpu, (void)info, (void)user;
    if (line == last_line) return;
    last_line = line;
    if (touched(l1, core.l1_sets, core.l1_ways, line)) return;
    in_l2 = touched(l2, core.l2_sets, core.l2_ways, line);
    for (int i = 0; i < STREAMS; i++)
        if (streams[i] == line) streams[i] = line + 1, is_stream = 1;
    if (!is_stream) streams[next_stream++ % STREAMS] = line + 1;
    units += (uint64_t)(in_l2 ? (is_stream ? core.l2_stream : core.l2_cost)
                              : (is_stream ? core.memory_stream : core.memory_cost));
}

/* ---- the program ---- */

static void on_block(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    static struct step steps[MOST];
    size_t length = qemu_plugin_tb_n_insns(block);
    (void)id;
    if (length > MOST) length = MOST;
    for (size_t i = 0; i < length; i++) {
        struct qemu_plugin_insn *each = qemu_plugin_tb_get_insn(block, i);
        char *text = qemu_plugin_insn_disas(each);
        decode(text, &steps[i]);
        free(text);
        qemu_plugin_register_vcpu_mem_cb(each, on_access, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW, NULL);
    }
    qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &units,
                                             cost_of(steps, length));
}

static __thread uint64_t answer_at; /* where the answer goes, 0: the call is another one */

static void on_call(qemu_plugin_id_t id, unsigned cpu, int64_t number, uint64_t clock,
                    uint64_t answer, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,
                    uint64_t a7, uint64_t a8)
{
    (void)id, (void)cpu, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    answer_at = (number == CLOCK_GETTIME && (int32_t)clock == CLOCK_MONOTONIC) ? answer : 0;
}

static void on_return(qemu_plugin_id_t id, unsigned cpu, int64_t number, int64_t result)
{
    struct timespec now, told;
    struct iovec ours = {&told, sizeof told}, theirs = {(void *)(uintptr_t)answer_at, sizeof told};
    uint64_t passed;
    (void)id, (void)cpu;
    if (number != CLOCK_GETTIME || answer_at == 0 || result != 0) return;
    /* The program's memory is ours at the same addresses, or this is not the emulator meant. */
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) != (ssize_t)sizeof told ||
        told.tv_sec > now.tv_sec || told.tv_sec + 60 < now.tv_sec) {
        fprintf(stderr, "core_clock: the program's memory is not where it is looked for\n");
        _exit(70);
    }
    passed = units / UNITS * 1000 / (uint64_t)core.mhz;
    told.tv_sec = started.tv_sec + (time_t)((started.tv_nsec + passed) / 1000000000u);
    told.tv_nsec = (long)((started.tv_nsec + passed) % 1000000000u);
    (void)process_vm_writev(getpid(), &ours, 1, &theirs, 1, 0);
    answer_at = 0;
}

static int read_table(const char *path)
{
    char word[32];
    FILE *file = fopen(path, "r");
    if (file == NULL) return -1;
    while (fscanf(file, "%31s", word) == 1) {
        struct kind *kind = &kinds[kind_count];
        int got = -1;
        if (!strcmp(word, "core"))
            got = fscanf(file, "%d %d %d %d", &core.width, &core.window, &core.in_order, &core.mhz);
        else if (!strcmp(word, "pipes"))
            for (int i = 0; i < 6; i++) got = fscanf(file, "%d", &core.pipes[i]);
        else if (!strcmp(word, "cache"))
            got = fscanf(file, "%d %d %d %d %d", &core.line, &core.l1_sets, &core.l1_ways,
                         &core.l2_sets, &core.l2_ways);
        else if (!strcmp(word, "miss"))
            got = fscanf(file, "%d %d %d %d", &core.l2_cost, &core.memory_cost, &core.l2_stream,
                         &core.memory_stream);
        else if (!strcmp(word, "kind") && kind_count < 64)
            got = fscanf(file, "%15s %d %d %d %d", kind->name, &kind->group, &kind->latency,
                         &kind->sum_latency, &kind->busy), kind_count++;
        if (got < 1) return -1;
    }
    (void)fclose(file);
    return (core.width > 0 && core.mhz > 0 && core.window > 0 && core.window <= MOST &&
            core.l1_sets * core.l1_ways <= 1 << 14 && core.l2_sets * core.l2_ways <= 1 << 18)
               ? 0 : -1;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], "table=", 6) && read_table(argv[i] + 6) != 0) {
            fprintf(stderr, "core_clock: %s is no table of a core\n", argv[i] + 6);
            return -1;
        }
    (void)clock_gettime(CLOCK_MONOTONIC, &started);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
    qemu_plugin_register_vcpu_syscall_cb(id, on_call);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_return);
    return 0;
}
