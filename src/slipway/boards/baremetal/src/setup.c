/* SPDX-License-Identifier: Apache-2.0
 * Clocks and pins: the steps of the board's description, one register at a time.
 *
 * A wait that does not end in time (no crystal, another revision, an emulator without clocks) ends
 * the clock's steps: the board goes on at the rate it has after reset, which everything that
 * depends on a rate is told.
 */
#include "board.h"
#include "board_config.h"

#define WAIT_ROUNDS 200000u

enum { WRITE, SET, CLEAR, FIELD, WAIT, CALL, COPY, TRIM };

struct step {
  uint32_t kind;
  uint32_t address;
  uint32_t mask;
  uint32_t value;
};

#define STEP(kind, address, mask, value) {kind, address, mask, value},

static const struct step clock_steps[] = {BOARD_CLOCK_STEPS(STEP){0, 0, 0, 0}};
static const struct step pin_steps[] = {BOARD_PIN_STEPS(STEP){0, 0, 0, 0}};

uint32_t board_clock_hz = BOARD_RESET_HZ;
uint32_t board_uart_hz = BOARD_UART_RESET_HZ;

static int wait_for(volatile uint32_t *at, uint32_t mask, uint32_t value) {
  uint32_t round;
  for (round = 0; round < WAIT_ROUNDS; ++round) {
    if ((*at & mask) == value) {
      return 1;
    }
  }
  return 0;
}

#if BOARD_HAS_CALLS
typedef void function(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);

/* A function of the chip's ROM, on numbers of 8 bits: the first four in the mask. */
static void call(const struct step *step) {
  function *target = (function *)(uintptr_t)step->address;
  target(step->mask & 0xFFu, step->mask >> 8 & 0xFFu, step->mask >> 16 & 0xFFu, step->mask >> 24,
         step->value & 0xFFu, step->value >> 8 & 0xFFu);
}
#endif

#if BOARD_HAS_COPIES
/* What the chip's maker measured of this one: pairs of an address and a word, to be written there. */
static void trim(const struct step *step) {
  const volatile uint32_t *pair = (const volatile uint32_t *)(uintptr_t)step->address;
  uint32_t i;
  for (i = 0; i < step->value && pair[2u * i] != 0xFFFFFFFFu; ++i) {
    *(volatile uint32_t *)(uintptr_t)pair[2u * i] = pair[2u * i + 1u];
  }
}
#endif

static int run(const struct step *step) {
  for (; step->address != 0u; ++step) {
    volatile uint32_t *at = (volatile uint32_t *)(uintptr_t)step->address;
    switch (step->kind) {
    case WRITE:
      *at = step->value;
      break;
    case SET:
      *at |= step->mask;
      (void)*at; /* a clock that was switched on is there after this read */
      break;
    case CLEAR:
      *at &= ~step->mask;
      break;
    case FIELD:
      *at = (*at & ~step->mask) | step->value;
      break;
#if BOARD_HAS_CALLS
    case CALL:
      call(step);
      break;
#endif
#if BOARD_HAS_COPIES
    case COPY:
      *at = *(const volatile uint32_t *)(uintptr_t)step->value;
      break;
    case TRIM:
      trim(step);
      break;
#endif
    default:
      if (!wait_for(at, step->mask, step->value)) {
        return 0;
      }
    }
  }
  return 1;
}

void board_setup(void) {
  if (run(clock_steps)) {
    board_clock_hz = BOARD_CLOCK_HZ;
    board_uart_hz = BOARD_UART_HZ;
  }
  (void)run(pin_steps);
}
