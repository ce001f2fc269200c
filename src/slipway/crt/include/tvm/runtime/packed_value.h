/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Values that pass through a PackedFunc: arguments, which are borrowed, and results, which own what
 * they hold. Both convert to the type that is asked for, or fail with a message of which argument
 * was what.
 */
#ifndef TVM_RUNTIME_PACKED_VALUE_H_
#define TVM_RUNTIME_PACKED_VALUE_H_

#include <cstdint>
#include <forward_list>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tvm/runtime/container/string.h"
#include "tvm/runtime/module.h"
#include "tvm/runtime/ndarray.h"

namespace tvm {
namespace runtime {

inline const char *ArgTypeCode2Str(int type_code) {
  static const char *const kNames[] = {"int",    "int",     "float",    "handle", "None",
                                       "dtype",  "device",  "DLTensor", "Object", "Module",
                                       "PackedFunc", "str", "bytes",    "NDArray"};
  return (type_code >= 0 && type_code <= kTVMNDArrayHandle) ? kNames[type_code] : "unknown";
}

class TVMRetValue;
template <typename T>
class Optional; /* container/optional.h */
template <typename K, typename V>
class Map; /* container/map.h */
template <typename Signature>
class TypedPackedFunc;

namespace detail {
template <typename T, typename = void>
struct ValueAs; /* From(const TVMPODValue_ &) -> T, for the types that a value converts to */
template <typename T>
struct ObjectIs; /* In(const TVMPODValue_ &): whether it holds such an object */
}

/** A value that somebody else holds. */
class TVMPODValue_ {
 public:
  TVMPODValue_() { value_.v_int64 = 0; }
  /** `what` the value is the index-th of: "argument", or "item" of a list. */
  TVMPODValue_(TVMValue value, int type_code, int index = -1, const char *what = "argument")
      : value_(value), type_code_(type_code), index_(index), what_(what) {}

  template <typename T, typename = decltype(detail::ValueAs<T>::From(
                            std::declval<const TVMPODValue_ &>()))>
  operator T() const {  // NOLINT(*)
    return detail::ValueAs<T>::From(*this);
  }

  /** Return whether it holds an object of this type: NDArray, Module, PackedFunc, Array. */
  template <typename T>
  bool IsObjectRef() const {
    return detail::ObjectIs<T>::In(*this);
  }
  template <typename T>
  T AsObjectRef() const {
    return detail::ValueAs<T>::From(*this);
  }

  int type_code() const { return type_code_; }
  const TVMValue &value() const { return value_; }

  /** The pointer of a handle, of any type. */
  template <typename T>
  T *ptr() const {
    return static_cast<T *>(value_.v_handle);
  }

  /** Return whether it holds this; null stands for no object. Fails when it holds anything else. */
  bool Has(int type_code, const char *wanted) const {
    if (type_code_ != type_code && type_code_ != kTVMNullptr) {
      Mismatch(wanted);
    }
    return type_code_ == type_code;
  }

  void Mismatch(const char *wanted) const {
    if (SLIPWAY_EXCEPTIONS == 0 && type_code_ == kTVMNullptr && HasError()) {
      return; /* the result of what has failed: the reason is the error */
    }
    detail::Fail("TypeError", Position() + "expected " + wanted + ", got " +
                                  ArgTypeCode2Str(type_code_));
  }
  std::string Position() const {
    return (index_ < 0) ? std::string("result: ")
                        : std::string(what_) + " " + std::to_string(index_) + ": ";
  }

 protected:
  TVMValue value_;
  int type_code_ = kTVMNullptr;
  int index_ = -1;
  const char *what_ = "argument";
};

using TVMArgValue = TVMPODValue_;

/** The arguments of a call, in the classic layout. */
class TVMArgs {
 public:
  const TVMValue *values;
  const int *type_codes;
  int num_args;

  TVMArgs(const TVMValue *values_in, const int *type_codes_in, int num_args_in)
      : values(values_in), type_codes(type_codes_in), num_args(num_args_in) {}

  int size() const { return num_args; }

