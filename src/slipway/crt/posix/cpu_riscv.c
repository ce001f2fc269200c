/* SPDX-License-Identifier: Apache-2.0 */
/* Extensions of RISC-V that AT_HWCAP has no bit for.  Kernels before 6.4 have no riscv_hwprobe, and
 * /proc/cpuinfo of many names single letters only, so each is asked by running one instruction of
 * it: where it is missing, or the system does not save its registers, that ends in SIGILL.
 * Sources: RISC-V unprivileged ISA 20240411, T-Head extension spec 2.3.0. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1 /* the registers in ucontext_t */
#endif
#include "cpu_riscv.h"

#if defined(__riscv) && defined(__linux__)

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <ucontext.h>

#if defined(__riscv_vector)
#define VECTOR_REGISTERS , "v0", "v2", "vl", "vtype"
#else
#define VECTOR_REGISTERS /* the compiler uses none */
#endif

#define NOP 0x00000013
#define OF_8_BITS 0xc000f057      /* vsetivli zero, 1, e8, m1, tu, mu */
#define OF_16_BITS 0xc080f057     /* vsetivli zero, 1, e16, m1, tu, mu */
#define OF_HALF_BITS 0xc0f0f057   /* vsetivli zero, 1, e16, mf2, tu, mu */
#define OF_32_BITS 0xc100f057     /* vsetivli zero, 1, e32, m1, tu, mu */
#define OF_64_BITS 0xc180f057     /* vsetivli zero, 1, e64, m1, tu, mu */

#define WORDS(first, second)                                                                   \
  __asm__ volatile(".balign 4\n .4byte " #first "\n .4byte " #second ::: "t0", "t1", "a5", "ft0", \
                   "memory" VECTOR_REGISTERS)
#define TRIAL(name, first, second)  \
  static void try_##name(void) {    \
    WORDS_OF(first, second);        \
  }
#define WORDS_OF(first, second) WORDS(first, second)

/* Each computes with registers that a call may change; those of memory read the stack's top. */
TRIAL(zba, NOP, 0x200022b3)             /* sh1add t0, zero, zero */
TRIAL(zbb, NOP, 0x0a0042b3)             /* min t0, zero, zero */
TRIAL(zbc, NOP, 0x0a0022b3)             /* clmulr t0, zero, zero */
TRIAL(zbs, NOP, 0x280012b3)             /* bset t0, zero, zero */
TRIAL(zbkb, NOP, 0x085042b3)            /* pack t0, zero, t0 */
TRIAL(zbkc, NOP, 0x0a0012b3)            /* clmul t0, zero, zero */
TRIAL(zbkx, NOP, 0x280042b3)            /* xperm8 t0, zero, zero */
TRIAL(zcb, NOP, 0x00019fe1)             /* c.zext.b a5; c.nop */
TRIAL(zfa, NOP, 0xf0180053)             /* fli.s ft0, 1.0 */
TRIAL(zfbfmin, NOP, 0x44807053)         /* fcvt.bf16.s ft0, ft0 */
TRIAL(zfh, NOP, 0x04007053)             /* fadd.h ft0, ft0, ft0 */
TRIAL(zfhmin, NOP, 0x40200053)          /* fcvt.s.h ft0, ft0 */
TRIAL(zicond, NOP, 0x0e0052b3)          /* czero.eqz t0, zero, zero */
TRIAL(zve32x, OF_32_BITS, 0x02000057)   /* vadd.vv v0, v0, v0 */
TRIAL(zve32f, OF_32_BITS, 0x02001057)   /* vfadd.vv v0, v0, v0 */
TRIAL(zve64x, OF_64_BITS, 0x02000057)
TRIAL(zve64d, OF_64_BITS, 0x02001057)
TRIAL(zvbb, OF_8_BITS, 0x4a052057)      /* vbrev.v v0, v0 */
TRIAL(zvbc, OF_64_BITS, 0x32002057)     /* vclmul.vv v0, v0, v0 */
TRIAL(zvfbfmin, OF_HALF_BITS, 0x4a069157) /* vfwcvtbf16.f.f.v v2, v0 */
TRIAL(zvfbfwma, OF_HALF_BITS, 0xee001157) /* vfwmaccbf16.vv v2, v0, v0 */
TRIAL(zvfh, OF_16_BITS, 0x02001057)
TRIAL(zvfhmin, OF_HALF_BITS, 0x4a061157)  /* vfwcvt.f.f.v v2, v0 */
TRIAL(zvkb, OF_8_BITS, 0x06000057)        /* vandn.vv v0, v0, v0 */
TRIAL(xtheadba, NOP, 0x0000128b)          /* th.addsl t0, zero, zero, 0 */
TRIAL(xtheadbb, NOP, 0x8600128b)          /* th.ff1 t0, zero */
TRIAL(xtheadbs, NOP, 0x8800128b)          /* th.tst t0, zero, 0 */
TRIAL(xtheadcondmov, NOP, 0x4000128b)     /* th.mveqz t0, zero, zero */
TRIAL(xtheadfmemidx, NOP, 0x4001600b)     /* th.flrw ft0, sp, zero, 0 */
TRIAL(xtheadmac, NOP, 0x2000128b)         /* th.mula t0, zero, zero */
TRIAL(xtheadmemidx, NOP, 0x4001428b)      /* th.lrw t0, sp, zero, 0 */
TRIAL(xtheadmempair, NOP, 0xe061428b)     /* th.lwd t0, t1, (sp), 0, 3 */

