/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Devices beside the processor: memory, kernels, properties; one table of functions for each kind.
 *
 * Memory of a device has an address that nothing on the host may follow, with the arithmetic of
 * addresses: `data + byte_offset` of a tensor is a place in the same allocation.  Each kind says
 * how; one whose driver has handles instead of addresses reserves address space for them.
 *
 * Work is queued in order and runs beside the host; reading memory waits for it.  A kind may have more
 * queues than one (slw_device_streams).  Every function that fails has set the thread's error (error.h).
 */
#ifndef SLIPWAY_DEVICE_API_H_
#define SLIPWAY_DEVICE_API_H_

#include "slipway/abi.h"
#include "slipway/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a device can be asked; classic TVM's numbers. */
typedef enum {
  SLW_DEVICE_EXIST = 0,
  SLW_DEVICE_MAX_THREADS_PER_BLOCK = 1,
  SLW_DEVICE_WARP_SIZE = 2,
  SLW_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK = 3,
  SLW_DEVICE_COMPUTE_VERSION = 4,
  SLW_DEVICE_NAME = 5,
  SLW_DEVICE_MAX_CLOCK_RATE = 6, /* kHz */
  SLW_DEVICE_MULTI_PROCESSOR_COUNT = 7,
  SLW_DEVICE_MAX_THREAD_DIMENSIONS = 8, /* "[x, y, z]" */
  SLW_DEVICE_API_VERSION = 11,
  SLW_DEVICE_DRIVER_VERSION = 12,
  SLW_DEVICE_TOTAL_GLOBAL_MEMORY = 14,
  /* With what a launch gives; none where it is SLW_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK. Not of TVM. */
  SLW_DEVICE_MAX_SHARED_MEMORY_OF_LAUNCH = 64
} slw_device_attribute;

/** One run of a kernel.  `digest` is the SHA-256, in hexadecimal, of the code that has it.
 * `signature` has a character for each argument: 'p' memory of the device; '1' '2' '4' '8' an
 * integer of so many bytes; 'f' 'd' a float of 4 or 8; 's', which is the last, how many bytes of shared
 * memory the launch gives a block, besides those that the kernel's code says. */
typedef struct {
  const char *digest;
  const char *kernel;
  const char *signature;
  size_t grid[3];
  size_t block[3];
  const TVMFFIAny *args;
} slw_device_launch;

/** Queues of a device beside its own; a number each, and 0 is the device's own.
 *
 * What two streams are given is in no order, unless `wait` says so.  The device's own queue is in order with
 * all: what it is given runs after what every stream was given before, and what a stream is given
 * later runs after that.  Reading, writing, clocks and waiting for a device are work of its own queue. */
typedef struct {
  slw_status (*make)(int32_t device_id, uint64_t *out);
  slw_status (*drop)(int32_t device_id, uint64_t stream); /* its work goes on */
  /* Give a stream the kernels that this thread launches on the device, and its copies within it. */
  slw_status (*use)(int32_t device_id, uint64_t stream);
  slw_status (*synchronize)(int32_t device_id, uint64_t stream);
  /* Let what `stream` is given from now on run after what `before` was given. */
  slw_status (*wait)(int32_t device_id, uint64_t stream, uint64_t before);
  /* Memory of the host that stays where it is, which the device can copy beside the host's work. */
  slw_status (*host_alloc)(int32_t device_id, size_t size_bytes, void **out);
  void (*host_release)(void *memory); /* once no copy uses it */
  /* As read and write, in the stream that this thread uses: they return before the bytes are copied.
   * The host's bytes are in such memory. */
  slw_status (*read_later)(const void *from, void *host, size_t size_bytes);
  slw_status (*write_later)(void *to, const void *host, size_t size_bytes);
} slw_device_streams;

typedef struct {
  const char *name; /* "opencl" */
  slw_status (*alloc)(int32_t device_id, size_t size_bytes, void **out);
  void (*release)(void *memory);
  slw_status (*device_of)(const void *address, int32_t *device_id);
  slw_status (*read)(const void *from, void *host, size_t size_bytes);
  slw_status (*write)(void *to, const void *host, size_t size_bytes);
  slw_status (*copy)(const void *from, void *to, size_t size_bytes);
  /* `code` is copied, and held once more by each call; the last drop_code of it releases it, with what
   * the driver made of it, once no work uses that. */
  slw_status (*add_code)(const char *digest, const void *code, size_t size_bytes);
  void (*drop_code)(const char *digest);
  slw_status (*launch)(const slw_device_launch *launch);
  slw_status (*synchronize)(int32_t device_id);
  slw_status (*wait_all)(void); /* of the devices that something was done on */
  /* None where this kind of device has no such attribute; SLW_DEVICE_EXIST has for all. */
  slw_status (*attribute)(int32_t device_id, int32_t attribute, TVMFFIAny *out);
  /* A device's own clock.  All three are NULL of a kind that has none. */
  uint64_t (*launches)(int32_t device_id); /* of kernels, since the process began */
  slw_status (*mark)(int32_t device_id, uint64_t *out); /* after what is queued */
  /* The time from one mark to a later one, for which it waits; both are given back. */
  slw_status (*between)(int32_t device_id, uint64_t from, uint64_t to, uint64_t *duration_ns);
  /* Give released memory that is kept for later allocations back to the driver. NULL: none is kept. */
  slw_status (*trim)(int32_t device_id);
  const slw_device_streams *streams; /* NULL: a device has its own queue only */
  /* An image of so many texels of four floats of `bits` each; released as memory is. Whole rows of it are
   * read, written and copied as bytes are, one row after the other. NULL: such devices have none. */
  slw_status (*alloc_image)(int32_t device_id, size_t width, size_t height, int32_t bits, void **out);
} slw_device_api;

/** Enter the functions of a kind of device (a DLDeviceType), for the life of the process: memory is
 * given back through them. */
SLW_API void slw_device_register(int32_t device_type, const slw_device_api *api);

/** Return the functions of a kind, or NULL where this runtime has none. */
SLW_API const slw_device_api *slw_device_find(int32_t device_type);

/** Return what a kind of device (a DLDeviceType) is called, whether or not this runtime has it. */
SLW_API const char *slw_device_kind(int32_t device_type);

/** Wait until all devices have done their work, where this process gave them any. */
SLW_API slw_status slw_device_wait_all(void);

/** Kernels that were launched on the devices with clocks. */
#define SLW_DEVICE_CLOCKS 40
typedef struct {
  uint64_t launches[SLW_DEVICE_CLOCKS];
} slw_device_work;

/** A device with a clock; `api` NULL: none. */
typedef struct {
  const slw_device_api *api;
  int32_t device_id;
} slw_device_clock;

/** Note what was launched so far. */
SLW_API void slw_device_note(slw_device_work *out);

/** Return the clock of the only device that kernels were launched on since `before`: none where
 * there was no such device, where there were several, and where its kind has no clock. */
SLW_API slw_device_clock slw_device_clock_since(const slw_device_work *before);

/** A span of time on a device, or, where `clock` is none, on the processor until all is done. */
typedef struct {
  slw_device_clock clock;
  uint64_t from;
} slw_device_span;

SLW_API slw_status slw_device_span_begin(slw_device_span *span, slw_device_clock clock);
SLW_API slw_status slw_device_span_end(slw_device_span *span, uint64_t *duration_ns);

/** Move bytes between places that may each be on the processor or on a device.
 * @retval SLW_ERROR_TENSOR this runtime has none of a kind */
SLW_API slw_status slw_device_move(const void *from, int32_t from_type, void *to, int32_t to_type,
                                   size_t size_bytes);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_DEVICE_API_H_ */
