/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * How many threads compiled code uses, and on which processors.
 */
#ifndef TVM_RUNTIME_THREADING_BACKEND_H_
#define TVM_RUNTIME_THREADING_BACKEND_H_

#include <string>
#include <vector>

#include "slipway/threadpool.h"
#include "tvm/runtime/logging.h"

namespace tvm {
namespace runtime {
namespace threading {

/** On which processors the workers run; see slw_affinity. */
enum AffinityMode : int {
  kBig = SLW_AFFINITY_BIG,
  kLittle = SLW_AFFINITY_LITTLE,
  kSpecifyOneCorePerThread = SLW_AFFINITY_EACH,
  kSpecifyThreadShareAllCore = SLW_AFFINITY_SHARED
};

inline int NumThreads() { return slw_num_threads(); }
inline int MaxConcurrency() { return slw_num_threads(); }

/** Let at most so many threads work on a launch; 0: as many as there are processors. */
inline void SetMaxConcurrency(int count) {
  if (slw_set_num_threads(count) != SLW_OK) {
    detail::Fail("ValueError", std::to_string(count) + " threads cannot be had: 0 to " +
                                   std::to_string(SLW_MAX_THREADS));
  }
}
/** The default number of threads. */
inline void ResetThreadPool() { SetMaxConcurrency(0); }

/** Choose processors by `mode`, or those that are listed, and bind the workers to them. */
inline void Configure(AffinityMode mode, int count, std::vector<unsigned int> cpus) {
  const std::vector<int32_t> list(cpus.begin(), cpus.end());
  if (slw_configure_threads(mode, count, list.data(), static_cast<int32_t>(list.size())) !=
      SLW_OK) {
    detail::Fail("ValueError", "threads cannot be configured so: an unknown mode, too many "
                               "threads, or a processor that this process may not run on");
  }
}

}  // namespace threading
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_THREADING_BACKEND_H_
