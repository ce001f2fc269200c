/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Tables that pass through a PackedFunc: Python's dict becomes a Map, and the reverse.
 *
 *     TVM_REGISTER_GLOBAL("scale").set_body_typed([](Map<String, double> by) { return by["x"]; });
 *
 * Where tvm-ffi is in the process, as it is beside Python, a Map crosses as its map; elsewhere as a
 * list of pairs, which a function that takes a Map accepts in any case.
 */
#ifndef TVM_RUNTIME_CONTAINER_MAP_H_
#define TVM_RUNTIME_CONTAINER_MAP_H_

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tvm/runtime/container/array.h"
#include "tvm/runtime/container/optional.h"
#include "tvm/runtime/registry.h"

namespace tvm {
namespace runtime {

/** Hashes keys: objects by which they are, everything else by its value. */
struct MapKeyHash {
  std::size_t operator()(const ObjectRef &key) const {
    return std::hash<const void *>()(key.object());
  }
  template <typename T, typename = typename std::enable_if<
                            !std::is_base_of<ObjectRef, T>::value>::type>
  std::size_t operator()(const T &key) const {
    return std::hash<T>()(key);
  }
};

/** A table in the order of its first entries. Copies are the same table until one of them is
 * changed; iterators are of one that is not. */
template <typename K, typename V>
class Map {
 public:
  using key_type = K;
  using mapped_type = V;
  using value_type = std::pair<K, V>;
  using iterator = typename std::vector<value_type>::const_iterator;
  using const_iterator = iterator;

  Map() = default;
  Map(std::nullptr_t) : is_none_(true) {}  // NOLINT(*)
  Map(std::initializer_list<value_type> entries) : Map(entries.begin(), entries.end()) {}
  template <typename Hash, typename Equal>
  Map(const std::unordered_map<K, V, Hash, Equal> &entries)  // NOLINT(*)
      : Map(entries.begin(), entries.end()) {}
  template <typename Iterator,
            typename = typename std::iterator_traits<Iterator>::iterator_category>
  Map(Iterator begin, Iterator end) {
    for (; begin != end; ++begin) Set(begin->first, begin->second);
  }

  std::size_t size() const { return table_ ? table_->entries.size() : 0; }
  bool empty() const { return size() == 0; }
  /** Whether it is a table, if an empty one, and not None. */
  bool defined() const { return !is_none_; }
  bool same_as(const Map &other) const {
    return table_ == other.table_ && is_none_ == other.is_none_;
  }
  bool operator==(std::nullptr_t) const { return !defined(); }
  bool operator!=(std::nullptr_t) const { return defined(); }

  iterator begin() const { return table_ ? table_->entries.begin() : iterator(); }
  iterator end() const { return table_ ? table_->entries.end() : iterator(); }
  iterator find(const K &key) const {
    if (table_) {
      const auto found = table_->positions.find(key);
      if (found != table_->positions.end()) {
        return begin() + static_cast<std::ptrdiff_t>(found->second);
      }
    }
    return end();
  }
  std::size_t count(const K &key) const { return (find(key) == end()) ? 0 : 1; }
  Optional<V> Get(const K &key) const {
    const iterator found = find(key);
    return (found == end()) ? Optional<V>() : Optional<V>(found->second);
  }
  V at(const K &key) const {
    const iterator found = find(key);
    if (found == end()) {
      detail::Fail("KeyError", "a table of " + std::to_string(size()) +
                                   " entries has none of this key: ask count() or Get() first");
      return V();
    }
    return found->second;
  }
  V operator[](const K &key) const { return at(key); }

  void Set(const K &key, const V &value) {
    MakeOwn();
    const auto placed = table_->positions.emplace(key, table_->entries.size());
    if (placed.second) {
      table_->entries.emplace_back(key, value);
    } else {
      table_->entries[placed.first->second].second = value;
    }
  }
  void erase(const K &key) {
    const iterator found = find(key);
    if (found != end()) {
      const std::ptrdiff_t at = found - begin();
      MakeOwn();
      table_->entries.erase(table_->entries.begin() + at);
      table_->positions.clear();
      for (const value_type &entry : table_->entries) {
        table_->positions.emplace(entry.first, table_->positions.size());
      }
    }
  }
  void clear() { *this = Map(); }

 private:
  struct Table {
    std::vector<value_type> entries;
    std::unordered_map<K, std::size_t, MapKeyHash> positions;
  };

  void MakeOwn() {
    is_none_ = false;
    if (!table_) {
      table_ = std::make_shared<Table>();
    } else if (table_.use_count() != 1) {
      table_ = std::make_shared<Table>(*table_);
    }
  }

