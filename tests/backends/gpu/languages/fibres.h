/* The fibres of the block that runs, for what watches them or lets them meet. */
#pragma once
#include <ucontext.h>

#include <memory>
#include <string>
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
  std::vector<unsigned> exchanges; /* of values, that each thread has come to */
  std::string stuck;              /* who waits for whom, where a barrier is not met by all */
  bool is_alone = false; /* a thread has asked one for a value that was not there with it */
  uint64_t blocks = 0;   /* that have run, of all launches */
  size_t at = 0;
  void (*body)(void *) = nullptr;
  void *closure = nullptr;
};

extern Fibres fibres;
extern void (*on_launch)();  /* what watches: before a kernel runs */
extern void (*on_block)();   /* before a block runs */
extern void (*on_blocks_end)();
extern void (*on_barrier)(); /* behind a barrier, of each thread */
/* By a copy when it begins, or when its end is waited for. */
constexpr int32_t OF_COPY = -1, AFTER_COPY = -2;
extern void (*on_access)(void *at, int64_t size, int32_t writes, int32_t site);

/* An index in the grid or in a block as text, and the axes along which two of them are apart. */
std::string index_text(uint3 at);
std::string apart(const char *kind, uint3 first, uint3 second);

/* Let every thread of the block come here, which orders no memory. */
void meet();

} // namespace slw
