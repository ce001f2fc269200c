/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * What firmware asks of a board. startup_*.c and uart_*.c implement it; the generated
 * board_config.h says which registers they use.
 */
#ifndef SLIPWAY_BOARD_H_
#define SLIPWAY_BOARD_H_

#include <stddef.h>
#include <stdint.h>

/** Set clocks and pins as the board's description says; before anything that depends on a rate. */
void board_setup(void);
/** What the processor and the serial line's clock run at, in hertz. */
extern uint32_t board_clock_hz;
extern uint32_t board_uart_hz;

/** Prepare the serial line. */
void board_uart_init(void);
/** Send one byte; waits until the transmitter takes it. */
void board_uart_put(uint8_t byte);
/** Receive one byte.
 * @retval 0..255 the byte
 * @retval -1     none has arrived */
int board_uart_get(void);
/** Let the core sleep until a byte has arrived, or another interrupt comes.  Drivers have it where
 * the board's description says which interrupt a byte raises. */
void board_uart_wait(void);

/** Monotonic time of the board's clock in nanoseconds.  In an emulator that counts instructions one
 * instruction takes one nanosecond. */
uint64_t board_time_ns(void);

/** End the program; an emulator exits with this status, real hardware stays in a loop. */
__attribute__((noreturn)) void board_exit(int status);

/** Write text to the serial line. */
void board_print(const char *text);
void board_print_number(uint64_t number);
void board_print_hex(const void *bytes, uint32_t size_bytes);

/** Fill the unused stack with a pattern, and tell how many bytes have been touched since. */
void board_stack_paint(void);
uint32_t board_stack_used(void);

/** The memory in which a host may place code; begin and end are equal where there is none. */
void board_code_space(uint8_t **begin, uint8_t **end);
/** Make bytes that were written as data fit for execution. */
void board_code_written(void *begin, size_t size_bytes);

#endif /* SLIPWAY_BOARD_H_ */
