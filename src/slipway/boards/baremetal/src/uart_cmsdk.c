/* SPDX-License-Identifier: Apache-2.0
 * Arm CMSDK UART: one byte each way, no queue.
 */
#include "board.h"
#include "board_config.h"

#define UART ((volatile uint32_t *)BOARD_UART_BASE)
enum { DATA = 0, STATE = 1, CONTROL = 2, DIVIDER = 4 };
enum { TRANSMIT_FULL = 1, RECEIVE_FULL = 2 };

void board_uart_init(void) {
  UART[DIVIDER] = 16; /* the smallest that works; an emulator ignores the rate */
  UART[CONTROL] = 3;
}

void board_uart_put(uint8_t byte) {
  while ((UART[STATE] & TRANSMIT_FULL) != 0u) {
  }
  UART[DATA] = byte;
}

int board_uart_get(void) {
  return (UART[STATE] & RECEIVE_FULL) != 0u ? (int)(UART[DATA] & 0xFFu) : -1;
}
