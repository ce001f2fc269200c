/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Modules: things that hand out functions by name.
 *
 *   library   an exported .so or .tar: its compiled functions; for a model also "default",
 *             a function of one device that returns a graph module
 *   graph     one instance of a model: set_input, run, get_output, ... (see graph_module.h)
 *
 * A module is a counted object (kTVMFFIModule): release it with slw_object_release. Functions
 * got from it are borrowed: they work as long as the module lives.  Module objects are for this
 * runtime and its RPC sessions; they are not tvm-ffi's modules and must not be given to it.
 */
#ifndef SLIPWAY_MODULE_H_
#define SLIPWAY_MODULE_H_

#include "slipway/abi.h"
#include "slipway/object.h"
#include "slipway/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct slw_module slw_module;

/** What a kind of module implements. */
typedef struct {
  const char *type_key; /* "library", "graph", ... */
  /* Look a function up; SLW_ERROR_NOT_FOUND if there is none (no error text needed). */
  slw_status (*get_function)(slw_module *module, const char *name, slw_function *out);
  void (*destroy)(slw_module *module); /* free everything, the module included */
} slw_module_class;

struct slw_module {
  TVMFFIObject object;
  const slw_module_class *type;
};

/** Initialise the head of a module with one reference; for implementers of a kind. */
SLW_API void slw_module_init(slw_module *module, const slw_module_class *type);

/** Open a file by its content: an exported .so, or an artifact .tar.
 * Checks hashes, format version, processor and processor features before any code runs.
 * On failure the thread's error says what is wrong, where, and what to do. */
SLW_API slw_status slw_module_open(const char *path, slw_module **out);

/** Get a function by name. The entry is also "__tvm_main__".
 * @retval SLW_ERROR_NOT_FOUND no such function; the thread's error lists those there are */
SLW_API slw_status slw_module_get_function(slw_module *module, const char *name,
                                           slw_function *out);

/** Whether an object is a module of this runtime; tvm-ffi's own modules are not. */
SLW_API int slw_object_is_module(const TVMFFIObject *object);

/** "library", "graph", ... */
SLW_API const char *slw_module_type_key(const slw_module *module);

/** Retain and release, typed. */
SLW_API void slw_module_retain(slw_module *module);
SLW_API void slw_module_release(slw_module *module);

/** Put the module into a result; takes over the caller's reference. */
SLW_API void slw_any_set_module(TVMFFIAny *out, slw_module *module);

/** Return the module in a value (kTVMFFIModule), or NULL. */
SLW_API slw_module *slw_any_get_module(const TVMFFIAny *value);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_MODULE_H_ */
