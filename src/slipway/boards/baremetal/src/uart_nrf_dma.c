/* SPDX-License-Identifier: Apache-2.0
 * UARTE of nRF53, nRF91 and nRF52, which have DMA only: transfers of one byte.  What arrives while
 * no transfer runs stays in the receiver's own buffer of a few bytes.
 */
#include "board.h"
#include "board_config.h"

#define UART(offset) (*(volatile uint32_t *)(BOARD_UART_BASE + (offset)))
enum {
  START_RECEIVE = 0x000, START_TRANSMIT = 0x008, RECEIVED = 0x110, TRANSMITTED = 0x120,
  ENABLE = 0x500, TRANSMIT_PIN = 0x50C, RECEIVE_PIN = 0x514, RATE = 0x524,
  RECEIVE_AT = 0x534, RECEIVE_BYTES = 0x538, TRANSMIT_FROM = 0x544, TRANSMIT_BYTES = 0x548
};

/* The DMA reads and writes RAM only. */
static volatile uint8_t received;
static volatile uint8_t sent;
static int sending;

void board_uart_init(void) {
  UART(TRANSMIT_PIN) = BOARD_UART_TX_PIN;
  UART(RECEIVE_PIN) = BOARD_UART_RX_PIN;
  /* Of 16 MHz, in 2^-32, rounded to 2^12 as the product specification's table is. */
  UART(RATE) = (uint32_t)((((uint64_t)BOARD_BAUD << 32) / 16000000u + 0x800u) & 0xFFFFF000u);
  UART(ENABLE) = 8;
  UART(RECEIVE_AT) = (uint32_t)(uintptr_t)&received;
  UART(RECEIVE_BYTES) = 1;
  UART(TRANSMIT_FROM) = (uint32_t)(uintptr_t)&sent;
  UART(TRANSMIT_BYTES) = 1;
  UART(RECEIVED) = 0;
  UART(START_RECEIVE) = 1;
}

void board_uart_put(uint8_t byte) {
  while (sending && UART(TRANSMITTED) == 0u) {
  }
  UART(TRANSMITTED) = 0;
  sent = byte;
  UART(START_TRANSMIT) = 1;
  sending = 1;
}

int board_uart_get(void) {
  uint8_t byte;
  if (UART(RECEIVED) == 0u) {
    return -1;
  }
  byte = received;
  UART(RECEIVED) = 0;
  UART(START_RECEIVE) = 1;
  return byte;
}
