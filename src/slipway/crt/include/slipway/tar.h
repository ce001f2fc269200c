/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Reading ustar archives that lie in memory. Freestanding; nothing is copied but names.
 */
#ifndef SLIPWAY_TAR_H_
#define SLIPWAY_TAR_H_

#include "slipway/abi.h"
#include "slipway/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLW_TAR_NAME_BYTES 257 /* prefix (155) + '/' + name (100) + NUL */

typedef struct {
  char name[SLW_TAR_NAME_BYTES];
  const uint8_t *data;
  size_t size_bytes;
} slw_tar_member;

/** Read the next plain file at `*offset_bytes` (start with 0) and move the offset past it.
 * Folders and extended headers are passed over.
 * @retval SLW_ERROR_NOT_FOUND the archive has ended, properly
 * @retval SLW_ERROR_TRUNCATED the archive stops inside a member, or without its end mark
 * @retval SLW_ERROR_FORMAT a header is not ustar, or its checksum is wrong */
SLW_API slw_status slw_tar_next(const void *bytes, size_t size_bytes, size_t *offset_bytes,
                                slw_tar_member *member);

/** Find the plain file `name`; results as slw_tar_next. */
SLW_API slw_status slw_tar_find(const void *bytes, size_t size_bytes, const char *name,
                                slw_tar_member *member);

/** Return whether the bytes begin like a ustar archive. */
SLW_API int slw_tar_is_archive(const void *bytes, size_t size_bytes);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_TAR_H_ */
