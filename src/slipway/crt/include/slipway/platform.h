/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * What the runtime asks of the system it runs on. POSIX systems have it in posix/platform.c;
 * a port writes these four. None is needed to run a graph whose memory the caller gives.
 */
#ifndef SLIPWAY_PLATFORM_H_
#define SLIPWAY_PLATFORM_H_

#include "slipway/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Get zeroed memory; needed by counted objects (tensors, strings, modules).
 * @param alignment_bytes a power of two
 * @return NULL when there is none */
SLW_API void *slw_platform_alloc(size_t size_bytes, size_t alignment_bytes);

/** Give back what slw_platform_alloc returned; NULL is ignored. */
SLW_API void slw_platform_free(void *memory);

/** Monotonic clock in nanoseconds, from any start; needed by slw_time_evaluate. */
SLW_API uint64_t slw_platform_time_ns(void);

/** Pause the calling thread; needed by slw_time_evaluate with a cooldown. */
SLW_API void slw_platform_sleep_ms(uint32_t duration_ms);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_PLATFORM_H_ */
