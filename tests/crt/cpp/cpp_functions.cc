#include <tvm/runtime/module.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/ndarray.h>
#include <numeric>
#include <stdexcept>
using namespace tvm::runtime;

TVM_REGISTER_GLOBAL("cpp.add").set_body([](TVMArgs args, TVMRetValue *rv) {
  int a = args[0];
  int b = args[1];
  *rv = a + b;
});
TVM_REGISTER_GLOBAL("cpp.call").set_body_typed([](std::string name, int x) -> int {
  const PackedFunc *f = Registry::Get(name);
  ICHECK(f != nullptr) << "no function " << name;
  return (*f)(x);
});
TVM_REGISTER_GLOBAL("cpp.apply").set_body([](TVMArgs args, TVMRetValue *rv) {
  PackedFunc f = args[0];
  f.CallPacked(TVMArgs(args.values + 1, args.type_codes + 1, args.size() - 1), rv);
});
TVM_REGISTER_GLOBAL("cpp.caught").set_body_typed([](PackedFunc f) -> std::string {
  try {
    f();
  } catch (const tvm::Error &error) {
    return error.kind() + " | " + error.message();
  }
  return "nothing";
});
TVM_REGISTER_GLOBAL("cpp.fail").set_body_typed([](std::string what) {
  if (what == "invalid") throw std::invalid_argument("a bad argument");
  if (what == "range") throw std::out_of_range("outside");
  if (what == "memory") throw std::bad_alloc();
  if (what == "kind") throw tvm::Error("KeyError", "no such key");
  if (what == "prefix") LOG(FATAL) << "TypeError: by its prefix";
  if (what == "plain") throw std::runtime_error("so it is");
  if (what == "named") throw std::runtime_error("KeyError: by its text");
  if (what == "odd") throw 42;
});
TVM_REGISTER_GLOBAL("cpp.sum").set_body_typed([](NDArray x) {
  const float *data = static_cast<const float *>(x->data);
  return std::accumulate(data, data + x->shape[0], 0.0);
});
TVM_REGISTER_GLOBAL("cpp.iota").set_body_typed([](int n) {
  NDArray made = NDArray::Empty({n}, DataType::Float(32), DLDevice{kDLCPU, 0});
  float *data = static_cast<float *>(made->data);
  std::iota(data, data + n, 0.0f);
  return made;
});
TVM_REGISTER_GLOBAL("cpp.size").set_body_typed([](const std::string &text, PackedFunc next) {
  std::string more = text + '\0';
  std::string back = next(more, std::string("\0", 1));
  return static_cast<int>(text.size() * 1000 + back.size());
});
TVM_REGISTER_GLOBAL("cpp.echo").set_body([](TVMArgs args, TVMRetValue *rv) { *rv = args[0]; });
TVM_REGISTER_GLOBAL("cpp.adder").set_body_typed([](int a) {
  return TypedPackedFunc<int(int)>([a](int b) { return a + b; });
});
TVM_REGISTER_GLOBAL("cpp.load").set_body_typed([](std::string p) { return Module::LoadFromFile(p); });
TVM_REGISTER_GLOBAL("cpp.code").set_body([](TVMArgs args, TVMRetValue *rv) {
  *rv = std::string(ArgTypeCode2Str(args[0].type_code()));
});
TVM_DLL_EXPORT_TYPED_FUNC(twice, [](int x) { return 2 * x; });
TVM_DLL_EXPORT_PACKED_FUNC(count, [](TVMArgs args, TVMRetValue *rv) { *rv = args.size(); });
TVM_REGISTER_GLOBAL("cpp.run").set_body_typed([](Module m, NDArray x) {
  PackedFunc f = m.GetFunction("default");
  if (f == nullptr) throw std::invalid_argument(std::string("no model: ") + m->type_key());
  Module g = f(DLDevice{kDLCPU, 0});
  g.GetFunction("set_input")(0, x);
  g.GetFunction("run")();
  return NDArray(g.GetFunction("get_output")(0));
});
