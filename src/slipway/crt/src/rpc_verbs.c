/* SPDX-License-Identifier: Apache-2.0
 * The verbs that fit into one frame each way: functions, modules, tensors without their data.
 */
#include <string.h>

#include "rpc_internal.h"
#include "slipway/object.h"
#include "slipway/tensor.h"

#define STAGE_BYTES 1024u

/* Hand a new object to the client as the single value of the reply. */
static int put_object(slw_rpc_session *session, slw_rpc_writer *writer, TVMFFIAny *value,
                      const char *name) {
  return slw_rpc_encode_result(session, writer, value, name);
}

static void put_int(slw_rpc_writer *writer, int64_t number) {
  slw_rpc_put_value(writer, SLW_RPC_INT, 0, (uint64_t)number);
}

static int get_callable(slw_rpc_session *session, uint64_t handle, slw_function *out) {
  TVMFFIObject *object = slw_rpc_handle_get(session, handle);
  const TVMFFIFunctionCell *cell;
  if (object == NULL || object->type_index != kTVMFFIFunction) {
    return slw_rpc_fail_handle(session, "function");
  }
  cell = (const TVMFFIFunctionCell *)(const void *)(object + 1);
  out->call = cell->safe_call;
  out->self = object;
  return SLW_RPC_OK;
}

static void call_begins(slw_rpc_session *session, uint32_t id, uint32_t timeout_ms,
                        uint64_t function) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  if (hooks->call_begins != NULL && session->level.depth == 0u) {
    hooks->call_begins(hooks->context, id, timeout_ms, slw_rpc_handle_name(session, function));
  }
}

static void call_ends(slw_rpc_session *session) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  if (hooks->call_ends != NULL && session->level.depth == 0u) {
    hooks->call_ends(hooks->context);
  }
}

/* While a function may call back, the client may free what it was called with. */
static void hold_args(slw_rpc_session *session, TVMFFIObject *function, uint32_t count,
                      bool hold) {
  const TVMFFIAny *args = slw_rpc_args(session);
  uint32_t i;
  for (i = 0; i <= count; ++i) {
    TVMFFIObject *object = i == count ? function
                           : args[i].type_index >= kTVMFFIStaticObjectBegin ? args[i].v_obj
                                                                            : NULL;
    if (object != NULL && hold) {
      slw_object_retain(object);
    } else if (object != NULL) {
      session->config.hooks->release(session->config.hooks->context, object);
    }
  }
}

/* CALL: u64 function, u32 timeout_ms, u32 num_args, values. */
int slw_rpc_verb_call(slw_rpc_session *session, const slw_rpc_header *header,
                      slw_rpc_reader *reader, slw_rpc_writer *writer) {
  uint64_t handle = slw_rpc_get_u64(reader);
  uint32_t timeout_ms = slw_rpc_get_u32(reader);
  uint32_t count = slw_rpc_get_u32(reader);
  slw_function function = {NULL, NULL};
  TVMFFIAny result;
  bool holds;
  int status;
  int failure = get_callable(session, handle, &function);
  if (failure == SLW_RPC_OK) {
    failure = slw_rpc_decode_args(session, reader, count);
  }
  if (failure != SLW_RPC_OK) {
    return failure;
  }
  memset(&result, 0, sizeof(result));
  holds = session->has_callbacks;
  if (holds) {
    hold_args(session, function.self, count, true);
  }
  call_begins(session, header->id, timeout_ms, handle);
  session->level.num_args = count;
  session->level.may_call_back = holds;
  status = function.call(function.self, slw_rpc_args(session), (int32_t)count, &result);
  session->level.may_call_back = false;
  call_ends(session);
  if (holds) {
    hold_args(session, function.self, count, false);
  }
  slw_rpc_release_args(session);
  if (status != 0) {
    return slw_rpc_fail_hook(session, SLW_RPC_FAIL_REMOTE);
  }
  return slw_rpc_encode_result(session, writer, &result, slw_rpc_handle_name(session, handle));
}

