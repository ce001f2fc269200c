/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * A value or none: what Python's None and a value of type T convert to.
 */
#ifndef TVM_RUNTIME_CONTAINER_OPTIONAL_H_
#define TVM_RUNTIME_CONTAINER_OPTIONAL_H_

#include <cstddef>
#include <utility>

#include "tvm/runtime/packed_func.h"

namespace tvm {
namespace runtime {

/** No value: what an Optional of any type is made of. */
struct NullOptType {};
constexpr NullOptType NullOpt{};

template <typename T>
class Optional {
 public:
  Optional() = default;
  Optional(NullOptType) {}                                             // NOLINT(*)
  Optional(std::nullptr_t) {}                                          // NOLINT(*)
  Optional(T value) : value_(std::move(value)), has_value_(true) {}    // NOLINT(*)

  bool defined() const { return has_value_; }
  bool has_value() const { return has_value_; }
  explicit operator bool() const { return has_value_; }
  bool operator==(std::nullptr_t) const { return !has_value_; }
  bool operator!=(std::nullptr_t) const { return has_value_; }

  T value() const {
    if (!has_value_) {
      detail::Fail("ValueError", "this Optional is empty: ask has_value() first");
    }
    return value_;
  }
  const T &value_ref() const { return value_; }
  T value_or(T otherwise) const { return has_value_ ? value_ : otherwise; }

 private:
  T value_ = T();
  bool has_value_ = false;
};

namespace detail {
template <typename T>
struct ValueAs<Optional<T>> {
  static Optional<T> From(const TVMPODValue_ &value) {
    return (value.type_code() == kTVMNullptr) ? Optional<T>()
                                              : Optional<T>(ValueAs<T>::From(value));
  }
};
}  // namespace detail

template <typename T>
void TVMArgsSetter::operator()(std::size_t i, const Optional<T> &value) const {
  if (value.has_value()) {
    (*this)(i, value.value_ref());
  } else {
    (*this)(i, nullptr);
  }
}

}  // namespace runtime
using runtime::NullOpt;
using runtime::Optional;
}  // namespace tvm

#endif  // TVM_RUNTIME_CONTAINER_OPTIONAL_H_
