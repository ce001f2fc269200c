/* SPDX-License-Identifier: Apache-2.0 */
/* Apple's GPUs: Metal, called through the Objective-C runtime, whose functions are looked up when the first
 * of them is wanted, so that neither a compiler of Objective-C nor a header of Apple's is needed.
 *
 * Every message is a call of objc_msgSend as a function of the type that the method has: SLW_SEND
 * names result and parameters. */
#ifndef SLIPWAY_METAL_H_
#define SLIPWAY_METAL_H_

#include <pthread.h>

#include "../device_driver.h"

typedef void *mtl_object;
typedef struct mtl_selector *mtl_selector;
typedef unsigned long mtl_count; /* NSUInteger */
typedef struct {
  mtl_count width, height, depth;
} mtl_size;

/* Result, name, parameters. */
#if defined(__x86_64__) /* where a structure that registers do not hold has a call of its own */
#define SLW_METAL_STRUCTURES(X) X(void, objc_msgSend_stret, (void))
#else
#define SLW_METAL_STRUCTURES(X)
#endif
#define SLW_METAL_FUNCTIONS(X)                                                                     \
  X(mtl_object, objc_getClass, (const char *))                                                     \
  X(mtl_selector, sel_registerName, (const char *))                                                \
  X(void, objc_msgSend, (void))                                                                    \
  X(void *, objc_autoreleasePoolPush, (void))                                                      \
  X(void, objc_autoreleasePoolPop, (void *))                                                       \
  SLW_METAL_STRUCTURES(X)                                                                          \
  X(mtl_object, MTLCopyAllDevices, (void))

typedef struct {
#define SLW_METAL_FIELD(result, name, parameters) result(*name) parameters;
  SLW_METAL_FUNCTIONS(SLW_METAL_FIELD)
#undef SLW_METAL_FIELD
} slw_metal_functions;

/* Send a message: SLW_SEND(mtl_object, device, "newBufferWithLength:options:", (mtl_count, mtl_count), 8, 0).
 * Without parameters: SLW_ASK(mtl_count, pipeline, "maxTotalThreadsPerThreadgroup"). */
#define SLW_PARAMETERS(...) (mtl_object, mtl_selector, __VA_ARGS__)
#define SLW_SEND(result, object, name, parameters, ...)                                            \
  (((result(*) SLW_PARAMETERS parameters)slw_metal_calls.objc_msgSend)(                            \
      (object), slw_metal_calls.sel_registerName(name), __VA_ARGS__))
#define SLW_ASK(result, object, name)                                                              \
  (((result(*)(mtl_object, mtl_selector))slw_metal_calls.objc_msgSend)(                                         \
      (object), slw_metal_calls.sel_registerName(name)))

enum {
  MTL_STORAGE_SHARED = 0,
  MTL_STORAGE_PRIVATE = 2 << 4,
  MTL_STATUS_ERROR = 5 /* of a command buffer */
};

#define SLW_METAL_PENDING 4

/* A device with its queue, made when something is first done there. */
typedef struct {
  mtl_object id;
  mtl_object queue;
  char name[128];
  int is_unified; /* the processor sees its memory */
  int has_times;
  mtl_object commands; /* that kernels are recorded to; NULL: none are */
  mtl_object encoder;  /* of kernels or of copies, the last one asked for */
  int copies;          /* which of them */
  size_t num_commands;
  mtl_object pending[SLW_METAL_PENDING]; /* given to the device, the oldest first */
  size_t num_pending;
  double busy_seconds; /* of the work that was waited for */
  mtl_object staging;  /* what memory that the processor does not see is copied through */
  int failure;         /* of work that nobody has been told of; 0: none */
  char failed_words[200];
  pthread_mutex_t lock; /* of all below `id` */
} slw_metal_device;

extern slw_device_driver slw_metal;
extern slw_metal_functions slw_metal_calls;

/* --- metal_driver.c --- */

slw_metal_device *slw_metal_device_of(int32_t device_id);
int32_t slw_metal_number_of(const slw_metal_device *device);
slw_status slw_metal_failed(const slw_metal_device *device, const char *what, int code,
                            const char *words);
/* An NSString for as long as the pool lives. */
mtl_object slw_metal_text(const char *text);
/* What an NSError says, as long as the pool lives. */
const char *slw_metal_words(mtl_object error);

/* --- metal_queue.c; the device's lock is held --- */

/* The encoder of kernels, or (`copies`) of copies; NULL with the thread's error set. */
mtl_object slw_metal_encoder(slw_metal_device *device, int copies);
/* Give what is recorded to the device. */
slw_status slw_metal_flush(slw_metal_device *device);
slw_status slw_metal_wait(slw_metal_device *device);

/* --- metal_memory.c --- */

slw_status slw_metal_alloc(int32_t device_id, size_t size_bytes, void **out);
void slw_metal_release(void *memory);
/* The MTLBuffer that an address lies in. NULL with the thread's error set: less than `size_bytes` are there. */
mtl_object slw_metal_locate(const void *address, size_t size_bytes, size_t *offset,
                            int32_t *device_id);
slw_status slw_metal_read(const void *from, void *host, size_t size_bytes);
slw_status slw_metal_write(void *to, const void *host, size_t size_bytes);
slw_status slw_metal_copy(const void *from, void *to, size_t size_bytes);

/* --- metal_code.c --- */

slw_status slw_metal_program(int32_t device_id, const slw_device_text *code, const char *kernel,
                             uint64_t *handle);
slw_status slw_metal_kernel(int32_t device_id, uint64_t program, const slw_device_text *code,
                            const slw_device_launch *launch, slw_device_kernel *out);
void slw_metal_drop(int32_t device_id, const slw_device_program *program);

#endif /* SLIPWAY_METAL_H_ */
