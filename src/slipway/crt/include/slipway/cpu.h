/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Which instruction set extensions this processor has, under LLVM's feature names.
 */
#ifndef SLIPWAY_CPU_H_
#define SLIPWAY_CPU_H_

#include "slipway/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { SLW_CPU_LACKS = 0, SLW_CPU_HAS = 1, SLW_CPU_UNKNOWN = 2 } slw_cpu_answer;

/** Ask for one feature ("avx512f", "dotprod", "neon"); `name` need not be NUL-terminated.
 * A feature counts if the system lets this process use it; Linux is asked for AMX's tiles here.
 * @return SLW_CPU_UNKNOWN for a name that this runtime cannot look up: treat it as present */
SLW_API slw_cpu_answer slw_cpu_has(const char *name, size_t name_bytes);

/** The name of a feature that `slw_cpu_has` knows on this kind of processor, from index 0 on.
 * @return NULL after the last one */
SLW_API const char *slw_cpu_feature(size_t index);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_CPU_H_ */
