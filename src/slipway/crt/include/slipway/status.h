/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * What the runtime's own functions return: one enum, one sentence for each value.
 */
#ifndef SLIPWAY_STATUS_H_
#define SLIPWAY_STATUS_H_

#include "slipway/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  SLW_OK = 0,
  SLW_ERROR_ARGUMENT = 1,     /**< an argument is unusable (null, negative, too large) */
  SLW_ERROR_MEMORY = 2,       /**< memory is exhausted, or a given buffer is too small */
  SLW_ERROR_TRUNCATED = 3,    /**< the data ends before what it announces */
  SLW_ERROR_FORMAT = 4,       /**< the data is not of the expected format, or is damaged */
  SLW_ERROR_VERSION = 5,      /**< the format's version is not one this runtime reads */
  SLW_ERROR_MACHINE = 6,      /**< code for another kind of processor */
  SLW_ERROR_FEATURE = 7,      /**< code that needs processor features this one lacks */
  SLW_ERROR_UNSUPPORTED = 8,  /**< a relocation, operator or option this runtime does not have */
  SLW_ERROR_UNDEFINED = 9,    /**< the library needs a symbol that nobody defines */
  SLW_ERROR_NOT_FOUND = 10,   /**< no such file, member, function, input or output */
  SLW_ERROR_HASH = 11,        /**< a SHA-256 sum does not match */
  SLW_ERROR_TENSOR = 12,      /**< shape, type, layout or device of a tensor does not fit */
  SLW_ERROR_IO = 13,          /**< the operating system refused to read, map or write */
  SLW_ERROR_CALL = 14,        /**< a called function failed; the thread's error says why */
  SLW_STATUS_COUNT = 15
} slw_status;

/** Return the sentence for `status`, a constant; never NULL. */
SLW_API const char *slw_status_text(slw_status status);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_STATUS_H_ */
