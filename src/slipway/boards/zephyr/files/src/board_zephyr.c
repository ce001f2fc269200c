/* Zephyr as a board: the console's UART, polled, is the line to the host. */
#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>

#include "board.h"

static const struct device *const line = DEVICE_DT_GET(DT_CHOSEN(zephyr_console));

void board_uart_init(void) {}

void board_uart_put(uint8_t byte) { uart_poll_out(line, byte); }

int board_uart_get(void) {
  unsigned char byte;
  return uart_poll_in(line, &byte) == 0 ? (int)byte : -1;
}

uint64_t board_time_ns(void) { return k_ticks_to_ns_floor64((uint64_t)k_uptime_ticks()); }

void board_print(const char *text) {
  for (; *text != '\0'; ++text) {
    board_uart_put((uint8_t)*text);
  }
}

/* Memory protection units keep data from being executed: code is flashed, not uploaded. */
void board_code_space(uint8_t **begin, uint8_t **end) {
  *begin = 0;
  *end = 0;
}

void board_code_written(void *begin, size_t size_bytes) {
  (void)begin;
  (void)size_bytes;
}
