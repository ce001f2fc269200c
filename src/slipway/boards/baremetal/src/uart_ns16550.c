/* SPDX-License-Identifier: Apache-2.0
 * 16550 UART with byte-wide registers.
 */
#include "board.h"
#include "board_config.h"

#define UART ((volatile uint8_t *)BOARD_UART_BASE)
enum { DATA = 0, INTERRUPTS = 1, FIFO_CONTROL = 2, LINE_STATUS = 5 };
enum { DATA_READY = 0x01, TRANSMIT_EMPTY = 0x20 };

#if BOARD_UART_PLIC
/* Sleep until a byte comes: an emulator that polls keeps a processor of its host busy, and its other
 * thread, which brings the bytes, waiting.  No trap is taken: a masked interrupt wakes, too. */
#define PLIC ((volatile uint32_t *)BOARD_UART_PLIC)
enum { ENABLE = 0x2000 / 4, THRESHOLD = 0x200000 / 4, CLAIM = 0x200004 / 4 }; /* machine mode */
#define EXTERNAL_INTERRUPT 0x800u

static void wake_by_bytes(void) {
  UART[INTERRUPTS] = 1;
  PLIC[BOARD_UART_LINE] = 1; /* its priority */
  PLIC[ENABLE + BOARD_UART_LINE / 32] = 1u << (BOARD_UART_LINE % 32);
  PLIC[THRESHOLD] = 0;
  __asm__ volatile(".option push\n.option arch, +zicsr\ncsrs mie, %0\n.option pop"
                   :: "r"((uintptr_t)EXTERNAL_INTERRUPT));
}

static void sleep_until_a_byte(void) {
  const uint32_t line = PLIC[CLAIM];
  if (line != 0u) {
    PLIC[CLAIM] = line; /* it is over: the byte that it told of was read */
  }
  if ((UART[LINE_STATUS] & DATA_READY) == 0u) {
    __asm__ volatile("wfi" ::: "memory");
  }
}
#else
static void wake_by_bytes(void) {}
static void sleep_until_a_byte(void) {}
#endif

void board_uart_init(void) {
  UART[FIFO_CONTROL] = 1;
  wake_by_bytes();
}

void board_uart_put(uint8_t byte) {
  while ((UART[LINE_STATUS] & TRANSMIT_EMPTY) == 0u) {
  }
  UART[DATA] = byte;
}

int board_uart_get(void) {
  if ((UART[LINE_STATUS] & DATA_READY) == 0u) {
    sleep_until_a_byte();
  }
  return (UART[LINE_STATUS] & DATA_READY) != 0u ? (int)UART[DATA] : -1;
}
