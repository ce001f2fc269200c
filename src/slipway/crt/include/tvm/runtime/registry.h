/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Functions by name, for every language in the process: what C++ registers,
 * `tvm.get_global_func` finds in Python, and the reverse.
 *
 *     TVM_REGISTER_GLOBAL("myadd").set_body_typed([](int a, int b) { return a + b; });
 *     const PackedFunc *add = Registry::Get("myadd");
 */
#ifndef TVM_RUNTIME_REGISTRY_H_
#define TVM_RUNTIME_REGISTRY_H_

#include <string>
#include <utility>
#include <vector>

#if !defined(SLW_NO_THREADS)
#include <atomic>
#include <cstdio>
#endif

#include "tvm/runtime/packed_func.h"

namespace tvm {
namespace runtime {

/** A name on its way into the table. */
class Registry {
 public:
  /** Begin to register; the body follows. */
  static Registry &Register(const std::string &name, bool can_override = false) {
    return *new Registry(name, can_override, false); /* one a name, as the table's entry */
  }
  /** For TVM_REGISTER_GLOBAL: nobody could catch an exception while a library is loaded, so a name
   * that is taken is told on stderr, and stays what it was. */
  static Registry &RegisterStatic(const std::string &name) {
    return *new Registry(name, false, true);
  }

  template <typename F>
  Registry &set_body(F body) {
    return Enter(PackedFunc(std::move(body)));
  }
  Registry &set_body(PackedFunc body) { return Enter(body); }
  template <typename F>
  Registry &set_body_typed(F body) {
    return Enter(detail::Typed(std::move(body)));
  }

  /** Return the function, or nullptr. It stays valid, whatever is registered later. */
  static const PackedFunc *Get(const std::string &name) {
    TVMFunctionHandle found = nullptr;
    if (!detail::Succeeded(TVMFuncGetGlobal(name.c_str(), &found)) || found == nullptr) {
      return nullptr;
    }
    return Keep(PackedFunc::Owned(found));
  }

  static bool Remove(const std::string &name) {
    TVMFunctionHandle found = nullptr;
    (void)TVMFuncGetGlobal(name.c_str(), &found);
    if (found == nullptr) {
      return false;
    }
    (void)TVMFuncFree(found);
    return detail::Succeeded(TVMFuncRemoveGlobal(name.c_str()));
  }

  static std::vector<std::string> ListNames() {
    int count = 0;
    const char **names = nullptr;
    if (!detail::Succeeded(TVMFuncListGlobalNames(&count, &names))) {
      return std::vector<std::string>();
    }
    return std::vector<std::string>(names, names + count);
  }

 private:
  Registry(std::string name, bool can_override, bool is_static)
      : name_(std::move(name)), can_override_(can_override), is_static_(is_static) {}

  Registry &Enter(const PackedFunc &body) {
    const int failed =
        TVMFuncRegisterGlobal(name_.c_str(), body.object(), can_override_ ? 1 : 0);
    if (failed != 0 && is_static_) {
#if !defined(SLW_NO_THREADS)
      std::fprintf(stderr, "%s\n", TVMGetLastError());
#endif
    } else {
      (void)detail::Succeeded(failed);
    }
    return *this;
  }

  struct Kept {
    PackedFunc function;
    Kept *next;
  };
#if defined(SLW_NO_THREADS)
  using KeptList = Kept *;
  static bool Exchange(KeptList *list, Kept **before, Kept *made) {
    (void)before;
    *list = made;
    return true;
  }
  static Kept *Load(KeptList *list) { return *list; }
#else
  using KeptList = std::atomic<Kept *>;
  static bool Exchange(KeptList *list, Kept **before, Kept *made) {
    return list->compare_exchange_weak(*before, made);
  }
  static Kept *Load(KeptList *list) { return list->load(); }
#endif

  /** Give a function an address for good: one for each that Get has ever found. */
  static const PackedFunc *Keep(PackedFunc function) {
    static KeptList list{nullptr};
    Kept *first = Load(&list);
    for (Kept *at = first; at != nullptr; at = at->next) {
      if (at->function.same_as(function)) {
        return &at->function;
      }
    }
    Kept *made = new (std::nothrow) Kept{std::move(function), first};
    if (made == nullptr) {
      detail::Fail("MemoryError", "no memory for a function's place");
      return nullptr;
    }
    while (!Exchange(&list, &made->next, made)) {
    }
    return &made->function;
  }

  std::string name_;
  bool can_override_;
  bool is_static_;
};

}  // namespace runtime
}  // namespace tvm

#define SLIPWAY_CONCAT_INNER(a, b) a##b
#define SLIPWAY_CONCAT(a, b) SLIPWAY_CONCAT_INNER(a, b)

/** Register a function when the library or program is loaded. */
#define TVM_REGISTER_GLOBAL(name)                                                             \
  static __attribute__((unused))::tvm::runtime::Registry &SLIPWAY_CONCAT(slipway_registered_, \
                                                                         __COUNTER__) =       \
      ::tvm::runtime::Registry::RegisterStatic(name)

#endif  // TVM_RUNTIME_REGISTRY_H_
