/* The threads of a block as fibres of one thread: see threads.h. */
#include "fibres.h"

namespace slw {

Numbers now;
Fibres fibres;
void (*on_launch)() = nullptr;
void (*on_block)() = nullptr;
void (*on_barrier)() = nullptr;
void (*on_blocks_end)() = nullptr;
void (*on_access)(void *, int64_t, int32_t, int32_t) = nullptr;

std::string index_text(uint3 at) {
  return "(" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) + ")";
}

std::string apart(const char *kind, uint3 first, uint3 second) {
  const bool differ[] = {first.x != second.x, first.y != second.y, first.z != second.z};
  std::string found;
  for (int i = 0; i < 3; ++i) {
    if (differ[i]) {
      found += (found.empty() ? "" : " and ") + std::string(kind) + "." + "xyz"[i];
    }
  }
  return found;
}

/* Say who has ended while others wait. */
static void note_stuck() {
  size_t ended = 0, waiting = 0;
  while (fibres.done[ended] == 0) {
    ++ended;
  }
  while (fibres.done[waiting] != 0) {
    ++waiting;
  }
  const uint3 first = fibres.indices[waiting], second = fibres.indices[ended];
  fibres.stuck = "thread " + index_text(first) + " of block " + index_text(now.block) +
                 " waits at a barrier that " + index_text(second) + ", apart along " +
                 apart("threadIdx", first, second) + ", has passed by";
}

static void begin() {
  fibres.body(fibres.closure);
  fibres.done[fibres.at] = 1;
  swapcontext(&fibres.contexts[fibres.at], &fibres.home);
}

void meet() { swapcontext(&fibres.contexts[fibres.at], &fibres.home); }

unsigned short lane() { return (unsigned short)(fibres.at % LANES); }

void barrier() {
  meet();
  if (on_barrier != nullptr) {
    on_barrier();
  }
}

static int run_block(uint3 block, const size_t *size) {
  const size_t count = size[0] * size[1] * size[2];
  ++fibres.blocks;
  fibres.exchanges.assign(count, 0);
  now.block = block;
  fibres.contexts.resize(count);
  fibres.stacks.resize(count);
  fibres.indices.resize(count);
  fibres.done.assign(count, 0);
  for (size_t i = 0; i < count; ++i) {
    if (fibres.stacks[i] == nullptr) {
      fibres.stacks[i].reset(new char[STACK_BYTES]);
    }
    fibres.indices[i] = {(unsigned)(i % size[0]), (unsigned)(i / size[0] % size[1]),
                         (unsigned)(i / size[0] / size[1])};
    getcontext(&fibres.contexts[i]);
    fibres.contexts[i].uc_stack.ss_sp = fibres.stacks[i].get();
    fibres.contexts[i].uc_stack.ss_size = STACK_BYTES;
    fibres.contexts[i].uc_link = nullptr;
    makecontext(&fibres.contexts[i], begin, 0);
  }
  if (on_block != nullptr) {
    on_block();
  }
  for (;;) {
    size_t ended = 0;
    for (size_t i = 0; i < count; ++i) {
      fibres.at = i;
      now.thread = fibres.indices[i];
      swapcontext(&fibres.home, &fibres.contexts[i]);
      ended += (size_t)fibres.done[i];
    }
    if (ended == count) {
      if (on_blocks_end != nullptr) {
        on_blocks_end();
      }
      return 0;
    }
    if (ended != 0) {
      note_stuck();
      return 1;
    }
  }
}

int run_blocks(const size_t *grid, const size_t *block, void (*body)(void *), void *closure) {
  fibres.body = body;
  fibres.closure = closure;
  fibres.is_alone = false;
  fibres.stuck.clear();
  if (on_launch != nullptr) {
    on_launch();
  }
  for (unsigned z = 0; z < grid[2]; ++z) {
    for (unsigned y = 0; y < grid[1]; ++y) {
      for (unsigned x = 0; x < grid[0]; ++x) {
        if (run_block({x, y, z}, block) != 0 || fibres.is_alone) {
          return 1;
        }
      }
    }
  }
  return 0;
}

} // namespace slw

extern "C" const char *slw_stuck() { return slw::fibres.stuck.c_str(); }
