/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Text under its classic name. Here it is a value, and std::string is its type: a class may override
 * functions of either name.
 */
#ifndef TVM_RUNTIME_CONTAINER_STRING_H_
#define TVM_RUNTIME_CONTAINER_STRING_H_

#include <string>

namespace tvm {
namespace runtime {
using String = std::string;
}  // namespace runtime
using runtime::String;
}  // namespace tvm

#endif  // TVM_RUNTIME_CONTAINER_STRING_H_
