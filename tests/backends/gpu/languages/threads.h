/* Kernels in CUDA C or Metal as C++ on this processor: a fibre for each thread of a block.
 *
 * The threads of a block run one after the other from barrier to barrier.  A barrier that only some
 * of them reach ends the program of the kernel with an error, as it would hang a GPU.
 *
 * Every kernel is compiled with this, so it says only what there is; fibres.cc has it.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <tuple>
#include <type_traits>
#include <utility>

struct uint3 {
  unsigned x, y, z;
};

namespace slw {

struct Numbers {
  uint3 block, thread;
};

extern Numbers now; /* of the thread that runs */

void barrier();

constexpr size_t LANES = 32; /* of a SIMD-group */
unsigned short lane();
struct Lane { /* a thread's number in its SIMD-group, which Metal gives */
  unsigned short number;
  operator unsigned short() const { return number; }
};

/* Run all blocks; returns 0, or 1 where threads wait at a barrier that others have passed by, or for
 * the value of one that is not with them. */
int run_blocks(const size_t *grid, const size_t *block, void (*body)(void *), void *closure);

template <class T>
T argument(void **&args) {
  if constexpr (std::is_same_v<T, uint3>) {
    return uint3{}; /* Metal's numbers of the block and the thread: see `call` */
  } else if constexpr (std::is_same_v<T, Lane>) {
    return Lane{};
  } else {
    return *(std::remove_reference_t<T> *)*args++;
  }
}

template <class T>
struct Held {
  using type = std::remove_cv_t<std::remove_reference_t<T>>;
};

template <class... A>
struct Call {
  void (*kernel)(A...);
  std::tuple<typename Held<A>::type...> values;

  static void run(void *self) { ((Call *)self)->apply(std::index_sequence_for<A...>{}); }

  template <size_t Next>
  static constexpr bool is_block() {
    if constexpr (Next < sizeof...(A)) {
      return std::is_same_v<std::tuple_element_t<Next, std::tuple<A...>>, uint3>;
    } else {
      return false;
    }
  }
  template <size_t... I>
  void apply(std::index_sequence<I...>) {
    kernel(pick<I>(std::get<I>(values))...);
  }
  template <size_t I, class T>
  T &pick(T &value) {
    if constexpr (std::is_same_v<T, uint3>) { /* two of them, one after the other: block, thread */
      return is_block<I + 1>() ? now.block : now.thread;
    } else if constexpr (std::is_same_v<T, Lane>) {
      value.number = lane();
      return value;
    } else {
      return value;
    }
  }
};

/* How many arguments a launch gives a kernel. */
template <class... A>
constexpr size_t count_of(void (*)(A...)) {
  return (size_t{0} + ... + size_t{!std::is_same_v<A, uint3> && !std::is_same_v<A, Lane>});
}

template <class... A>
int launch(void (*kernel)(A...), const size_t *grid, const size_t *block, void **args) {
  Call<A...> call{kernel, {argument<A>(args)...}};
  return run_blocks(grid, block, Call<A...>::run, &call);
}

} // namespace slw

#define SLW_ENTRY(name)                                                                           \
  extern "C" size_t slw_count_##name() { return slw::count_of(name); }                            \
  extern "C" int slw_entry_##name(const size_t *grid, const size_t *block, void **args) {         \
    return slw::launch(name, grid, block, args);                                                  \
  }
