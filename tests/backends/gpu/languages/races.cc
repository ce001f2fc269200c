/* Who reads and writes what between two barriers: a race is two threads, one location, one of them
 * writing, and no barrier between; of two blocks there is never one between. */
#include <string>
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
  int64_t number; /* among the memory of blocks, or the parameters */
};

static std::unordered_map<uintptr_t, Location> seen;
static std::vector<Range> shared; /* memory of a block, which the next block has anew */
static std::vector<Range> buffers; /* that parameters point to; where they end is not known */
static std::vector<long> epochs;  /* barriers that each thread has passed */
static std::vector<uint3> blocks; /* that have run */
static std::string race;

static void start_block() {
  epochs.assign(fibres.contexts.size(), 0);
  blocks.push_back(now.block);
}

static const Range *in(const std::vector<Range> &ranges, uintptr_t at) {
  for (const Range &range : ranges) {
    if (at >= range.begin && at < range.end) {
      return &range;
    }
  }
  return nullptr;
}

/* The parameter that an address belongs to: the one whose memory begins last before it. */
static std::string global_at(uintptr_t at) {
  const Range *best = nullptr;
  for (const Range &range : buffers) {
    if (range.begin <= at && (best == nullptr || range.begin > best->begin)) {
      best = &range;
    }
  }
  return best == nullptr ? "?" : "p" + std::to_string(best->number);
}

static std::string told(const Access &other, const Access &self, const std::string &where) {
  const uint3 blocks_of[] = {blocks[(size_t)other.block], blocks[(size_t)self.block]};
  const uint3 threads[] = {fibres.indices[(size_t)other.thread], fibres.indices[(size_t)self.thread]};
  const bool is_one = other.block == self.block;
  return "threads " + index_text(threads[0]) + " of block " + index_text(blocks_of[0]) + " and " +
         index_text(threads[1]) + " of block " + index_text(blocks_of[1]) + ", apart along " +
         (is_one ? apart("threadIdx", threads[0], threads[1])
                 : apart("blockIdx", blocks_of[0], blocks_of[1])) +
         ", meet in " + where;
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
  const Access self{(long)blocks.size() - 1, epochs[fibres.at], (long)fibres.at};
  const Range *memory = in(shared, at);
  const bool is_shared = memory != nullptr;
  Location &location = seen[at];
  const Access *other = nullptr;
  if (conflicts(location.written, self, is_shared)) {
    other = &location.written;
  } else if (writes && (conflicts(location.read, self, is_shared) ||
                        (location.read_by_several && location.read.block == self.block &&
                         location.read.epoch == self.epoch))) {
    other = &location.read;
  }
  if (other != nullptr && race.empty()) {
    race = told(*other, self, is_shared ? "shared memory shared" + std::to_string(memory->number)
                                        : "global memory " + global_at(at));
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
  buffers.clear();
  blocks.clear();
  race.clear();
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
void slw_shared(void *at, int64_t size, int64_t number) {
  const uintptr_t first = (uintptr_t)at;
  if (slw::in(slw::shared, first) == nullptr) {
    slw::shared.push_back({first, first + (uintptr_t)size, number});
  }
}
void slw_buffer(void *at, int64_t number) {
  for (const slw::Range &range : slw::buffers) {
    if (range.number == number) {
      return;
    }
  }
  slw::buffers.push_back({(uintptr_t)at, 0, number});
}
const char *slw_race() { return slw::race.c_str(); }
}
