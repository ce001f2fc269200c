/* SPDX-License-Identifier: Apache-2.0
 * Arguments from the wire to the calling convention, results back.
 *
 * Text and bytes are not copied: an argument points into the received frame, which stays in
 * place until the call has returned.
 */
#include <string.h>

#include "rpc_internal.h"
#include "slipway/object.h"
#include "slipway/tensor.h"

#define MAX_LIST 4096u

static int decode_text(slw_rpc_session *session, const slw_rpc_reader *reader,
                       const slw_rpc_value *value, TVMFFIAny *out) {
  const uint8_t *text = slw_rpc_at(reader, value->payload, (uint64_t)value->size + 1u);
  if (text == NULL || text[value->size] != 0) {
    return slw_rpc_fail_malformed(session, "a text argument does not lie in its frame");
  }
  if (memchr(text, 0, value->size) != NULL) {
    return slw_rpc_fail(session, SLW_RPC_FAIL_ARGUMENT, "ValueError",
                        "a text argument has a NUL character in it; send it as bytes", NULL);
  }
  out->type_index = kTVMFFIRawStr;
  out->v_c_str = (const char *)text;
  return SLW_RPC_OK;
}

static int check_temporaries(slw_rpc_session *session) {
  if (session->num_temporaries < SLW_RPC_MAX_TEMPORARIES) {
    return SLW_RPC_OK;
  }
  return slw_rpc_fail(session, SLW_RPC_FAIL_LIMIT, "RPCError",
                      "too many lists, functions and tensors by value in one call; make remote "
                      "tensors of those", NULL);
}

/* A tensor sent by value becomes one of the device's for this call: descriptor, then data. */
static int decode_tensor_data(slw_rpc_session *session, const slw_rpc_reader *reader,
                              const slw_rpc_value *value, TVMFFIAny *out) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  const uint8_t *head = slw_rpc_at(reader, value->payload, SLW_RPC_TENSOR_BYTES);
  const uint8_t *shape_at, *data;
  int64_t shape[SLW_RPC_MAX_NDIM];
  DLDataType dtype;
  DLDevice device = {kDLCPU, 0};
  DLTensor *tensor;
  uint32_t ndim;
  uint64_t nbytes;
  size_t expected = 0;
  int failure;
  if (head == NULL) {
    return slw_rpc_fail_malformed(session, "a tensor argument does not lie in its frame");
  }
  memcpy(&dtype, head + 16, 4);
  memcpy(&ndim, head + 20, 4);
  memcpy(&nbytes, head + 24, 8);
  if (ndim > SLW_RPC_MAX_NDIM) {
    return slw_rpc_fail_malformed(session, "a tensor argument has too many dimensions");
  }
  shape_at = slw_rpc_at(reader, value->payload + SLW_RPC_TENSOR_BYTES, 8u * (uint64_t)ndim);
  data = shape_at == NULL ? NULL
                          : slw_rpc_at(reader, value->payload + SLW_RPC_TENSOR_BYTES +
                                                   8u * (uint64_t)ndim, nbytes);
  if (data == NULL) {
    return slw_rpc_fail_malformed(session, "a tensor argument does not lie in its frame");
  }
  memcpy(shape, shape_at, 8u * (size_t)ndim);
  if (slw_tensor_size_bytes(shape, (int32_t)ndim, dtype, &expected) != SLW_OK ||
      expected != nbytes) {
    return slw_rpc_fail_malformed(session, "the size of a tensor argument is not its shape's");
  }
  if (hooks->tensor_alloc == NULL) {
    return slw_rpc_fail_unsupported(session, "tensors");
  }
  failure = check_temporaries(session);
  if (failure != SLW_RPC_OK) {
    return failure;
  }
  failure = hooks->tensor_alloc(hooks->context, shape, (int32_t)ndim, dtype, device, out);
  if (failure != SLW_RPC_OK) {
    return slw_rpc_fail_hook(session, failure);
  }
  session->temporaries[session->num_temporaries++] = out->v_obj;
  tensor = (DLTensor *)(void *)(out->v_obj + 1);
  if (hooks->memory_is_apart) {
    void *from = (void *)(uintptr_t)data;
    failure = hooks->tensor_copy(hooks->context, tensor, 0, from, (size_t)nbytes, true);
    return failure == 0 ? SLW_RPC_OK : slw_rpc_fail_hook(session, SLW_RPC_FAIL_IO);
  }
  if (nbytes > 0u) {
    memcpy((uint8_t *)tensor->data + tensor->byte_offset, data, (size_t)nbytes);
  }
  return SLW_RPC_OK;
}

