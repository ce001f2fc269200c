/* SPDX-License-Identifier: Apache-2.0
 * Firmware that a host drives: RPC sessions over the serial line, one after the other, with the
 * model as the system library's "default".
 */
#include "model_config.h"
#include MODEL_HEADER
#include "board.h"
#include "board_config.h"
#include "slipway/aot_module.h"
#include "slipway/device_session.h"
#include "slipway/serial_link.h"

#define FRAME_BYTES 2048u
#define MAX_ARGS 16u
#define MAX_HANDLES 32u
/* What slw_rpc_session_memory computes for these, with room for its roundings. */
#define SESSION_BYTES (2u * (FRAME_BYTES + 64u) + MAX_HANDLES * 16u + MAX_ARGS * 32u + 512u)

#define IN_MEMORY __attribute__((aligned(16)))
#define INPUT_MEMORY(name, size, dtype) static uint8_t memory_in_##name[size] IN_MEMORY;
#define OUTPUT_MEMORY(name, size, dtype) static uint8_t memory_out_##name[size] IN_MEMORY;
MODEL_FOR_EACH_INPUT(INPUT_MEMORY)
MODEL_FOR_EACH_OUTPUT(OUTPUT_MEMORY)
MODEL_SHAPES

static slw_aot_tensor inputs[] = {MODEL_INPUT_TENSORS};
static slw_aot_tensor outputs[] = {MODEL_OUTPUT_TENSORS};

#define INPUT_POINTER(name, size, dtype) .name = memory_in_##name,
#define OUTPUT_POINTER(name, size, dtype) .name = memory_out_##name,

static int32_t run_model(void) {
  MODEL_INPUTS in = {MODEL_FOR_EACH_INPUT(INPUT_POINTER)};
  MODEL_OUTPUTS out = {MODEL_FOR_EACH_OUTPUT(OUTPUT_POINTER)};
  return MODEL_RUN(&in, &out);
}

static const slw_aot_model MODEL = {inputs, sizeof inputs / sizeof inputs[0], outputs,
                                    sizeof outputs / sizeof outputs[0], run_model};

static slw_status make_model(slw_module **out) { return slw_aot_module_create(&MODEL, out); }

static const slw_device_library LIBRARY = {0, 0, make_model};

static int port_get(void *context) {
  (void)context;
  return board_uart_get();
}

static void port_put(void *context, uint8_t byte) {
  (void)context;
  board_uart_put(byte);
}

static slw_serial_link serial;
static slw_rpc_session session;
static uint8_t session_memory[SESSION_BYTES] __attribute__((aligned(16)));

int main(void) {
  const slw_serial_port port = {0, port_get, port_put};
  slw_rpc_hooks hooks;
  slw_rpc_config config = {0};
  slw_device_hooks(&hooks, &LIBRARY);
  slw_serial_link_init(&serial, &port);
  config.transport = slw_serial_link_transport(&serial);
  config.hooks = &hooks;
  config.key = BOARD_NAME;
  config.description = "slipway firmware on " BOARD_NAME;
  config.max_args = MAX_ARGS;
  config.max_handles = MAX_HANDLES;
  config.frame_bytes = FRAME_BYTES;
  if (slw_rpc_session_memory(&config) > sizeof session_memory) {
    board_print("SESSION_BYTES is too small\n");
    return 1;
  }
  for (;;) {
    slw_serial_link_accept(&serial);
    for (uint32_t i = 0; i < sizeof session_memory; ++i) {
      session_memory[i] = 0;
    }
    slw_rpc_session_init(&session, &config, session_memory);
    slw_rpc_session_serve(&session);
    slw_serial_link_close(&serial);
  }
}
