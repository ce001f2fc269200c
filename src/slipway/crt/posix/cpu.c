/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: Intel SDM volume 2A (CPUID), Intel AVX10 and APX specifications, AMD APM volume 3
 * appendix E; Linux uapi asm/hwcap.h of arm64, arm and riscv. */
#include "cpu_riscv.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#define REQUEST_PERMISSION 0x1023 /* ARCH_REQ_XCOMP_PERM of arch_prctl */
#define TILE_DATA 18
#endif
#elif defined(__linux__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#define SVE_GET_VL 51 /* PR_SVE_GET_VL */
#endif

typedef struct {
  const char *name;
  unsigned word; /* which of the words read below */
  unsigned bit;
} feature;

#if defined(__x86_64__)

enum { L1_ECX, L1_EDX, L7_EBX, L7_ECX, L7_EDX, L71_EAX, L71_EDX, EXT_ECX, AVX10, L1E_EAX,
       NUM_WORDS };

static const feature FEATURES[] = {
    {"sse3", L1_ECX, 0},          {"pclmul", L1_ECX, 1},
    {"ssse3", L1_ECX, 9},         {"fma", L1_ECX, 12},
    {"cx16", L1_ECX, 13},         {"sse4.1", L1_ECX, 19},
    {"sse4.2", L1_ECX, 20},       {"movbe", L1_ECX, 22},
    {"popcnt", L1_ECX, 23},       {"aes", L1_ECX, 25},
    {"avx", L1_ECX, 28},          {"f16c", L1_ECX, 29},
    {"rdrnd", L1_ECX, 30},        {"cmov", L1_EDX, 15},
    {"mmx", L1_EDX, 23},          {"sse", L1_EDX, 25},
    {"sse2", L1_EDX, 26},         {"bmi", L7_EBX, 3},
    {"avx2", L7_EBX, 5},          {"bmi2", L7_EBX, 8},
    {"avx512f", L7_EBX, 16},      {"avx512dq", L7_EBX, 17},
    {"adx", L7_EBX, 19},          {"avx512ifma", L7_EBX, 21},
    {"avx512cd", L7_EBX, 28},     {"sha", L7_EBX, 29},
    {"avx512bw", L7_EBX, 30},     {"avx512vl", L7_EBX, 31},
    {"avx512vbmi", L7_ECX, 1},    {"avx512vbmi2", L7_ECX, 6},
    {"gfni", L7_ECX, 8},          {"vaes", L7_ECX, 9},
    {"vpclmulqdq", L7_ECX, 10},   {"avx512vnni", L7_ECX, 11},
    {"avx512bitalg", L7_ECX, 12}, {"avx512vpopcntdq", L7_ECX, 14},
    {"avx512vp2intersect", L7_EDX, 8},
    {"amx-bf16", L7_EDX, 22},     {"avx512fp16", L7_EDX, 23},
    {"amx-tile", L7_EDX, 24},     {"amx-int8", L7_EDX, 25},
    {"avxvnni", L71_EAX, 4},      {"avx512bf16", L71_EAX, 5},
    {"lzcnt", EXT_ECX, 5},        {"sse4a", EXT_ECX, 6},
    {"xop", EXT_ECX, 11},         {"fma4", EXT_ECX, 16},
    {"tbm", EXT_ECX, 21},         {"sha512", L71_EAX, 0},
    {"sm3", L71_EAX, 1},          {"sm4", L71_EAX, 2},
    {"cmpccxadd", L71_EAX, 7},    {"amx-fp16", L71_EAX, 21},
    {"avxifma", L71_EAX, 23},     {"avxvnniint8", L71_EDX, 4},
    {"avxneconvert", L71_EDX, 5}, {"amx-complex", L71_EDX, 8},
    {"avxvnniint16", L71_EDX, 10},
    /* APX is one feature of the processor, and LLVM has a name for each of its parts. */
    {"egpr", L71_EDX, 21},        {"push2pop2", L71_EDX, 21},
    {"ppx", L71_EDX, 21},         {"ndd", L71_EDX, 21},
    {"ccmp", L71_EDX, 21},        {"nf", L71_EDX, 21},
    {"cf", L71_EDX, 21},          {"zu", L71_EDX, 21},
    {"amx-fp8", L1E_EAX, 4},      {"amx-tf32", L1E_EAX, 6},
    {"amx-avx512", L1E_EAX, 7},   {"amx-movrs", L1E_EAX, 8},
    {"avx10.1", AVX10, 1},        {"avx10.1-512", AVX10, 1},
    {"avx10.2", AVX10, 2},        {"avx10.2-512", AVX10, 2},
};

