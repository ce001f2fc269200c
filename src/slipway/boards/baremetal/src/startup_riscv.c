/* SPDX-License-Identifier: Apache-2.0
 * RISC-V, machine mode: entry, memory set-up, traps and the exit.
 */
#include "board.h"
#include "board_config.h"

extern uint32_t __bss_start[], __bss_end[], __data_load[], __data_start[], __data_end[];
extern uint8_t __code_start[], __code_end[];

/* Constants that the model wants in a memory beside the main RAM. */
#define DECLARE_MEMORY(name) extern uint32_t __##name##_load[], __##name##_start[], __##name##_end[];
#define COPY_MEMORY(name)                              \
  for (to = __##name##_start, from = __##name##_load; to < __##name##_end;) { \
    *to++ = *from++;                                   \
  }
BOARD_COPIED_MEMORIES(DECLARE_MEMORY)

extern int main(void);
void board_start(void);
void board_trap(void);

__asm__(
    ".section .vectors, \"ax\"\n"
    ".option push\n.option arch, +zicsr\n"
    ".globl Reset_Handler\nReset_Handler:\n"
    ".option push\n.option norelax\nla gp, __global_pointer$\n.option pop\n"
    "la sp, __stack_top\n"
    "la t0, board_trap_entry\ncsrw mtvec, t0\n"
    "j board_start\n"
    ".option pop\n.section .text.board_trap_entry, \"ax\"\n"
    /* A core that knows a table of vectors only jumps to its first entry for a trap. */
    ".balign 256\nboard_trap_entry:\n"
    "la sp, __stack_top\n"
    "j board_trap\n"
    ".text\n");

#if BOARD_EXIT_SIFIVE_TEST
_Noreturn void board_exit(int status) {
  volatile uint32_t *test = (volatile uint32_t *)0x100000u;
  *test = status == 0 ? 0x5555u : ((uint32_t)status << 16) | 0x3333u;
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

static uintptr_t read_mcause(void) {
  uintptr_t value;
  __asm__ volatile(".option push\n.option arch, +zicsr\ncsrr %0, mcause\n.option pop"
                   : "=r"(value));
  return value;
}

void board_trap(void) {
  uintptr_t cause = read_mcause();
  board_print("FAULT mcause=");
  board_print_hex(&cause, sizeof(cause));
  board_print("\n");
  board_exit(100);
}

void board_code_space(uint8_t **begin, uint8_t **end) {
  *begin = BOARD_RUNS_FROM_RAM ? __code_start : __code_end;
  *end = __code_end;
}

void board_code_written(void *begin, size_t size_bytes) {
  (void)begin;
  (void)size_bytes;
  __asm__ volatile(".option push\n.option arch, +zifencei\nfence.i\n.option pop" ::: "memory");
}

void board_start(void) {
  uint32_t *to;
  const uint32_t *from = __data_load;
  for (to = __data_start; to < __data_end;) {
    *to++ = *from++;
  }
  for (to = __bss_start; to < __bss_end;) {
    *to++ = 0;
  }
  BOARD_COPIED_MEMORIES(COPY_MEMORY)
#if BOARD_HAS_SETUP
  board_setup();
#endif
  board_uart_init();
  board_exit(main());
}
BOARD_BOOT_WORDS
