/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The runtime as WebAssembly: what a page's JavaScript calls.  The library imports nothing; a
 * JavaScript function that compiled code calls is put into the exported function table.
 */
#ifndef SLW_WEB_H_
#define SLW_WEB_H_

#include <stddef.h>

#include "slipway/image.h"

#define SLW_WEB_API __attribute__((visibility("default"), used))

/** The program: its functions and its model; slipway.compiler.artifact.web writes it. */
extern const slw_image slw_web_image;

/** Memory that is not zeroed; slw_platform_free gives it back. NULL: the page has no more. */
void *slw_web_alloc(size_t size_bytes, size_t alignment_bytes);

/** Let the library's slots lead to the runtime. */
void slw_web_fill_slots(void);

#endif /* SLW_WEB_H_ */
