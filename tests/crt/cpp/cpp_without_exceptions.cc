// The same headers where nothing can be thrown: on microcontrollers, and with -fno-exceptions.
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#include <cstdio>

using namespace tvm::runtime;

TVM_REGISTER_GLOBAL("myadd").set_body([](TVMArgs args, TVMRetValue *rv) {
  int a = args[0];
  int b = args[1];
  *rv = a + b;
});
TVM_REGISTER_GLOBAL("typed").set_body_typed([](int a) {
  std::puts("called");
  return a;
});

static void Tell(int value) {
  std::printf("%d [%s]\n", value, LastError().c_str());
}

int main() {
  const PackedFunc add = *Registry::Get("myadd");
  Tell(add(1, 2));
  Tell(add(1, "x"));
  Tell((*Registry::Get("typed"))("x"));
  Tell((*Registry::Get("typed"))(7));
  Tell(Registry::Get("none") == nullptr);
  NDArray values = NDArray::Empty({2, 3}, DataType::Float(32), DLDevice{kDLCPU, 0});
  Tell(static_cast<int>(values.Shape()[1]));
  Tell(NDArray::Empty({-2}, DataType::Float(32), DLDevice{kDLCPU, 0}).defined());
  ClearError();
  Module nothing;
  PackedFunc missing = nothing.GetFunction("x");
  Tell(missing.defined());
  Tell(missing(1));
  return 0;
}
