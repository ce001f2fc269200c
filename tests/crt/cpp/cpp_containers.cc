// Lists, texts and values that may be missing, alone and registered for Python.
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/optional.h>
#include <tvm/runtime/container/string.h>
#include <tvm/runtime/registry.h>

#include <cstdio>

using namespace tvm::runtime;

TVM_REGISTER_GLOBAL("containers.total").set_body_typed([](Array<NDArray> all) {
  double sum = 0;
  for (NDArray one : all) sum += static_cast<float *>(one->data)[0];
  return sum;
});
TVM_REGISTER_GLOBAL("containers.reversed").set_body_typed([](Array<String> all) {
  Array<String> made;
  for (std::size_t i = all.size(); i > 0; --i) made.push_back(all[static_cast<int64_t>(i) - 1]);
  return made;
});
TVM_REGISTER_GLOBAL("containers.nested").set_body_typed([](Array<Array<int>> all) {
  Array<Array<int>> made;
  for (Array<int> row : all) {
    row.push_back(7); /* the caller's list stays as it was */
    made.push_back(row);
  }
  return made;
});
TVM_REGISTER_GLOBAL("containers.or_seven").set_body_typed([](Optional<int> x) {
  return x.value_or(7);
});
TVM_REGISTER_GLOBAL("containers.none").set_body_typed([](bool wanted) {
  return wanted ? Optional<String>("text") : Optional<String>(nullptr);
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
  Array<int> some{1, 2, 3};
  Array<int> other = some;
  other.push_back(4);
  other.Set(0, 9);
  EXPECT(some.size() == 3 && some[0] == 1 && other.size() == 4 && other[0] == 9 && other.back() == 4);
  for (int i = 0; i < 1000; ++i) other.push_back(i);
  EXPECT(other.size() == 1004 && other[1003] == 999);
  other.pop_back();
  EXPECT(other.size() == 1003 && Array<int>().empty() && Array<int>(3, 5)[2] == 5);
  EXPECT(ErrorOf([&] { some[3]; }) == "IndexError: item 3 of a list of 3");
  EXPECT(ErrorOf([&] { Array<int>().pop_back(); }) == "IndexError: item 0 of a list of 0");
  PackedFunc reversed = *Registry::Get("containers.reversed");
  Array<String> texts = reversed(Array<String>{"first", "a text of more than eight bytes"});
  EXPECT(texts.size() == 2 && texts[1] == "first" && texts[0].size() == 31);
  EXPECT(ErrorOf([&] { reversed(some); }) == "TypeError: item 2: expected str, got int");
  EXPECT(ErrorOf([&] { reversed(1); }) == "TypeError: argument 0: expected a list, got int");
  EXPECT(ErrorOf([&] { reversed(reversed); }) ==
         "TypeError: argument 0: expected a list, got PackedFunc");
  EXPECT(Array<String>(reversed(nullptr)).size() == 0);
  EXPECT(Array<int>().defined() && !Array<int>(nullptr).defined() && Array<int>(nullptr) == nullptr);
  Array<int> none(nullptr);
  none.push_back(3);
  EXPECT(none.size() == 1 && none[0] == 3);
  Array<Array<int>> rows = (*Registry::Get("containers.nested"))(Array<Array<int>>{some, {}});
  EXPECT(rows[0].size() == 4 && rows[0][3] == 7 && rows[1][0] == 7 && some.size() == 3);
  const PackedFunc &or_seven = *Registry::Get("containers.or_seven");
  EXPECT(or_seven(3).operator int() == 3 && or_seven(nullptr).operator int() == 7);
  EXPECT(or_seven(Optional<int>()).operator int() == 7 && or_seven(Optional<int>(2)).operator int() == 2);
  EXPECT(ErrorOf([&] { or_seven("x"); }) == "TypeError: argument 0: expected int, got str");
  EXPECT(ErrorOf([] { Optional<int>().value(); }) ==
         "ValueError: this Optional is empty: ask has_value() first");
  std::puts("done");
}
#endif
