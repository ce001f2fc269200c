/* Kernels in CUDA C or Metal as C++ on this processor: a fibre for each thread of a block.
 *
 * The threads of a block run one after the other from barrier to barrier.  A barrier that only some
 * of them reach ends the program of the kernel with an error, as it would hang a GPU.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include <cmath>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

struct uint3 {
  unsigned x, y, z;
};

namespace slw {

/* Not written before it is used: a library that stays loaded keeps the pages that were touched. */
constexpr size_t STACK_BYTES = size_t{256} << 10;
constexpr size_t MOST_THREADS = 1024;
constexpr size_t LANES = 32; /* of a SIMD-group */

struct Block {
  uint3 block{}, thread{};
  ucontext_t home{};
  std::vector<ucontext_t> fibres;
  std::vector<std::unique_ptr<char[]>> stacks;
  std::vector<uint3> indices;
  std::vector<char> done;
  size_t at = 0;
  void (*body)(void *) = nullptr;
  void *closure = nullptr;
};

inline Block now;
inline void (*on_block)() = nullptr;   /* what watches: before a block runs */
inline void (*on_barrier)() = nullptr; /* behind a barrier, of each thread */
inline void (*on_launch)() = nullptr;  /* before a kernel runs */
inline void (*on_access)(void *at, int64_t size, int32_t writes) = nullptr; /* by no instruction */
inline uint64_t blocks = 0; /* that have run, of all launches */
inline bool is_alone = false; /* a thread has asked one for a value that was not there with it */
inline unsigned exchanges[MOST_THREADS]; /* of values, that each thread has come to */

inline void begin() {
  now.body(now.closure);
  now.done[now.at] = 1;
  swapcontext(&now.fibres[now.at], &now.home);
}

inline void barrier() {
  const size_t self = now.at;
  swapcontext(&now.fibres[self], &now.home);
  if (on_barrier != nullptr) {
    on_barrier();
  }
}

/* Run one block; returns 0, or 1 where threads wait at a barrier that others have passed by. */
inline int run_block(uint3 block, const size_t *size, void (*body)(void *), void *closure) {
  const size_t count = size[0] * size[1] * size[2];
  ++blocks;
  now.block = block;
  now.body = body;
  now.closure = closure;
  now.fibres.resize(count);
  now.stacks.resize(count);
  now.indices.resize(count);
  now.done.assign(count, 0);
  for (size_t i = 0; i < count; ++i) {
    if (now.stacks[i] == nullptr) {
      now.stacks[i].reset(new char[STACK_BYTES]);
    }
    exchanges[i] = 0;
    now.indices[i] = {(unsigned)(i % size[0]), (unsigned)(i / size[0] % size[1]),
                      (unsigned)(i / size[0] / size[1])};
    getcontext(&now.fibres[i]);
    now.fibres[i].uc_stack.ss_sp = now.stacks[i].get();
    now.fibres[i].uc_stack.ss_size = STACK_BYTES;
    now.fibres[i].uc_link = nullptr;
    makecontext(&now.fibres[i], begin, 0);
  }
  if (on_block != nullptr) {
    on_block();
  }
  for (;;) {
    size_t ended = 0;
    for (size_t i = 0; i < count; ++i) {
      now.at = i;
      now.thread = now.indices[i];
      swapcontext(&now.home, &now.fibres[i]);
      ended += (size_t)now.done[i];
    }
    if (ended == count) {
      return 0;
    }
    if (ended != 0) {
      return 1;
    }
  }
}

struct Lane { /* a thread's number in its SIMD-group, which Metal gives */
  unsigned short number;
  operator unsigned short() const { return number; }
};

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
      value.number = (unsigned short)(now.at % LANES);
      return value;
    } else {
      return value;
    }
  }
};

template <class... A>
int launch(void (*kernel)(A...), const size_t *grid, const size_t *block, void **args) {
  Call<A...> call{kernel, {argument<A>(args)...}};
  is_alone = false;
  if (on_launch != nullptr) {
    on_launch();
  }
  for (unsigned z = 0; z < grid[2]; ++z) {
    for (unsigned y = 0; y < grid[1]; ++y) {
      for (unsigned x = 0; x < grid[0]; ++x) {
        if (run_block({x, y, z}, block, Call<A...>::run, &call) != 0 || is_alone) {
          return 1;
        }
      }
    }
  }
  return 0;
}

} // namespace slw

#define SLW_ENTRY(name)                                                                           \
  extern "C" int slw_entry_##name(const size_t *grid, const size_t *block, void **args) {         \
    return slw::launch(name, grid, block, args);                                                  \
  }
