/* SPDX-License-Identifier: Apache-2.0
 * LPUART of i.MX RT, Kinetis K and L, and S32K.
 */
#include "board.h"
#include "board_config.h"

#define UART(offset) (*(volatile uint32_t *)(BOARD_UART_BASE + (offset)))
enum { RATE = 0x10, STATUS = 0x14, CONTROL = 0x18, DATA = 0x1C };
#define TRANSMIT_EMPTY (1u << 23)
#define RECEIVED (1u << 21)
#define OVERRUN (1u << 19)
#define TRANSMIT (1u << 19)
#define RECEIVE (1u << 18)
#define SAMPLES 16u /* of a bit */

void board_uart_init(void) {
  const uint32_t rate = SAMPLES * BOARD_BAUD;
  UART(CONTROL) = 0;
  UART(RATE) = (SAMPLES - 1u) << 24 | (board_uart_hz + rate / 2u) / rate;
  UART(CONTROL) = TRANSMIT | RECEIVE;
}

void board_uart_put(uint8_t byte) {
  while ((UART(STATUS) & TRANSMIT_EMPTY) == 0u) {
  }
  UART(DATA) = byte;
}

int board_uart_get(void) {
  const uint32_t status = UART(STATUS);
  if ((status & OVERRUN) != 0u) {
    UART(STATUS) = OVERRUN; /* what came too fast is lost; the link asks for it again */
  }
  return (status & RECEIVED) != 0u ? (int)(UART(DATA) & 0xFFu) : -1;
}
