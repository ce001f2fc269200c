/* SPDX-License-Identifier: Apache-2.0 */
/* HIP, the driver interface of AMD's GPUs: CUDA's under other names, with numbers of its own for
 * what a device has (cuda.h), so that the same text serves it. */
#define SLW_HIP 1
#include "cuda_driver.c"
#include "cuda_code.c"
#include "cuda_streams.c"
#include "cuda_memory.c"
#include "device_cuda.c"
