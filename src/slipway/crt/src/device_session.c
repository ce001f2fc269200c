/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/device_session.h"

#include <string.h>

#include "slipway/error.h"
#include "slipway/format.h"
#include "slipway/tensor.h"

static void take_error(void *context, char *kind, size_t kind_size, char *message,
                       size_t message_size) {
  (void)context;
  (void)slw_format(kind, kind_size, "%s", slw_error_kind());
  (void)slw_format(message, message_size, "%s", slw_error_message());
  slw_error_clear();
}

static int make_system_lib(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  const slw_device *device = handle;
  slw_module *made = NULL;
  (void)args;
  (void)num_args;
  if (slw_image_module_create(device->firmware, NULL, NULL, &made) != SLW_OK) {
    return slw_error_setf("MemoryError", "the device has no memory left");
  }
  slw_any_set_module(result, made);
  return 0;
}

static int get_global(void *context, const char *name, TVMFFIAny *out) {
  const slw_device *device = context;
  slw_function function;
  if (strcmp(name, "runtime.SystemLib") == 0) {
    function.call = make_system_lib;
  } else if (strcmp(name, "slipway.code_space") == 0 && device->code_begin != device->code_end) {
    function.call = slw_device_code_space;
  } else {
    return SLW_RPC_OK; /* no such function: the result stays None */
  }
  function.self = context;
  return slw_any_set_function(out, function, NULL) == SLW_OK ? SLW_RPC_OK : SLW_RPC_FAIL_MEMORY;
}

static int get_function(void *context, const TVMFFIAny *module, const char *name,
                        TVMFFIAny *out) {
  slw_module *from = slw_any_get_module(module);
  slw_function function;
  (void)context;
  if (slw_module_get_function(from, name, &function) != SLW_OK) {
    slw_error_clear();
    return SLW_RPC_OK; /* the result stays None */
  }
  if (slw_any_set_function(out, function, &from->object) != SLW_OK) {
    return SLW_RPC_FAIL_MEMORY;
  }
  return SLW_RPC_OK;
}

static void release(void *context, TVMFFIObject *object) {
  (void)context;
  slw_object_release(object);
}

static int time_function(void *context, slw_function function, const TVMFFIAny *args,
                         int32_t num_args, const slw_time_options *options,
                         slw_function preproc, double *results_s) {
  (void)context;
  return slw_time_evaluate(function, args, num_args, options, preproc, results_s) == SLW_OK
             ? SLW_RPC_OK
             : SLW_RPC_FAIL_REMOTE;
}

static int tensor_alloc(void *context, const int64_t *shape, int32_t ndim, DLDataType dtype,
                        DLDevice device, TVMFFIAny *out) {
  slw_tensor *tensor = NULL;
  size_t size = 0;
  (void)context;
  if (device.device_type != kDLCPU) {
    (void)slw_error_setf("RuntimeError", "this device has only cpu(0)");
    return SLW_RPC_FAIL_ARGUMENT;
  }
  if (slw_tensor_size_bytes(shape, ndim, dtype, &size) != SLW_OK) {
    (void)slw_error_setf("ValueError", "no tensor can have that shape and type");
    return SLW_RPC_FAIL_ARGUMENT;
  }
  if (slw_tensor_alloc(shape, ndim, dtype, device, &tensor) != SLW_OK) {
    (void)slw_error_setf("MemoryError",
                         "the device has no memory for a tensor of %u bytes; its heap is the "
                         "project option heap_bytes",
                         (unsigned)size);
    return SLW_RPC_FAIL_MEMORY;
  }
  memset(out, 0, sizeof *out);
  out->type_index = kTVMFFITensor;
  out->v_obj = &tensor->object;
  return SLW_RPC_OK;
}

static int device_query(void *context, DLDevice device, uint32_t attribute, TVMFFIAny *out) {
  (void)context;
  memset(out, 0, sizeof *out);
  if (attribute == 0u) {
    out->type_index = kTVMFFIInt;
    out->v_int64 = device.device_type == kDLCPU && device.device_id == 0;
  }
  return SLW_RPC_OK;
}

void slw_device_hooks(slw_rpc_hooks *hooks, slw_device *device) {
  memset(hooks, 0, sizeof *hooks);
  hooks->context = device;
  hooks->get_global = get_global;
  hooks->get_function = get_function;
  hooks->release = release;
  hooks->take_error = take_error;
  hooks->time = time_function;
  hooks->tensor_alloc = tensor_alloc;
  hooks->device_query = device_query;
  if (device->code_begin != device->code_end) {
    slw_device_code_hooks(hooks);
  }
}
