/* The fibres of the block that runs, for what watches them or lets them meet. */
#pragma once
#include <ucontext.h>

#include <memory>
#include <vector>

#include "threads.h"

namespace slw {

/* Not written before it is used: a library that stays loaded keeps the pages that were touched. */
constexpr size_t STACK_BYTES = size_t{256} << 10;

struct Fibres {
  ucontext_t home{};
  std::vector<ucontext_t> contexts;
  std::vector<std::unique_ptr<char[]>> stacks;
  std::vector<uint3> indices;
  std::vector<char> done;
  size_t at = 0;
  void (*body)(void *) = nullptr;
  void *closure = nullptr;
};

extern Fibres fibres;
extern void (*on_launch)();  /* what watches: before a kernel runs */
extern void (*on_block)();   /* before a block runs */
extern void (*on_barrier)(); /* behind a barrier, of each thread */

/* Let every thread of the block come here, which orders no memory. */
void meet();

} // namespace slw