TVMFFIAny *slw_rpc_args(const slw_rpc_session *session) {
  return session->args + session->level.args_base;
}

void slw_rpc_release_args(slw_rpc_session *session) {
  while (session->num_temporaries > session->level.temporaries_base) {
    session->num_temporaries -= 1u;
    session->config.hooks->release(session->config.hooks->context,
                                   session->temporaries[session->num_temporaries]);
  }
}

static int decode_object(slw_rpc_session *session, const slw_rpc_value *value, TVMFFIAny *out) {
  TVMFFIObject *object = slw_rpc_handle_get(session, value->payload);
  if (object == NULL || object->type_index != value->tag) {
    return slw_rpc_fail_handle(session, value->tag == SLW_RPC_TENSOR     ? "tensor"
                                        : value->tag == SLW_RPC_FUNCTION ? "function"
                                                                         : "module");
  }
  out->type_index = object->type_index;
  out->v_obj = object;
  return SLW_RPC_OK;
}

static int decode_list(slw_rpc_session *session, const slw_rpc_reader *reader,
                       const slw_rpc_value *value, TVMFFIAny *out);

static int decode_callback(slw_rpc_session *session, const slw_rpc_value *value, TVMFFIAny *out) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  int failure;
  if (hooks->make_callback == NULL) {
    return slw_rpc_fail_unsupported(session, "functions of the client as arguments");
  }
  failure = check_temporaries(session);
  if (failure == SLW_RPC_OK) {
    failure = hooks->make_callback(hooks->context, value->payload, out);
    if (failure != SLW_RPC_OK) {
      return slw_rpc_fail_hook(session, failure);
    }
    session->has_callbacks = true;
    session->temporaries[session->num_temporaries++] = out->v_obj;
  }
  return failure;
}

static int decode(slw_rpc_session *session, const slw_rpc_reader *reader,
                  const slw_rpc_value *value, TVMFFIByteArray *bytes, TVMFFIAny *out) {
  const uint8_t *data;
  out->zero_padding = 0;
  out->v_uint64 = value->payload;
  out->type_index = value->tag;
  switch (value->tag) {
    case SLW_RPC_NONE:
    case SLW_RPC_INT:
    case SLW_RPC_FLOAT:
    case SLW_RPC_DTYPE:
    case SLW_RPC_DEVICE:
      return SLW_RPC_OK;
    case SLW_RPC_BOOL:
      out->v_uint64 = value->payload != 0u;
      return SLW_RPC_OK;
    case SLW_RPC_STR:
      return decode_text(session, reader, value, out);
    case SLW_RPC_BYTES:
      data = slw_rpc_at(reader, value->payload, value->size);
      if (data == NULL) {
        return slw_rpc_fail_malformed(session, "a bytes argument does not lie in its frame");
      }
      bytes->data = (const char *)data;
      bytes->size = value->size;
      out->type_index = kTVMFFIByteArrayPtr;
      out->v_ptr = bytes;
      return SLW_RPC_OK;
    case SLW_RPC_TENSOR:
    case SLW_RPC_FUNCTION:
    case SLW_RPC_MODULE:
      return decode_object(session, value, out);
    case SLW_RPC_TENSOR_DATA:
      return decode_tensor_data(session, reader, value, out);
    case SLW_RPC_CALLBACK:
      return decode_callback(session, value, out);
    case SLW_RPC_LIST:
      return decode_list(session, reader, value, out);
    default:
      return slw_rpc_fail(session, SLW_RPC_FAIL_UNSUPPORTED, "NotImplementedError",
                          "this device cannot take an argument of that type", NULL);
  }
}

static slw_rpc_value get_value(const uint8_t *at) {
  slw_rpc_value value;
  memcpy(&value.tag, at, 4);
  memcpy(&value.size, at + 4, 4);
  memcpy(&value.payload, at + 8, 8);
  return value;
}

