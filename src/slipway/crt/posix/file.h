/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * A file's bytes, mapped. Whoever replaces a file that may be open must rename a new one over it.
 */
#ifndef SLW_FILE_H_
#define SLW_FILE_H_

#include "slipway/status.h"

typedef struct {
  const uint8_t *bytes;
  size_t size_bytes;
} slw_file;

/** On failure the thread's error is set. */
slw_status slw_file_map(slw_file *file, const char *path);
void slw_file_unmap(slw_file *file);

#endif /* SLW_FILE_H_ */
