/* Runs a board's setup on memory that lies where its registers are: the Cortex's are not touched.
 * Arguments: pairs of an address and a word to begin with, "-", and addresses to print. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "board.h"

static volatile uint32_t *at(const char *text) {
  const uintptr_t address = strtoul(text, NULL, 16), page = address & ~(uintptr_t)0xFFF;
  void *const want = (void *)page;
  void *got = mmap(want, 4096, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != want && got != MAP_FAILED) {
    exit(2);
  }
  return (volatile uint32_t *)address;
}

int main(int count, char **words) {
  int i = 1;
  for (; i + 1 < count && strcmp(words[i], "-") != 0; i += 2) {
    *at(words[i]) = (uint32_t)strtoul(words[i + 1], NULL, 16);
  }
  board_setup();
  printf("%u", board_clock_hz);
  for (++i; i < count; ++i) {
    printf(" %x", (unsigned)*at(words[i]));
  }
  return 0;
}
