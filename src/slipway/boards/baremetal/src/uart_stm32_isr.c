/* SPDX-License-Identifier: Apache-2.0
 * USART and LPUART of STM32F0, F3, F7, G4, H7, L4, U5: interrupt-and-status register, data each way.
 */
#include "board.h"
#include "board_config.h"

#define UART ((volatile uint32_t *)BOARD_UART_BASE)
enum { CONTROL = 0, RATE = 3, STATUS = 7, CLEAR = 8, RECEIVE = 9, TRANSMIT = 10 };
enum { OVERRUN = 1 << 3, RECEIVED = 1 << 5, TRANSMIT_EMPTY = 1 << 7 };

void board_uart_init(void) {
  /* An LPUART divides 256 times its clock. */
  const uint64_t clock = (uint64_t)board_uart_hz * BOARD_UART_SCALE;
  UART[RATE] = (uint32_t)((clock + BOARD_BAUD / 2u) / BOARD_BAUD);
  UART[CONTROL] = 1u << 3 | 1u << 2 | 1u; /* transmit, receive, on */
}

void board_uart_put(uint8_t byte) {
  while ((UART[STATUS] & TRANSMIT_EMPTY) == 0u) {
  }
  UART[TRANSMIT] = byte;
}

int board_uart_get(void) {
  if ((UART[STATUS] & OVERRUN) != 0u) {
    UART[CLEAR] = OVERRUN; /* what came too fast is lost; the link asks for it again */
  }
  return (UART[STATUS] & RECEIVED) != 0u ? (int)(UART[RECEIVE] & 0xFFu) : -1;
}
