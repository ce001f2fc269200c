/* SPDX-License-Identifier: Apache-2.0 */
/* Metal as a kind of device: the functions of device_api.h. */
#include <string.h>

#include "../../devices.h"
#include "metal.h"
#include "slipway/error.h"
#include "slipway/format.h"
#include "slipway/object.h"

static slw_status device_of(const void *address, int32_t *device_id) {
  size_t offset = 0;
  return (slw_metal_locate(address, 0, &offset, device_id) != NULL) ? SLW_OK : SLW_ERROR_CALL;
}

static slw_status synchronize(int32_t device_id) {
  slw_metal_device *device = slw_metal_device_of(device_id);
  slw_status status;
  void *pool;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  pool = slw_metal_calls.objc_autoreleasePoolPush();
  (void)pthread_mutex_lock(&device->lock);
  status = slw_metal_wait(device);
  (void)pthread_mutex_unlock(&device->lock);
  slw_metal_calls.objc_autoreleasePoolPop(pool);
  return status;
}

static slw_status wait_all(void) { return slw_driver_wait(&slw_metal, synchronize); }

static slw_status add_code(const char *digest, const void *code, size_t size_bytes) {
  return slw_driver_add_code(&slw_metal, digest, code, size_bytes);
}

static void drop_code(const char *digest) { slw_driver_drop_code(&slw_metal, digest); }

/* --- launching ------------------------------------------------------------------------------- */

static slw_status set_arguments(const slw_device_launch *launch, mtl_object encoder) {
  for (size_t i = 0; launch->signature[i] != '\0'; ++i) {
    const TVMFFIAny *arg = &launch->args[i];
    if (launch->signature[i] == 'p') {
      size_t offset = 0;
      int32_t id = 0;
      mtl_object buffer =
          (arg->v_ptr != NULL) ? slw_metal_locate(arg->v_ptr, 0, &offset, &id) : NULL;
      if (buffer == NULL && arg->v_ptr != NULL) {
        return SLW_ERROR_CALL;
      }
      SLW_SEND(void, encoder, "setBuffer:offset:atIndex:", (mtl_object, mtl_count, mtl_count),
               buffer, (mtl_count)offset, (mtl_count)i);
    } else if (launch->signature[i] == 's') {
      SLW_SEND(void, encoder, "setThreadgroupMemoryLength:atIndex:", (mtl_count, mtl_count),
               (mtl_count)arg->v_int64, (mtl_count)0);
    } else {
      slw_device_scalar scalar;
      slw_status status = slw_device_scalar_of(launch->signature[i], arg, &scalar);
      if (status != SLW_OK) {
        return status;
      }
      SLW_SEND(void, encoder, "setBytes:length:atIndex:", (const void *, mtl_count, mtl_count),
               &scalar.value, (mtl_count)scalar.size_bytes, (mtl_count)i);
    }
  }
  return SLW_OK;
}

static mtl_size size_of(const size_t *extents) {
  mtl_size made = {(mtl_count)extents[0], (mtl_count)extents[1], (mtl_count)extents[2]};
  return made;
}

static slw_status enqueue(const slw_device_launch *launch, slw_metal_device *device,
                          const slw_device_kernel *kernel) {
  mtl_object encoder = slw_metal_encoder(device, 0);
  slw_status status;
  if (encoder == NULL) {
    return SLW_ERROR_CALL;
  }
  SLW_SEND(void, encoder, "setComputePipelineState:", (mtl_object),
           (mtl_object)(uintptr_t)kernel->handles[0]);
  status = set_arguments(launch, encoder);
  if (status == SLW_OK) {
    SLW_SEND(void, encoder, "dispatchThreadgroups:threadsPerThreadgroup:", (mtl_size, mtl_size),
             size_of(launch->grid), size_of(launch->block));
  }
  return status;
}

static slw_status launch_kernel(const slw_device_launch *launch) {
  int32_t device_id = 0;
  slw_metal_device *device;
  const slw_device_kernel *kernel;
  slw_status status;
  void *pool;
  if (slw_driver_of_launch(&slw_metal, launch, device_of, &device_id) != SLW_OK) {
    return SLW_ERROR_CALL;
  }
  device = slw_metal_device_of(device_id);
  kernel = (device != NULL) ? slw_driver_kernel(&slw_metal, device_id, launch) : NULL;
  if (kernel == NULL) {
    return SLW_ERROR_CALL;
  }
  status = slw_driver_check_threads(&slw_metal, device_id, launch, kernel->most_threads);
  if (status != SLW_OK) {
    return status;
  }
  pool = slw_metal_calls.objc_autoreleasePoolPush();
  (void)pthread_mutex_lock(&device->lock);
  status = enqueue(launch, device, kernel);
  (void)pthread_mutex_unlock(&device->lock);
  slw_metal_calls.objc_autoreleasePoolPop(pool);
  return status;
}

