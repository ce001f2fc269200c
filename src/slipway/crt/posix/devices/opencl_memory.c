/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL's memory has handles; tensors have addresses.  An allocation reserves as much address
 * space, which nothing may touch, and its base stands for the handle.  An address inside is a part
 * of the buffer, made when a kernel is first given it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "opencl.h"
#include "slipway/error.h"

typedef struct {
  size_t offset;
  cl_object buffer;
} part;

typedef struct {
  char *base;
  size_t reserved; /* of address space, in bytes */
  size_t size_bytes;
  cl_object buffer;
  part *parts;
  size_t num_parts;
  int32_t device_id;
} allocation;

static allocation *allocations; /* sorted by base */
static size_t num_allocations, capacity;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Index of the first allocation whose base lies above `address`. */
static size_t above(const char *address) {
  size_t low = 0;
  size_t high = num_allocations;
  while (low < high) {
    size_t middle = low + (high - low) / 2U;
    if ((uintptr_t)allocations[middle].base <= (uintptr_t)address) {
      low = middle + 1U;
    } else {
      high = middle;
    }
  }
  return low;
}

static allocation *find(const void *address) {
  size_t index = above(address);
  allocation *found;
  if (index == 0U) {
    return NULL;
  }
  found = &allocations[index - 1U];
  return ((size_t)((const char *)address - found->base) < found->reserved) ? found : NULL;
}

static int make_room(void) {
  size_t wanted = (capacity > 0U) ? 2U * capacity : 64U;
  allocation *grown;
  if (num_allocations < capacity) {
    return 1;
  }
  grown = realloc(allocations, wanted * sizeof *grown);
  if (grown == NULL) {
    return 0;
  }
  allocations = grown;
  capacity = wanted;
  return 1;
}

static int enter(const allocation *made) {
  size_t index;
  int entered;
  (void)pthread_mutex_lock(&lock);
  entered = make_room();
  if (entered) {
    index = above(made->base);
    memmove(&allocations[index + 1U], &allocations[index],
            (num_allocations - index) * sizeof *allocations);
    allocations[index] = *made;
    ++num_allocations;
  }
  (void)pthread_mutex_unlock(&lock);
  return entered;
}

slw_status slw_opencl_alloc(int32_t device_id, size_t size_bytes, void **out) {
  const slw_opencl_functions *cl = slw_opencl_driver();
  slw_opencl_device *device = slw_opencl_device_of(device_id);
  uint64_t most = 0;
  allocation made;
  cl_int code = CL_SUCCESS;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  (void)cl->GetDeviceInfo(device->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most, &most, NULL);
  if (most > 0U && size_bytes > most) {
    (void)slw_error_setf("DeviceError", "opencl(%d) (%s) has no allocation of %zu bytes: one may "
                                        "have %llu.",
                         (int)device_id, device->name, size_bytes, (unsigned long long)most);
    return SLW_ERROR_MEMORY;
  }
  memset(&made, 0, sizeof made);
  made.device_id = device_id;
  made.size_bytes = (size_bytes > 0U) ? size_bytes : 1U;
  made.reserved = made.size_bytes;
  made.base = mmap(NULL, made.reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                   0);
  if (made.base == MAP_FAILED) {
    slw_error_set("MemoryError", "no address space is left for memory of the OpenCL device");
    return SLW_ERROR_MEMORY;
  }
  made.buffer = cl->CreateBuffer(device->context, CL_MEM_READ_WRITE, made.size_bytes, NULL, &code);
  if (code != CL_SUCCESS) {
    (void)munmap(made.base, made.reserved);
    return slw_opencl_failed(device, "allocating memory", code);
  }
  if (!enter(&made)) {
    (void)cl->ReleaseMemObject(made.buffer);
    (void)munmap(made.base, made.reserved);
    slw_error_set("MemoryError", "no memory for the list of device memory");
    return SLW_ERROR_MEMORY;
  }
  *out = made.base;
  return SLW_OK;
}

