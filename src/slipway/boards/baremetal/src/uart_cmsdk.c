/* SPDX-License-Identifier: Apache-2.0
 * Arm CMSDK UART: one byte each way, no queue.
 */
#include "board.h"
#include "board_config.h"

#define UART ((volatile uint32_t *)BOARD_UART_BASE)
enum { DATA = 0, STATE = 1, CONTROL = 2, INTERRUPT = 3, DIVIDER = 4 };
enum { TRANSMIT_FULL = 1, RECEIVE_FULL = 2 };
enum { TRANSMIT_ON = 1, RECEIVE_ON = 2, RECEIVE_INTERRUPT = 8 };

void board_uart_init(void) {
  UART[DIVIDER] = 16; /* the smallest that works; an emulator ignores the rate */
  UART[CONTROL] = TRANSMIT_ON | RECEIVE_ON | RECEIVE_INTERRUPT;
}

void board_uart_put(uint8_t byte) {
  while ((UART[STATE] & TRANSMIT_FULL) != 0u) {
  }
  UART[DATA] = byte;
}

int board_uart_get(void) {
  return (UART[STATE] & RECEIVE_FULL) != 0u ? (int)(UART[DATA] & 0xFFu) : -1;
}

#ifdef BOARD_UART_INTERRUPT
#define NVIC(offset) (((volatile uint32_t *)(0xE000E100u + (offset)))[BOARD_UART_INTERRUPT / 32])
enum { ENABLE = 0, DISABLE = 0x80, FORGET = 0x180 };

/* The interrupt is on only while interrupts are held: it ends the sleep, and no handler runs. */
void board_uart_wait(void) {
  const uint32_t bit = 1u << (BOARD_UART_INTERRUPT % 32);
  __asm__ volatile("cpsid i" ::: "memory");
  UART[INTERRUPT] = 3; /* of bytes that have been read */
  NVIC(FORGET) = bit;
  NVIC(ENABLE) = bit;
  if ((UART[STATE] & RECEIVE_FULL) == 0u) {
    __asm__ volatile("dsb\n wfi" ::: "memory");
  }
  NVIC(DISABLE) = bit;
  __asm__ volatile("cpsie i" ::: "memory");
}
#endif
