/* Values that the threads of a warp hand each other.
 *
 * Threads that meet at an exchange must all be at the same one: `exchanges` counts them.  Those of a
 * warp that are not there are an error, as they hang a GPU, or give it any number.
 */
#pragma once
#include "threads.h"

namespace slw {

inline uint64_t handed[2][MOST_THREADS]; /* of exchanges with even and with odd numbers */

/* Let every thread of the block come here: a warp's own meeting, which orders no memory. */
inline void meet() {
  const size_t self = now.at;
  swapcontext(&now.fibres[self], &now.home);
}

/* The value of the thread at place `from(place, width)` of a row of `width`, if that is one. */
template <class T>
T exchange(T value, int wanted, int width) {
  static_assert(sizeof(T) <= sizeof(uint64_t), "a word or two");
  const size_t self = now.at;
  const int place = (int)(self % (size_t)width);
  const size_t from = (wanted >= 0 && wanted < width) ? self - (size_t)place + (size_t)wanted : self;
  const unsigned number = exchanges[self]++;
  memcpy(&handed[number % 2U][self], &value, sizeof value);
  meet();
  if (from >= now.fibres.size() || exchanges[from] < number + 1U || exchanges[from] > number + 2U) {
    is_alone = true;
  } else {
    memcpy(&value, &handed[number % 2U][from], sizeof value);
  }
  return value;
}

inline int place_in(int width) { return (int)(now.at % (size_t)width); }

} // namespace slw
