/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * A model in C: load, fill the inputs, run, read the outputs.
 *
 *     slw_model *model = NULL;
 *     if (slw_model_open("model.tar", &model) != SLW_OK ||
 *         slw_model_set_input(model, "input", pixels, sizeof pixels) != SLW_OK ||
 *         slw_model_run(model) != SLW_OK ||
 *         slw_model_get_output(model, 0, scores, sizeof scores) != SLW_OK) {
 *       fprintf(stderr, "%s: %s\n", slw_error_kind(), slw_error_message());
 *     }
 *     slw_model_close(model);
 *
 * Where dimensions are open, slw_model_set_input_shaped gives an input of any size in range; an output
 * has the shape that the last run gave it, the largest there is before the first.
 *
 * A model is used by one thread at a time; two that were opened may run at the same time. A failed call
 * leaves the model as it was, and the thread's error says what was wrong (error.h).
 */
#ifndef SLIPWAY_MODEL_H_
#define SLIPWAY_MODEL_H_

#include "slipway/abi.h"
#include "slipway/error.h"
#include "slipway/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct slw_model slw_model;

/** Load an exported .so or .tar and make its executor, parameters set. */
SLW_API slw_status slw_model_open(const char *path, slw_model **out);

/** Give back all that belongs to the model; NULL is ignored. */
SLW_API void slw_model_close(slw_model *model);

/** Inputs are those that the caller sets: parameters and states do not count. */
SLW_API int32_t slw_model_num_inputs(const slw_model *model);
SLW_API int32_t slw_model_num_outputs(const slw_model *model);

/** The name of an input or output, NULL when there is no such one. */
SLW_API const char *slw_model_input_name(const slw_model *model, int32_t index);
SLW_API const char *slw_model_output_name(const slw_model *model, int32_t index);

/** The model's own tensor: shape, type, and memory that may be written (an input) or read (an output
 * after a run) in place of the copies below. NULL when there is no such input or output. It stays the
 * same object as long as the model; the shape changes with open sizes, and with those a run finds. */
SLW_API const DLTensor *slw_model_input(const slw_model *model, int32_t index);
SLW_API const DLTensor *slw_model_output(const slw_model *model, int32_t index);

/** Copy the elements of an input, row-major; NULL for the name means the only input.
 * @param size_bytes of `data`, which must be the input's own size
 * @retval SLW_ERROR_NOT_FOUND no input of that name; the error lists those there are
 * @retval SLW_ERROR_TENSOR    another size */
SLW_API slw_status slw_model_set_input(slw_model *model, const char *name, const void *data,
                                       size_t size_bytes);

/** The same, and the shape that decides the open sizes: inputs that share one are all to be set.
 * @retval SLW_ERROR_TENSOR the bytes are not those of such a shape
 * @retval SLW_ERROR_CALL   a shape, or a size, that the model does not take */
SLW_API slw_status slw_model_set_input_shaped(slw_model *model, const char *name, const void *data,
                                              size_t size_bytes, const int64_t *shape,
                                              int32_t ndim);

SLW_API slw_status slw_model_run(slw_model *model);

/** What lives from run to run begins anew, as when the model was opened. */
SLW_API slw_status slw_model_reset_states(slw_model *model);

/** Copy an output out. @retval SLW_ERROR_NOT_FOUND @retval SLW_ERROR_TENSOR another size */
SLW_API slw_status slw_model_get_output(const slw_model *model, int32_t index, void *data,
                                        size_t size_bytes);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_MODEL_H_ */
