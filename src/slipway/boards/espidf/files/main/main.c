/* Runs the model @NAME@ over and over and prints its outputs. Put your sensor where the zeros are. */
#include <inttypes.h>
#include <stdio.h>

#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

#include "model_config.h"
#include MODEL_HEADER

#define INPUT_POINTER(name, size, dtype) .name = memory_in_##name,
#define OUTPUT_POINTER(name, size, dtype) .name = memory_out_##name,
#define OUTPUT_PRINT(name, size, dtype)   \
  printf(#name " (" dtype "):");          \
  for (unsigned i = 0; i < size; ++i) {   \
    printf(" %02x", memory_out_##name[i]); \
  }                                       \
  printf("\n");

MODEL_MEMORY(__attribute__((aligned(16))))

void app_main(void) {
  for (;;) {
    const MODEL_INPUTS inputs = {MODEL_FOR_EACH_INPUT(INPUT_POINTER)};
    const MODEL_OUTPUTS outputs = {MODEL_FOR_EACH_OUTPUT(OUTPUT_POINTER)};
    const int32_t status = MODEL_CALL(&inputs, &outputs);
    if (status != 0) {
      printf("the model failed: %" PRId32 "\n", status);
    }
    MODEL_FOR_EACH_OUTPUT(OUTPUT_PRINT)
    vTaskDelay(pdMS_TO_TICKS(1000));
  }
}
