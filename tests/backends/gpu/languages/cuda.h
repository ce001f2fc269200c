/* What a kernel in CUDA C takes for granted. */
#include <cmath>

#include "copies.h"
#include "exchange.h"
#include "threads.h"
#include "warp.h"

using std::ceil;
using std::copysign;
using std::fabs;
using std::floor;
using std::fma;
using std::fmod;
using std::rint;
using std::sqrt;
using std::trunc;

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define threadIdx slw::now.thread
#define blockIdx slw::now.block
#define __syncthreads slw::barrier

template <class T>
T __shfl_sync(unsigned, T value, int place, int width) {
  return slw::exchange(value, place % width, width);
}
template <class T>
T __shfl_down_sync(unsigned, T value, int delta, int width) {
  return slw::exchange(value, slw::place_in(width) + delta, width);
}
template <class T>
T __shfl_up_sync(unsigned, T value, int delta, int width) {
  return slw::exchange(value, slw::place_in(width) - delta, width);
}
inline unsigned __activemask() { return 0xffffffffU; }

#define SLW_ASYNC_COPIES
template <int bytes>
void slw_async_copy(void *to, const void *from) {
  if (bytes == 16 && (uintptr_t)from % bytes != 0) {
    memcpy(to, from, bytes);
    return;
  }
  slw::async_copy(to, from, bytes);
}
inline void slw_async_commit() { slw::async_commit(); }
template <int groups>
void slw_async_wait() {
  slw::async_wait(groups);
}
