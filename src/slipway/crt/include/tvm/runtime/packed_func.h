/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Functions that any language can call and define.
 *
 *     PackedFunc add([](TVMArgs args, TVMRetValue *rv) { *rv = int(args[0]) + int(args[1]); });
 *     int sum = add(1, 2);
 */
#ifndef TVM_RUNTIME_PACKED_FUNC_H_
#define TVM_RUNTIME_PACKED_FUNC_H_

#include <cstdint>
#include <cstring> /* classic programs take it from here */
#include <functional>
#include <new>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tvm/runtime/module.h"
#include "tvm/runtime/ndarray.h"
#include "tvm/runtime/packed_value.h"
#include "tvm/runtime/ret_value.h"

namespace tvm {
namespace runtime {

namespace detail {

#if SLIPWAY_EXCEPTIONS
/** Set the thread's error from the exception that is being handled. */
inline void SetErrorOfException() noexcept {
  try {
    throw;
  } catch (const Error &error) {
    slw_error_set(error.kind().c_str(), error.message().c_str());
  } catch (const std::bad_alloc &) {
    slw_error_set("MemoryError", "a function of C++ ran out of memory");
  } catch (const std::out_of_range &error) {
    slw_error_set("IndexError", error.what());
  } catch (const std::invalid_argument &error) {
    slw_error_set("ValueError", error.what());
  } catch (const std::exception &error) {
    TVMAPISetLastError(error.what());
  } catch (...) {
    slw_error_set("RuntimeError", "a function of C++ threw what is no std::exception");
  }
}
#endif

/** A callable of C++ behind the C interface. */
template <typename F>
struct Callable {
  static int Call(TVMValue *values, int *codes, int num_args, TVMRetValueHandle result,
                  void *self) {
#if SLIPWAY_EXCEPTIONS
    try {
#endif
      TVMRetValue returned;
      (*static_cast<F *>(self))(TVMArgs(values, codes, num_args), &returned);
#if SLIPWAY_EXCEPTIONS
      returned.MoveTo(static_cast<TVMFFIAny *>(result));
      return 0;
    } catch (...) {
      SetErrorOfException();
      return -1;
    }
#else
      if (HasError()) {
        return -1;
      }
      returned.MoveTo(static_cast<TVMFFIAny *>(result));
      return 0;
#endif
  }

  static void Delete(void *self) { delete static_cast<F *>(self); }
};

}  // namespace detail

/** A function of any arguments, or none (nullptr). */
class PackedFunc : public ObjectRef {
 public:
  using FType = std::function<void(TVMArgs args, TVMRetValue *rv)>;

  PackedFunc() = default;
  PackedFunc(std::nullptr_t) {}  // NOLINT(*)

  /** Make a function of what can be called with (TVMArgs, TVMRetValue *). */
  template <typename F, typename = typename std::enable_if<
                            !std::is_base_of<ObjectRef, typename std::decay<F>::type>::value &&
                            !std::is_base_of<TVMPODValue_, typename std::decay<F>::type>::value &&
                            !std::is_same<TVMRetValue, typename std::decay<F>::type>::value &&
                            std::is_convertible<F, FType>::value>::type>
  PackedFunc(F function) {  // NOLINT(*)
    F *kept = new (std::nothrow) F(std::move(function));
    TVMFunctionHandle made = nullptr;
    if (kept == nullptr) {
      detail::Fail("MemoryError", "no memory for a function");
      return;
    }
    if (TVMFuncCreateFromCFunc(detail::Callable<F>::Call, kept, detail::Callable<F>::Delete,
                               &made) != 0) {
      delete kept;
      detail::Raise();
      return;
    }
    object_ = static_cast<TVMFFIObject *>(made);
  }

  /** Take over a reference that the C interface gave out. */
  static PackedFunc Owned(TVMFunctionHandle handle) {
    PackedFunc made;
    made.object_ = static_cast<TVMFFIObject *>(handle);
    return made;
  }

  /** Share a function that somebody else holds. */
  static PackedFunc Borrowed(TVMFunctionHandle handle) {
    return Owned(Shared(static_cast<TVMFFIObject *>(handle)));
  }

