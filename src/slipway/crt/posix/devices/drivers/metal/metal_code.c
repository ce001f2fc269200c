/* SPDX-License-Identifier: Apache-2.0 */
/* Metal's language to programs, by the driver, and their kernels. */
#include "metal.h"
#include "slipway/format.h"

slw_status slw_metal_program(int32_t device_id, const slw_device_text *code, const char *kernel,
                             uint64_t *handle) {
  const slw_metal_device *device = slw_metal_device_of(device_id);
  void *pool = slw_metal_calls.objc_autoreleasePoolPush();
  mtl_object options = SLW_ASK(mtl_object, slw_metal_calls.objc_getClass("MTLCompileOptions"), "new");
  mtl_object error = NULL;
  mtl_object library;
  slw_status status = SLW_OK;
  /* Compilers that do not know the text's own pragma read this. */
  SLW_SEND(void, options, "setFastMathEnabled:", (signed char), 0);
  library = SLW_SEND(mtl_object, device->id, "newLibraryWithSource:options:error:",
                     (mtl_object, mtl_object, mtl_object *), slw_metal_text(code->text), options,
                     &error);
  if (library == NULL) {
    status = slw_driver_refused(&slw_metal, device_id, kernel,
                                (error != NULL) ? (int)SLW_ASK(long, error, "code") : 0,
                                slw_metal_words(error), "");
  }
  *handle = (uint64_t)(uintptr_t)library;
  SLW_ASK(void, options, "release");
  slw_metal_calls.objc_autoreleasePoolPop(pool);
  return status;
}

static slw_status make_pipeline(const slw_metal_device *device, mtl_object library,
                                const slw_device_launch *launch, slw_device_kernel *out) {
  mtl_object function = SLW_SEND(mtl_object, library, "newFunctionWithName:", (mtl_object),
                                 slw_metal_text(launch->kernel));
  mtl_object error = NULL;
  mtl_object pipeline;
  if (function == NULL) {
    char what[160];
    (void)slw_format(what, sizeof what, "finding kernel %s", launch->kernel);
    return slw_metal_failed(device, what, 0, "its code has no such kernel");
  }
  pipeline = SLW_SEND(mtl_object, device->id, "newComputePipelineStateWithFunction:error:",
                      (mtl_object, mtl_object *), function, &error);
  SLW_ASK(void, function, "release");
  if (pipeline == NULL) {
    return slw_driver_refused(&slw_metal, slw_metal_number_of(device), launch->kernel,
                              (error != NULL) ? (int)SLW_ASK(long, error, "code") : 0,
                              slw_metal_words(error), "");
  }
  out->most_threads = (size_t)SLW_ASK(mtl_count, pipeline, "maxTotalThreadsPerThreadgroup");
  out->handles[0] = (uint64_t)(uintptr_t)pipeline;
  return SLW_OK;
}

slw_status slw_metal_kernel(int32_t device_id, uint64_t program, const slw_device_text *code,
                            const slw_device_launch *launch, slw_device_kernel *out) {
  void *pool = slw_metal_calls.objc_autoreleasePoolPush();
  slw_status status = make_pipeline(slw_metal_device_of(device_id), (mtl_object)(uintptr_t)program,
                                    launch, out);
  (void)code;
  slw_metal_calls.objc_autoreleasePoolPop(pool);
  return status;
}

/* Command buffers keep what they use. */
void slw_metal_drop(int32_t device_id, const slw_device_program *program) {
  (void)device_id;
  for (const slw_device_kernel *kernel = program->kernels; kernel != NULL; kernel = kernel->next) {
    SLW_ASK(void, (mtl_object)(uintptr_t)kernel->handles[0], "release");
  }
  SLW_ASK(void, (mtl_object)(uintptr_t)program->handle, "release");
}