/* Make a value that outlives the frame it came in. */
static int own(slw_rpc_session *session, TVMFFIAny *value) {
  const char *data = NULL;
  size_t size = 0;
  TVMFFIAny copy = *value;
  uint32_t i;
  if (value->type_index == kTVMFFIRawStr || value->type_index == kTVMFFIByteArrayPtr) {
    bool is_text = value->type_index == kTVMFFIRawStr;
    if (slw_any_get_bytes(&copy, &data, &size) != SLW_OK ||
        (is_text ? slw_any_set_string(value, data, size)
                 : slw_any_set_bytes(value, data, size)) != SLW_OK) {
      value->type_index = kTVMFFINone;
      return slw_rpc_fail(session, SLW_RPC_FAIL_MEMORY, "MemoryError",
                          "the device has no memory for the text of an argument", NULL);
    }
    return SLW_RPC_OK;
  }
  if (value->type_index >= kTVMFFIStaticObjectBegin) {
    /* One made for this request is handed over, another one shared. */
    for (i = session->num_temporaries; i > session->level.temporaries_base; --i) {
      if (session->temporaries[i - 1u] == value->v_obj) {
        session->temporaries[i - 1u] = session->temporaries[--session->num_temporaries];
        return SLW_RPC_OK;
      }
    }
    slw_object_retain(value->v_obj);
  }
  return SLW_RPC_OK;
}

/* A list of values: its items are made one by one where the arguments of the call follow. */
static int decode_list(slw_rpc_session *session, const slw_rpc_reader *reader,
                       const slw_rpc_value *value, TVMFFIAny *out) {
  const slw_rpc_hooks *hooks = session->config.hooks;
  const uint8_t *table =
      slw_rpc_at(reader, value->payload, (uint64_t)value->size * SLW_RPC_VALUE_BYTES);
  uint32_t first = session->level.args_base + session->level.num_args;
  TVMFFIAny *items = session->args + first;
  uint32_t i, made = 0;
  int failure = SLW_RPC_OK;
  if (table == NULL) {
    return slw_rpc_fail_malformed(session, "a list does not lie in its frame");
  }
  if (hooks->make_list == NULL) {
    return slw_rpc_fail_unsupported(session, "lists as arguments");
  }
  if (value->size > session->config.max_args - first) {
    return slw_rpc_fail(session, SLW_RPC_FAIL_LIMIT, "RPCError",
                        "a list has more items than this device takes in one call", NULL);
  }
  for (i = 0; i < value->size && failure == SLW_RPC_OK; ++i) {
    slw_rpc_value item = get_value(table + (size_t)i * SLW_RPC_VALUE_BYTES);
    TVMFFIByteArray bytes;
    failure = item.tag == SLW_RPC_LIST
                  ? slw_rpc_fail_unsupported(session, "lists within lists")
                  : decode(session, reader, &item, &bytes, &items[i]);
    if (failure == SLW_RPC_OK) {
      failure = own(session, &items[i]);
      made += failure == SLW_RPC_OK ? 1u : 0u;
    }
  }
  if (failure == SLW_RPC_OK) {
    failure = check_temporaries(session);
  }
  if (failure == SLW_RPC_OK) {
    failure = hooks->make_list(hooks->context, items, value->size, out);
    if (failure == SLW_RPC_OK) {
      session->temporaries[session->num_temporaries++] = out->v_obj;
      return SLW_RPC_OK;
    }
    (void)slw_rpc_fail_hook(session, failure);
  }
  for (i = 0; i < made; ++i) {
    if (items[i].type_index >= kTVMFFIStaticObjectBegin) {
      hooks->release(hooks->context, items[i].v_obj);
    }
  }
  return failure;
}

int slw_rpc_decode_owned(slw_rpc_session *session, slw_rpc_reader *reader, TVMFFIAny *out) {
  const uint8_t *at = slw_rpc_get_bytes(reader, SLW_RPC_VALUE_BYTES);
  slw_rpc_value value;
  TVMFFIByteArray bytes;
  int failure;
  if (at == NULL) {
    return slw_rpc_fail_malformed(session, "an answer without a value");
  }
  value = get_value(at);
  failure = decode(session, reader, &value, &bytes, out);
  if (failure == SLW_RPC_OK) {
    failure = own(session, out);
  }
  if (failure != SLW_RPC_OK) {
    memset(out, 0, sizeof(*out));
  }
  return failure;
}

