/* SPDX-License-Identifier: Apache-2.0
 * UART of ESP32-C3 and its relatives, from the crystal's clock.  Its registers take effect together
 * when UPDATE is written.
 */
#include "board.h"
#include "board_config.h"

#define UART(offset) (*(volatile uint32_t *)(BOARD_UART_BASE + (offset)))
enum { FIFO = 0x00, RATE = 0x14, STATUS = 0x1C, FRAME = 0x20, CLOCK = 0x78, UPDATE = 0x80 };
#define UPDATE_NOW (1u << 31)
#define FIFO_BYTES 128u
#define FRAME_8N1 0x1000001Cu
/* Receiver, transmitter and core run, from the crystal, undivided. */
#define FROM_CRYSTAL (1u << 25 | 1u << 24 | 1u << 22 | 3u << 20)

void board_uart_init(void) {
  const uint32_t sixteenths = (board_uart_hz * 16u + BOARD_BAUD / 2u) / BOARD_BAUD;
  UART(CLOCK) = FROM_CRYSTAL;
  UART(RATE) = sixteenths >> 4 | (sixteenths & 15u) << 20;
  UART(FRAME) = FRAME_8N1;
  UART(UPDATE) |= UPDATE_NOW;
  while ((UART(UPDATE) & UPDATE_NOW) != 0u) {
  }
}

void board_uart_put(uint8_t byte) {
  while ((UART(STATUS) >> 16 & 0x3FFu) >= FIFO_BYTES - 2u) {
  }
  UART(FIFO) = byte;
}

int board_uart_get(void) {
  return (UART(STATUS) & 0x3FFu) != 0u ? (int)(UART(FIFO) & 0xFFu) : -1;
}