static const struct {
  const char *name;
  void (*run)(void);
} TRIALS[] = {
    {"zba", try_zba},           {"zbb", try_zbb},           {"zbc", try_zbc},
    {"zbs", try_zbs},           {"zbkb", try_zbkb},         {"zbkc", try_zbkc},
    {"zbkx", try_zbkx},         {"zcb", try_zcb},           {"zfa", try_zfa},
    {"zfbfmin", try_zfbfmin},   {"zfh", try_zfh},           {"zfhmin", try_zfhmin},
    {"zicond", try_zicond},     {"zve32x", try_zve32x},     {"zve32f", try_zve32f},
    {"zve64x", try_zve64x},     {"zve64f", try_zve32f},     {"zve64d", try_zve64d},
    {"zvbb", try_zvbb},         {"zvbc", try_zvbc},         {"zvfbfmin", try_zvfbfmin},
    {"zvfbfwma", try_zvfbfwma}, {"zvfh", try_zvfh},         {"zvfhmin", try_zvfhmin},
    {"zvkb", try_zvkb},         {"xtheadba", try_xtheadba}, {"xtheadbb", try_xtheadbb},
    {"xtheadbs", try_xtheadbs}, {"xtheadcondmov", try_xtheadcondmov},
    {"xtheadfmemidx", try_xtheadfmemidx}, {"xtheadmac", try_xtheadmac},
    {"xtheadmemidx", try_xtheadmemidx},   {"xtheadmempair", try_xtheadmempair},
};
#define NUM_TRIALS (sizeof TRIALS / sizeof TRIALS[0])

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before; /* what SIGILL meant */
static pthread_t trying;        /* the thread that runs a trial */
static atomic_bool is_trying;
static volatile sig_atomic_t was_refused;
static slw_cpu_answer answers[NUM_TRIALS]; /* of trials that were run; guarded */
static bool is_answered[NUM_TRIALS];

/* Go on behind the instruction of a trial; of another thread's, do what would have been done. */
static void on_illegal(int number, siginfo_t *info, void *context) {
  if (atomic_load(&is_trying) && pthread_equal(pthread_self(), trying)) {
    ((ucontext_t *)context)->uc_mcontext.__gregs[REG_PC] += 4;
    was_refused = 1;
  } else if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  } else {
    (void)signal(SIGILL, SIG_DFL); /* the instruction runs again, and ends the program */
  }
}

static slw_cpu_answer tried(void (*run)(void)) {
  struct sigaction ours;
  sigset_t only;
  sigset_t had;
  memset(&ours, 0, sizeof ours);
  ours.sa_sigaction = on_illegal;
  ours.sa_flags = SA_SIGINFO;
  (void)sigemptyset(&ours.sa_mask);
  trying = pthread_self();
  was_refused = 0;
  if (sigaction(SIGILL, &ours, &before) != 0) {
    return SLW_CPU_UNKNOWN;
  }
  (void)sigemptyset(&only);
  (void)sigaddset(&only, SIGILL);
  (void)pthread_sigmask(SIG_UNBLOCK, &only, &had); /* blocked, it would end the program */
  atomic_store(&is_trying, true);
  run();
  atomic_store(&is_trying, false);
  (void)pthread_sigmask(SIG_SETMASK, &had, NULL);
  (void)sigaction(SIGILL, &before, NULL);
  return (was_refused != 0) ? SLW_CPU_LACKS : SLW_CPU_HAS;
}

const char *slw_cpu_riscv_feature(size_t index) {
  return (index < NUM_TRIALS) ? TRIALS[index].name : NULL;
}

slw_cpu_answer slw_cpu_riscv_has(const char *name, size_t name_bytes) {
  slw_cpu_answer answer = SLW_CPU_UNKNOWN;
  for (size_t i = 0; i < NUM_TRIALS; ++i) {
    if (strlen(TRIALS[i].name) == name_bytes && memcmp(TRIALS[i].name, name, name_bytes) == 0) {
      (void)pthread_mutex_lock(&guard);
      if (!is_answered[i]) {
        answers[i] = tried(TRIALS[i].run);
        is_answered[i] = true;
      }
      answer = answers[i];
      (void)pthread_mutex_unlock(&guard);
    }
  }
  return answer;
}

#else

const char *slw_cpu_riscv_feature(size_t index) {
  (void)index;
  return NULL;
}

slw_cpu_answer slw_cpu_riscv_has(const char *name, size_t name_bytes) {
  (void)name;
  (void)name_bytes;
  return SLW_CPU_UNKNOWN;
}

#endif
