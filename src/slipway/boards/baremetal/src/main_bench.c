/* SPDX-License-Identifier: Apache-2.0
 * Run the model on pseudo-random inputs and print outputs, time and stack.
 *
 * For seed = 1 to BENCH_SEEDS each input is filled with bytes of the generator
 * state = state * 1664525 + 1013904223, byte = state >> 24, so that any host can make the same.
 * Each open size of the model takes its values in turn, the smallest first.
 */
#include "model_config.h"
#include MODEL_HEADER
#include "board.h"

#ifndef BENCH_SEEDS
#define BENCH_SEEDS 10
#endif

static uint32_t state;

static void fill(uint8_t *to, uint32_t size_bytes) {
  uint32_t i;
  for (i = 0; i < size_bytes; ++i) {
    state = state * 1664525u + 1013904223u;
    to[i] = (uint8_t)(state >> 24);
  }
}

#define IN_HARNESS __attribute__((aligned(16), section(".bss.harness")))
MODEL_MEMORY(IN_HARNESS)

/* Markers around what is measured, for a counter outside the program. */
__attribute__((noinline, used)) void bench_begin(void) { __asm__ volatile("" ::: "memory"); }
__attribute__((noinline, used)) void bench_end(void) { __asm__ volatile("" ::: "memory"); }

#define INPUT_POINTER(name, size, dtype) .name = memory_in_##name,
#define OUTPUT_POINTER(name, size, dtype) .name = memory_out_##name,
#define INPUT_FILL(name, size, dtype) fill(memory_in_##name, size);
#define OUTPUT_PRINT(name, size, dtype) \
  board_print("OUT ");                  \
  board_print_hex(memory_out_##name, size); \
  board_print("\n");

#ifdef MODEL_FOR_EACH_SIZE
#define SIZE_SET(name, low, high) \
  model_sizes.name = (low) + (int32_t)((seed - 1u) % ((high) - (low) + 1u));
#define SET_SIZES MODEL_FOR_EACH_SIZE(SIZE_SET)
#else
#define SET_SIZES
#endif

int main(void) {
  MODEL_INPUTS inputs = {MODEL_FOR_EACH_INPUT(INPUT_POINTER)};
  MODEL_OUTPUTS outputs = {MODEL_FOR_EACH_OUTPUT(OUTPUT_POINTER)};
  uint32_t seed;
  for (seed = 1; seed <= BENCH_SEEDS; ++seed) {
    uint64_t begin;
    uint64_t end;
    int32_t status;
    state = seed;
    SET_SIZES
    MODEL_FOR_EACH_INPUT(INPUT_FILL)
    board_stack_paint();
    begin = board_time_ns();
    bench_begin();
    status = MODEL_CALL(&inputs, &outputs);
    bench_end();
    end = board_time_ns();
    board_print("STACK ");
    board_print_number(board_stack_used());
    board_print("\nNS ");
    board_print_number(end - begin);
    board_print("\n");
    MODEL_FOR_EACH_OUTPUT(OUTPUT_PRINT)
    if (status != 0) {
      return 1;
    }
  }
  board_print("DONE\n");
  return 0;
}
