/* What kernels in LLVM IR for NVIDIA's GPUs call, under the names that the tests give it. */
#include "races.h"
#include "warp.h"

static void watch() {
  slw::seen.clear(); /* of an earlier launch, which may be another library's: all share them */
  slw::shared.clear();
  slw::race[0] = '\0';
  slw::on_block = slw::start_block;
  slw::on_barrier = [] { ++slw::epochs[slw::now.at]; };
}
static const bool is_watched = (slw::on_launch = watch, true);

extern "C" {
int32_t slw_tid_x() { return (int32_t)slw::now.thread.x; }
int32_t slw_tid_y() { return (int32_t)slw::now.thread.y; }
int32_t slw_tid_z() { return (int32_t)slw::now.thread.z; }
int32_t slw_ctaid_x() { return (int32_t)slw::now.block.x; }
int32_t slw_ctaid_y() { return (int32_t)slw::now.block.y; }
int32_t slw_ctaid_z() { return (int32_t)slw::now.block.z; }
void slw_barrier(int32_t) { slw::barrier(); }
}
