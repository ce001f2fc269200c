/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The few fields that a device needs from `__slipway_metadata`, the JSON text that every
 * exported library carries. Not a JSON parser: it walks the outermost object only.
 */
#ifndef SLIPWAY_METADATA_H_
#define SLIPWAY_METADATA_H_

#include "slipway/abi.h"
#include "slipway/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLW_FORMAT_VERSION 1

/** A piece of the text: for a string without its quotes, for a list with its brackets. */
typedef struct {
  const char *text;
  size_t size_bytes;
} slw_text;

/** Find the value of a key of the outermost object.
 * @retval SLW_ERROR_NOT_FOUND, SLW_ERROR_FORMAT */
SLW_API slw_status slw_metadata_find(const char *json, size_t size_bytes, const char *key,
                                     slw_text *value);

/** Read the next string of a list found with slw_metadata_find; start with *offset 0.
 * @retval SLW_ERROR_NOT_FOUND after the last one */
SLW_API slw_status slw_metadata_next(slw_text list, size_t *offset, slw_text *item);

/** Check version and processor features; on failure the thread's error names what is missing.
 * @param name  the file, for the message */
SLW_API slw_status slw_metadata_check(const char *json, size_t size_bytes, const char *name);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_METADATA_H_ */