static int decode_all(slw_rpc_session *session, slw_rpc_reader *reader, uint32_t count) {
  uint32_t i;
  const uint8_t *at;
  slw_rpc_value value;
  int failure;
  if (count > session->config.max_args - session->level.args_base) {
    return slw_rpc_fail(session, SLW_RPC_FAIL_LIMIT, "RPCError",
                        "more arguments than this device takes in one call", NULL);
  }
  session->level.num_args = count;
  for (i = 0; i < count; ++i) {
    at = slw_rpc_get_bytes(reader, SLW_RPC_VALUE_BYTES);
    if (at == NULL) {
      return slw_rpc_fail_malformed(session, "fewer arguments than announced");
    }
    value = get_value(at);
    failure = decode(session, reader, &value, &session->bytes[session->level.args_base + i],
                     &slw_rpc_args(session)[i]);
    if (failure != SLW_RPC_OK) {
      return failure;
    }
  }
  return SLW_RPC_OK;
}

int slw_rpc_decode_args(slw_rpc_session *session, slw_rpc_reader *reader, uint32_t count) {
  int failure = decode_all(session, reader, count);
  if (failure != SLW_RPC_OK) {
    slw_rpc_release_args(session);
  }
  return failure;
}

/* --- results --------------------------------------------------------------------------------- */

static void put_tail(slw_rpc_writer *writer, size_t value_at, int32_t tag, uint32_t size,
                     uint64_t payload) {
  slw_rpc_writer value = slw_rpc_writer_on(writer->base + value_at, SLW_RPC_VALUE_BYTES);
  if (writer->ok) {
    slw_rpc_put_value(&value, tag, size, payload);
  }
}

static int encode_tensor(slw_rpc_session *session, slw_rpc_writer *writer, size_t value_at,
                         TVMFFIObject *object, const char *name) {
  const DLTensor *tensor = (const DLTensor *)(const void *)(object + 1);
  size_t nbytes = 0;
  uint64_t handle;
  if (tensor->ndim < 0 || tensor->ndim > (int32_t)SLW_RPC_MAX_NDIM ||
      slw_tensor_size_bytes(tensor->shape, tensor->ndim, tensor->dtype, &nbytes) != SLW_OK) {
    return slw_rpc_fail(session, SLW_RPC_FAIL_ARGUMENT, "ValueError",
                        "the result is a tensor whose shape or type cannot travel", NULL);
  }
  handle = slw_rpc_handle_new(session, object, name);
  if (handle == 0u) {
    return slw_rpc_fail(session, SLW_RPC_FAIL_LIMIT, "RPCError",
                        "too many remote objects are alive; delete some", NULL);
  }
  put_tail(writer, value_at, SLW_RPC_TENSOR_DESC, 0, writer->at);
  slw_rpc_put_u64(writer, handle);
  slw_rpc_put_bytes(writer, &tensor->device, 8);
  slw_rpc_put_bytes(writer, &tensor->dtype, 4);
  slw_rpc_put_u32(writer, (uint32_t)tensor->ndim);
  slw_rpc_put_u64(writer, nbytes);
  slw_rpc_put_bytes(writer, tensor->shape, 8u * (size_t)tensor->ndim);
  return SLW_RPC_OK;
}