/* --- the device's clock: how long it has worked ------------------------------------------------- */

static uint64_t launches(int32_t device_id) {
  uint64_t count = slw_driver_launches(&slw_metal, device_id);
  const slw_metal_device *device = (count != 0U) ? slw_metal_device_of(device_id) : NULL;
  return (device != NULL && device->has_times) ? count : 0U;
}

static slw_status mark(int32_t device_id, uint64_t *out) {
  slw_status status = synchronize(device_id);
  slw_metal_device *device = (status == SLW_OK) ? slw_metal_device_of(device_id) : NULL;
  if (device != NULL) {
    (void)pthread_mutex_lock(&device->lock);
    *out = (uint64_t)(device->busy_seconds * 1e9);
    (void)pthread_mutex_unlock(&device->lock);
  }
  return status;
}

static slw_status between(int32_t device_id, uint64_t from, uint64_t to, uint64_t *duration_ns) {
  (void)device_id;
  *duration_ns = to - from;
  return SLW_OK;
}

/* --- properties ------------------------------------------------------------------------------ */

static mtl_size most_threads(const slw_metal_device *device) {
  mtl_selector name = slw_metal_calls.sel_registerName("maxThreadsPerThreadgroup");
#if defined(__x86_64__)
  return ((mtl_size(*)(mtl_object, mtl_selector))slw_metal_calls.objc_msgSend_stret)(device->id, name);
#else
  return ((mtl_size(*)(mtl_object, mtl_selector))slw_metal_calls.objc_msgSend)(device->id, name);
#endif
}

static slw_status give_system(TVMFFIAny *out) {
  void *pool = slw_metal_calls.objc_autoreleasePoolPush();
  mtl_object process =
      SLW_ASK(mtl_object, slw_metal_calls.objc_getClass("NSProcessInfo"), "processInfo");
  mtl_object text = SLW_ASK(mtl_object, process, "operatingSystemVersionString");
  const char *words = SLW_ASK(const char *, text, "UTF8String");
  char whole[160];
  size_t used = slw_format(whole, sizeof whole, "Metal of macOS %s", words);
  slw_status status = slw_any_set_string(out, whole, used);
  slw_metal_calls.objc_autoreleasePoolPop(pool);
  return status;
}

static slw_status give_attribute(int32_t device_id, int32_t attribute, TVMFFIAny *out) {
  const slw_metal_device *device;
  mtl_size most;
  memset(out, 0, sizeof *out);
  if (attribute == SLW_DEVICE_EXIST) {
    return slw_device_give_int(out, (uint64_t)slw_driver_has(&slw_metal, device_id));
  }
  device = slw_metal_device_of(device_id);
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  switch (attribute) {
    case SLW_DEVICE_MAX_THREADS_PER_BLOCK: /* a kernel may take fewer */
      return slw_device_give_int(out, most_threads(device).width);
    case SLW_DEVICE_WARP_SIZE: /* a kernel tells its own */
      return slw_device_give_int(out, 1);
    case SLW_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK:
      return slw_device_give_int(out, SLW_ASK(mtl_count, device->id, "maxThreadgroupMemoryLength"));
    case SLW_DEVICE_NAME:
      return slw_any_set_string(out, device->name, strlen(device->name));
    case SLW_DEVICE_MAX_THREAD_DIMENSIONS:
      most = most_threads(device);
      return slw_device_give_dimensions(out, most.width, most.height, most.depth);
    case SLW_DEVICE_COMPUTE_VERSION:
    case SLW_DEVICE_API_VERSION:
    case SLW_DEVICE_DRIVER_VERSION:
      return give_system(out);
    case SLW_DEVICE_TOTAL_GLOBAL_MEMORY:
      return slw_device_give_int(out,
                                 SLW_ASK(uint64_t, device->id, "recommendedMaxWorkingSetSize"));
    default:
      return SLW_OK;
  }
}

static const slw_device_api METAL = {
    "metal",        slw_metal_alloc, slw_metal_release, device_of,     slw_metal_read, slw_metal_write,
    slw_metal_copy, add_code,        drop_code,         launch_kernel, synchronize,    wait_all,
    give_attribute, launches,        mark,              between,       NULL,           NULL,
    NULL,
};

void slw_metal_setup(void) { slw_device_register(kDLMetal, &METAL); }
