/* SPDX-License-Identifier: Apache-2.0
 * Text for the serial line, and the stack's high-water mark.
 */
#include "board.h"

#define PAINT 0xC5A5C5A5u
#define MARGIN_BYTES 64u /* below the painting function's own frame */

extern uint32_t __stack_base[], __stack_top[];

void board_print(const char *text) {
  for (; *text != '\0'; ++text) {
    board_uart_put((uint8_t)*text);
  }
}

void board_print_number(uint64_t number) {
  char digits[21];
  uint32_t at = 20;
  digits[at] = '\0';
  do {
    digits[--at] = (char)('0' + (char)(number % 10u));
    number /= 10u;
  } while (number != 0u);
  board_print(digits + at);
}

void board_print_hex(const void *bytes, uint32_t size_bytes) {
  const uint8_t *at = (const uint8_t *)bytes;
  uint32_t i;
  for (i = 0; i < size_bytes; ++i) {
    board_uart_put((uint8_t)"0123456789abcdef"[at[i] >> 4]);
    board_uart_put((uint8_t)"0123456789abcdef"[at[i] & 15u]);
  }
}

void board_stack_paint(void) {
  volatile uint32_t *at = __stack_base;
  uintptr_t limit = (uintptr_t)__builtin_frame_address(0) - MARGIN_BYTES;
  for (; (uintptr_t)at < limit; ++at) {
    *at = PAINT;
  }
}

uint32_t board_stack_used(void) {
  const volatile uint32_t *at = __stack_base;
  while (at < __stack_top && *at == PAINT) {
    ++at;
  }
  return (uint32_t)((const volatile uint8_t *)__stack_top - (const volatile uint8_t *)at);
}
