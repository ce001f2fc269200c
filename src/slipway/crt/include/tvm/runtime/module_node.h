/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Modules whose functions a program gives: classes derived from ModuleNode.
 *
 *     class Adder : public ModuleNode {
 *      public:
 *       explicit Adder(int by) : by_(by) {}
 *       const char *type_key() const final { return "adder"; }
 *       PackedFunc GetFunction(const std::string &name, const ObjectPtr<Object> &self) final {
 *         if (name != "add") return nullptr;
 *         return TypedPackedFunc<int(int)>([self, this](int x) { return x + by_; });
 *       }
 *      private:
 *       int by_;
 *     };
 *     *rv = Module(make_object<Adder>(3));
 */
#ifndef TVM_RUNTIME_MODULE_NODE_H_
#define TVM_RUNTIME_MODULE_NODE_H_

#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if !defined(SLW_NO_THREADS)
#include <mutex>
#endif

#include "tvm/runtime/packed_func.h"

namespace tvm {
namespace runtime {

/** What a program may derive from and count: modules. */
class Object {
 public:
  Object() = default;
  Object(const Object &) = delete;
  Object &operator=(const Object &) = delete;
  virtual ~Object() = default;

 protected:
  /* What the C interface knows of it. */
  struct Head {
    slw_module module;
    Object *self;
  };
  Head head_ = Head();

  template <typename T>
  friend class ObjectPtr;
  friend class Module;
};

/** A counted pointer. */
template <typename T>
class ObjectPtr {
 public:
  ObjectPtr() = default;
  ObjectPtr(std::nullptr_t) {}  // NOLINT(*)
  ObjectPtr(const ObjectPtr &other) : ObjectPtr(other.get(), other.is_counted_) {}
  template <typename U,
            typename = typename std::enable_if<std::is_base_of<T, U>::value>::type>
  ObjectPtr(const ObjectPtr<U> &other)  // NOLINT(*)
      : ObjectPtr(other.get(), other.is_counted_) {}
  ObjectPtr(ObjectPtr &&other) noexcept { Swap(other); }
  ObjectPtr &operator=(ObjectPtr other) noexcept {
    Swap(other);
    return *this;
  }
  ~ObjectPtr() {
    if (is_counted_ && object_ != nullptr) {
      slw_object_release(&object_->head_.module.object);
    }
  }

  T *get() const { return static_cast<T *>(object_); }
  T *operator->() const { return get(); }
  T &operator*() const { return *get(); }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(std::nullptr_t) const { return object_ == nullptr; }
  bool operator!=(std::nullptr_t) const { return object_ != nullptr; }

  /** Point at an object that is there as long as this pointer and its copies are used. */
  static ObjectPtr Uncounted(T *object) { return ObjectPtr(object, false); }
  /** Take over the reference that a new object begins with. */
  static ObjectPtr Owned(T *object) {
    ObjectPtr made;
    made.object_ = object;
    return made;
  }

 private:
  ObjectPtr(T *object, bool is_counted) : object_(object), is_counted_(is_counted) {
    if (is_counted && object != nullptr) {
      slw_object_retain(&object_->head_.module.object);
    }
  }
  void Swap(ObjectPtr &other) noexcept {
    std::swap(object_, other.object_);
    std::swap(is_counted_, other.is_counted_);
  }

  Object *object_ = nullptr;
  bool is_counted_ = true;

  template <typename U>
  friend class ObjectPtr;
};

/** What a module can do, as its GetPropertyMask says; nothing here asks for it. */
enum ModulePropertyMask : int { kBinarySerializable = 1, kRunnable = 2, kDSOExportable = 4 };

/** The base of a program's own modules. */
class ModuleNode : public Object {
 public:
  ModuleNode() {
    slw_module_init(&head_.module, &class_);
    head_.self = this;
  }

  /** What kind of module it is; the text stays where it is as long as the module lives. */
  virtual const char *type_key() const = 0;

  /** Return a function, or nullptr.  Called once for each name that there is: the module keeps
   * its functions, and every one that is handed out keeps the module.  `sptr_to_self` may be
   * captured by them; it does not count where the module itself asks. */
  virtual PackedFunc GetFunction(const std::string &name,
                                 const ObjectPtr<Object> &sptr_to_self) = 0;

  virtual std::string GetSource(const std::string &format = "") {
    (void)format;
    return std::string();
  }
  virtual int GetPropertyMask() const { return kRunnable; }

  /** Let GetFunction(name, true) find the functions of another module, too. */
  void Import(Module other) {
    if (Reaches(other, this)) {
      detail::Fail("ValueError",
                   "a module cannot import itself, nor one that imports it: both would keep each "
                   "other, and a name that neither has would be looked for without end");
      return;
    }
    imports_.push_back(std::move(other));
  }
  const std::vector<Module> &imports() const { return imports_; }

