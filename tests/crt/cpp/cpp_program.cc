// A model run by a program of C++ alone, and what happens when it is used wrongly.
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#include <cstdio>
#include <thread>

using namespace tvm::runtime;

static const DLDevice kCpu{kDLCPU, 0};

template <typename F>
void Tell(F action) {
  try {
    action();
    std::puts("nothing");
  } catch (const tvm::Error &error) {
    std::printf("%s\n", error.what());
  }
}

static void MyAdd(TVMArgs args, TVMRetValue *rv) {
  int a = args[0];
  int b = args[1];
  *rv = a + b;
}
TVM_REGISTER_GLOBAL("myadd").set_body(MyAdd);

static NDArray Ones(const ShapeTuple &shape) {
  NDArray made = NDArray::Empty(shape, DataType::Float(32), kCpu);
  std::vector<float> ones(GetDataSize(*made.operator->()) / sizeof(float), 1.0f);
  made.CopyFromBytes(ones.data(), ones.size() * sizeof(float));
  return made;
}

static void Print(const NDArray &values) {
  std::vector<float> copied(GetDataSize(*values.operator->()) / sizeof(float));
  values.CopyToBytes(copied.data(), copied.size() * sizeof(float));
  for (float value : copied) std::printf("%.6f ", static_cast<double>(value));
  std::puts("");
}

static void Functions() {
  const PackedFunc *add = Registry::Get("myadd");
  int sum = (*add)(1, 2);
  PackedFunc twice([](TVMArgs args, TVMRetValue *rv) {
    PackedFunc inner = args[0];
    *rv = inner(args[1], args[1]);
  });
  int doubled = twice(*add, 21);
  TypedPackedFunc<int(int, int)> typed = *add;
  std::string text = PackedFunc([](TVMArgs args, TVMRetValue *rv) {
    std::string all;
    for (int i = 0; i < args.size(); ++i) all += args[i].operator std::string();
    *rv = all;
  })("a", std::string("b"), "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p",
     "q", "r", "s");
  std::printf("%d %d %d %s\n", sum, doubled, typed(5, 6), text.c_str());
  int in_thread = 0;
  std::thread([&] { in_thread = (*add)(3, 4); }).join();
  std::printf("%d\n", in_thread);
  Registry::Register("again").set_body(MyAdd);
  Tell([] { Registry::Register("again").set_body(MyAdd); });
  Registry::Register("again", true).set_body_typed([](int x) { return -x; });
  int negative = (*Registry::Get("again"))(7);
  bool removed = Registry::Remove("again");
  std::printf("%d %d %d %d\n", negative, removed, Registry::Remove("again"),
              Registry::Get("again") == nullptr);
  Tell([add] { (*add)("one", 2); });
  Tell([add] { (*add)(1); });
  Tell([] { PackedFunc()(1); });
}

static void Arrays() {
  NDArray ones = Ones({2, 3});
  NDArray copy = ones.CopyTo(kCpu);
  static_cast<float *>(copy->data)[0] = 5;
  Print(ones);
  Print(copy.CreateView({3, 2}, copy->dtype));
  Print(NDArray::FromDLPack(copy.ToDLPack()));
  void *memory = DeviceAPI::Get(kCpu)->AllocDataSpace(kCpu, 100, 256, DataType::UInt(8));
  std::printf("%d\n", static_cast<int>(reinterpret_cast<uintptr_t>(memory) % 256));
  DeviceAPI::Get(kCpu)->FreeDataSpace(kCpu, memory);
  float few[2];
  Tell([&] { ones.CopyToBytes(few, sizeof few); });
  Tell([&] { ones.CopyTo(Ones({7})); });
  Tell([&] { ones.CreateView({7}, ones->dtype); });
  Tell([] { NDArray::Empty({int64_t(1) << 50}, DataType::Float(32), kCpu); });
  Tell([] { NDArray::Empty({-1}, DataType::Float(32), kCpu); });
  Tell([] { NDArray::Empty({1}, DataType::Float(32), DLDevice{kDLCUDA, 0}); });
  Tell([] { NDArray::Empty({1}, DataType("flot32"), kCpu); });
  Tell([] { NDArray().Shape(); });
  Tell([&] { ones.CopyFromBytes(nullptr, 24); });
  Tell([&] { ones.CopyToBytes(nullptr, 24); });
  Tell([] { NDArray::FromDLPack(nullptr); });
  Tell([] {
    TVMArrayHandle made;
    detail::Succeeded(TVMArrayAlloc(nullptr, 2, kDLFloat, 32, 1, kDLCPU, 0, &made));
  });
  Tell([] {
    TVMFunctionHandle found;
    detail::Succeeded(TVMFuncGetGlobal(nullptr, &found));
  });
  Tell([] { detail::Succeeded(TVMFuncRegisterGlobal(nullptr, Registry::Get("myadd")->object(), 0)); });
  Tell([] { detail::Succeeded(TVMFuncRemoveGlobal(nullptr)); });
}

static void Model(const char *path, const char *damaged) {
  Module lib = Module::LoadFromFile(path);
  PackedFunc make = lib.GetFunction("default");
  Module executor = make(kCpu);
  PackedFunc set_input = executor.GetFunction("set_input");
  PackedFunc get_output = executor->GetFunction("get_output");
  NDArray input = Ones({1, 3, 8, 8});
  set_input("input", input);
  executor.GetFunction("run")();
  Print(get_output(0));
  NDArray direct = make(input);
  Print(direct);
  NDArray given = Ones({1, 4});
  make(input, given);
  Print(given);
  std::printf("%s %s\n", lib.type_key(), executor->type_key());
  Tell([&] { set_input("inputs", input); });
  Tell([&] { set_input("input", Ones({1, 3, 8, 9})); });
  Tell([&] { make(input, input, input); });
  Tell([&] { make(DLDevice{kDLOpenCL, 0}); });
  Tell([&] { get_output(3); });
  Tell([&] { lib.GetFunction("nothing")(); });
  Tell([&] {
    TVMFunctionHandle found;
    detail::Succeeded(TVMModGetFunction(lib.object(), nullptr, 0, &found));
  });
  Tell([] { Module::LoadFromFile("no/such/file.so"); });
  Tell([damaged] { Module::LoadFromFile(damaged); });
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  Functions();
  Arrays();
  Model(argv[1], argv[2]);
  std::puts("done");
}
