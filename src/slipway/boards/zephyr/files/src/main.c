/* Runs the model once and prints its outputs. Put your sensor where the zeros are. */
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include "model_config.h"
#include MODEL_HEADER

#define INPUT_POINTER(name, size, dtype) .name = memory_in_##name,
#define OUTPUT_POINTER(name, size, dtype) .name = memory_out_##name,
#define OUTPUT_PRINT(name, size, dtype)                \
  printk(#name " (" dtype "):");                       \
  for (unsigned i = 0; i < size; ++i) {                \
    printk(" %02x", memory_out_##name[i]);             \
  }                                                    \
  printk("\n");

MODEL_MEMORY(__attribute__((aligned(16))))

int main(void) {
  MODEL_INPUTS inputs = {MODEL_FOR_EACH_INPUT(INPUT_POINTER)};
  MODEL_OUTPUTS outputs = {MODEL_FOR_EACH_OUTPUT(OUTPUT_POINTER)};
  int status = MODEL_CALL(&inputs, &outputs);
  MODEL_FOR_EACH_OUTPUT(OUTPUT_PRINT)
  return status;
}