/* TIME: u64 function, u64 preproc (0: none), u32 timeout_ms, u32 num_args, i32 number, repeat,
 * min_repeat_ms, cooldown_interval_ms, repeats_to_cooldown, limit_zero_time_iterations, values.
 * Returns bytes: f64 seconds of one run, `repeat` times. */
int slw_rpc_verb_time(slw_rpc_session *session, const slw_rpc_header *header,
                      slw_rpc_reader *reader, slw_rpc_writer *writer) {
  uint64_t handle = slw_rpc_get_u64(reader);
  uint64_t preproc_handle = slw_rpc_get_u64(reader);
  uint32_t timeout_ms = slw_rpc_get_u32(reader);
  uint32_t count = slw_rpc_get_u32(reader);
  slw_time_options options;
  slw_function function = {NULL, NULL};
  slw_function preproc = {NULL, NULL};
  size_t results_bytes;
  int failure;
  options.number = (int32_t)slw_rpc_get_u32(reader);
  options.repeat = (int32_t)slw_rpc_get_u32(reader);
  options.min_repeat_ms = (int32_t)slw_rpc_get_u32(reader);
  options.cooldown_interval_ms = (int32_t)slw_rpc_get_u32(reader);
  options.repeats_to_cooldown = (int32_t)slw_rpc_get_u32(reader);
  options.limit_zero_time_iterations = (int32_t)slw_rpc_get_u32(reader);
  if (session->config.hooks->time == NULL) {
    return slw_rpc_fail_unsupported(session, "timing");
  }
  failure = get_callable(session, handle, &function);
  if (failure == SLW_RPC_OK && preproc_handle != 0u) {
    failure = get_callable(session, preproc_handle, &preproc);
  }
  if (failure != SLW_RPC_OK) {
    return failure;
  }
  if (options.number < 1 || options.repeat < 1 || options.repeats_to_cooldown < 1 ||
      options.min_repeat_ms < 0 || options.cooldown_interval_ms < 0) {
    return slw_rpc_fail(session, SLW_RPC_FAIL_ARGUMENT, "ValueError",
                        "time_evaluator: number, repeat and repeats_to_cooldown are at least 1, "
                        "times are not negative", NULL);
  }
  results_bytes = (size_t)options.repeat * sizeof(double);
  if (results_bytes > writer->capacity - SLW_RPC_VALUE_BYTES - 8u) {
    return slw_rpc_fail(session, SLW_RPC_FAIL_LIMIT, "ValueError",
                        "time_evaluator: `repeat` is too large for one reply", NULL);
  }
  failure = slw_rpc_decode_args(session, reader, count);
  if (failure != SLW_RPC_OK) {
    return failure;
  }
  slw_rpc_put_value(writer, SLW_RPC_BYTES, (uint32_t)results_bytes, SLW_RPC_VALUE_BYTES);
  call_begins(session, header->id, timeout_ms, handle);
  /* The payload is 8-byte aligned: the doubles are written where they will be sent from. */
  failure = session->config.hooks->time(session->config.hooks->context, function,
                                        slw_rpc_args(session), (int32_t)count, &options, preproc,
                                        (double *)(void *)(writer->base + writer->at));
  call_ends(session);
  slw_rpc_release_args(session);
  writer->at += results_bytes;
  return failure == 0 ? SLW_RPC_OK : slw_rpc_fail_hook(session, SLW_RPC_FAIL_REMOTE);
}

