// Runs the model @NAME@ over and over and prints its outputs.
// Put your sensor where the inputs are filled.
#include <Arduino.h>
#include <string.h>

#include <@HEADER@>
#include "model_config.h"

#define SET_INPUT(name, size, dtype) inputs.name = memory_in_##name;
#define SET_OUTPUT(name, size, dtype) outputs.name = memory_out_##name;
#define PRINT_OUTPUT(name, size, dtype) print_values(#name, dtype, memory_out_##name, size);

MODEL_MEMORY(__attribute__((aligned(16))))

static MODEL_INPUTS inputs;
static MODEL_OUTPUTS outputs;

// Prints a tensor from its bytes; `dtype` says what they are.
static void print_values(const char *name, const char *dtype, const uint8_t *bytes, unsigned size) {
  Serial.print(name);
  Serial.print(":");
  for (unsigned i = 0; i < size;) {
    Serial.print(" ");
    if (strcmp(dtype, "float32") == 0) {
      float value;
      memcpy(&value, bytes + i, sizeof value);
      Serial.print((double)value, 6);
      i += sizeof value;
    } else if (strcmp(dtype, "int32") == 0) {
      int32_t value;
      memcpy(&value, bytes + i, sizeof value);
      Serial.print((long)value);
      i += sizeof value;
    } else if (strcmp(dtype, "int8") == 0) {
      Serial.print((long)(int8_t)bytes[i++]);
    } else if (strcmp(dtype, "uint8") == 0 || strcmp(dtype, "bool") == 0) {
      Serial.print((long)bytes[i++]);
    } else {
      Serial.print((unsigned)bytes[i++], HEX);
    }
  }
  Serial.println("");
}

void setup() {
  Serial.begin(115200);
  MODEL_FOR_EACH_INPUT(SET_INPUT)
  MODEL_FOR_EACH_OUTPUT(SET_OUTPUT)
}

void loop() {
  int32_t status = MODEL_CALL(&inputs, &outputs);
  if (status == 0) {
    MODEL_FOR_EACH_OUTPUT(PRINT_OUTPUT)
  } else {
    Serial.println("the model failed");
  }
  delay(1000);
}
