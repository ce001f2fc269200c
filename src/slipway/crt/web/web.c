/* SPDX-License-Identifier: Apache-2.0 */
#include "web.h"

#include <string.h>

#include "slipway/error.h"
#include "slipway/graph_module.h"
#include "slipway/object.h"
#include "slipway/platform.h"
#include "slipway/sha256.h"
#include "slipway/tensor.h"
#include "slipway/timer.h"

static slw_module *library;
static double (*clock_ns)(void);

/** Say which function of the table tells the time, in nanoseconds. */
SLW_WEB_API
void slw_web_set_clock(double (*clock)(void)) { clock_ns = clock; }

uint64_t slw_platform_time_ns(void) { return (clock_ns != NULL) ? (uint64_t)clock_ns() : 0; }

void slw_platform_sleep_ms(uint32_t duration_ms) { (void)duration_ms; /* a page must not wait */ }

/** Return the library's module, made at the first call; NULL when there is no memory. */
SLW_WEB_API
slw_module *slw_web_library(void) {
  if (library == NULL) {
    slw_web_fill_slots();
    if (slw_image_module_create(&slw_web_image, NULL, NULL, &library) != SLW_OK) {
      library = NULL;
    }
  }
  return library;
}

/** Return the number of compiled functions, and the name of one. */
SLW_WEB_API
size_t slw_web_num_functions(void) { return slw_web_image.num_functions; }

SLW_WEB_API
const char *slw_web_function_name(size_t index) {
  return (index < slw_web_image.num_functions) ? slw_web_image.functions[index].name : "";
}

/** Find a function of a module. @return 0, or -1 */
SLW_WEB_API
int slw_web_get_function(slw_module *module, const char *name, slw_function *out) {
  return (slw_module_get_function(module, name, out) == SLW_OK) ? 0 : -1;
}

SLW_WEB_API
int slw_web_call(const slw_function *function, const TVMFFIAny *args, int32_t num_args,
                 TVMFFIAny *result) {
  return function->call(function->self, args, num_args, result);
}

/** Time a function as slw_time_evaluate does. @return 0, or -1 */
SLW_WEB_API
int slw_web_time(const slw_function *function, const TVMFFIAny *args, int32_t num_args,
                 const slw_time_options *options, const slw_function *preproc, double *results_s) {
  return (slw_time_evaluate(*function, args, num_args, options, *preproc, results_s) == SLW_OK)
             ? 0
             : -1;
}

SLW_WEB_API
void *slw_web_get_memory(size_t size_bytes) { return slw_web_alloc(size_bytes, 64); }

/** Compute the SHA-256 of a block. */
SLW_WEB_API
void slw_web_sha256(const void *data, size_t size_bytes, uint8_t digest[SLW_SHA256_BYTES]) {
  slw_sha256 hash;
  slw_sha256_init(&hash);
  slw_sha256_update(&hash, data, size_bytes);
  slw_sha256_final(&hash, digest);
}

SLW_WEB_API
void slw_web_give_memory(void *memory) { slw_platform_free(memory); }

SLW_WEB_API
const char *slw_web_error_kind(void) { return slw_error_kind(); }

SLW_WEB_API
const char *slw_web_error_message(void) { return slw_error_message(); }

SLW_WEB_API
void slw_web_set_error(const char *kind, const char *message) { slw_error_set(kind, message); }

SLW_WEB_API
void slw_web_clear_error(void) { slw_error_clear(); }

/** Make a zeroed tensor. @return NULL when that cannot be */
SLW_WEB_API
slw_tensor *slw_web_tensor(const int64_t *shape, int32_t ndim, uint32_t code, uint32_t bits) {
  const DLDataType dtype = {(uint8_t)code, (uint8_t)bits, 1};
  const DLDevice device = {kDLCPU, 0};
  slw_tensor *made = NULL;
  return (slw_tensor_alloc(shape, ndim, dtype, device, &made) == SLW_OK) ? made : NULL;
}

/** Return the DLTensor in a tensor object. */
SLW_WEB_API
DLTensor *slw_web_dltensor(slw_tensor *tensor) { return &tensor->tensor; }

SLW_WEB_API
void slw_web_retain(TVMFFIObject *object) { slw_object_retain(object); }

SLW_WEB_API
void slw_web_release(TVMFFIObject *object) { slw_object_release(object); }

SLW_WEB_API
int slw_web_set_text(TVMFFIAny *out, const char *data, size_t size_bytes) {
  return (slw_any_set_string(out, data, size_bytes) == SLW_OK) ? 0 : -1;
}

SLW_WEB_API
int slw_web_set_bytes(TVMFFIAny *out, const void *data, size_t size_bytes) {
  return (slw_any_set_bytes(out, data, size_bytes) == SLW_OK) ? 0 : -1;
}

/** View the text or bytes of a value; the pair at `view` is address and count. @return 0, or -1 */
SLW_WEB_API
int slw_web_get_bytes(const TVMFFIAny *value, TVMFFIByteArray *view) {
  return (slw_any_get_bytes(value, &view->data, &view->size) == SLW_OK) ? 0 : -1;
}

/** Wrap a function of the table as a counted object, which keeps `owner` (may be NULL).
 * @return 0, or -1 */
SLW_WEB_API
int slw_web_set_function(TVMFFIAny *out, TVMFFISafeCallType call, void *self, TVMFFIObject *owner) {
  const slw_function function = {call, self};
  return (slw_any_set_function(out, function, owner) == SLW_OK) ? 0 : -1;
}

/** Read the callable of a function object. @return 0, or -1 */
SLW_WEB_API
int slw_web_read_function(const TVMFFIAny *value, slw_function *out) {
  return (slw_any_get_function(value, out) == SLW_OK) ? 0 : -1;
}
