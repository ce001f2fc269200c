/* SPDX-License-Identifier: Apache-2.0
 * Time of ESP32-C3: the system timer, 52 bits at 16 MHz whatever the processor's clock is.  The
 * core has no counters of the standard's.
 */
#include "board.h"
#include "board_config.h"

#define TIMER(offset) (*(volatile uint32_t *)(BOARD_TIMER_BASE + (offset)))
enum { TAKE = 0x04, HIGH = 0x40, LOW = 0x44 };
#define TAKE_NOW (1u << 30)
#define TAKEN (1u << 29)

uint64_t board_time_ns(void) {
  uint64_t ticks;
  TIMER(TAKE) = TAKE_NOW;
  while ((TIMER(TAKE) & TAKEN) == 0u) {
  }
  ticks = (uint64_t)TIMER(HIGH) << 32 | TIMER(LOW);
  return ticks * 125u / 2u;
}
