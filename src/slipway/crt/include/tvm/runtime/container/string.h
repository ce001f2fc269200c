/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Text under its classic name. Here it is a value: a std::string that passes through a PackedFunc.
 */
#ifndef TVM_RUNTIME_CONTAINER_STRING_H_
#define TVM_RUNTIME_CONTAINER_STRING_H_

#include <functional>
#include <string>
#include <utility>

#include "tvm/runtime/packed_func.h"

namespace tvm {
namespace runtime {

class String : public std::string {
 public:
  String() = default;
  String(const char *text) : std::string(text) {}               // NOLINT(*)
  String(std::string text) : std::string(std::move(text)) {}    // NOLINT(*)
  String(const char *text, std::size_t size) : std::string(text, size) {}

  template <typename T>
  static bool CanConvertFrom(const T &value) {
    return value.type_code() == kTVMStr || value.type_code() == kTVMBytes;
  }
};

namespace detail {
template <>
struct ValueAs<String, void> {
  static String From(const TVMPODValue_ &value) { return ValueAs<std::string>::From(value); }
};
}  // namespace detail
}  // namespace runtime
using runtime::String;
}  // namespace tvm

namespace std {
template <>
struct hash<::tvm::runtime::String> {
  std::size_t operator()(const ::tvm::runtime::String &text) const {
    return std::hash<std::string>()(text);
  }
};
}  // namespace std

#endif  // TVM_RUNTIME_CONTAINER_STRING_H_
