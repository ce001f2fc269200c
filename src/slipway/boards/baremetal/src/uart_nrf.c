/* SPDX-License-Identifier: Apache-2.0
 * UART of nRF51 and nRF52, without DMA.
 */
#include "board.h"
#include "board_config.h"

#define UART(offset) (*(volatile uint32_t *)(BOARD_UART_BASE + (offset)))
enum {
  START_RECEIVE = 0x000, START_TRANSMIT = 0x008, RECEIVED = 0x108, TRANSMITTED = 0x11C,
  ENABLE = 0x500, TRANSMIT_PIN = 0x50C, RECEIVE_PIN = 0x514, RECEIVE = 0x518, TRANSMIT = 0x51C,
  RATE = 0x524
};

static int sending;

void board_uart_init(void) {
  UART(TRANSMIT_PIN) = BOARD_UART_TX_PIN;
  UART(RECEIVE_PIN) = BOARD_UART_RX_PIN;
  /* Of 16 MHz, in 2^-32, rounded to 2^12 as the product specification's table is. */
  UART(RATE) = (uint32_t)((((uint64_t)BOARD_BAUD << 32) / 16000000u + 0x800u) & 0xFFFFF000u);
  UART(ENABLE) = 4;
  UART(START_TRANSMIT) = 1;
  UART(START_RECEIVE) = 1;
}

void board_uart_put(uint8_t byte) {
  while (sending && UART(TRANSMITTED) == 0u) {
  }
  UART(TRANSMITTED) = 0;
  UART(TRANSMIT) = byte;
  sending = 1;
}

int board_uart_get(void) {
  if (UART(RECEIVED) == 0u) {
    return -1;
  }
  UART(RECEIVED) = 0;
  return (int)(UART(RECEIVE) & 0xFFu);
}
