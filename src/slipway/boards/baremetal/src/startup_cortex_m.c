/* SPDX-License-Identifier: Apache-2.0
 * Cortex-M: vector table, memory set-up, faults, the tick counter and the exit.
 */
#include "board.h"
#include "board_config.h"

extern uint32_t __stack_top[], __data_load[], __data_start[], __data_end[];
extern uint32_t __bss_start[], __bss_end[];
extern uint8_t __code_start[], __code_end[];

/* Constants that the model wants in a memory beside the main RAM. */
#define DECLARE_MEMORY(name) extern uint32_t __##name##_load[], __##name##_start[], __##name##_end[];
#define COPY_MEMORY(name)                              \
  for (to = __##name##_start, from = __##name##_load; to < __##name##_end;) { \
    *to++ = *from++;                                   \
  }
BOARD_COPIED_MEMORIES(DECLARE_MEMORY)

extern int main(void);
void Reset_Handler(void);

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define SYST_CSR REGISTER(0xE000E010u)
#define SYST_RVR REGISTER(0xE000E014u)
#define SYST_CVR REGISTER(0xE000E018u)
#define CPACR REGISTER(0xE000ED88u)
#define CCR REGISTER(0xE000ED14u)
#define ICIALLU REGISTER(0xE000EF50u)
#define CFSR REGISTER(0xE000ED28u)
#define CCSIDR REGISTER(0xE000ED80u)
#define CSSELR REGISTER(0xE000ED84u)
#define DCISW REGISTER(0xE000EF60u)
#define DCCMVAU REGISTER(0xE000EF64u)
#define SYST_MASK 0xFFFFFFu

static volatile uint32_t wraps;

static void systick(void) { ++wraps; }

#if BOARD_EXIT_SEMIHOSTING
_Noreturn void board_exit(int status) {
  /* SYS_EXIT_EXTENDED with ADP_Stopped_ApplicationExit: the status reaches the emulator's. */
  const uint32_t block[2] = {0x20026u, (uint32_t)status};
  register uint32_t operation __asm__("r0") = 0x20u;
  register const uint32_t *argument __asm__("r1") = block;
  __asm__ volatile("bkpt 0xAB" : "+r"(operation) : "r"(argument) : "memory");
  for (;;) {
  }
}
#else
_Noreturn void board_exit(int status) {
  (void)status;
  for (;;) {
    __asm__ volatile("wfi");
  }
}
#endif

static void fault(void) {
  uint32_t status = CFSR;
  board_print("FAULT cfsr=");
  board_print_hex(&status, sizeof(status));
  board_print("\n");
  board_exit(100);
}

uint64_t board_time_ns(void) {
  uint32_t before;
  uint32_t count;
  uint64_t ticks;
  do {
    before = wraps;
    count = SYST_CVR;
  } while (before != wraps);
  ticks = (uint64_t)before * (SYST_MASK + 1u) + (SYST_MASK - count);
  /* In two parts, because ticks * 10^9 would overflow after minutes. */
  return ticks / board_clock_hz * 1000000000u + ticks % board_clock_hz * 1000000000u / board_clock_hz;
}

void board_code_space(uint8_t **begin, uint8_t **end) {
  *begin = __code_start;
  *end = __code_end;
}

/* What was written leaves the data cache, where that is on, and the instructions' holds none of it. */
void board_code_written(void *begin, size_t size_bytes) {
#if BOARD_HAS_DCACHE
  const uint32_t end = (uint32_t)begin + size_bytes;
  uint32_t line;
  __asm__ volatile("dsb" ::: "memory");
  for (line = (uint32_t)begin & ~31u; line < end; line += 32u) {
    DCCMVAU = line;
  }
#else
  (void)begin;
  (void)size_bytes;
#endif
#if BOARD_HAS_ICACHE
  __asm__ volatile("dsb" ::: "memory");
  ICIALLU = 0;
#endif
  __asm__ volatile("dsb\n isb" ::: "memory");
}

#if BOARD_HAS_DCACHE
static void data_cache_on(void) {
  uint32_t set;
  uint32_t way;
  uint32_t size;
  CSSELR = 0;
  __asm__ volatile("dsb" ::: "memory");
  size = CCSIDR;
  for (set = 0; set <= (size >> 13 & 0x7FFFu); ++set) {
    for (way = 0; way <= (size >> 3 & 0x3FFu); ++way) {
      DCISW = way << 30 | set << 5; /* four ways of lines of 32 bytes, as every Cortex-M7 has */
    }
  }
  __asm__ volatile("dsb" ::: "memory");
  CCR |= 1u << 16;
  __asm__ volatile("dsb\n isb" ::: "memory");
}
#endif

#if BOARD_HAS_BOOT_ROM
/* A boot ROM may come here with a stack and vectors of its own. */
static void start(void) __attribute__((used, noreturn));
__attribute__((naked)) void Reset_Handler(void) {
  __asm__ volatile(
      "ldr r0, =board_vectors\n"
      "ldr r1, =0xE000ED08\n"
      "str r0, [r1]\n"
      "ldr r0, [r0]\n"
      "mov sp, r0\n"
      "b start\n"
      ".ltorg\n");
}
#define RESET static void start(void)
#else
#define RESET void Reset_Handler(void)
#endif

RESET {
  uint32_t *to;
  const uint32_t *from = __data_load;
#if BOARD_HAS_FPU
  CPACR |= 0xFu << 20; /* full access to the FPU, which is MVE's switch too */
#endif
#if defined(__ARM_FEATURE_MVE)
  CCR |= 1u << 19; /* low-overhead loops */
#endif
  __asm__ volatile("dsb\n isb" ::: "memory");
  for (to = __data_start; to < __data_end;) {
    *to++ = *from++;
  }
  for (to = __bss_start; to < __bss_end;) {
    *to++ = 0;
  }
  BOARD_COPIED_MEMORIES(COPY_MEMORY)
#if BOARD_HAS_ICACHE
  ICIALLU = 0;
  __asm__ volatile("dsb\n isb" ::: "memory");
  CCR |= 1u << 17;
  __asm__ volatile("dsb\n isb" ::: "memory");
#endif
  board_setup();
#if BOARD_HAS_DCACHE
  data_cache_on();
#endif
  SYST_RVR = SYST_MASK;
  SYST_CVR = 0;
  SYST_CSR = 7; /* on, with interrupt, from the processor's clock */
  board_uart_init();
  board_exit(main());
}

__attribute__((section(".vectors"), used)) void (*const board_vectors[16])(void) = {
    (void (*)(void))__stack_top, Reset_Handler, fault, fault, fault, fault, fault, fault,
    0, 0, 0, fault, fault, 0, fault, systick,
};
BOARD_BOOT_WORDS
