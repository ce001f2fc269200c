/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * A file's bytes, in memory of this process. They are not mapped: a file that is written again in
 * place (cp does) would change under a model that is loaded, and a shorter one end the process.
 */
#ifndef SLW_FILE_H_
#define SLW_FILE_H_

#include "slipway/status.h"

typedef struct {
  const uint8_t *bytes;
  size_t size_bytes;
} slw_file;

/** On failure the thread's error is set. */
slw_status slw_file_read(slw_file *file, const char *path);
void slw_file_free(slw_file *file);

/** Give back the memory of bytes that nobody reads again, where they fill whole pages of it. */
void slw_file_forget(const void *bytes, size_t size_bytes);

#endif /* SLW_FILE_H_ */
