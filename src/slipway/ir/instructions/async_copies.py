"""Copies to shared memory that go on while their thread does: NVIDIA's ``cp.async``, from sm_80 on.

``Call("int32", "async_copy", (to, from, bytes))`` begins one; `to` and `from` are addresses of
elements in shared and in global memory.  `WHOLE_BYTES` are copied at once where both are multiples
of that, else before the thread goes on.  "async_commit" makes a group of those that a thread has
begun since the last one; "async_wait" with a number waits until no more than that many of its
groups, the latest ones, are on their way.  Other threads see what has come behind a barrier.
"""

from __future__ import annotations

ASYNC = "slipway.async"  # AttrStmt around what is copied so, where the device can
COPIED_BYTES = (4, 8)  # of one element
WHOLE_BYTES = 16  # of several, at multiples of that; a caller's tensor may begin elsewhere
COMMIT, WAIT = "async_commit", "async_wait"
GROUPING = (COMMIT, WAIT)
MIN_VERSION = 80  # the first sm_

# In CUDA C, as text that the assembler takes.
CUDA = """#ifndef SLW_ASYNC_COPIES
template <int size>
static __device__ __forceinline__ void slw_async_copy(void* to, const void* from) {
  if (size == 16 && (unsigned long long)from % size != 0) { // a caller's tensor
    for (int i = 0; i < size; ++i) {
      ((char*)to)[i] = ((const char*)from)[i];
    }
    return;
  }
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
               :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "n"(size) : "memory");
}
static __device__ __forceinline__ void slw_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int groups>
static __device__ __forceinline__ void slw_async_wait() {
  asm volatile("cp.async.wait_group %0;" :: "n"(groups) : "memory");
}
#endif
"""
