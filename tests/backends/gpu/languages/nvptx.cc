/* What kernels in LLVM IR for NVIDIA's GPUs call, under the names that the tests give it. */
#include "copies.h"
#include "exchange.h"
#include "threads.h"

extern "C" {
/* Run the blocks of a launch: `body` calls the kernel with what `args` point to. */
int32_t slw_run(const size_t *grid, const size_t *block, void (*body)(void *), void *args) {
  return slw::run_blocks(grid, block, body, args);
}
int32_t slw_tid_x() { return (int32_t)slw::now.thread.x; }
int32_t slw_tid_y() { return (int32_t)slw::now.thread.y; }
int32_t slw_tid_z() { return (int32_t)slw::now.thread.z; }
int32_t slw_ctaid_x() { return (int32_t)slw::now.block.x; }
int32_t slw_ctaid_y() { return (int32_t)slw::now.block.y; }
int32_t slw_ctaid_z() { return (int32_t)slw::now.block.z; }
void slw_barrier(int32_t) { slw::barrier(); }
int32_t slw_shfl_idx(int32_t, int32_t value, int32_t place, int32_t segment) {
  const int width = 32 - (segment >> 8);
  return slw::exchange(value, place % width, width);
}
int32_t slw_shfl_down(int32_t, int32_t value, int32_t delta, int32_t segment) {
  const int width = 32 - (segment >> 8);
  return slw::exchange(value, slw::place_in(width) + delta, width);
}
int32_t slw_shfl_up(int32_t, int32_t value, int32_t delta, int32_t segment) {
  const int width = 32 - (segment >> 8);
  return slw::exchange(value, slw::place_in(width) - delta, width);
}
int32_t slw_activemask() { return -1; }
/* AMD's: a thread's number in its wave, and the word of another. */
int32_t slw_mbcnt_lo(int32_t, int32_t before) { return before + slw::place_in(64); }
int32_t slw_mbcnt_hi(int32_t, int32_t before) { return before; }
int32_t slw_bpermute(int32_t at, int32_t value) { return slw::exchange(value, at / 4, 64); }
void slw_cp_async_4(void *to, void *from) { slw::async_copy(to, from, 4); }
void slw_cp_async_8(void *to, void *from) { slw::async_copy(to, from, 8); }
void slw_cp_async_16(void *to, void *from) { slw::async_copy(to, from, 16); }
void slw_cp_async_commit() { slw::async_commit(); }
void slw_cp_async_wait(int32_t groups) { slw::async_wait(groups); }
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
