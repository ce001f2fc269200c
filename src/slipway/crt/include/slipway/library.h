/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Compiled code brought into this process from the bytes of an exported shared library.
 *
 * Two ways, one interface: a static program places the library itself (elf.h); a dynamically
 * linked one leaves that to dlopen, so that debuggers and profilers see it.
 */
#ifndef SLIPWAY_LIBRARY_H_
#define SLIPWAY_LIBRARY_H_

#include "slipway/abi.h"
#include "slipway/elf.h"
#include "slipway/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct slw_library slw_library;

/** Check and load. The processor, the metadata's version and the processor features are checked
 * first. `bytes` must stay while the library is open.
 * @param name  for messages
 * On failure the thread's error says what is wrong. */
SLW_API slw_status slw_library_open(const void *bytes, size_t size_bytes, const char *name,
                                    slw_library **out);

SLW_API void slw_library_close(slw_library *library);

/** Address of an exported symbol, or NULL. */
SLW_API void *slw_library_symbol(const slw_library *library, const char *name);

/** Keep the shared library that `address` lies in for good, whoever closes it; a static program
 * has none. For code that the process may call at any time, as a registered function's. */
SLW_API void slw_library_pin(const void *address);

/** The library's headers and symbol table. */
SLW_API const slw_elf *slw_library_elf(const slw_library *library);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_LIBRARY_H_ */