/* GET_FUNCTION: u64 module (0: the global functions), u32 size, u32 0, name. None if missing. */
int slw_rpc_verb_get_function(slw_rpc_session *session, const slw_rpc_header *header,
                              slw_rpc_reader *reader, slw_rpc_writer *writer) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  uint64_t handle = slw_rpc_get_u64(reader);
  uint32_t size = slw_rpc_get_u32(reader);
  uint32_t reserved = slw_rpc_get_u32(reader);
  const char *name = slw_rpc_get_name(reader, size);
  TVMFFIAny module;
  TVMFFIAny function;
  int failure;
  (void)header;
  (void)reserved;
  memset(&function, 0, sizeof(function));
  memset(&module, 0, sizeof(module));
  if (name == NULL) {
    return slw_rpc_fail_malformed(session, "no usable name");
  }
  if (handle == 0u) {
    if (hooks->get_global == NULL) {
      return slw_rpc_fail_unsupported(session, "global functions");
    }
    failure = hooks->get_global(hooks->context, name, &function);
  } else {
    module.v_obj = slw_rpc_handle_get(session, handle);
    if (module.v_obj == NULL || module.v_obj->type_index != kTVMFFIModule) {
      return slw_rpc_fail_handle(session, "module");
    }
    module.type_index = kTVMFFIModule;
    if (hooks->get_function == NULL) {
      return slw_rpc_fail_unsupported(session, "modules");
    }
    failure = hooks->get_function(hooks->context, &module, name, &function);
  }
  if (failure != SLW_RPC_OK) {
    return slw_rpc_fail_hook(session, failure);
  }
  return put_object(session, writer, &function, name);
}

/* LOAD_MODULE: u32 size, u32 0, name. */
int slw_rpc_verb_load_module(slw_rpc_session *session, const slw_rpc_header *header,
                             slw_rpc_reader *reader, slw_rpc_writer *writer) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  uint32_t size = slw_rpc_get_u32(reader);
  uint32_t reserved = slw_rpc_get_u32(reader);
  const char *name = slw_rpc_get_name(reader, size);
  TVMFFIAny module;
  int failure;
  (void)header;
  (void)reserved;
  memset(&module, 0, sizeof(module));
  if (name == NULL) {
    return slw_rpc_fail_malformed(session, "no usable name");
  }
  if (hooks->load_module == NULL) {
    return slw_rpc_fail_unsupported(session, "loading of modules");
  }
  failure = hooks->load_module(hooks->context, name, &module);
  if (failure != SLW_RPC_OK) {
    return slw_rpc_fail_hook(session, failure);
  }
  return put_object(session, writer, &module, name);
}

/* FREE: u32 count, u32 0, u64 handles. Handles that name nothing are ignored. */
int slw_rpc_verb_free(slw_rpc_session *session, const slw_rpc_header *header,
                      slw_rpc_reader *reader, slw_rpc_writer *writer) {
  uint32_t count = slw_rpc_get_u32(reader);
  uint32_t reserved = slw_rpc_get_u32(reader);
  (void)header;
  (void)reserved;
  for (; count > 0u && reader->ok; --count) {
    uint64_t handle = slw_rpc_get_u64(reader);
    if (reader->ok) {
      slw_rpc_handle_free(session, handle);
    }
  }
  slw_rpc_put_value(writer, SLW_RPC_NONE, 0, 0);
  return SLW_RPC_OK;
}

/* TENSOR_ALLOC: device, dtype, u32 ndim, i64 shape. */
int slw_rpc_verb_tensor_alloc(slw_rpc_session *session, const slw_rpc_header *header,
                              slw_rpc_reader *reader, slw_rpc_writer *writer) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  const uint8_t *head = slw_rpc_get_bytes(reader, 12);
  uint32_t ndim = slw_rpc_get_u32(reader);
  int64_t shape[SLW_RPC_MAX_NDIM];
  const uint8_t *extents;
  DLDevice device;
  DLDataType dtype;
  TVMFFIAny tensor;
  int failure;
  (void)header;
  if (head == NULL || ndim > SLW_RPC_MAX_NDIM) {
    return slw_rpc_fail_malformed(session, "no usable shape");
  }
  extents = slw_rpc_get_bytes(reader, 8u * (size_t)ndim);
  if (extents == NULL) {
    return slw_rpc_fail_malformed(session, "no usable shape");
  }
  memcpy(shape, extents, 8u * (size_t)ndim);
  memcpy(&device, head, 8);
  memcpy(&dtype, head + 8, 4);
  memset(&tensor, 0, sizeof(tensor));
  if (hooks->tensor_alloc == NULL) {
    return slw_rpc_fail_unsupported(session, "tensors");
  }
  failure = hooks->tensor_alloc(hooks->context, shape, (int32_t)ndim, dtype, device, &tensor);
  if (failure != SLW_RPC_OK) {
    return slw_rpc_fail_hook(session, failure);
  }
  return put_object(session, writer, &tensor, "tensor");
}

