/* Values that the threads of a warp hand each other.
 *
 * Threads that meet at an exchange must all be at the same one: they are counted.  Those of a warp
 * that are not there are an error, as they hang a GPU, or give it any number.
 */
#pragma once
#include <string.h>

#include "threads.h"

namespace slw {

uint64_t exchange_bits(uint64_t bits, int wanted, int width);
int place_in(int width);

/* The value of the thread at place `wanted` of a row of `width`, if that is one. */
template <class T>
T exchange(T value, int wanted, int width) {
  static_assert(sizeof(T) <= sizeof(uint64_t), "a word or two");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  bits = exchange_bits(bits, wanted, width);
  memcpy(&value, &bits, sizeof value);
  return value;
}

} // namespace slw
