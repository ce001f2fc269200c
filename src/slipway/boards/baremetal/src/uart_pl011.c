/* SPDX-License-Identifier: Apache-2.0
 * Arm PL011, as RP2040, RP2350 and others have it.
 */
#include "board.h"
#include "board_config.h"

#define UART(offset) (*(volatile uint32_t *)(BOARD_UART_BASE + (offset)))
enum { DATA = 0x00, FLAGS = 0x18, WHOLE = 0x24, FRACTION = 0x28, LINE = 0x2C, CONTROL = 0x30 };
enum { RECEIVE_EMPTY = 1 << 4, TRANSMIT_FULL = 1 << 5 };

void board_uart_init(void) {
  /* The divider of 16 times the rate, in 64ths. */
  const uint32_t divider = (uint32_t)(((uint64_t)board_uart_hz * 4u + BOARD_BAUD / 2u) / BOARD_BAUD);
  UART(CONTROL) = 0;
  UART(WHOLE) = divider >> 6;
  UART(FRACTION) = divider & 63u;
  UART(LINE) = 3u << 5 | 1u << 4; /* eight bits, queues on; takes the divider over */
  UART(CONTROL) = 1u << 9 | 1u << 8 | 1u;
}

void board_uart_put(uint8_t byte) {
  while ((UART(FLAGS) & TRANSMIT_FULL) != 0u) {
  }
  UART(DATA) = byte;
}

int board_uart_get(void) {
  return (UART(FLAGS) & RECEIVE_EMPTY) == 0u ? (int)(UART(DATA) & 0xFFu) : -1;
}
