/* SPDX-License-Identifier: Apache-2.0
 * 16550 UART with byte-wide registers.
 */
#include "board.h"
#include "board_config.h"

#define UART ((volatile uint8_t *)BOARD_UART_BASE)
enum { DATA = 0, INTERRUPTS = 1, FIFO_CONTROL = 2, LINE_STATUS = 5 };
enum { DATA_READY = 0x01, TRANSMIT_EMPTY = 0x20 };

void board_uart_init(void) { UART[FIFO_CONTROL] = 1; }

void board_uart_put(uint8_t byte) {
  while ((UART[LINE_STATUS] & TRANSMIT_EMPTY) == 0u) {
  }
  UART[DATA] = byte;
}

int board_uart_get(void) {
  return (UART[LINE_STATUS] & DATA_READY) != 0u ? (int)UART[DATA] : -1;
}

#ifdef BOARD_UART_INTERRUPT
#define PLIC(offset) (*(volatile uint32_t *)(uintptr_t)(BOARD_UART_CONTROLLER + (offset)))
enum { PRIORITY = 4 * BOARD_UART_INTERRUPT, ENABLE = 0x2000 + BOARD_UART_INTERRUPT / 32 * 4 };
enum { THRESHOLD = 0x200000, CLAIM = 0x200004 }; /* of the first core's machine mode */

/* Interrupts stay off in mstatus: this one ends the sleep, and traps nowhere. */
void board_uart_wait(void) {
  const uintptr_t external = 1u << 11;
  PLIC(PRIORITY) = 1;
  PLIC(ENABLE) = 1u << (BOARD_UART_INTERRUPT % 32);
  PLIC(THRESHOLD) = 0;
  UART[INTERRUPTS] = DATA_READY;
  __asm__ volatile(".option push\n.option arch, +zicsr\ncsrs mie, %0\n.option pop"
                   ::"r"(external));
  if ((UART[LINE_STATUS] & DATA_READY) == 0u) {
    __asm__ volatile("wfi" ::: "memory");
  }
  PLIC(CLAIM) = PLIC(CLAIM);
}
#endif
