/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Temporary memory of running kernels: a stack of cached blocks per thread.
 */
#ifndef SLIPWAY_WORKSPACE_H_
#define SLIPWAY_WORKSPACE_H_

#include "slipway/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Get `nbytes` bytes, 64-byte aligned, not zeroed; NULL when memory is exhausted or the device
 * is not the CPU. Fits the library slot `__slipway_workspace_alloc`. */
SLW_API void *slw_workspace_alloc(uint64_t nbytes, int32_t device_type, int32_t device_id);

/** Give a block back, on the thread that got it. Fits `__slipway_workspace_free`. */
SLW_API void slw_workspace_free(void *ptr, int32_t device_type, int32_t device_id);

/** Return the calling thread's cached blocks to the system. */
SLW_API void slw_workspace_trim(void);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_WORKSPACE_H_ */
