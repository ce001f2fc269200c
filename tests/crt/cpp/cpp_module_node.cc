/* A library with a module of its own, as classic programs write it (beside_module_node.py). */
#include <tvm/runtime/module.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#include <stdexcept>
#include <string>

using namespace tvm::runtime;

namespace {

int alive = 0;

class CounterNode : public ModuleNode {
 public:
  explicit CounterNode(int value) : value_(value) { ++alive; }
  ~CounterNode() override { --alive; }
  const char *type_key() const final { return "counter"; }
  PackedFunc GetFunction(const std::string &name, const ObjectPtr<Object> &sptr_to_self) final {
    ++asked_;
    if (name == "add") {
      return TypedPackedFunc<int(int)>([sptr_to_self, this](int by) { return value_ += by; });
    }
    if (name == "asked") {
      return PackedFunc([sptr_to_self, this](TVMArgs, TVMRetValue *rv) { *rv = asked_; });
    }
    if (name == "broken") {
      throw std::invalid_argument("the counter is broken");
    }
    return nullptr;
  }

 private:
  int value_;
  int asked_ = 0;
};

}  // namespace

TVM_REGISTER_GLOBAL("counter.alive").set_body_typed([]() { return alive; });
TVM_REGISTER_GLOBAL("counter.imported").set_body_typed([](Module library, int value) {
  Module outer(make_object<CounterNode>(value));
  outer.Import(library);
  CHECK(outer.node()->imports().size() == 1);
  CHECK(outer.GetFunction("twice") == nullptr);
  return outer.GetFunction("twice", true);
});
TVM_REGISTER_GLOBAL("counter.circle").set_body_typed([](int of) {
  Module first(make_object<CounterNode>(0));
  Module last = first;
  for (int i = 1; i < of; ++i) {
    Module next(make_object<CounterNode>(i));
    next.Import(last);
    last = next;
  }
  Module again(make_object<CounterNode>(of));
  again.Import(first);
  again.Import(last); /* the first one in two ways, which is no circle */
  first.Import(last);
});
TVM_REGISTER_GLOBAL("counter.refused").set_body_typed([](Module library) {
  CHECK(library.node() == nullptr);
  library.Import(library);
});

TVM_DLL_EXPORT_TYPED_FUNC(make_counter, [](int value) {
  ObjectPtr<CounterNode> made = make_object<CounterNode>(value);
  ObjectPtr<Object> other = made; /* counted, both of them */
  return Module(other);
});
TVM_DLL_EXPORT_TYPED_FUNC(twice, [](int x) { return 2 * x; });