  TVMArgValue operator[](int i) const {
    if (i < 0 || i >= num_args) {
      detail::Fail("TypeError", "the function got " + std::to_string(num_args) +
                                    " arguments, and asked for argument " + std::to_string(i));
      return TVMArgValue();
    }
    return TVMArgValue(values[i], type_codes[i], i);
  }
  template <typename T>
  T At(int i) const {
    return detail::ValueAs<T>::From((*this)[i]);
  }
};

namespace detail {

inline bool IsInt(int code) { return code == kTVMArgInt || code == kDLUInt; }

template <typename T>
constexpr bool IsNumber() {
  return std::is_arithmetic<T>::value && !std::is_same<T, char>::value;
}

template <typename T>
struct ValueAs<T, typename std::enable_if<std::is_integral<T>::value && IsNumber<T>() &&
                                          !std::is_same<T, bool>::value>::type> {
  static T From(const TVMPODValue_ &value) {
    const int64_t number = value.value().v_int64;
    if (!IsInt(value.type_code())) {
      value.Mismatch("int");
      return T();
    }
    if (sizeof(T) < sizeof(int64_t) &&
        (number < static_cast<int64_t>(std::numeric_limits<T>::min()) ||
         number > static_cast<int64_t>(std::numeric_limits<T>::max()))) {
      Fail("OverflowError", value.Position() + std::to_string(number) +
                                " does not fit into an integer of " +
                                std::to_string(8 * sizeof(T)) + " bits");
      return T();
    }
    return static_cast<T>(number);
  }
};
template <typename T>
struct ValueAs<T, typename std::enable_if<std::is_enum<T>::value>::type> {
  static T From(const TVMPODValue_ &value) {
    return static_cast<T>(ValueAs<typename std::underlying_type<T>::type>::From(value));
  }
};
template <>
struct ValueAs<bool, void> {
  static bool From(const TVMPODValue_ &value) { return ValueAs<int64_t>::From(value) != 0; }
};
template <typename T>
struct ValueAs<T, typename std::enable_if<std::is_floating_point<T>::value>::type> {
  static T From(const TVMPODValue_ &value) {
    if (IsInt(value.type_code())) {
      return static_cast<T>(value.value().v_int64);
    }
    if (value.type_code() != kTVMArgFloat) {
      value.Mismatch("float");
      return T();
    }
    return static_cast<T>(value.value().v_float64);
  }
};
template <>
struct ValueAs<DLTensor *, void> {
  static DLTensor *From(const TVMPODValue_ &value) {
    if (value.type_code() == kTVMNDArrayHandle || value.Has(kTVMDLTensorHandle, "a tensor")) {
      return value.ptr<DLTensor>();
    }
    return nullptr;
  }
};
template <>
struct ValueAs<void *, void> {
  static void *From(const TVMPODValue_ &value) {
    if (value.type_code() == kTVMNDArrayHandle || value.type_code() == kTVMDLTensorHandle ||
        value.Has(kTVMOpaqueHandle, "a handle")) {
      return value.value().v_handle;
    }
    return nullptr;
  }
};
template <>
struct ValueAs<std::string, void> {
  static std::string From(const TVMPODValue_ &value) {
    switch (value.type_code()) {
      case kTVMStr:
        return value.value().v_str;
      case kTVMBytes: {
        const TVMByteArray *bytes = value.ptr<TVMByteArray>();
        return std::string(bytes->data, bytes->size);
      }
      case kTVMDataType:
        return DLDataType2String(value.value().v_type);
      default:
        value.Mismatch("str");
        return std::string();
    }
  }
};
template <>
struct ValueAs<DLDataType, void> {
  static DLDataType From(const TVMPODValue_ &value) {
    if (value.type_code() == kTVMStr) {
      return String2DLDataType(value.value().v_str);
    }
    if (value.type_code() != kTVMDataType) {
      value.Mismatch("dtype");
      return DLDataType();
    }
    return value.value().v_type;
  }
};
template <>
struct ValueAs<DataType, void> {
  static DataType From(const TVMPODValue_ &value) { return ValueAs<DLDataType>::From(value); }
};
template <>
struct ValueAs<DLDevice, void> {
  static DLDevice From(const TVMPODValue_ &value) {
    if (value.type_code() != kDLDevice) {
      value.Mismatch("device");
      return DLDevice();
    }
    return value.value().v_device;
  }
};
template <>
struct ValueAs<NDArray, void> {
  static NDArray From(const TVMPODValue_ &value) {
    return value.Has(kTVMNDArrayHandle, "NDArray") ? NDArray::Borrowed(value.ptr<DLTensor>())
                                                   : NDArray();
  }
};
template <>
struct ValueAs<Module, void> {
  static Module From(const TVMPODValue_ &value) {
    return value.Has(kTVMModuleHandle, "Module") ? Module::Borrowed(value.value().v_handle)
                                                 : Module();
  }
};
template <>
struct ObjectIs<NDArray> {
  static bool In(const TVMPODValue_ &value) { return value.type_code() == kTVMNDArrayHandle; }
};
template <>
struct ObjectIs<Module> {
  static bool In(const TVMPODValue_ &value) { return value.type_code() == kTVMModuleHandle; }
};
template <>
struct ObjectIs<PackedFunc> {
  static bool In(const TVMPODValue_ &value) { return value.type_code() == kTVMPackedFuncHandle; }
};

}  // namespace detail

/** Fills the arrays that TVMArgs is made of. It and what it is given must outlive the call. */
class TVMArgsSetter {
 public:
  TVMArgsSetter(TVMValue *values, int *type_codes) : values_(values), type_codes_(type_codes) {}

