/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * What a program holds: compiled functions, and a model with them.
 *
 * Firmware has one such description of what is linked into it.  A host that drives the firmware
 * links further code to the address that the firmware names (slipway.code_space), puts the
 * description first in it, and uploads the bytes: an image of 32 or 64 bits, as the device's.
 */
#ifndef SLIPWAY_IMAGE_H_
#define SLIPWAY_IMAGE_H_

#include "slipway/aot_module.h"
#include "slipway/module.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLW_IMAGE_MAGIC 0x494D4C53u /* "SLMI" in memory */
#define SLW_IMAGE_VERSION 1u

/* Which processor an image is for: ELF's machine number, and the size of a pointer. */
#if defined(__arm__)
#define SLW_IMAGE_MACHINE 40u
#elif defined(__riscv)
#define SLW_IMAGE_MACHINE 243u
#elif defined(__x86_64__)
#define SLW_IMAGE_MACHINE 62u
#elif defined(__aarch64__)
#define SLW_IMAGE_MACHINE 183u
#elif defined(__hexagon__)
#define SLW_IMAGE_MACHINE 164u
#else
#define SLW_IMAGE_MACHINE 0u
#endif

/** One function, in the calling convention. */
typedef struct slw_image_function {
  const char *name;
  TVMFFISafeCallType call;
} slw_image_function;

/** Everything that is in a program; what it has not is NULL and 0. */
typedef struct slw_image {
  uint32_t magic;
  uint16_t version;
  uint8_t machine; /* SLW_IMAGE_MACHINE */
  uint8_t pointer_bytes;
  const uint8_t *begin; /* [begin, end) are the bytes that travel, of an uploaded image */
  uint8_t *end;
  uint8_t *memory_end; /* [end, memory_end) is zero when the image starts */
  slw_error_set_fn *error_slot;
  const slw_image_function *functions;
  size_t num_functions;
  const slw_aot_model *model; /* compiled ahead of time */
  const uint8_t *graph;       /* or graph.bin, for the graph executor */
  size_t graph_bytes;
  const uint8_t *params; /* of the graph: save_param_dict's bytes */
  size_t params_bytes;
} slw_image;

/** Make a module (type key "library") of the functions; with a model also "default", a function of
 * one optional device that returns the model's executor.
 * @param released called with `context` when the module goes; may be NULL
 * @retval SLW_ERROR_MEMORY */
SLW_API slw_status slw_image_module_create(const slw_image *image, void (*released)(void *context),
                                           void *context, slw_module **out);

/** Make the executor of an image's graph, and set its parameters; `library` has its functions.
 * @return SLW_OK, or a status with the error set */
SLW_API slw_status slw_image_make_graph(const slw_image *image, slw_module *library,
                                        slw_module **out);

/* What makes it: a program whose table of contents points at it only where there is a graph has no
 * graph executor where there is none. */
#ifdef SLW_WEB
extern slw_status (*const slw_web_make_graph)(const slw_image *image, slw_module *library,
                                              slw_module **out);
#define SLW_IMAGE_GRAPH slw_web_make_graph
#else
#define SLW_IMAGE_GRAPH slw_image_make_graph
#endif

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_IMAGE_H_ */