  template <typename... Args>
  TVMRetValue operator()(Args &&...args) const {
    TVMValue values[sizeof...(Args) + 1];
    int codes[sizeof...(Args) + 1];
    TVMArgsSetter set(values, codes);
    std::size_t i = 0;
    using Each = int[];
    (void)Each{0, (set(i++, std::forward<Args>(args)), 0)...};
    (void)set;
    TVMRetValue result;
    CallPacked(TVMArgs(values, codes, static_cast<int>(sizeof...(Args))), &result);
    return result;
  }

  void CallPacked(TVMArgs args, TVMRetValue *rv) const {
    TVMFFIAny result;
    if (!defined()) {
      detail::Fail("ValueError",
                   "this PackedFunc is empty: GetFunction or Registry::Get found no function of "
                   "the name it was given; compare with nullptr before the call");
      return;
    }
    if (detail::Succeeded(slw_classic_call(object_, args.values, args.type_codes, args.num_args,
                                           &result))) {
      rv->Take(&result);
    }
  }
};

/** The object as what it is: an NDArray, a Module, a PackedFunc, a list. Fails if it is none. */
template <typename T>
T Downcast(const ObjectRef &ref) {
  TVMRetValue value;
  value = ref;
  return value.As<T>();
}

template <typename Signature>
class TypedPackedFunc;

namespace detail {

template <>
struct ValueAs<PackedFunc> {
  static const char *Name() { return "a function"; }
  static PackedFunc From(const TVMPODValue_ &value) {
    return value.Has(kTVMPackedFuncHandle, Name()) ? PackedFunc::Borrowed(value.value().v_handle)
                                                   : PackedFunc();
  }
};
/** Arguments by their types. */
template <typename T>
struct ArgOf {
  static T Get(const TVMArgs &args, int i) {
    return ValueAs<T>::From(args[i]);
  }
};
template <>
struct ArgOf<TVMArgValue> {
  static TVMArgValue Get(const TVMArgs &args, int i) { return args[i]; }
};

template <typename R>
struct ResultAs {
  static R From(const TVMRetValue &value) { return value.template As<R>(); }
};
template <>
struct ResultAs<void> {
  static void From(const TVMRetValue &) {}
};
template <>
struct ResultAs<TVMRetValue> {
  static TVMRetValue From(const TVMRetValue &value) { return value; }
};

template <std::size_t... I>
struct Indices {};
template <std::size_t N, std::size_t... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <std::size_t... I>
struct MakeIndices<0, I...> {
  using type = Indices<I...>;
};

/** A callable with types, called with packed arguments. */
template <typename F, typename R, typename... Args>
struct Unpacked {
  F function;

  void operator()(const TVMArgs &args, TVMRetValue *rv) {
    const int wanted = static_cast<int>(sizeof...(Args));
    if (args.num_args != wanted) {
      Fail("TypeError", "the function takes " + std::to_string(wanted) + " arguments, got " +
                            std::to_string(args.num_args));
      return;
    }
    Run(args, rv, typename MakeIndices<sizeof...(Args)>::type(), std::is_void<R>());
  }

 private:
  template <std::size_t... I>
  void Run(const TVMArgs &args, TVMRetValue *, Indices<I...>, std::true_type) {
    (void)args;
    std::tuple<typename std::decay<Args>::type...> values{
        ArgOf<typename std::decay<Args>::type>::Get(args, static_cast<int>(I))...};
    (void)values;
    if (!ArgumentsFailed()) {
      function(std::get<I>(values)...);
    }
  }
  template <std::size_t... I>
  void Run(const TVMArgs &args, TVMRetValue *rv, Indices<I...>, std::false_type) {
    (void)args;
    std::tuple<typename std::decay<Args>::type...> values{
        ArgOf<typename std::decay<Args>::type>::Get(args, static_cast<int>(I))...};
    (void)values;
    if (!ArgumentsFailed()) {
      *rv = function(std::get<I>(values)...);
    }
  }
  /* Without exceptions the function must not see the empty values of arguments that do not fit. */
  static bool ArgumentsFailed() { return SLIPWAY_EXCEPTIONS == 0 && HasError(); }
};

/** TypedPackedFunc of a callable. */
template <typename F>
struct SignatureOf : SignatureOf<decltype(&F::operator())> {};
template <typename R, typename... Args>
struct SignatureOf<R (*)(Args...)> {
  using type = TypedPackedFunc<R(Args...)>;
};
template <typename R, typename... Args>
struct SignatureOf<R(Args...)> : SignatureOf<R (*)(Args...)> {};
template <typename C, typename R, typename... Args>
struct SignatureOf<R (C::*)(Args...)> : SignatureOf<R (*)(Args...)> {};
template <typename C, typename R, typename... Args>
struct SignatureOf<R (C::*)(Args...) const> : SignatureOf<R (*)(Args...)> {};

}  // namespace detail

/** A PackedFunc whose arguments and result have types. */
template <typename R, typename... Args>
class TypedPackedFunc<R(Args...)> {
 public:
  TypedPackedFunc() = default;
  TypedPackedFunc(std::nullptr_t) {}                                  // NOLINT(*)
  TypedPackedFunc(PackedFunc packed) : packed_(std::move(packed)) {}  // NOLINT(*)

