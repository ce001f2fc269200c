/* SPDX-License-Identifier: Apache-2.0 */
/* The classic cache_flush_cpu_non_first_arg: tensors as a kernel finds them that nothing has just
 * touched.
 * Sources: Intel SDM volume 2A (CLFLUSH), Arm ARM DDI 0487 (DC CIVAC, CTR_EL0). */
#include <stdint.h>
#include <stdlib.h>

#include "slipway/error.h"
#include "slipway/object.h"
#include "slipway/packed.h"
#include "slipway/tensor.h"

#if defined(__x86_64__)

#define CLFLUSH_LINE_BYTES 64U

static void evict(const char *data, size_t size) {
  uintptr_t line = (uintptr_t)data & ~(uintptr_t)(CLFLUSH_LINE_BYTES - 1U);
  for (; line < (uintptr_t)data + size; line += CLFLUSH_LINE_BYTES) {
    __asm__ volatile("clflush (%0)" ::"r"(line) : "memory");
  }
  __asm__ volatile("mfence" ::: "memory");
}

static int evict_rest(void) { return 0; }

#elif defined(__aarch64__) && defined(__linux__)

static void evict(const char *data, size_t size) {
  uint64_t type = 0;
  uintptr_t bytes, line;
  __asm__("mrs %0, ctr_el0" : "=r"(type));
  bytes = (uintptr_t)4U << ((type >> 16) & 15U); /* of the smallest line of any data cache */
  for (line = (uintptr_t)data & ~(bytes - 1U); line < (uintptr_t)data + size; line += bytes) {
    __asm__ volatile("dc civac, %0" ::"r"(line) : "memory");
  }
  __asm__ volatile("dsb ish" ::: "memory");
}

static int evict_rest(void) { return 0; }

#else

/* No instruction of a program's does it: other bytes take the place, more than caches hold. */
#define SWEEP_BYTES ((size_t)16 << 20)
#define SWEEP_LINE_BYTES 32U

static void evict(const char *data, size_t size) {
  (void)data;
  (void)size;
}

static int evict_rest(void) {
  volatile char *other = malloc(SWEEP_BYTES);
  if (other == NULL) {
    return slw_error_setf("MemoryError", "cache_flush_cpu_non_first_arg: no %zu bytes to sweep",
                          SWEEP_BYTES);
  }
  for (size_t i = 0; i < SWEEP_BYTES; i += SWEEP_LINE_BYTES) {
    other[i] = (char)i;
  }
  free((void *)other);
  return 0;
}

#endif

int slw_packed_cache_flush(void *handle, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result) {
  (void)handle;
  (void)result;
  for (int32_t i = 1; i < num_args; ++i) {
    const DLTensor *tensor = slw_any_get_tensor(&args[i]);
    size_t size = 0;
    if (tensor != NULL && tensor->device.device_type == kDLCPU &&
        slw_tensor_size_bytes(tensor->shape, tensor->ndim, tensor->dtype, &size) == SLW_OK) {
      evict((const char *)tensor->data + tensor->byte_offset, size);
    }
  }
  return evict_rest();
}
