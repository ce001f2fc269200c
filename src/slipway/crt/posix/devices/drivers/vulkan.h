/* SPDX-License-Identifier: Apache-2.0 */
/* Vulkan's loader, whose functions are looked up when the first of them is wanted, and its devices. */
#ifndef SLIPWAY_VULKAN_H_
#define SLIPWAY_VULKAN_H_

#include <pthread.h>

#include "device_driver.h"
#include "vulkan_api.h"

typedef struct {
#define SLW_VULKAN_FIELD(name, result, parameters) result(*name) parameters;
  SLW_VULKAN_FUNCTIONS(SLW_VULKAN_FIELD)
#undef SLW_VULKAN_FIELD
} slw_vulkan_functions;

/* Commands that are recorded, or run: after the last of them the fence is signalled. */
#define SLW_VULKAN_BATCHES 4
#define SLW_VULKAN_MATRIX_SIZES 64
typedef struct {
  vk_handle commands;
  vk_object sets; /* a descriptor pool */
  vk_object fence;
  uint32_t num_sets;
  uint32_t num_descriptors;
  int is_recording;
  int is_submitted;
} slw_vulkan_batch;

typedef struct {
  vk_object buffer;
  vk_object memory;
  char *mapped; /* NULL: the processor does not see it */
  size_t size_bytes;
} slw_vulkan_buffer;

#define SLW_VULKAN_SPARE 32

/* A device with its queue, made when something is first done there. */
typedef struct {
  vk_handle physical;
  vk_handle device; /* NULL: not opened */
  vk_handle queue;
  uint32_t family;
  vk_properties properties;
  vk_memory_properties memory;
  uint32_t capabilities; /* bits of slw_vulkan_needs */
  vk_subgroups subgroups;
  vk_subgroup_sizes subgroup_sizes;
  vk_matrix_size matrices[SLW_VULKAN_MATRIX_SIZES]; /* which its subgroups multiply */
  uint32_t num_matrices;
  slw_vulkan_batch batches[SLW_VULKAN_BATCHES];
  size_t current;
  vk_result failure; /* the last of its work's */
  int is_untold;     /* nobody has been told of it */
  slw_vulkan_buffer staging; /* what memory that is not mapped is copied through */
  slw_vulkan_buffer spare[SLW_VULKAN_SPARE]; /* released, and perhaps in use by recorded work */
  size_t num_spare;
  size_t spare_bytes; /* of all of them */
  vk_object times;      /* marks of its clock, made for the first of them */
  uint32_t num_marks;   /* so far; each takes the place of an old one */
  uint32_t time_bits;   /* that count; 0: it has no clock */
  pthread_mutex_t lock;      /* of all below `device` */
} slw_vulkan_device;

/* What code may need and a device may lack. */
enum {
  SLW_VULKAN_FLOAT64 = 1,
  SLW_VULKAN_INT64 = 2,
  SLW_VULKAN_INT16 = 4,
  SLW_VULKAN_INT8 = 8,
  SLW_VULKAN_BUFFERS_OF_16_BITS = 16,
  SLW_VULKAN_BUFFERS_OF_8_BITS = 32,
  SLW_VULKAN_SHUFFLES = 64,
  SLW_VULKAN_FLOAT16 = 128,
  SLW_VULKAN_MATRICES = 256
};

/* --- vulkan_driver.c --- */

extern slw_device_driver slw_vulkan;

/* The loader's functions, once it works. */
extern slw_vulkan_functions slw_vk;

/* A device ready for work, or NULL with the thread's error set. */
slw_vulkan_device *slw_vulkan_device_of(int32_t device_id);

/* Bytes of its largest memory. */
uint64_t slw_vulkan_memory_of(const slw_vulkan_device *device);

/* Set the thread's error: `what` could not be done on `device`. */
slw_status slw_vulkan_failed(const slw_vulkan_device *device, const char *what, vk_result code);

/* --- vulkan_memory.c --- */

slw_status slw_vulkan_make_buffer(slw_vulkan_device *device, size_t size_bytes, int is_for_host,
                                  slw_vulkan_buffer *out);
slw_status slw_vulkan_alloc(int32_t device_id, size_t size_bytes, void **out);
void slw_vulkan_release(void *memory);
slw_status slw_vulkan_trim(int32_t device_id);
/* The buffer that an address lies in, with the byte where it lies, and the number of the device.
 * NULL with the thread's error set: less than `size_bytes` are there. */
const slw_vulkan_buffer *slw_vulkan_locate(const void *address, size_t size_bytes, size_t *offset,
                                           int32_t *device_id);
/* --- vulkan_queue.c; the device's lock is held --- */

slw_status slw_vulkan_open_queue(slw_vulkan_device *device);
/* The batch that commands are recorded to, with room for a kernel of so many buffers. */
slw_vulkan_batch *slw_vulkan_record(slw_vulkan_device *device, uint32_t num_descriptors);
/* Let what follows see what came before. */
void slw_vulkan_order(const slw_vulkan_batch *batch);
slw_status slw_vulkan_flush(slw_vulkan_device *device);
slw_status slw_vulkan_wait(slw_vulkan_device *device);
/* Wait where nobody can be told what fails: who waits next is. */
void slw_vulkan_settle(slw_vulkan_device *device);

/* --- vulkan_clock.c: as device_api.h says --- */

uint64_t slw_vulkan_launches(int32_t device_id);
slw_status slw_vulkan_mark(int32_t device_id, uint64_t *out);
slw_status slw_vulkan_between(int32_t device_id, uint64_t from, uint64_t to, uint64_t *duration_ns);

/* --- vulkan_code.c --- */

/* The handles of a kernel. */
enum { SLW_VULKAN_PIPELINE, SLW_VULKAN_LAYOUT, SLW_VULKAN_SET_LAYOUT };

slw_status slw_vulkan_program(int32_t device_id, const slw_device_text *code, const char *kernel,
                              uint64_t *handle);
slw_status slw_vulkan_kernel(int32_t device_id, uint64_t program, const slw_device_text *code,
                             const slw_device_launch *launch, slw_device_kernel *out);
void slw_vulkan_drop(int32_t device_id, const slw_device_program *program);
/* The bytes of a scalar parameter in the push constants, where `at` are taken: from the place
 * that is returned. */
uint32_t slw_vulkan_push_offset(char kind, uint32_t *at);

#endif /* SLIPWAY_VULKAN_H_ */
