/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * What a device without operating system offers an RPC session: tensors in its memory, timing,
 * "runtime.SystemLib", a module of what is linked into the firmware, and, where it has memory for
 * it, images that a host linked for a place in that memory and uploads (see image.h).
 *
 * "slipway.code_space" tells the place, as text: first free address and end of the memory, then a
 * line "name address" for each function that an image may call in the firmware.
 */
#ifndef SLIPWAY_DEVICE_SESSION_H_
#define SLIPWAY_DEVICE_SESSION_H_

#include "slipway/image.h"
#include "slipway/rpc_session.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SLW_DEVICE_IMAGES
#define SLW_DEVICE_IMAGES 8u /**< uploaded images at one time */
#endif
#define SLW_DEVICE_NAME_BYTES 48u
#define SLW_CODE_ALIGNMENT 64u

/** An uploaded image; private to device_code.c. */
typedef struct slw_device_image {
  char name[SLW_DEVICE_NAME_BYTES]; /* "" when nobody can load it again */
  uint8_t *begin; /* NULL: free */
  uint8_t *end;
  uint32_t num_modules;
  bool is_complete;
  bool is_started;
} slw_device_image;

/** The device; set the first fields, the others zero. */
typedef struct slw_device {
  const slw_image *firmware;
  uint8_t *code_begin; /* memory for uploaded code; equal to code_end: none */
  uint8_t *code_end;
  /* Make code that was written as data fit for execution: caches, barriers; NULL: nothing to do. */
  void (*code_written)(void *begin, size_t size_bytes);
  slw_device_image images[SLW_DEVICE_IMAGES];
  slw_device_image *receiving;
} slw_device;

/** Fill the hooks. `device` must outlive them. */
void slw_device_hooks(slw_rpc_hooks *hooks, slw_device *device);

/** The part of slw_device_hooks that is about uploaded images. */
void slw_device_code_hooks(slw_rpc_hooks *hooks);

/** "slipway.code_space", in the calling convention; `handle` is the device. */
int slw_device_code_space(void *handle, const TVMFFIAny *args, int32_t num_args,
                          TVMFFIAny *result);

/** Forget all uploaded images, when a session has ended. */
void slw_device_reset(slw_device *device);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_DEVICE_SESSION_H_ */
