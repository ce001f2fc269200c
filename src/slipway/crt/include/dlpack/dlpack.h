/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * DLPack's tensors under the standard's path, for programs that have no copy of the standard.
 * One that lies further on the include path is taken instead, whole.
 */
#ifndef SLIPWAY_DLPACK_H_
#define SLIPWAY_DLPACK_H_

#if defined(__has_include_next)
#if __has_include_next(<dlpack/dlpack.h>)
#define SLIPWAY_HAS_DLPACK 1
#endif
#endif

#ifdef SLIPWAY_HAS_DLPACK
#pragma GCC system_header /* -Wpedantic knows no include_next */
#include_next <dlpack/dlpack.h>
#else
#include "slipway/abi.h"
#endif
#endif /* SLIPWAY_DLPACK_H_ */
