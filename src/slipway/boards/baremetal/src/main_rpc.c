/* SPDX-License-Identifier: Apache-2.0
 * Firmware that a host drives: RPC sessions over the serial line, one after the other.  The model,
 * if there is one, is the system library's "default"; further code may be uploaded into the
 * memory that is left.
 */
#include "board.h"
#include "board_config.h"
#include "program.h"
#include "slipway/device_session.h"
#include "slipway/serial_link.h"

#define FRAME_BYTES 2048u
#define MAX_ARGS 16u
#define MAX_HANDLES 32u
/* What slw_rpc_session_memory computes for these, with room for its roundings. */
#define SESSION_BYTES (2u * (FRAME_BYTES + 64u) + MAX_HANDLES * 16u + MAX_ARGS * 32u + 512u)

static int port_get(void *context) {
  int byte = board_uart_get();
  (void)context;
#ifdef BOARD_UART_INTERRUPT
  if (byte < 0) {
    board_uart_wait();
    byte = board_uart_get();
  }
#endif
  return byte;
}

static void port_put(void *context, uint8_t byte) {
  (void)context;
  board_uart_put(byte);
}

static slw_serial_link serial;
static slw_rpc_session session;
static slw_device device;
static uint8_t session_memory[SESSION_BYTES] __attribute__((aligned(16)));

int main(void) {
  const slw_serial_port port = {0, port_get, port_put};
  slw_rpc_hooks hooks;
  slw_rpc_config config = {0};
  device.firmware = &slw_program;
  board_code_space(&device.code_begin, &device.code_end);
  device.code_written = board_code_written;
  slw_device_hooks(&hooks, &device);
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
    slw_device_reset(&device);
    slw_serial_link_close(&serial);
  }
}
