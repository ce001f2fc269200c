// Tables, alone and registered for Python; threads under their classic names.
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/memory.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/threading_backend.h>

#include <cstdio>

using namespace tvm::runtime;

TVM_REGISTER_GLOBAL("map.total").set_body_typed([](Map<String, NDArray> all) {
  double sum = 0;
  for (const auto &entry : all) sum += static_cast<float *>(entry.second->data)[0];
  return sum;
});
TVM_REGISTER_GLOBAL("map.swapped").set_body_typed([](Map<String, int> all) {
  Map<int, String> made;
  for (const auto &entry : all) made.Set(entry.second, entry.first);
  return made;
});
TVM_REGISTER_GLOBAL("map.nested").set_body_typed([](Map<String, Map<int, Array<String>>> all) {
  for (auto entry : all) {
    entry.second.Set(7, {entry.first});
    all.Set(entry.first, entry.second); /* the caller's stays as it was */
  }
  return all;
});
TVM_REGISTER_GLOBAL("map.size_or_none").set_body([](TVMArgs args, TVMRetValue *rv) {
  Optional<Map<String, int>> given = args[0];
  if (given.has_value()) *rv = static_cast<int64_t>(given.value().size());
});

#if defined(ALONE)
#define EXPECT(condition) \
  if (!(condition)) return std::printf("%d: " #condition "\n", __LINE__), 1

template <typename F>
static std::string ErrorOf(F action) {
  try {
    action();
  } catch (const tvm::Error &error) {
    return error.what();
  }
  return "nothing";
}

int main() {
  Map<String, int> some{{"b", 1}, {"a", 2}};
  Map<String, int> other = some;
  EXPECT(other.same_as(some));
  other.Set("a", 5);
  other.Set("c", 6);
  EXPECT(some.size() == 2 && some["a"] == 2 && other.size() == 3 && other.at("a") == 5);
  std::string order;
  for (const auto &entry : other) order += entry.first;
  EXPECT(order == "bac");
  other.erase("b");
  other.erase("none");
  EXPECT(other.size() == 2 && other.count("b") == 0 && (*other.find("c")).second == 6);
  EXPECT(other.find("b") == other.end() && !other.Get("b").has_value() && other.Get("c").value() == 6);
  EXPECT(ErrorOf([&] { some["z"]; }) ==
         "KeyError: a table of 2 entries has none of this key: ask count() or Get() first");
  EXPECT((Map<int, int>().empty() && Map<int, int>().begin() == Map<int, int>().end()));
  for (int i = 0; i < 3000; ++i) other.Set("key " + std::to_string(i), i);
  EXPECT(other.size() == 3002 && other["key 2999"] == 2999);
  EXPECT((Map<String, int>(std::unordered_map<String, int>{{"x", 3}})["x"] == 3));
  NDArray one = NDArray::Empty({1}, DLDataType{kDLFloat, 32, 1}, DLDevice{kDLCPU, 0});
  NDArray two = NDArray::Empty({1}, DLDataType{kDLFloat, 32, 1}, DLDevice{kDLCPU, 0});
  Map<NDArray, int> by_object{{one, 1}, {two, 2}, {one, 3}};
  EXPECT(by_object.size() == 2 && by_object[one] == 3);

  const PackedFunc swapped = *Registry::Get("map.swapped");
  Map<int, String> back = swapped(some);
  EXPECT(back.size() == 2 && back[1] == "b" && back[2] == "a");
  Array<Array<TVMRetValue>> pairs = swapped(some); /* no tvm-ffi is here */
  EXPECT(pairs.size() == 2 && pairs[0][0].operator int() == 1);
  EXPECT(ErrorOf([&] { swapped(Array<int>{1, 2}); }) == "TypeError: item 0: expected a list, got int");
  EXPECT(ErrorOf([&] { swapped(Array<Array<int>>{{1, 2, 3}}); }) ==
         "TypeError: argument 0: expected a map, or a list of pairs, got Object");
  EXPECT(ErrorOf([&] { swapped(1); }) == "TypeError: argument 0: expected a map, got int");
  EXPECT(ErrorOf([&] { swapped(back); }) == "TypeError: key 0: expected str, got int");
  EXPECT((Map<int, String>(swapped(nullptr)).empty()));
  EXPECT((Map<int, int>().defined() && !Map<int, int>(nullptr).defined()));
  Map<String, int> none = nullptr;
  none.Set("x", 1);
  EXPECT(none.defined() && none["x"] == 1);
  Map<String, Map<int, Array<String>>> nested{{"x", {{1, {"one", "more"}}}}, {"y", Map<int, Array<String>>(Map<int, Array<String>>{{2, {}}})}};
  Map<String, Map<int, Array<String>>> grown = (*Registry::Get("map.nested"))(nested);
  EXPECT(grown["x"][7][0] == "x" && grown["x"][1][1] == "more" && grown["y"].size() == 2);
  EXPECT(nested["x"].size() == 1);
  const PackedFunc &size = *Registry::Get("map.size_or_none");
  EXPECT(size(some).operator int() == 2 && size(nullptr).type_code() == kTVMNullptr);
  for (int i = 0; i < 20000; ++i) {
    Map<int, String> again = swapped(some);
    EXPECT(again.size() == 2);
  }
  const int before = threading::NumThreads();
  threading::SetMaxConcurrency(3);
  EXPECT(threading::NumThreads() == 3 && threading::MaxConcurrency() == 3);
  EXPECT(ErrorOf([] { threading::SetMaxConcurrency(-1); }) ==
         "ValueError: -1 threads cannot be had: 0 to 256");
  EXPECT(ErrorOf([] { threading::Configure(threading::kSpecifyOneCorePerThread, 1, {}); })
             .find("ValueError: threads cannot be configured") == 0);
  threading::ResetThreadPool();
  EXPECT(threading::NumThreads() == before);
  std::puts("done");
}
#endif
