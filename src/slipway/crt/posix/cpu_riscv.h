/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Extensions of RISC-V that are asked for by running an instruction of them.
 */
#ifndef SLIPWAY_CPU_RISCV_H_
#define SLIPWAY_CPU_RISCV_H_

#include "slipway/cpu.h"

/** As `slw_cpu_has`; SLW_CPU_UNKNOWN on other processors too.  May be called in several threads. */
slw_cpu_answer slw_cpu_riscv_has(const char *name, size_t name_bytes);

/** As `slw_cpu_feature`. */
const char *slw_cpu_riscv_feature(size_t index);

#endif /* SLIPWAY_CPU_RISCV_H_ */