static uint64_t enabled_state(void) {
  uint32_t low;
  uint32_t high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return ((uint64_t)high << 32) | low;
}

#define L7_EBX_AVX2 (1U << 5)
#define L7_EBX_AVX512 0xd0230000U   /* F DQ IFMA CD BW VL */
#define L7_ECX_AVX512 0x00005842U   /* VBMI VBMI2 VNNI BITALG VPOPCNTDQ */
#define L1_ECX_AVX 0x30001000U      /* FMA AVX F16C */
#define L71_EDX_AVX 0x00000430U    /* VNNI-INT8 NE-CONVERT VNNI-INT16 */
#define L71_EDX_AVX10 (1U << 19)
#define L71_EDX_APX (1U << 21)
#define STATE_AVX 0x06U
#define STATE_AVX512 0xe6U
#define STATE_APX 0x80000U
#define STATE_TILES 0x60000U
#define L7_EDX_TILES 0x03400000U  /* AMX BF16 TILE INT8 */
#define L71_EAX_TILES (1U << 21)  /* AMX FP16 */
#define L71_EDX_TILES (1U << 8)   /* AMX COMPLEX */

/* Linux lets a process use tiles once it has asked, and its threads and children with it. */
static bool tiles_permitted(void) {
#if defined(__linux__)
  return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
  return false;
#endif
}

/* Bit n: AVX10.n is there, for each version has all of the one before. */
static uint32_t avx10_versions(void) {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  uint32_t versions = 0;
  if (__get_cpuid_count(0x24U, 0, &a, &b, &c, &d)) {
    for (unsigned i = 1; i <= (b & 0xffU) && i < 32U; ++i) {
      versions |= (uint32_t)1 << i;
    }
  }
  return versions;
}

/* A feature counts only if the system saves the registers it uses (XCR0). */
static void read_words(uint32_t words[NUM_WORDS]) {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  uint64_t state = 0;
  memset(words, 0, NUM_WORDS * sizeof words[0]);
  if (__get_cpuid(1, &a, &b, &c, &d)) {
    words[L1_ECX] = c;
    words[L1_EDX] = d;
    state = ((c >> 27) & 1U) ? enabled_state() : 0U;
  }
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    words[L7_EBX] = b;
    words[L7_ECX] = c;
    words[L7_EDX] = d;
  }
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) {
    words[L71_EAX] = a;
    words[L71_EDX] = d;
    words[AVX10] = ((d & L71_EDX_AVX10) != 0) ? avx10_versions() : 0;
  }
  if (__get_cpuid_count(0x1eU, 1, &a, &b, &c, &d)) {
    words[L1E_EAX] = a;
  }
  if (__get_cpuid(0x80000001U, &a, &b, &c, &d)) {
    words[EXT_ECX] = c;
  }
  if ((state & STATE_AVX) != STATE_AVX) {
    words[L1_ECX] &= ~L1_ECX_AVX;
    words[L7_EBX] &= ~L7_EBX_AVX2;
    words[L71_EAX] = 0;
    words[L71_EDX] &= ~L71_EDX_AVX;
  }
  if ((state & STATE_AVX512) != STATE_AVX512) {
    words[L7_EBX] &= ~L7_EBX_AVX512;
    words[L7_ECX] &= ~L7_ECX_AVX512;
    words[L7_EDX] &= ~((1U << 8) | (1U << 23));
    words[L71_EAX] &= ~(1U << 5);
    words[AVX10] = 0;
  }
  if ((words[L7_EDX] & L7_EDX_TILES) != 0 &&
      ((state & STATE_TILES) != STATE_TILES || !tiles_permitted())) {
    words[L7_EDX] &= ~L7_EDX_TILES;
    words[L71_EAX] &= ~L71_EAX_TILES;
    words[L71_EDX] &= ~L71_EDX_TILES;
    words[L1E_EAX] = 0;
  }
  if ((state & STATE_APX) == 0) {
    words[L71_EDX] &= ~L71_EDX_APX;
  }
}

#else

/* CAP1H and CAP2H: the upper halves, where words of the system have 64 bits. */
enum { CAP1, CAP2, CAP1H, CAP2H, ARCH, NUM_WORDS };

/* Not here: what no code generator makes of a kernel (mte, pauth, rand, the ciphers of SVE), for
 * LLVM counts some of it to processors that are built without. */
