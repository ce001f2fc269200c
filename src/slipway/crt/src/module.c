/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/module.h"

#include <string.h>

#include "slipway/error.h"

static void delete_module(void *self, int flags) {
  slw_module *module = self;
  (void)flags; /* nobody holds weak references to modules */
  module->type->destroy(module);
}

void slw_module_init(slw_module *module, const slw_module_class *type) {
  slw_object_init(&module->object, kTVMFFIModule, delete_module);
  module->type = type;
}

slw_status slw_module_get_function(slw_module *module, const char *name, slw_function *out) {
  slw_status status;
  slw_error_clear();
  if (module == NULL || name == NULL || out == NULL) {
    slw_error_set("TypeError", "slw_module_get_function takes a module, a name and a place for the "
                               "function, not null");
    return SLW_ERROR_ARGUMENT;
  }
  status = module->type->get_function(module, name, out);
  if (status == SLW_ERROR_NOT_FOUND && slw_error_message()[0] == '\0') {
    (void)slw_error_setf("AttributeError", "this module (%s) has no function '%s'",
                         module->type->type_key, name);
  }
  return status;
}

void slw_module_retain(slw_module *module) { slw_object_retain(&module->object); }

void slw_module_release(slw_module *module) {
  if (module != NULL) {
    slw_object_release(&module->object);
  }
}

void slw_any_set_module(TVMFFIAny *out, slw_module *module) {
  memset(out, 0, sizeof *out);
  out->type_index = kTVMFFIModule;
  out->v_obj = &module->object;
}

slw_module *slw_any_get_module(const TVMFFIAny *value) {
  return (value->type_index == kTVMFFIModule) ? (slw_module *)(void *)value->v_obj : NULL;
}

int slw_object_is_module(const TVMFFIObject *object) { return object->deleter == delete_module; }

const char *slw_module_type_key(const slw_module *module) { return module->type->type_key; }