  template <typename T, typename = typename std::enable_if<std::is_integral<T>::value ||
                                                           std::is_enum<T>::value>::type>
  void operator()(std::size_t i, T value) const {
    values_[i].v_int64 = static_cast<int64_t>(value);
    type_codes_[i] = kTVMArgInt;
  }
  void operator()(std::size_t i, double value) const {
    values_[i].v_float64 = value;
    type_codes_[i] = kTVMArgFloat;
  }
  void operator()(std::size_t i, float value) const { (*this)(i, static_cast<double>(value)); }
  void operator()(std::size_t i, std::nullptr_t) const { Handle(i, nullptr, kTVMNullptr); }
  void operator()(std::size_t i, const char *value) const {
    values_[i].v_str = value;
    type_codes_[i] = kTVMStr;
  }
  void operator()(std::size_t i, const std::string &value) const {
    if (value.find('\0') == std::string::npos) {
      (*this)(i, value.c_str());
    } else { /* a C string would end there */
      texts_.push_front(TVMByteArray{value.data(), value.size()});
      (*this)(i, texts_.front());
    }
  }
  void operator()(std::size_t i, const TVMByteArray &value) const {
    Handle(i, const_cast<TVMByteArray *>(&value), kTVMBytes);
  }
  void operator()(std::size_t i, void *value) const { Handle(i, value, kTVMOpaqueHandle); }
  void operator()(std::size_t i, DLTensor *value) const { Handle(i, value, kTVMDLTensorHandle); }
  void operator()(std::size_t i, DLDevice value) const {
    values_[i].v_device = value;
    type_codes_[i] = kDLDevice;
  }
  void operator()(std::size_t i, DLDataType value) const {
    values_[i].v_type = value;
    type_codes_[i] = kTVMDataType;
  }
  void operator()(std::size_t i, DataType value) const {
    (*this)(i, static_cast<DLDataType>(value));
  }
  void operator()(std::size_t i, const TVMPODValue_ &value) const {
    values_[i] = value.value();
    type_codes_[i] = value.type_code();
  }
  inline void operator()(std::size_t i, const TVMRetValue &value) const;
  void operator()(std::size_t i, const NDArray &value) const {
    Handle(i, value.handle(), kTVMNDArrayHandle);
  }
  void operator()(std::size_t i, const Module &value) const {
    Handle(i, value.object(), kTVMModuleHandle);
  }
  inline void operator()(std::size_t i, const PackedFunc &value) const;
  void operator()(std::size_t i, const ObjectRef &value) const {
    Handle(i, value.object(), kTVMObjectHandle);
  }
  template <typename T>
  void operator()(std::size_t i, const Optional<T> &value) const;
  template <typename K, typename V>
  void operator()(std::size_t i, const Map<K, V> &value) const;
  template <typename Signature>
  void operator()(std::size_t i, const TypedPackedFunc<Signature> &value) const {
    (*this)(i, value.packed());
  }

 private:
  void Handle(std::size_t i, void *handle, int type_code) const {
    values_[i].v_handle = handle;
    type_codes_[i] = (handle != nullptr) ? type_code : static_cast<int>(kTVMNullptr);
  }

  TVMValue *values_;
  int *type_codes_;
  mutable std::vector<ObjectRef> kept_; /* objects that were made for the call */
  mutable std::forward_list<TVMByteArray> texts_;
};

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_PACKED_VALUE_H_
