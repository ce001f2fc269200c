/* What a kernel in CUDA C takes for granted. */
#include <cmath>

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
