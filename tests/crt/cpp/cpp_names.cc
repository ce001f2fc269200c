/* Names that classic programs use beside those of the tutorials, alone and without exceptions. */
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/optional.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <cstdio>
#include <sstream>
#include <string>

using namespace tvm::runtime;

#define EXPECT(condition) \
  if (!(condition)) return std::printf("%s:%d: " #condition "\n", __FILE__, __LINE__), 1

/* The signature of releases whose text is an object, and what they let a module say of itself. */
class Echo : public ModuleNode {
 public:
  const char *type_key() const final { return "echo"; }
  int GetPropertyMask() const final {
    return ModulePropertyMask::kRunnable | ModulePropertyMask::kDSOExportable;
  }
  PackedFunc GetFunction(const String &name, const ObjectPtr<Object> &sptr_to_self) final {
    if (name != "echo") return nullptr;
    return PackedFunc([sptr_to_self](TVMArgs args, TVMRetValue *rv) { *rv = args[0]; });
  }
};

static const char *KindOf(const TVMArgValue &value) {
  if (value.IsObjectRef<NDArray>()) return "array";
  if (value.IsObjectRef<Module>()) return "module";
  if (value.IsObjectRef<PackedFunc>()) return "function";
  if (value.IsObjectRef<Array<int>>()) return "list";
  return "other";
}

int main() {
  const DLDevice cpu{kDLCPU, 0};
  NDArray array = NDArray::Empty({2, 3}, DataType::Float(32), cpu);

  std::ostringstream text;
  text << array.DataType() << ' ' << array->dtype << ' ' << array->device << ' '
       << DataType::Handle() << ' ' << DataType::Int(8).with_lanes(4) << ' '
       << DataType::BFloat(32).with_bits(16);
  EXPECT(text.str() == "float32 float32 cpu(0) handle int8x4 bfloat16");
  EXPECT(TypeMatch(array->dtype, kDLFloat, 32) && !TypeMatch(array->dtype, kDLFloat, 32, 2));
  EXPECT(DataType::Int(8, 4).is_vector() && DataType::Int(8, 4).element_of() == DataType::Int(8));
  EXPECT(DataType::Bool().is_bool() && DataType::Bool().is_scalar());
  EXPECT(DataType::Handle().is_handle() && DataType::BFloat(16).is_bfloat16());
  EXPECT(DataType::Float(16).is_float16() && !DataType::Float(32).is_float16());
  EXPECT(IsContiguous(*array.operator->()));
  DeviceAPI::Get(cpu)->SetDevice(cpu);

  Module echo(make_object<Echo>());
  EXPECT(echo.ImplementsFunction("echo") && echo->ImplementsFunction("echo", true));
  EXPECT(!echo.ImplementsFunction("other"));
  EXPECT(echo.node()->GetPropertyMask() == 6);

  PackedFunc kind([](TVMArgs args, TVMRetValue *rv) { *rv = KindOf(args[0]); });
  EXPECT(std::string(kind(array)) == "array" && std::string(kind(echo)) == "module");
  EXPECT(std::string(kind(kind)) == "function" && std::string(kind(Array<int>{1})) == "list");
  EXPECT(std::string(kind(1)) == "other" && std::string(kind("text")) == "other");

  PackedFunc call = echo.GetFunction("echo");
  TVMRetValue back = call(array);
  EXPECT(back.IsObjectRef<NDArray>() && !back.IsObjectRef<Module>());
  EXPECT(back.AsObjectRef<NDArray>().same_as(array));
  ObjectRef any = array;
  EXPECT(Downcast<NDArray>(any).same_as(array));
  any = echo;
  EXPECT(std::string(Downcast<Module>(any).type_key()) == "echo");

  Array<int> list{1, 2, 3};
  list.resize(5);
  EXPECT(list.size() == 5 && list[2] == 3 && list[4] == 0);
  list.resize(1);
  EXPECT(list.size() == 1 && list.back() == 1);
  Optional<String> none = NullOpt;
  EXPECT(!none.defined() && none.value_or("nothing") == "nothing");
  none = String("some");
  EXPECT(none.value() == "some");

#if SLIPWAY_EXCEPTIONS
  try {
    Downcast<NDArray>(any);
    EXPECT(false);
  } catch (const tvm::Error &error) {
    EXPECT(error.message() == "result: expected NDArray, got Module");
  }
  DCHECK(true) << "not said";
  VLOG(1) << "not printed";
  DLOG(INFO) << "printed";
#else
  EXPECT(!Downcast<NDArray>(any).defined() && HasError());
  ClearError();
#endif
  std::printf("done\n");
  return 0;
}
