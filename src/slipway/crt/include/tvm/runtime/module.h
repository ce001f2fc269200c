/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Modules: things that hand out functions by name.
 */
#ifndef TVM_RUNTIME_MODULE_H_
#define TVM_RUNTIME_MODULE_H_

#include "slipway/module.h"
#include "tvm/runtime/container/string.h"
#include "tvm/runtime/object.h"

namespace tvm {
namespace runtime {

class ModuleNode;
class Object;
class PackedFunc;
template <typename T>
class ObjectPtr;

/** An exported library, or one instance of a model. */
class Module : public ObjectRef {
 public:
  Module() = default;
  Module(std::nullptr_t) {}  // NOLINT(*)
  /** The module that a class of the program is; see module_node.h. */
  inline explicit Module(const ObjectPtr<Object> &node);

  /** Load an exported .so or .tar; what it is, the file says itself. */
  static Module LoadFromFile(const std::string &file_name, const std::string &format = "") {
    TVMModuleHandle made = nullptr;
    detail::Succeeded(TVMModLoadFromFile(file_name.c_str(), format.c_str(), &made));
    return Owned(made);
  }

  /** Take over a reference that the C interface gave out. */
  static Module Owned(TVMModuleHandle handle) {
    return Module(static_cast<TVMFFIObject *>(handle));
  }

  /** Share a module that somebody else holds. */
  static Module Borrowed(TVMModuleHandle handle) {
    return Module(Shared(static_cast<TVMFFIObject *>(handle)));
  }

  /** Get a function, which keeps the module alive; an empty one if there is none of that name. */
  inline PackedFunc GetFunction(const std::string &name, bool query_imports = false) const;

  bool ImplementsFunction(const std::string &name, bool query_imports = false) const;

  /** "library", "graph", ... */
  const char *type_key() const {
    if (!defined() || slw_object_is_module(object_) == 0) {
      detail::Fail("TypeError", "this is no module of this runtime");
      return "";
    }
    return slw_module_type_key(reinterpret_cast<const slw_module *>(object_));
  }

  const Module *operator->() const { return this; }

  /** Let GetFunction(name, true) find the functions of another; for modules of the program's own. */
  inline void Import(Module other);
  /** The object of the program's own class; nullptr for every other module. */
  inline ModuleNode *node() const;

 private:
  explicit Module(TVMFFIObject *owned) : ObjectRef(owned) {}
};

}  // namespace runtime
using runtime::Module;
}  // namespace tvm

#include "tvm/runtime/packed_func.h"

#endif  // TVM_RUNTIME_MODULE_H_
