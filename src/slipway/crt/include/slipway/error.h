/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The last error of each thread: an exception class name ("ValueError") and a message.
 *
 * A function in the calling convention returns -1 after it has set an error; whoever gives up
 * propagating it (an RPC session, main) reads it here.  Texts longer than the buffers are cut.
 */
#ifndef SLIPWAY_ERROR_H_
#define SLIPWAY_ERROR_H_

#include "slipway/abi.h"
#include "slipway/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLW_ERROR_KIND_BYTES 64
#define SLW_ERROR_MESSAGE_BYTES 2048

/** Set the calling thread's error. Fits the library slot `__TVMFFIErrorSetRaisedFromCStr`. */
SLW_API void slw_error_set(const char *kind, const char *message);

/** Set the error from a format; always returns -1, so that callers `return slw_error_setf(...)`.
 * Understands %s %d %u %x %c %%, with `l`, `ll` and `z` before d, u, x; nothing else. */
SLW_API int slw_error_setf(const char *kind, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(__printf__, 2, 3)))
#endif
    ;

/** Return the kind, "" when no error is set. Valid until the thread's next error call. */
SLW_API const char *slw_error_kind(void);

/** Return the message, "" when no error is set. Valid until the thread's next error call. */
SLW_API const char *slw_error_message(void);

SLW_API void slw_error_clear(void);

/** Tells whether a call that has failed and left no message here left its reason with another
 * runtime of the process (tvm-ffi: the exception of a Python callback); NULL: there is none. */
extern int (*slw_error_is_elsewhere)(void);

/** Also hand every error to `sink` (a host process gives tvm-ffi's setter); NULL stops that. */
SLW_API void slw_error_set_sink(slw_error_set_fn sink);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_ERROR_H_ */