void slw_opencl_release(void *memory) {
  const slw_opencl_functions *cl = slw_opencl_driver();
  allocation gone;
  allocation *found;
  (void)pthread_mutex_lock(&lock);
  found = find(memory);
  if (found == NULL || found->base != memory) {
    (void)pthread_mutex_unlock(&lock);
    return;
  }
  gone = *found;
  memmove(found, found + 1, (size_t)(&allocations[num_allocations] - (found + 1)) * sizeof *found);
  --num_allocations;
  (void)pthread_mutex_unlock(&lock);
  /* The driver keeps what queued work still uses. */
  for (size_t i = 0; i < gone.num_parts; ++i) {
    (void)cl->ReleaseMemObject(gone.parts[i].buffer);
  }
  free(gone.parts);
  (void)cl->ReleaseMemObject(gone.buffer);
  (void)munmap(gone.base, gone.reserved);
}

cl_object slw_opencl_locate(const void *address, size_t *offset, size_t *left,
                            int32_t *device_id) {
  allocation *found;
  cl_object buffer = NULL;
  (void)pthread_mutex_lock(&lock);
  found = find(address);
  if (found != NULL) {
    buffer = found->buffer;
    *offset = (size_t)((const char *)address - found->base);
    *left = found->size_bytes - *offset;
    *device_id = found->device_id;
  }
  (void)pthread_mutex_unlock(&lock);
  if (buffer == NULL) {
    slw_error_set("DeviceError", "an address that is to be in the memory of an OpenCL device is not: "
                                 "the tensor has been freed, or lies elsewhere.");
  }
  return buffer;
}

static cl_object known_part(const allocation *found, size_t offset) {
  for (size_t i = 0; i < found->num_parts; ++i) {
    if (found->parts[i].offset == offset) {
      return found->parts[i].buffer;
    }
  }
  return NULL;
}

static cl_object make_part(allocation *found, size_t offset) {
  const slw_opencl_functions *cl = slw_opencl_driver();
  slw_opencl_device *device = slw_opencl_device_of(found->device_id);
  cl_region region = {offset, found->size_bytes - offset};
  cl_int code = CL_SUCCESS;
  cl_object buffer;
  part *grown;
  if (offset % device->base_alignment != 0U) {
    (void)slw_error_setf("DeviceError",
                         "opencl(%d) (%s): a tensor begins %zu bytes into its memory, and this device "
                         "takes places at multiples of %zu only. Copy it into a tensor of its own.",
                         (int)found->device_id, device->name, offset, device->base_alignment);
    return NULL;
  }
  grown = realloc(found->parts, (found->num_parts + 1U) * sizeof *grown);
  if (grown == NULL) {
    slw_error_set("MemoryError", "no memory for a part of device memory");
    return NULL;
  }
  found->parts = grown;
  buffer = cl->CreateSubBuffer(found->buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                               &region, &code);
  if (code != CL_SUCCESS) {
    (void)slw_opencl_failed(device, "taking a part of its memory", code);
    return NULL;
  }
  grown[found->num_parts].offset = offset;
  grown[found->num_parts].buffer = buffer;
  ++found->num_parts;
  return buffer;
}

cl_object slw_opencl_buffer_at(const void *address, int32_t *device_id) {
  allocation *found;
  cl_object buffer = NULL;
  (void)pthread_mutex_lock(&lock);
  found = find(address);
  if (found != NULL) {
    size_t offset = (size_t)((const char *)address - found->base);
    *device_id = found->device_id;
    buffer = (offset == 0U) ? found->buffer : known_part(found, offset);
    if (buffer == NULL) {
      buffer = make_part(found, offset);
    }
  } else {
    slw_error_set("DeviceError", "a kernel was given an address that is not in the memory of an "
                                 "OpenCL device.");
  }
  (void)pthread_mutex_unlock(&lock);
  return buffer;
}
