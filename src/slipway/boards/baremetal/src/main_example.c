/* SPDX-License-Identifier: Apache-2.0
 * The smallest program around a model: fill the inputs, run, look at the outputs.  Put your
 * sensor where the zeros are.
 */
#include "model_config.h"
#include MODEL_HEADER
#include "board.h"
#include "board_config.h"

#define INPUT_POINTER(name, size, dtype) .name = memory_in_##name,
#define OUTPUT_POINTER(name, size, dtype) .name = memory_out_##name,
#define OUTPUT_PRINT(name, size, dtype)     \
  board_print(#name " (" dtype "): ");      \
  board_print_hex(memory_out_##name, size); \
  board_print("\n");

MODEL_MEMORY(__attribute__((aligned(16))))

int main(void) {
  MODEL_INPUTS inputs = {MODEL_FOR_EACH_INPUT(INPUT_POINTER)};
  MODEL_OUTPUTS outputs = {MODEL_FOR_EACH_OUTPUT(OUTPUT_POINTER)};
  int32_t status = MODEL_CALL(&inputs, &outputs);
  board_print(MODEL_NAME " on " BOARD_NAME "\n");
  MODEL_FOR_EACH_OUTPUT(OUTPUT_PRINT)
  return status == 0 ? 0 : 1;
}