#if defined(__aarch64__)
static const feature FEATURES[] = {
    {"fp-armv8", CAP1, 0},  {"neon", CAP1, 1},     {"aes", CAP1, 3},     {"sha2", CAP1, 6},
    {"crc", CAP1, 7},       {"lse", CAP1, 8},      {"fullfp16", CAP1, 9}, {"rdm", CAP1, 12},
    {"jsconv", CAP1, 13},   {"complxnum", CAP1, 14}, {"rcpc", CAP1, 15}, {"sha3", CAP1, 17},
    {"sm4", CAP1, 19},      {"dotprod", CAP1, 20}, {"sve", CAP1, 22},    {"fp16fml", CAP1, 23},
    {"cmpbr", CAP1H, 1},    {"fprcvt", CAP1H, 2},  {"f8f32mm", CAP1H, 3}, {"f8f16mm", CAP1H, 4},
    {"sve-f16f32mm", CAP1H, 5}, {"sve-bfscale", CAP1H, 8}, {"sve2p2", CAP1H, 9},
    {"sme2p2", CAP1H, 10},
    {"sve2", CAP2, 1},      {"fptoint", CAP2, 8},   {"f32mm", CAP2, 10},   {"f64mm", CAP2, 11},  {"i8mm", CAP2, 13},
    {"bf16", CAP2, 14},     {"sme", CAP2, 23},    {"sme-i16i64", CAP2, 24},
    {"sme-f64f64", CAP2, 25}, {"sme-fa64", CAP2, 30}, {"cssc", CAP2H, 2},     {"sve2p1", CAP2H, 4},  {"sme2", CAP2H, 5},   {"sme2p1", CAP2H, 6},
    {"sme-b16b16", CAP2H, 9}, {"sme-f16f16", CAP2H, 10}, {"mops", CAP2H, 11}, {"sve-b16b16", CAP2H, 13}, {"lut", CAP2H, 17},
    {"faminmax", CAP2H, 18}, {"fp8", CAP2H, 19},   {"fp8fma", CAP2H, 20}, {"fp8dot4", CAP2H, 21},
    {"fp8dot2", CAP2H, 22}, {"sme-lutv2", CAP2H, 25}, {"sme-f8f16", CAP2H, 26},
    {"sme-f8f32", CAP2H, 27}, {"ssve-fp8fma", CAP2H, 28},
};
#elif defined(__arm__)
static const feature FEATURES[] = {
    {"vfp2", CAP1, 6},      {"vfp2sp", CAP1, 6},   {"neon", CAP1, 12},   {"vfp3", CAP1, 13},
    {"vfp3sp", CAP1, 13},   {"vfp3d16", CAP1, 13}, {"vfp3d16sp", CAP1, 13}, {"vfp4", CAP1, 16},
    {"vfp4sp", CAP1, 16},   {"vfp4d16", CAP1, 16}, {"vfp4d16sp", CAP1, 16},
    {"hwdiv-arm", CAP1, 17}, {"hwdiv", CAP1, 18},  {"d32", CAP1, 19},    {"fullfp16", CAP1, 23},
    {"dotprod", CAP1, 24},  {"fp16fml", CAP1, 25}, {"bf16", CAP1, 26},   {"i8mm", CAP1, 27},
    {"aes", CAP2, 0},       {"sha2", CAP2, 3},     {"crc", CAP2, 4},
    /* Of the architecture itself: bit n is ARMvn. */
    {"v6", ARCH, 6},        {"v6k", ARCH, 6},      {"v6t2", ARCH, 7},    {"thumb2", ARCH, 7},
    {"v7", ARCH, 7},        {"v8", ARCH, 8},       {"fp-armv8", ARCH, 8}, {"fp-armv8sp", ARCH, 8},
    {"fp-armv8d16", ARCH, 8}, {"fp-armv8d16sp", ARCH, 8}, {"acquire-release", ARCH, 8},
};

/* AT_PLATFORM is "v7l", "v8l" or "v6l": with each architecture come those before.  A kernel of ARMv7
 * says "v7l" on ARMv8 too, which tells itself by CRC32. */
