/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * A printf of 80 lines, so that messages need no stdio: %s %d %u %x %c %%, with `l`, `ll`, `z`.
 */
#ifndef SLIPWAY_FORMAT_H_
#define SLIPWAY_FORMAT_H_

#include <stdarg.h>

#include "slipway/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Write at most size_bytes - 1 characters and a NUL; longer text is cut between two characters
 * of UTF-8.
 * @return the characters written, the NUL not counted */
SLW_API size_t slw_format(char *text, size_t size_bytes, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(__printf__, 3, 4)))
#endif
    ;

SLW_API size_t slw_format_list(char *text, size_t size_bytes, const char *format, va_list list);

/** Shorten a text of `used` bytes that was cut by the UTF-8 character at its end that is not whole.
 * @return the bytes that stay */
SLW_API size_t slw_format_end(char *text, size_t used);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_FORMAT_H_ */
