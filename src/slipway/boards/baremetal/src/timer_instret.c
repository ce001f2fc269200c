/* SPDX-License-Identifier: Apache-2.0
 * Time of a RISC-V core: the count of retired instructions, which is the emulator's clock.
 */
#include "board.h"
#include "board_config.h"

#define READ_CSR(name, value) \
  __asm__ volatile(".option push\n.option arch, +zicsr\ncsrr %0, " name "\n.option pop" \
                   : "=r"(value))

static uint64_t instructions(void) {
#if __riscv_xlen == 32
  uint32_t high;
  uint32_t low;
  uint32_t again;
  do {
    READ_CSR("minstreth", high);
    READ_CSR("minstret", low);
    READ_CSR("minstreth", again);
  } while (high != again);
  return ((uint64_t)high << 32) | low;
#else
  uint64_t value;
  READ_CSR("minstret", value);
  return value;
#endif
}

uint64_t board_time_ns(void) {
  uint64_t count = instructions();
  return count / BOARD_CLOCK_HZ * 1000000000u + count % BOARD_CLOCK_HZ * 1000000000u / BOARD_CLOCK_HZ;
}
