/* SPDX-License-Identifier: Apache-2.0
 * 16550 UART with byte-wide registers.
 */
#include "board.h"
#include "board_config.h"

#define UART ((volatile uint8_t *)BOARD_UART_BASE)
enum { DATA = 0, FIFO_CONTROL = 2, LINE_STATUS = 5 };
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
