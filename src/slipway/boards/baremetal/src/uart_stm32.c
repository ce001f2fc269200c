/* SPDX-License-Identifier: Apache-2.0
 * USART of STM32F1, F2, F4: a status and a data register.
 */
#include "board.h"
#include "board_config.h"

#define UART ((volatile uint32_t *)BOARD_UART_BASE)
enum { STATUS = 0, DATA = 1, RATE = 2, CONTROL = 3 };
enum { RECEIVED = 1 << 5, TRANSMIT_EMPTY = 1 << 7 };

void board_uart_init(void) {
  UART[RATE] = (board_uart_hz + BOARD_BAUD / 2u) / BOARD_BAUD;
  UART[CONTROL] = 1u << 13 | 1u << 3 | 1u << 2; /* on, transmit, receive */
}

void board_uart_put(uint8_t byte) {
  while ((UART[STATUS] & TRANSMIT_EMPTY) == 0u) {
  }
  UART[DATA] = byte;
}

int board_uart_get(void) {
  return (UART[STATUS] & RECEIVED) != 0u ? (int)(UART[DATA] & 0xFFu) : -1;
}
