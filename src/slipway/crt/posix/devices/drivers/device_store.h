/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver made of the code of kernels, kept in files for the next process. */
#ifndef SLIPWAY_DEVICE_STORE_H_
#define SLIPWAY_DEVICE_STORE_H_

#include <stddef.h>

/* Whether anything is kept: to ask a driver for what it made may be work (PoCL compiles kernels once
 * more, for any number of threads). */
int slw_device_store_keeps(void);

/* What was kept under the words of `key` (NULL ends them), as memory for free(), or NULL: nothing,
 * or a file that is damaged or was written by somebody else. */
void *slw_device_store_read(const char *const *key, size_t *size_bytes);

/* Keep `bytes` under the words of `key`.  That it cannot be kept is no error. */
void slw_device_store_write(const char *const *key, const void *bytes, size_t size_bytes);

#endif /* SLIPWAY_DEVICE_STORE_H_ */