/* Copy between tensors of which the host cannot address one, in pieces; backwards where forwards
 * would overwrite what is still to be read. */
static int copy_staged(slw_rpc_session *session, const uint64_t handles[2],
                       const uint64_t offsets[2], uint64_t nbytes) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  DLTensor *from = slw_rpc_tensor_get(session, handles[0]);
  DLTensor *to = slw_rpc_tensor_get(session, handles[1]);
  bool backwards = handles[0] == handles[1] && offsets[1] > offsets[0];
  uint8_t piece[STAGE_BYTES];
  uint64_t done = 0;
  while (done < nbytes) {
    size_t count = nbytes - done < sizeof piece ? (size_t)(nbytes - done) : sizeof piece;
    uint64_t at = backwards ? nbytes - done - count : done;
    if (hooks->tensor_copy(hooks->context, from, offsets[0] + at, piece, count, false) != 0 ||
        hooks->tensor_copy(hooks->context, to, offsets[1] + at, piece, count, true) != 0) {
      return slw_rpc_fail_hook(session, SLW_RPC_FAIL_IO);
    }
    done += count;
  }
  return SLW_RPC_OK;
}

/* TENSOR_COPY: u64 from, u64 from_offset, u64 to, u64 to_offset, u64 nbytes; on the device. */
int slw_rpc_verb_tensor_copy(slw_rpc_session *session, const slw_rpc_header *header,
                             slw_rpc_reader *reader, slw_rpc_writer *writer) {
  uint8_t *from = NULL;
  uint8_t *to = NULL;
  uint64_t handles[2], offsets[2], nbytes;
  int failure;
  (void)header;
  handles[0] = slw_rpc_get_u64(reader);
  offsets[0] = slw_rpc_get_u64(reader);
  handles[1] = slw_rpc_get_u64(reader);
  offsets[1] = slw_rpc_get_u64(reader);
  nbytes = slw_rpc_get_u64(reader);
  failure = slw_rpc_tensor_range(session, handles[0], offsets[0], nbytes, &from);
  if (failure == SLW_RPC_OK) {
    failure = slw_rpc_tensor_range(session, handles[1], offsets[1], nbytes, &to);
  }
  if (failure == SLW_RPC_OK && session->config.hooks->memory_is_apart) {
    failure = copy_staged(session, handles, offsets, nbytes);
  } else if (failure == SLW_RPC_OK && (from == NULL || to == NULL)) {
    failure = slw_rpc_fail_unsupported(session, "copies between tensors outside its main memory");
  } else if (failure == SLW_RPC_OK) {
    memmove(to, from, (size_t)nbytes);
  }
  if (failure == SLW_RPC_OK) {
    slw_rpc_put_value(writer, SLW_RPC_NONE, 0, 0);
  }
  return failure;
}

/* DEVICE_QUERY: device, u32 attribute, u32 0. Attribute 0: does the device exist? */
int slw_rpc_verb_device_query(slw_rpc_session *session, const slw_rpc_header *header,
                              slw_rpc_reader *reader, slw_rpc_writer *writer) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  const uint8_t *bytes = slw_rpc_get_bytes(reader, 8);
  uint32_t attribute = slw_rpc_get_u32(reader);
  DLDevice device;
  TVMFFIAny value;
  int failure;
  (void)header;
  if (bytes == NULL) {
    return slw_rpc_fail_malformed(session, "no device");
  }
  memcpy(&device, bytes, 8);
  if (hooks->device_query == NULL) {
    put_int(writer, device.device_type == kDLCPU && device.device_id == 0 ? 1 : 0);
    return SLW_RPC_OK;
  }
  memset(&value, 0, sizeof(value));
  failure = hooks->device_query(hooks->context, device, attribute, &value);
  if (failure != SLW_RPC_OK) {
    return slw_rpc_fail_hook(session, failure);
  }
  return slw_rpc_encode_result(session, writer, &value, "");
}
