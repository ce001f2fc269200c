/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Lists that pass through a PackedFunc: Python's list becomes an Array, and the reverse.
 *
 *     TVM_REGISTER_GLOBAL("total").set_body_typed([](Array<NDArray> all) { return all.size(); });
 */
#ifndef TVM_RUNTIME_CONTAINER_ARRAY_H_
#define TVM_RUNTIME_CONTAINER_ARRAY_H_

#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "slipway/array.h"
#include "tvm/runtime/packed_func.h"

namespace tvm {
namespace runtime {

/** A counted list. Copies of the reference are the same list until one of them is changed. Items
 * are converted when they are read, and fail then if they are no T. */
template <typename T>
class Array : public ObjectRef {
 public:
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T *;
    using reference = T;

    iterator(const Array *array, int64_t at) : array_(array), at_(at) {}
    T operator*() const { return (*array_)[at_]; }
    iterator &operator++() {
      ++at_;
      return *this;
    }
    iterator operator++(int) {
      iterator before = *this;
      ++at_;
      return before;
    }
    bool operator==(const iterator &other) const { return at_ == other.at_; }
    bool operator!=(const iterator &other) const { return at_ != other.at_; }

   private:
    const Array *array_;
    int64_t at_;
  };

  /** An empty list; one of nullptr is None. */
  Array() { MakeOwn(0); }
  Array(std::nullptr_t) {}  // NOLINT(*)
  Array(std::initializer_list<T> items) : Array(items.begin(), items.end()) {}
  Array(const std::vector<T> &items) : Array(items.begin(), items.end()) {}  // NOLINT(*)
  Array(std::size_t count, const T &value) {
    MakeOwn(count);
    for (std::size_t i = 0; i < count; ++i) push_back(value);
  }
  template <typename Iterator,
            typename = typename std::iterator_traits<Iterator>::iterator_category>
  Array(Iterator begin, Iterator end) : Array() {
    for (; begin != end; ++begin) push_back(*begin);
  }

  /** Share a list that somebody else holds. */
  static Array Borrowed(TVMFFIObject *object) {
    Array made(nullptr);
    made.object_ = Shared(object);
    return made;
  }

  std::size_t size() const { return defined() ? static_cast<std::size_t>(view()->size) : 0; }
  std::size_t capacity() const {
    return defined() ? static_cast<std::size_t>(view()->capacity) : 0;
  }
  bool empty() const { return size() == 0; }
  iterator begin() const { return iterator(this, 0); }
  iterator end() const { return iterator(this, static_cast<int64_t>(size())); }

  T operator[](int64_t i) const {
    if (!Check(i)) {
      return T();
    }
    TVMValue value;
    TVMByteArray bytes;
    int type_code = kTVMNullptr;
    slw_classic_view(&view()->items[i], &value, &type_code, &bytes);
    return detail::ValueAs<T>::From(TVMPODValue_(value, type_code, static_cast<int>(i), "item"));
  }
  T front() const { return (*this)[0]; }
  T back() const { return (*this)[static_cast<int64_t>(size()) - 1]; }

  void push_back(const T &value) {
    if (MakeOwn(size() + 1)) {
      TVMFFIAny *item = &view()->items[view()->size];
      Put(item, value);
      ++view()->size;
    }
  }
  void Set(int64_t i, const T &value) {
    if (Check(i) && MakeOwn(size())) {
      Put(&view()->items[i], value);
    }
  }
  void pop_back() {
    if (Check(0) && MakeOwn(size())) {
      slw_any_clear(&view()->items[--view()->size]);
    }
  }
  void reserve(std::size_t count) { MakeOwn(count); }
  void resize(std::size_t count) {
    while (size() > count) pop_back();
    while (size() < count && MakeOwn(count)) push_back(T());
  }
  void clear() { *this = Array(); }

 private:
  slw_array *view() const { return reinterpret_cast<slw_array *>(object_); }

  bool Check(int64_t i) const {
    if (i < 0 || i >= static_cast<int64_t>(size())) {
      detail::Fail("IndexError", "item " + std::to_string(i) + " of a list of " +
                                     std::to_string(size()));
      return false;
    }
    return true;
  }

  static void Put(TVMFFIAny *item, const T &value) {
    TVMRetValue made;
    made = value;
    slw_any_clear(item);
    made.MoveTo(item);
  }

  /** Be the only one with this list, which has room for `count`. */
  bool MakeOwn(std::size_t count) {
    if (defined() && use_count() == 1 && count <= capacity()) {
      return true;
    }
    std::size_t room = (count > size()) ? 2 * size() : size();
    slw_array *made = nullptr;
    if (slw_array_make(static_cast<int64_t>(room < count ? count : room), &made) != SLW_OK) {
      detail::Fail("MemoryError", "no memory for a list of " + std::to_string(count));
      return false;
    }
    for (std::size_t i = 0; i < size(); ++i) {
      made->items[i] = view()->items[i];
      if (made->items[i].type_index >= kTVMFFIStaticObjectBegin) {
        slw_object_retain(made->items[i].v_obj);
      }
    }
    made->size = static_cast<int64_t>(size());
    slw_object_release(object_);
    object_ = &made->object;
    return true;
  }
};

namespace detail {

template <typename T>
struct ObjectIs<Array<T>> {
  static bool In(const TVMPODValue_ &value) {
    return value.type_code() == kTVMObjectHandle &&
           slw_object_array(value.ptr<TVMFFIObject>()) != nullptr;
  }
};
template <typename T>
struct ValueAs<Array<T>> {
  static Array<T> From(const TVMPODValue_ &value) {
    if (value.type_code() == kTVMNullptr) {
      return nullptr;
    }
    if (!ObjectIs<Array<T>>::In(value)) {
      value.Mismatch("a list");
      return Array<T>();
    }
    return Array<T>::Borrowed(value.ptr<TVMFFIObject>());
  }
};

}  // namespace detail
}  // namespace runtime
using runtime::Array;
}  // namespace tvm

#endif  // TVM_RUNTIME_CONTAINER_ARRAY_H_
