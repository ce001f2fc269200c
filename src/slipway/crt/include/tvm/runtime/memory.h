/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * make_object and ObjectPtr under the header where programs look for them.
 */
#ifndef TVM_RUNTIME_MEMORY_H_
#define TVM_RUNTIME_MEMORY_H_

#include "tvm/runtime/packed_func.h"

#endif  // TVM_RUNTIME_MEMORY_H_
