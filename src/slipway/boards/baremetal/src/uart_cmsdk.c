/* SPDX-License-Identifier: Apache-2.0
 * Arm CMSDK UART: one byte each way, no queue.
 */
#include "board.h"
#include "board_config.h"

#define UART ((volatile uint32_t *)BOARD_UART_BASE)
enum { DATA = 0, STATE = 1, CONTROL = 2, INTERRUPTS = 3, DIVIDER = 4 };
enum { TRANSMIT_FULL = 1, RECEIVE_FULL = 2 };
enum { TRANSMIT = 1, RECEIVE = 2, RECEIVE_INTERRUPT = 2, RECEIVE_INTERRUPTS = 8 };
#define NVIC_ENABLE ((volatile uint32_t *)0xE000E100u)
#define NVIC_DISABLE ((volatile uint32_t *)0xE000E180u)
#define NVIC_CLEAR_PENDING ((volatile uint32_t *)0xE000E280u)
#define LINE_WORDS 4u /* of 32 interrupts */

void board_uart_init(void) {
  UART[DIVIDER] = 16; /* the smallest that works; an emulator ignores the rate */
  UART[CONTROL] = TRANSMIT | RECEIVE | RECEIVE_INTERRUPTS;
}

void board_uart_put(uint8_t byte) {
  while ((UART[STATE] & TRANSMIT_FULL) != 0u) {
  }
  UART[DATA] = byte;
}

/* Sleep until a byte comes, or another interrupt.  An emulator that polls in place of that keeps a
 * processor of its host busy, and its other thread, which brings the bytes, waiting.  No handler
 * runs: a masked interrupt wakes, too, and the UART is the only one of the lines that is in use. */
static void sleep_until_a_byte(void) {
  uint32_t i;
  __asm__ volatile("cpsid i" ::: "memory");
  UART[INTERRUPTS] = RECEIVE_INTERRUPT;
  for (i = 0; i < LINE_WORDS; ++i) {
    NVIC_CLEAR_PENDING[i] = ~0u;
    NVIC_ENABLE[i] = ~0u;
  }
  if ((UART[STATE] & RECEIVE_FULL) == 0u) {
    __asm__ volatile("wfi" ::: "memory");
  }
  for (i = 0; i < LINE_WORDS; ++i) {
    NVIC_DISABLE[i] = ~0u;
  }
  __asm__ volatile("cpsie i" ::: "memory");
}

int board_uart_get(void) {
  if ((UART[STATE] & RECEIVE_FULL) == 0u) {
    sleep_until_a_byte();
  }
  return (UART[STATE] & RECEIVE_FULL) != 0u ? (int)(UART[DATA] & 0xFFu) : -1;
}
