/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * What a device without operating system offers an RPC session: tensors in its memory, timing,
 * and one module, "runtime.SystemLib", that holds what is linked into the firmware.
 */
#ifndef SLIPWAY_DEVICE_SESSION_H_
#define SLIPWAY_DEVICE_SESSION_H_

#include "slipway/module.h"
#include "slipway/rpc_session.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One function of the firmware, in the calling convention. */
typedef struct slw_device_function {
  const char *name;
  TVMFFISafeCallType call;
} slw_device_function;

/** The firmware's functions, and the model that "default" makes; both may be missing. */
typedef struct slw_device_library {
  const slw_device_function *functions;
  uint32_t num_functions;
  /** Put a new module of the model into *out. */
  slw_status (*make_model)(slw_module **out);
} slw_device_library;

/** Fill the hooks. `library` must outlive them. */
void slw_device_hooks(slw_rpc_hooks *hooks, const slw_device_library *library);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_DEVICE_SESSION_H_ */