 private:
  static bool Reaches(const Module &from, const ModuleNode *wanted) {
    const ModuleNode *node = from.node();
    bool found = node != nullptr && node == wanted;
    for (std::size_t i = 0; node != nullptr && !found && i < node->imports_.size(); ++i) {
      found = Reaches(node->imports_[i], wanted);
    }
    return found;
  }

  static slw_status Find(slw_module *module, const char *name, slw_function *out) {
    /* The head begins with what the C interface points at. */
    ModuleNode *node = static_cast<ModuleNode *>(reinterpret_cast<Head *>(module)->self);
#if SLIPWAY_EXCEPTIONS
    try {
      return node->Found(name, out);
    } catch (...) {
      detail::SetErrorOfException();
      return SLW_ERROR_CALL;
    }
#else
    const slw_status status = node->Found(name, out);
    return HasError() ? SLW_ERROR_CALL : status;
#endif
  }

  static void Destroy(slw_module *module) { delete reinterpret_cast<Head *>(module)->self; }

  slw_status Found(const std::string &name, slw_function *out) {
    PackedFunc function = Kept(name, nullptr);
    if (function == nullptr) {
      const PackedFunc made = GetFunction(name, ObjectPtr<Object>::Uncounted(this));
      if (made == nullptr) {
        return SLW_ERROR_NOT_FOUND;
      }
      function = Kept(name, made);
    }
    TVMFFIAny value = TVMFFIAny();
    value.type_index = kTVMFFIFunction;
    value.v_obj = function.object();
    return slw_any_get_function(&value, out);
  }

  /** Return the function that is kept under a name; if there is none, keep `made`. */
  PackedFunc Kept(const std::string &name, const PackedFunc &made) {
#if !defined(SLW_NO_THREADS)
    const std::lock_guard<std::mutex> lock(mutex_);
#endif
    for (const auto &entry : functions_) {
      if (entry.first == name) {
        return entry.second;
      }
    }
    if (made != nullptr) {
      functions_.emplace_back(name, made);
    }
    return made;
  }

  slw_module_class class_{"", Find, Destroy};
  std::vector<std::pair<std::string, PackedFunc>> functions_;
  std::vector<Module> imports_;
#if !defined(SLW_NO_THREADS)
  std::mutex mutex_;
#endif

  friend class Module;
  template <typename T, typename... Args>
  friend ObjectPtr<T> make_object(Args &&...args);
};

/** Make a module of a class derived from ModuleNode; empty, with the error set, without memory. */
template <typename T, typename... Args>
ObjectPtr<T> make_object(Args &&...args) {
  static_assert(std::is_base_of<ModuleNode, T>::value,
                "the objects of a program are modules: derive from ModuleNode");
  T *made = new (std::nothrow) T(std::forward<Args>(args)...);
  if (made == nullptr) {
    detail::Fail("MemoryError", "no memory for a module");
    return ObjectPtr<T>();
  }
  ModuleNode *node = made;
  node->class_.type_key = made->type_key();
  return ObjectPtr<T>::Owned(made);
}

inline Module::Module(const ObjectPtr<Object> &node)
    : ObjectRef((node == nullptr) ? nullptr : Shared(&node.get()->head_.module.object)) {}

inline ModuleNode *Module::node() const {
  const bool is_ours = defined() && slw_object_is_module(object_) != 0 &&
                       reinterpret_cast<slw_module *>(object_)->type->get_function ==
                           ModuleNode::Find;
  return is_ours ? static_cast<ModuleNode *>(reinterpret_cast<Object::Head *>(object_)->self)
                 : nullptr;
}

inline void Module::Import(Module other) {
  ModuleNode *own = node();
  if (own == nullptr) {
    detail::Fail("TypeError",
                 "only a module of a class derived from ModuleNode imports others: what an "
                 "exported library imports is linked into it");
    return;
  }
  own->Import(std::move(other));
}

inline PackedFunc Module::GetFunction(const std::string &name, bool query_imports) const {
  TVMFunctionHandle found = nullptr;
  detail::Succeeded(TVMModGetFunction(object_, name.c_str(), query_imports ? 1 : 0, &found));
  ModuleNode *own = (found == nullptr && query_imports) ? node() : nullptr;
  if (own != nullptr) {
    for (const Module &imported : own->imports()) {
      PackedFunc function = imported.GetFunction(name, true);
      if (function != nullptr) {
        return function;
      }
    }
  }
  return PackedFunc::Owned(found);
}

inline bool Module::ImplementsFunction(const std::string &name, bool query_imports) const {
  return GetFunction(name, query_imports) != nullptr;
}

}  // namespace runtime
using runtime::make_object;
using runtime::ModuleNode;
using runtime::Object;
using runtime::ObjectPtr;
}  // namespace tvm

#endif  // TVM_RUNTIME_MODULE_NODE_H_
