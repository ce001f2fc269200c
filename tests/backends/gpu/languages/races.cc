/* Who reads and writes what between two barriers: a race is two threads, one location, one of them
 * writing, and no barrier between; of two blocks there is never one between. */
#include <stdio.h>

#include <unordered_map>

#include "banks.h"
#include "fibres.h"

namespace slw {

struct Access {
  long block = -1, epoch = -1, thread = -1;
};
struct Location {
  Access written, read;
  bool read_by_several = false; /* threads of that block and epoch */
};
struct Range {
  uintptr_t begin, end;
};

static std::unordered_map<uintptr_t, Location> seen;
static std::vector<Range> shared; /* memory of a block, which the next block has anew */
static std::vector<long> epochs;  /* barriers that each thread has passed */
static long block_number = 0;
static char race[160];

static void start_block() {
  epochs.assign(fibres.contexts.size(), 0);
  ++block_number;
}

static bool in(const std::vector<Range> &ranges, uintptr_t at) {
  for (const Range &range : ranges) {
    if (at >= range.begin && at < range.end) {
      return true;
    }
  }
  return false;
}

static bool of_own_stack(uintptr_t at) {
  const uintptr_t stack = (uintptr_t)fibres.stacks[fibres.at].get();
  return at >= stack && at < stack + STACK_BYTES;
}

static bool conflicts(const Access &other, const Access &self, bool is_shared) {
  if (other.block != self.block) {
    return other.block >= 0 && !is_shared;
  }
  return other.epoch == self.epoch && other.thread != self.thread;
}

static void touch(uintptr_t at, bool writes) {
  const Access self{block_number, epochs[fibres.at], (long)fibres.at};
  const bool is_shared = in(shared, at);
  Location &location = seen[at];
  const Access *other = nullptr;
  if (conflicts(location.written, self, is_shared)) {
    other = &location.written;
  } else if (writes && (conflicts(location.read, self, is_shared) ||
                        (location.read_by_several && location.read.block == self.block &&
                         location.read.epoch == self.epoch))) {
    other = &location.read;
  }
  if (other != nullptr && race[0] == '\0') {
    snprintf(race, sizeof race, "threads %ld of block %ld and %ld of block %ld meet in %s memory",
             other->thread, other->block, self.thread, self.block, is_shared ? "shared" : "global");
  }
  if (writes) {
    location.written = self;
  } else if (location.read.block == self.block && location.read.epoch == self.epoch) {
    location.read_by_several |= location.read.thread != self.thread;
  } else {
    location.read = self;
    location.read_by_several = false;
  }
}

} // namespace slw

extern "C" void slw_access(void *at, int64_t size, int32_t writes, int32_t site);

namespace slw {

static void watch() {
  seen.clear(); /* of an earlier launch */
  shared.clear();
  race[0] = '\0';
  on_block = start_block;
  on_access = slw_access;
  on_blocks_end = end_block_of_banks;
  on_barrier = [] { ++epochs[fibres.at]; };
}
static const bool is_watched = (on_launch = watch, true);

} // namespace slw

extern "C" {
void slw_access(void *at, int64_t size, int32_t writes, int32_t site) {
  const uintptr_t first = (uintptr_t)at;
  if (!slw::of_own_stack(first)) {
    if (slw::counts_banks && site != slw::AFTER_COPY && slw::in(slw::shared, first)) {
      slw::use_banks(first, size, writes != 0, site, slw::epochs[slw::fibres.at]);
    }
    for (uintptr_t i = 0; i < (uintptr_t)size; i += (size >= 4) ? 4 : 1) {
      slw::touch(first + i, writes != 0);
    }
  }
}
void slw_shared(void *at, int64_t size) {
  const uintptr_t first = (uintptr_t)at;
  if (!slw::in(slw::shared, first)) {
    slw::shared.push_back({first, first + (uintptr_t)size});
  }
}
const char *slw_race() { return slw::race; }
}
