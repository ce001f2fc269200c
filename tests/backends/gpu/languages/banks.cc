/* What banks.h says. */
#include "banks.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "fibres.h"

namespace slw {

bool counts_banks = false;

constexpr size_t BANKS = 32, BANK_BYTES = 4;
struct Request {
  std::vector<std::pair<size_t, uintptr_t>> threads; /* lane, address */
  int64_t size = 0;
  bool writes = false;
};
using Key = std::tuple<size_t, int32_t, long, uint32_t>; /* warp, site, barriers, times since */

static std::map<Key, Request> requests;
static std::map<std::tuple<size_t, int32_t, long>, uint32_t> times; /* by thread, site, barriers */
static int64_t counted[4]; /* requests and passes of loads, then of stores */

void use_banks(uintptr_t at, int64_t size, bool writes, int32_t site, long barriers) {
  const size_t warp = fibres.at / LANES;
  Request &request = requests[{warp, site, barriers, times[{fibres.at, site, barriers}]++}];
  request.threads.push_back({fibres.at % LANES, at});
  request.size = size;
  request.writes = writes;
}

static int64_t passes(const Request &request, size_t first, size_t lanes) {
  std::set<uintptr_t> words[BANKS];
  for (const auto &[lane, at] : request.threads) {
    if (lane >= first && lane < first + lanes) {
      const uintptr_t last = (at + (uintptr_t)request.size - 1) / BANK_BYTES;
      for (uintptr_t word = at / BANK_BYTES; word <= last; ++word) {
        words[word % BANKS].insert(word);
      }
    }
  }
  size_t most = 0;
  for (const auto &bank : words) {
    most = std::max(most, bank.size());
  }
  return (int64_t)most;
}

void end_block_of_banks() {
  for (const auto &[key, request] : requests) {
    const size_t wide = std::max<size_t>(1, (size_t)request.size / BANK_BYTES);
    int64_t *to = counted + (request.writes ? 2 : 0);
    for (size_t first = 0; first < LANES; first += LANES / wide) {
      const int64_t taken = passes(request, first, LANES / wide);
      to[0] += taken > 0;
      to[1] += taken;
    }
  }
  requests.clear();
  times.clear();
}

} // namespace slw

extern "C" {
void slw_banks_count(int on) {
  slw::counts_banks = on != 0;
  std::fill_n(slw::counted, 4, 0);
}
const int64_t *slw_banks_counted() { return slw::counted; }
}
