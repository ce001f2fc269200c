/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Arrays that own their memory, on the processor.
 */
#ifndef TVM_RUNTIME_NDARRAY_H_
#define TVM_RUNTIME_NDARRAY_H_

#include <vector>

#include "slipway/tensor.h"
#include "tvm/runtime/data_type.h"
#include "tvm/runtime/object.h"

namespace tvm {

using Device = DLDevice;

namespace runtime {

using ShapeTuple = std::vector<int64_t>;

/** Bytes of a tensor's elements. */
inline std::size_t GetDataSize(const DLTensor &tensor) {
  std::size_t size = 0;
  (void)slw_tensor_size_bytes(tensor.shape, tensor.ndim, tensor.dtype, &size);
  return size;
}

/** Return whether a tensor's elements lie one after the other, in the order of their rows. */
inline bool IsContiguous(const DLTensor &tensor) { return slw_tensor_is_contiguous(&tensor) != 0; }

/** A counted array; copies of the reference are the same array. `->` reaches its DLTensor. */
class NDArray : public ObjectRef {
 public:
  NDArray() = default;
  NDArray(std::nullptr_t) {}  // NOLINT(*)

  /** Make an array of zeros. */
  static NDArray Empty(const ShapeTuple &shape, DLDataType dtype, Device device) {
    TVMArrayHandle made = nullptr;
    detail::Succeeded(TVMArrayAlloc(shape.data(), static_cast<int>(shape.size()), dtype.code,
                                    dtype.bits, dtype.lanes, static_cast<int>(device.device_type),
                                    device.device_id, &made));
    return Owned(made);
  }

  /** Make an array over a DLPack tensor, which belongs to it from then on. */
  static NDArray FromDLPack(DLManagedTensor *tensor) {
    TVMArrayHandle made = nullptr;
    detail::Succeeded(TVMArrayFromDLPack(tensor, &made));
    return Owned(made);
  }

  /** Take over a reference that the C interface gave out. */
  static NDArray Owned(TVMArrayHandle handle) {
    return NDArray(handle != nullptr ? slw_array_object(handle) : nullptr);
  }

  /** Share an array that somebody else holds. */
  static NDArray Borrowed(TVMArrayHandle handle) {
    return NDArray(handle != nullptr ? Shared(slw_array_object(handle)) : nullptr);
  }

  DLManagedTensor *ToDLPack() const {
    DLManagedTensor *made = nullptr;
    if (Check()) {
      detail::Succeeded(TVMArrayToDLPack(handle(), &made));
    }
    return made;
  }

  DLTensor *operator->() const { return handle(); }
  DLTensor *handle() const {
    return defined() ? reinterpret_cast<DLTensor *>(reinterpret_cast<char *>(object_) +
                                                    sizeof(TVMFFIObject))
                     : nullptr;
  }

  ShapeTuple Shape() const {
    return Check() ? ShapeTuple(handle()->shape, handle()->shape + handle()->ndim) : ShapeTuple();
  }
  runtime::DataType DataType() const { return Check() ? handle()->dtype : DLDataType(); }
  bool IsContiguous() const { return Check() && slw_tensor_is_contiguous(handle()) != 0; }

  void CopyFrom(const DLTensor *other) const {
    detail::Succeeded(TVMDeviceCopyDataFromTo(const_cast<DLTensor *>(other), handle(), nullptr));
  }
  void CopyFrom(const NDArray &other) const { CopyFrom(other.handle()); }
  void CopyTo(DLTensor *other) const {
    detail::Succeeded(TVMDeviceCopyDataFromTo(handle(), other, nullptr));
  }
  void CopyTo(const NDArray &other) const { CopyTo(other.handle()); }
  NDArray CopyTo(const Device &device) const {
    if (!Check()) {
      return NDArray();
    }
    NDArray made = Empty(Shape(), handle()->dtype, device);
    if (made.defined()) {
      CopyTo(made);
    }
    return made;
  }
  void CopyFromBytes(const void *data, std::size_t nbytes) const {
    detail::Succeeded(TVMArrayCopyFromBytes(handle(), const_cast<void *>(data), nbytes));
  }
  void CopyToBytes(void *data, std::size_t nbytes) const {
    detail::Succeeded(TVMArrayCopyToBytes(handle(), data, nbytes));
  }

  /** The same memory, or the beginning of it, with another shape. */
  NDArray CreateView(const ShapeTuple &shape, DLDataType dtype) const {
    if (!Check()) {
      return NDArray();
    }
    DLTensor view = *handle();
    slw_tensor *made = nullptr;
    std::size_t wanted = 0;
    view.shape = const_cast<int64_t *>(shape.data());
    view.ndim = static_cast<int32_t>(shape.size());
    view.strides = nullptr;
    view.dtype = dtype;
    if (slw_tensor_size_bytes(view.shape, view.ndim, dtype, &wanted) != SLW_OK ||
        wanted > GetDataSize(*handle()) || !IsContiguous()) {
      detail::Fail("ValueError", "a view must lie inside its array, which must be contiguous");
      return NDArray();
    }
    if (slw_tensor_view(&view, object_, &made) != SLW_OK) {
      detail::Fail("MemoryError", "no memory for a view of an array");
      return NDArray();
    }
    return Owned(&made->tensor);
  }

 private:
  explicit NDArray(TVMFFIObject *owned) : ObjectRef(owned) {}

  bool Check() const {
    if (!defined()) {
      detail::Fail("ValueError", "this NDArray is empty: make one with NDArray::Empty");
    }
    return defined();
  }
};

}  // namespace runtime
using runtime::NDArray;
}  // namespace tvm

#endif  // TVM_RUNTIME_NDARRAY_H_
