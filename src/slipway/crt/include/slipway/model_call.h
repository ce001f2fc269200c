/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * A model called like a function: tensors in, the first output out.
 */
#ifndef SLIPWAY_MODEL_CALL_H_
#define SLIPWAY_MODEL_CALL_H_

#include "slipway/module.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Whether the arguments of "default" are tensors to run with, and not a device. */
SLW_API int slw_model_is_called(const TVMFFIAny *args, int32_t num_args);

/** Set the inputs of an executor (a module "graph" or "aot") in their order, parameters left out,
 * run it, and return its first output. Tensors behind the inputs get copies of the outputs, in
 * their order; with all of them nothing is returned. */
SLW_API int slw_model_call(slw_module *executor, const TVMFFIAny *args, int32_t num_args,
                           TVMFFIAny *result);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_MODEL_CALL_H_ */