/* Encode one value at `value_at`, its tail at the end. *kept: the object went into the table. */
static int encode(slw_rpc_session *session, slw_rpc_writer *writer, size_t value_at,
                  const TVMFFIAny *value, const char *name, bool *kept) {
  const char *data = NULL;
  size_t size = 0;
  uint64_t handle;
  int failure;
  *kept = false;
  switch (value->type_index) {
    case kTVMFFINone:
    case kTVMFFIInt:
    case kTVMFFIBool:
    case kTVMFFIFloat:
    case kTVMFFIDataType:
    case kTVMFFIDevice:
      put_tail(writer, value_at, value->type_index, 0, value->v_uint64);
      return SLW_RPC_OK;
    case kTVMFFIRawStr:
    case kTVMFFISmallStr:
    case kTVMFFIStr:
    case kTVMFFIByteArrayPtr:
    case kTVMFFISmallBytes:
    case kTVMFFIBytes:
      if (slw_any_get_bytes(value, &data, &size) != SLW_OK || size > UINT32_MAX) {
        break;
      }
      put_tail(writer, value_at,
               value->type_index == kTVMFFIRawStr || value->type_index == kTVMFFISmallStr ||
                       value->type_index == kTVMFFIStr
                   ? SLW_RPC_STR
                   : SLW_RPC_BYTES,
               (uint32_t)size, writer->at);
      slw_rpc_put_bytes(writer, data, size);
      slw_rpc_put_bytes(writer, "", 1);
      slw_rpc_put_padding(writer);
      return SLW_RPC_OK;
    case kTVMFFITensor:
      failure = encode_tensor(session, writer, value_at, value->v_obj, name);
      *kept = failure == SLW_RPC_OK;
      return failure;
    case kTVMFFIFunction:
    case kTVMFFIModule:
      handle = slw_rpc_handle_new(session, value->v_obj, name);
      if (handle == 0u) {
        return slw_rpc_fail(session, SLW_RPC_FAIL_LIMIT, "RPCError",
                            "too many remote objects are alive; delete some", NULL);
      }
      *kept = true;
      put_tail(writer, value_at, value->type_index, 0, handle);
      return SLW_RPC_OK;
    default:
      break;
  }
  return slw_rpc_fail(session, SLW_RPC_FAIL_ARGUMENT, "TypeError",
                      "the function returned a value of a type that cannot travel; return "
                      "numbers, text, bytes, tensors, functions, modules or a list of those",
                      NULL);
}

/* Items of an Array or List object: elements stay owned by it, so objects get a reference. */
static int encode_list(slw_rpc_session *session, slw_rpc_writer *writer, size_t value_at,
                       const TVMFFIAny *list, const char *name) {
  struct {
    const TVMFFIAny *data;
    int64_t size;
  } cell;
  size_t table;
  int64_t i;
  memcpy(&cell, list->v_obj + 1, sizeof(cell));
  if (cell.size < 0 || cell.size > (int64_t)MAX_LIST) {
    return slw_rpc_fail(session, SLW_RPC_FAIL_LIMIT, "RPCError",
                        "the function returned too long a list", NULL);
  }
  put_tail(writer, value_at, SLW_RPC_LIST, (uint32_t)cell.size, writer->at);
  table = writer->at;
  for (i = 0; i < cell.size; ++i) {
    slw_rpc_put_value(writer, SLW_RPC_NONE, 0, 0);
  }
  for (i = 0; i < cell.size && writer->ok; ++i) {
    bool kept = false;
    int failure = encode(session, writer, table + SLW_RPC_VALUE_BYTES * (size_t)i, &cell.data[i],
                         name, &kept);
    if (failure != SLW_RPC_OK) {
      return failure;
    }
    if (kept) {
      slw_object_retain(cell.data[i].v_obj);
    }
  }
  return SLW_RPC_OK;
}

int slw_rpc_encode_result(slw_rpc_session *session, slw_rpc_writer *writer, TVMFFIAny *result,
                          const char *name) {
  bool kept = false;
  int failure;
  slw_rpc_put_value(writer, SLW_RPC_NONE, 0, 0);
  if (result->type_index == kTVMFFIArray) {
    failure = encode_list(session, writer, 0, result, name);
  } else {
    failure = encode(session, writer, 0, result, name, &kept);
  }
  if (!kept && result->type_index >= kTVMFFIStaticObjectBegin) {
    session->config.hooks->release(session->config.hooks->context, result->v_obj);
  }
  result->type_index = kTVMFFINone;
  return failure;
}

int slw_rpc_encode_values(slw_rpc_session *session, slw_rpc_writer *writer, const TVMFFIAny *values,
                          uint32_t count) {
  size_t table = writer->at;
  uint32_t i;
  for (i = 0; i < count; ++i) {
    slw_rpc_put_value(writer, SLW_RPC_NONE, 0, 0);
  }
  for (i = 0; i < count && writer->ok; ++i) {
    size_t at = table + SLW_RPC_VALUE_BYTES * (size_t)i;
    bool kept = false;
    int failure = values[i].type_index == kTVMFFIArray
                      ? encode_list(session, writer, at, &values[i], "")
                      : encode(session, writer, at, &values[i], "", &kept);
    if (failure != SLW_RPC_OK) {
      return failure;
    }
    if (kept) {
      slw_object_retain(values[i].v_obj);
    }
  }
  return SLW_RPC_OK;
}
