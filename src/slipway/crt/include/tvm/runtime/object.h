/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * A counted reference: what PackedFunc, Module and NDArray are.
 */
#ifndef TVM_RUNTIME_OBJECT_H_
#define TVM_RUNTIME_OBJECT_H_

#include <cstddef>
#include <utility>

#include "tvm/runtime/logging.h"

namespace tvm {
namespace runtime {

/** A reference to a counted object, or to none. */
class ObjectRef {
 public:
  ObjectRef() = default;
  ObjectRef(std::nullptr_t) {}  // NOLINT(*)
  ObjectRef(const ObjectRef &other) : object_(other.object_) { Retain(); }
  ObjectRef(ObjectRef &&other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  ~ObjectRef() { slw_object_release(object_); }

  ObjectRef &operator=(const ObjectRef &other) {
    ObjectRef copy(other);
    std::swap(object_, copy.object_);
    return *this;
  }
  ObjectRef &operator=(ObjectRef &&other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  /** How many references there are to the object; 0 for none. */
  int use_count() const {
    return (object_ != nullptr) ? static_cast<int>(object_->combined_ref_count & 0xffffffffu) : 0;
  }
  bool unique() const { return use_count() == 1; }
  bool defined() const { return object_ != nullptr; }
  bool same_as(const ObjectRef &other) const { return object_ == other.object_; }
  bool operator==(std::nullptr_t) const { return object_ == nullptr; }
  bool operator!=(std::nullptr_t) const { return object_ != nullptr; }
  bool operator==(const ObjectRef &other) const { return object_ == other.object_; }
  bool operator!=(const ObjectRef &other) const { return object_ != other.object_; }

  /** The object, which this reference keeps; for the C interface. */
  TVMFFIObject *object() const { return object_; }

 protected:
  explicit ObjectRef(TVMFFIObject *owned) : object_(owned) {}

  /** Make another reference to an object that somebody else holds. */
  static TVMFFIObject *Shared(TVMFFIObject *object) {
    if (object != nullptr) {
      slw_object_retain(object);
    }
    return object;
  }

  TVMFFIObject *object_ = nullptr;

 private:
  void Retain() { Shared(object_); }
};

}  // namespace runtime
using runtime::ObjectRef;
}  // namespace tvm

#endif  // TVM_RUNTIME_OBJECT_H_