  std::shared_ptr<Table> table_; /* none where it has no entries yet */
  bool is_none_ = false;
};

namespace detail {

/** A list of whatever was put into it. */
class MixedList : public ObjectRef {
 public:
  explicit MixedList(std::size_t count) {
    slw_array *made = nullptr;
    if (slw_array_make(static_cast<int64_t>(count), &made) != SLW_OK) {
      Fail("MemoryError", "no memory for a list of " + std::to_string(count));
      return;
    }
    object_ = &made->object;
  }
  template <typename T>
  void Put(const T &value) {
    slw_array *list = slw_object_array(object_);
    if (list != nullptr && list->size < list->capacity) {
      TVMRetValue made;
      made = value;
      made.MoveTo(&list->items[list->size]);
      ++list->size;
    }
  }
};

/** A map as an object that other languages read. */
template <typename K, typename V>
ObjectRef MapObject(const Map<K, V> &map) {
  const PackedFunc *make = Registry::Get("ffi.Map");
  if (make == nullptr) {
    MixedList pairs(map.size());
    for (const auto &entry : map) {
      MixedList pair(2);
      pair.Put(entry.first);
      pair.Put(entry.second);
      pairs.Put(static_cast<const ObjectRef &>(pair));
    }
    return pairs;
  }
  std::vector<TVMValue> values(2 * map.size() + 1);
  std::vector<int> codes(values.size());
  TVMArgsSetter set(values.data(), codes.data());
  std::size_t count = 0;
  for (const auto &entry : map) {
    set(count++, entry.first);
    set(count++, entry.second);
  }
  TVMRetValue made;
  make->CallPacked(TVMArgs(values.data(), codes.data(), static_cast<int>(count)), &made);
  return ObjectOf(made);
}

template <typename K, typename V>
struct ValueAs<Map<K, V>> {
  static Map<K, V> From(const TVMPODValue_ &value) {
    TVMFFIObject *object =
        (value.type_code() == kTVMObjectHandle) ? value.ptr<TVMFFIObject>() : nullptr;
    if (object != nullptr && object->type_index == kTVMFFIMap) {
      return FromMap(value);
    }
    if (object != nullptr && slw_object_array(object) != nullptr) {
      return FromPairs(value, Array<Array<TVMRetValue>>::Borrowed(object));
    }
    if (value.type_code() != kTVMNullptr) {
      value.Mismatch("a map");
    }
    return nullptr;
  }

 private:
  static Map<K, V> FromMap(const TVMPODValue_ &value) {
    Map<K, V> made;
    const PackedFunc *size = Registry::Get("ffi.MapSize");
    const PackedFunc *iterate = Registry::Get("ffi.MapForwardIterFunctor");
    if (size == nullptr || iterate == nullptr) {
      value.Mismatch("a map of a tvm-ffi that is in this process");
      return made;
    }
    const int64_t count = (*size)(value);
    if (count == 0) {
      return made;
    }
    const PackedFunc at = (*iterate)(value);
    for (int64_t i = 0; i < count && !Failed(); ++i) {
      const K key = Part<K>(at(0), i, "key");
      made.Set(key, Part<V>(at(1), i, "value"));
      at(2);
    }
    return made;
  }
  static Map<K, V> FromPairs(const TVMPODValue_ &value, const Array<Array<TVMRetValue>> &pairs) {
    Map<K, V> made;
    for (std::size_t i = 0; i < pairs.size() && !Failed(); ++i) {
      const Array<TVMRetValue> pair = pairs[static_cast<int64_t>(i)];
      if (pair.size() != 2) {
        value.Mismatch("a map, or a list of pairs");
        return made;
      }
      const int64_t at = static_cast<int64_t>(i);
      const K key = Part<K>(pair[0], at, "key");
      made.Set(key, Part<V>(pair[1], at, "value"));
    }
    return made;
  }
  /** Convert the i-th key or value; an error says which. */
  template <typename T>
  static T Part(const TVMRetValue &part, int64_t i, const char *what) {
    TVMByteArray bytes;
    const TVMArgValue view = part.View(&bytes);
    return ValueAs<T>::From(
        TVMPODValue_(view.value(), view.type_code(), static_cast<int>(i), what));
  }
  static bool Failed() { return SLIPWAY_EXCEPTIONS == 0 && HasError(); }
};

}  // namespace detail

template <typename K, typename V>
void TVMArgsSetter::operator()(std::size_t i, const Map<K, V> &value) const {
  if (value.defined()) {
    kept_.push_back(detail::MapObject(value));
    (*this)(i, kept_.back());
  } else {
    (*this)(i, nullptr);
  }
}

}  // namespace runtime
using runtime::Map;
}  // namespace tvm

#endif  // TVM_RUNTIME_CONTAINER_MAP_H_
