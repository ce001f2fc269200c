/* Copies to shared memory that go on while their thread does.
 *
 * What is copied comes when its thread waits, and not before: until then a NaN is there, or -1.  So a
 * wait that is missing gives wrong numbers; a barrier that is missing is a race, as it is when the
 * copy begins (somebody may still read the place) and when it ends.
 */
#pragma once
#include <vector>

#include "threads.h"

namespace slw {

struct Copy {
  void *to;
  const void *from;
  int bytes;
};
inline std::vector<std::vector<Copy>> copies[MOST_THREADS]; /* of each thread, by group */
inline size_t waited[MOST_THREADS];                         /* groups that have come */
inline uint64_t began[MOST_THREADS];                        /* the block that they are of */

inline std::vector<std::vector<Copy>> &own_copies() {
  auto &own = copies[now.at];
  if (own.empty() || began[now.at] != blocks) {
    began[now.at] = blocks;
    own.assign(1, {});
    waited[now.at] = 0;
  }
  return own;
}

inline void async_copy(void *to, const void *from, int bytes) {
  own_copies().back().push_back({to, from, bytes});
  if (on_access != nullptr) {
    on_access((void *)from, bytes, 0);
    on_access(to, bytes, 1);
  }
  memset(to, 0xff, (size_t)bytes);
}

inline void async_commit() { own_copies().push_back({}); }

inline void async_wait(int groups) {
  auto &own = own_copies();
  const size_t closed = own.size() - 1U;
  for (; waited[now.at] + (size_t)groups < closed; ++waited[now.at]) {
    for (const Copy &copy : own[waited[now.at]]) {
      if (on_access != nullptr) {
        on_access(copy.to, copy.bytes, 1);
      }
      memcpy(copy.to, copy.from, (size_t)copy.bytes);
    }
  }
}

} // namespace slw
