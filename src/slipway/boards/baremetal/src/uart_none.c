/* SPDX-License-Identifier: Apache-2.0
 * A board whose serial driver is the user's: define these three in a file of your own, and the
 * linker takes yours.
 */
#include "board.h"

__attribute__((weak)) void board_uart_init(void) {}
__attribute__((weak)) void board_uart_put(uint8_t byte) { (void)byte; }
__attribute__((weak)) int board_uart_get(void) { return -1; }
