/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The result of a call.
 */
#ifndef TVM_RUNTIME_RET_VALUE_H_
#define TVM_RUNTIME_RET_VALUE_H_

#include <string>
#include <type_traits>
#include <utility>

#include "tvm/runtime/packed_value.h"

namespace tvm {
namespace runtime {

/** A result, which owns what it holds. Converts like an argument. */
class TVMRetValue {
 public:
  TVMRetValue() = default;
  TVMRetValue(const TVMRetValue &other) { Share(other.any_); }
  TVMRetValue(TVMRetValue &&other) noexcept { other.MoveTo(&any_); }
  ~TVMRetValue() { slw_any_clear(&any_); }

  TVMRetValue &operator=(const TVMRetValue &other) {
    TVMRetValue copy(other);
    std::swap(any_, copy.any_);
    return *this;
  }
  TVMRetValue &operator=(TVMRetValue &&other) noexcept {
    std::swap(any_, other.any_);
    return *this;
  }

  /** Hold anything that can be an argument; text is copied, objects are shared. */
  template <typename T, typename = decltype(std::declval<const TVMArgsSetter &>()(
                            std::size_t(), std::declval<const T &>()))>
  TVMRetValue &operator=(const T &value) {
    TVMValue classic;
    int type_code = kTVMNullptr;
    TVMFFIAny made = TVMFFIAny();
    const TVMArgsSetter set(&classic, &type_code);
    set(0, value);
    if (detail::Succeeded(slw_classic_result(&classic, type_code, &made))) {
      Take(&made);
    }
    return *this;
  }
  TVMRetValue &operator=(const std::string &value) {
    TVMFFIAny made = TVMFFIAny();
    if (slw_any_set_string(&made, value.data(), value.size()) != SLW_OK) {
      detail::Fail("MemoryError", "no memory for a text");
    } else {
      Take(&made);
    }
    return *this;
  }

  template <typename T, typename = decltype(detail::ValueAs<T>::From(
                            std::declval<const TVMPODValue_ &>()))>
  operator T() const {  // NOLINT(*)
    return As<T>();
  }
  template <typename T>
  T As() const {
    TVMByteArray bytes;
    return detail::ValueAs<T>::From(View(&bytes));
  }

  template <typename T>
  bool IsObjectRef() const {
    TVMByteArray bytes;
    return View(&bytes).template IsObjectRef<T>();
  }
  template <typename T>
  T AsObjectRef() const {
    return As<T>();
  }

  int type_code() const {
    TVMByteArray bytes;
    return View(&bytes).type_code();
  }
  template <typename T>
  T *ptr() const {
    TVMByteArray bytes;
    return View(&bytes).template ptr<T>();
  }

  /** The value, borrowed; `bytes` holds what a value of few bytes points to. */
  TVMArgValue View(TVMByteArray *bytes) const {
    TVMValue classic;
    int type_code = kTVMNullptr;
    slw_classic_view(&any_, &classic, &type_code, bytes);
    return TVMArgValue(classic, type_code);
  }

  /** Take over what another holds, or give it away: in the calling convention. */
  void Take(TVMFFIAny *from) {
    slw_any_clear(&any_);
    any_ = *from;
    *from = TVMFFIAny();
  }
  void MoveTo(TVMFFIAny *to) {
    *to = any_;
    any_ = TVMFFIAny();
  }

 private:
  void Share(const TVMFFIAny &other) {
    any_ = other;
    if (any_.type_index >= kTVMFFIStaticObjectBegin) {
      slw_object_retain(any_.v_obj);
    }
  }

  TVMFFIAny any_ = TVMFFIAny();

  friend class TVMArgsSetter;
};

namespace detail {

/** A value of any type, which shares or copies what somebody else holds. */
template <>
struct ValueAs<TVMRetValue, void> {
  static TVMRetValue From(const TVMPODValue_ &value) {
    TVMRetValue made;
    made = value;
    return made;
  }
};

/** The object that a result holds, shared; none where it holds no object. */
class Holder : public ObjectRef {
 public:
  explicit Holder(const TVMRetValue &value) {
    if (value.type_code() == kTVMObjectHandle) {
      object_ = Shared(value.ptr<TVMFFIObject>());
    }
  }
};
inline ObjectRef ObjectOf(const TVMRetValue &value) { return Holder(value); }

}  // namespace detail

/* A result as an argument must be alive until the call: it is when it stands in the call. Bytes are
 * passed as the object that holds them. */
inline void TVMArgsSetter::operator()(std::size_t i, const TVMRetValue &value) const {
  if (value.any_.type_index == kTVMFFIBytes) {
    Handle(i, value.any_.v_obj, kTVMObjectHandle);
    return;
  }
  TVMByteArray bytes;
  (*this)(i, value.View(&bytes));
}

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_RET_VALUE_H_