  template <typename F, typename = typename std::enable_if<
                            std::is_convertible<F, std::function<R(Args...)>>::value>::type>
  TypedPackedFunc(F function)  // NOLINT(*)
      : packed_(detail::Unpacked<F, R, Args...>{std::move(function)}) {}

  R operator()(Args... args) const {
    return detail::ResultAs<R>::From(packed_(std::forward<Args>(args)...));
  }

  operator PackedFunc() const { return packed_; }  // NOLINT(*)
  const PackedFunc &packed() const { return packed_; }
  bool operator==(std::nullptr_t) const { return packed_ == nullptr; }
  bool operator!=(std::nullptr_t) const { return packed_ != nullptr; }

 private:
  PackedFunc packed_;
};

inline void TVMArgsSetter::operator()(std::size_t i, const PackedFunc &value) const {
  Handle(i, value.object(), kTVMPackedFuncHandle);
}

namespace detail {

template <typename Signature>
struct ValueAs<TypedPackedFunc<Signature>> {
  static TypedPackedFunc<Signature> From(const TVMPODValue_ &value) {
    return TypedPackedFunc<Signature>(ValueAs<PackedFunc>::From(value));
  }
};

/** Make a PackedFunc of a callable whose call operator says its types. */
template <typename F>
PackedFunc Typed(F function) {
  return typename SignatureOf<F>::type(std::move(function)).packed();
}

inline int CallObject(const PackedFunc &function, const TVMFFIAny *args, int32_t num_args,
                      TVMFFIAny *result) {
  slw_function call;
  TVMFFIAny value = TVMFFIAny();
  value.type_index = kTVMFFIFunction;
  value.v_obj = function.object();
  if (slw_any_get_function(&value, &call) != SLW_OK) {
    slw_error_set("MemoryError", "no memory for an exported function");
    return -1;
  }
  return call.call(call.self, args, num_args, result);
}

}  // namespace detail
}  // namespace runtime
using runtime::Downcast;
using runtime::PackedFunc;
using runtime::TVMArgs;
using runtime::TVMArgValue;
using runtime::TVMRetValue;
using runtime::TypedPackedFunc;
}  // namespace tvm

/** Export a function of (TVMArgs, TVMRetValue *) from a library that load_module loads. */
#define TVM_DLL_EXPORT_PACKED_FUNC(name, ...)                                                   \
  static const ::tvm::runtime::PackedFunc &slipway_exported_##name() {                          \
    static const ::tvm::runtime::PackedFunc kFunction(__VA_ARGS__);                             \
    return kFunction;                                                                           \
  }                                                                                             \
  extern "C" TVM_DLL int __tvm_ffi_##name(void *, const TVMFFIAny *, int32_t, TVMFFIAny *);     \
  extern "C" int __tvm_ffi_##name(void *, const TVMFFIAny *values, int32_t count,               \
                                  TVMFFIAny *result) {                                          \
    return ::tvm::runtime::detail::CallObject(slipway_exported_##name(), values, count, result); \
  }                                                                                             \
  static_assert(true, "a semicolon follows")

/** Export a function whose arguments and result have types. */
#define TVM_DLL_EXPORT_TYPED_FUNC(name, ...) \
  TVM_DLL_EXPORT_PACKED_FUNC(name, ::tvm::runtime::detail::Typed(__VA_ARGS__))

#include "tvm/runtime/module_node.h"

#endif  // TVM_RUNTIME_PACKED_FUNC_H_