static uint32_t architectures(uint32_t cap2) {
  const char *platform = (const char *)getauxval(AT_PLATFORM);
  unsigned version = 0;
  if (platform == NULL || platform[0] != 'v' || platform[1] < '4' || platform[1] > '9') {
    return UINT32_MAX; /* it does not say */
  }
  version = (unsigned)(platform[1] - '0');
  if (version == 7U && ((cap2 >> 4) & 1U) != 0) {
    version = 8;
  }
  return ((uint32_t)2 << version) - 1U;
}
#elif defined(__riscv)
static const feature FEATURES[] = {
    {"a", CAP1, 0}, {"c", CAP1, 2}, {"d", CAP1, 3}, {"f", CAP1, 5},
    {"i", CAP1, 8}, {"m", CAP1, 12}, {"v", CAP1, 21},
};
#else
static const feature FEATURES[] = {{"", CAP1, 0}};
#endif

static void read_words(uint32_t words[NUM_WORDS]) {
#if defined(__linux__)
  uint64_t cap1 = getauxval(AT_HWCAP);
  uint64_t cap2 = getauxval(AT_HWCAP2);
  memset(words, 0, NUM_WORDS * sizeof words[0]);
  words[CAP1] = (uint32_t)cap1;
  words[CAP2] = (uint32_t)cap2;
  words[CAP1H] = (uint32_t)(cap1 >> 32);
  words[CAP2H] = (uint32_t)(cap2 >> 32);
#if defined(__arm__)
  words[ARCH] = architectures(words[CAP2]);
#endif
#else
  memset(words, 0xff, NUM_WORDS * sizeof words[0]); /* the system's own loader has the last word */
#endif
}

#endif

/* The number between a name's two parts ("zvl" and "b"), or 0. */
static unsigned number_in(const char *name, size_t name_bytes, const char *before,
                          const char *after) {
  size_t at = strlen(before);
  size_t after_bytes = strlen(after);
  unsigned number = 0;
  if (name_bytes <= at + after_bytes || memcmp(name, before, at) != 0 ||
      memcmp(name + name_bytes - after_bytes, after, after_bytes) != 0) {
    return 0;
  }
  for (; at < name_bytes - after_bytes; ++at) {
    if (name[at] < '0' || name[at] > '9' || number > 65536U) {
      return 0;
    }
    number = number * 10U + (unsigned)(name[at] - '0');
  }
  return number;
}

/* Names that say how long vectors are: SVE's must be as long, RISC-V's at least so. */
static slw_cpu_answer has_length(const char *name, size_t name_bytes) {
  unsigned wanted = 0;
  unsigned bits = 0;
#if defined(__aarch64__) && defined(__linux__)
  wanted = number_in(name, name_bytes, "sve-bits-", "");
  if (wanted > 0) {
    int answer = prctl(SVE_GET_VL);
    bits = (answer > 0) ? ((unsigned)answer & 0xffffU) * 8U : 0U;
    return (bits == wanted) ? SLW_CPU_HAS : SLW_CPU_LACKS;
  }
#elif defined(__riscv) && defined(__linux__)
  wanted = number_in(name, name_bytes, "zvl", "b");
  if (wanted > 0) {
    if ((getauxval(AT_HWCAP) >> 21) & 1U) {
      unsigned long bytes;
      __asm__ volatile("csrr %0, 0xc22" : "=r"(bytes)); /* vlenb */
      bits = (unsigned)bytes * 8U;
    }
    return (bits >= wanted) ? SLW_CPU_HAS : SLW_CPU_LACKS;
  }
#endif
  (void)wanted;
  (void)bits;
  return (number_in(name, name_bytes, "sve-bits-", "") > 0) ? SLW_CPU_LACKS : SLW_CPU_UNKNOWN;
}

const char *slw_cpu_feature(size_t index) {
  const size_t known = sizeof FEATURES / sizeof FEATURES[0];
  return (index < known) ? FEATURES[index].name : slw_cpu_riscv_feature(index - known);
}

slw_cpu_answer slw_cpu_has(const char *name, size_t name_bytes) {
  slw_cpu_answer answer = slw_cpu_riscv_has(name, name_bytes);
  if (answer != SLW_CPU_UNKNOWN) {
    return answer;
  }
  for (size_t i = 0; i < sizeof FEATURES / sizeof FEATURES[0]; ++i) {
    const feature *f = &FEATURES[i];
    if (strlen(f->name) == name_bytes && memcmp(f->name, name, name_bytes) == 0) {
      uint32_t words[NUM_WORDS];
      read_words(words);
      return ((words[f->word] >> f->bit) & 1U) ? SLW_CPU_HAS : SLW_CPU_LACKS;
    }
  }
  return has_length(name, name_bytes);
}
