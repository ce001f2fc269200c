/* SPDX-License-Identifier: Apache-2.0
 * A process as a board: its serial line is standard input and output.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "board.h"

static uint8_t waiting[4096];
static ssize_t waiting_size;
static ssize_t waiting_at;

void board_uart_init(void) {}

void board_uart_put(uint8_t byte) {
  while (write(STDOUT_FILENO, &byte, 1) != 1) {
  }
}

/* Waits for the other end, where a board would return -1: a process must not spin. */
int board_uart_get(void) {
  if (waiting_at >= waiting_size) {
    waiting_size = read(STDIN_FILENO, waiting, sizeof waiting);
    waiting_at = 0;
    if (waiting_size <= 0) {
      exit(0); /* the host has gone */
    }
  }
  return waiting[waiting_at++];
}

uint64_t board_time_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

_Noreturn void board_exit(int status) { exit(status); }

void board_print(const char *text) {
  for (; *text != '\0'; ++text) {
    board_uart_put((uint8_t)*text);
  }
}

#define CODE_BYTES (16u << 20)
#define PAGE_BYTES 65536u /* at least the system's, and a multiple of it */

static uint8_t code[CODE_BYTES] __attribute__((aligned(PAGE_BYTES)));

void board_code_space(uint8_t **begin, uint8_t **end) {
  int all = PROT_READ | PROT_WRITE | PROT_EXEC;
  *begin = code;
  *end = mprotect(code, sizeof code, all) == 0 ? code + sizeof code : code;
}

void board_code_written(void *begin, size_t size_bytes) {
  __builtin___clear_cache((char *)begin, (char *)begin + size_bytes);
}
