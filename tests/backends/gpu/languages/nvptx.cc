/* What kernels in LLVM IR for NVIDIA's GPUs call, under the names that the tests give it. */
#include "threads.h"

extern "C" {
int32_t slw_tid_x() { return (int32_t)slw::now.thread.x; }
int32_t slw_tid_y() { return (int32_t)slw::now.thread.y; }
int32_t slw_tid_z() { return (int32_t)slw::now.thread.z; }
int32_t slw_ctaid_x() { return (int32_t)slw::now.block.x; }
int32_t slw_ctaid_y() { return (int32_t)slw::now.block.y; }
int32_t slw_ctaid_z() { return (int32_t)slw::now.block.z; }
void slw_barrier(int32_t) { slw::barrier(); }
#define SLW_DP4A(name, first, second)                \
  int32_t name(int32_t a, int32_t b, int32_t c) {    \
    for (int j = 0; j < 32; j += 8) {                \
      c += (first)(a >> j) * (second)(b >> j);       \
    }                                                \
    return c;                                        \
  }
SLW_DP4A(slw_dp4a_ss, int8_t, int8_t)
SLW_DP4A(slw_dp4a_su, int8_t, uint8_t)
SLW_DP4A(slw_dp4a_us, uint8_t, int8_t)
SLW_DP4A(slw_dp4a_uu, uint8_t, uint8_t)
}
