/* SPDX-License-Identifier: Apache-2.0 */
/* A library of C++ or Rust that brings this runtime into a process with tvm-ffi (Python's) shares
 * tvm-ffi's table from the start, whoever loaded it. The other order, tvm-ffi after this runtime,
 * is for the one who loads tvm-ffi: slw_set_ffi_functions. */
#if !defined(SLW_STATIC) && defined(__linux__)

#include <dlfcn.h>
#include <string.h>

#include "slipway/error.h"
#include "slipway/registry.h"

static int find(void *library, const char *name, void *function) {
  void *found = dlsym(library, name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

__attribute__((constructor)) static void join_tvm_ffi(void) {
  slw_ffi_functions found;
  slw_error_set_fn set_error;
  void *library = dlopen("libtvm_ffi.so", RTLD_NOW | RTLD_NOLOAD);
  if (library != NULL && find(library, "TVMFFIFunctionGetGlobal", &found.function_get_global) &&
      find(library, "TVMFFIFunctionCall", &found.function_call) &&
      find(library, "TVMFFIFunctionSetGlobal", &found.function_set_global) &&
      find(library, "TVMFFIErrorMoveFromRaised", &found.error_move_from_raised) &&
      find(library, "TVMFFIErrorSetRaised", &found.error_set_raised) &&
      find(library, "TVMFFIErrorSetRaisedFromCStr", &set_error)) {
    slw_set_ffi_functions(&found);
    slw_error_set_sink(set_error);
  } else if (library != NULL) {
    (void)dlclose(library);
  }
}

#else
typedef int slw_ffi_host_is_for_dynamic_programs;
#endif
