/* SPDX-License-Identifier: Apache-2.0 */
/* The model compiled ahead of time as the runtime's slw_aot_model: memory for its inputs and
 * outputs, and a call of its run function. */
#include "model_config.h"
#include MODEL_HEADER
#include "slipway/aot_module.h"

MODEL_MEMORY(__attribute__((aligned(16))))
MODEL_SHAPES

static slw_aot_tensor inputs[] = {MODEL_INPUT_TENSORS};
static slw_aot_tensor outputs[] = {MODEL_OUTPUT_TENSORS};

#define INPUT_POINTER(name, size, dtype) .name = memory_in_##name,
#define OUTPUT_POINTER(name, size, dtype) .name = memory_out_##name,

static int32_t run_model(void) {
  MODEL_INPUTS in = {MODEL_FOR_EACH_INPUT(INPUT_POINTER)};
  MODEL_OUTPUTS out = {MODEL_FOR_EACH_OUTPUT(OUTPUT_POINTER)};
  return MODEL_CALL(&in, &out);
}

#ifdef MODEL_RESET
static void reset_model(void) {
  MODEL_INPUTS in = {MODEL_FOR_EACH_INPUT(INPUT_POINTER)};
  MODEL_RESET(&in);
}
#define RESET reset_model
#else
#define RESET NULL
#endif

extern const slw_aot_model slw_model_aot;
const slw_aot_model slw_model_aot = {inputs, sizeof inputs / sizeof inputs[0], outputs,
                                     sizeof outputs / sizeof outputs[0], run_model, RESET};
