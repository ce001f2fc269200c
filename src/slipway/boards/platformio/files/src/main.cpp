// Runs the model @NAME@ over and over and prints its outputs.
// Put your sensor where the inputs are filled.
#include <Arduino.h>

#include <@HEADER@>
#include "model_config.h"

#define SET_INPUT(name, size, dtype) inputs.name = memory_in_##name;
#define SET_OUTPUT(name, size, dtype) outputs.name = memory_out_##name;
#define PRINT_OUTPUT(name, size, dtype)             \
  Serial.print(#name ": ");                         \
  for (unsigned i = 0; i < size; ++i) {             \
    Serial.print(memory_out_##name[i], HEX);        \
    Serial.print(" ");                              \
  }                                                 \
  Serial.println("");

MODEL_MEMORY(__attribute__((aligned(16))))

static MODEL_INPUTS inputs;
static MODEL_OUTPUTS outputs;

void setup() {
  Serial.begin(115200);
  MODEL_FOR_EACH_INPUT(SET_INPUT)
  MODEL_FOR_EACH_OUTPUT(SET_OUTPUT)
}

void loop() {
  int32_t status = MODEL_CALL(&inputs, &outputs);
  if (status != 0) {
    Serial.println("the model failed");
  }
  MODEL_FOR_EACH_OUTPUT(PRINT_OUTPUT)
  delay(1000);
}
