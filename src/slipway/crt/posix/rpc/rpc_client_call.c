/* SPDX-License-Identifier: Apache-2.0
 * A call whose arguments and result are plain numbers, in one step for a host language: no
 * buffer to write, none to read.
 */
#include <string.h>

#include "slipway/rpc_client.h"

#define FIXED_ARGS 3    /* client, function, timeout_ms */
#define CALL_BYTES 16u  /* of a CALL in front of its values: u64, u32, u32 */

static bool is_plain(int32_t type_index) {
  return type_index == kTVMFFINone || type_index == kTVMFFIInt || type_index == kTVMFFIBool ||
         type_index == kTVMFFIFloat;
}

static int tell(TVMFFIAny *result, int status) {
  result->type_index = kTVMFFIOpaquePtr;
  result->zero_padding = 0;
  result->v_uint64 = (uint64_t)(SLW_RPC_CLIENT_STATUS_BASE + status);
  return 0;
}

int slw_rpc_client_call_plain(void *self, const TVMFFIAny *args, int32_t num_args,
                              TVMFFIAny *result) {
  slw_rpc_client *client;
  const slw_rpc_client_view *view;
  const uint8_t *reply;
  uint8_t *request;
  uint32_t capacity = 0, timeout_ms, count;
  uint64_t size = 0;
  int32_t i, tag;
  int status;
  (void)self;
  if (num_args < FIXED_ARGS || args[0].type_index != kTVMFFIInt) {
    return tell(result, SLW_RPC_CLIENT_UNFIT);
  }
  client = (slw_rpc_client *)(uintptr_t)args[0].v_uint64;
  count = (uint32_t)(num_args - FIXED_ARGS);
  timeout_ms = (uint32_t)args[2].v_uint64;
  request = slw_rpc_client_request(client, &capacity);
  size = CALL_BYTES + (uint64_t)count * sizeof *args;
  if (size > capacity) {
    return tell(result, SLW_RPC_CLIENT_UNFIT);
  }
  for (i = FIXED_ARGS; i < num_args; ++i) {
    if (!is_plain(args[i].type_index)) {
      return tell(result, SLW_RPC_CLIENT_UNFIT);
    }
  }
  memcpy(request, &args[1].v_uint64, 8);
  memcpy(request + 8, &timeout_ms, 4);
  memcpy(request + 12, &count, 4);
  /* A value on the wire is laid out as one in memory. */
  memcpy(request + CALL_BYTES, args + FIXED_ARGS, count * sizeof *args);
  status = slw_rpc_client_call(client, SLW_RPC_CALL, (uint32_t)size);
  view = slw_rpc_client_reply(client);
  if (status != SLW_RPC_CLIENT_DONE || view->reply_size < sizeof *result) {
    return tell(result, status);
  }
  reply = slw_rpc_client_buffer(client, &size) + view->reply_at;
  memcpy(&tag, reply, 4);
  if (!is_plain(tag)) {
    return tell(result, SLW_RPC_CLIENT_DONE);
  }
  memcpy(result, reply, sizeof *result);
  result->zero_padding = 0;
  return 0;
}
