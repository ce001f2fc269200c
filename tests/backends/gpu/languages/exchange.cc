/* What exchange.h says. */
#include "exchange.h"

#include "fibres.h"

namespace slw {

static uint64_t handed[2][1024]; /* at exchanges with even and with odd numbers */

int place_in(int width) { return (int)(fibres.at % (size_t)width); }

uint64_t exchange_bits(uint64_t bits, int wanted, int width) {
  const size_t self = fibres.at;
  const size_t first = self - (size_t)place_in(width);
  const size_t from = (wanted >= 0 && wanted < width) ? first + (size_t)wanted : self;
  const unsigned number = fibres.exchanges[self]++;
  handed[number % 2U][self] = bits;
  meet();
  const unsigned there = (from < fibres.exchanges.size()) ? fibres.exchanges[from] : 0U;
  if (there < number + 1U || there > number + 2U) { /* it may be at the next one already */
    fibres.is_alone = true;
    return bits;
  }
  return handed[number % 2U][from];
}

} // namespace slw
