"""Files a port to a new system starts from: limits by classic names, and the platform's functions.

An archive that carries the runtime has them under ``templates``, named ``*.template``.
"""

CRT_CONFIG = "crt_config.h"
CRT_CONFIG_TEXT = """\
/* Limits of the device runtime, under the names that programs for classic TVM read.
   They say what is there: the runtime has no tables of its own whose size one could choose,
   and memory is what the program gives it. */
#ifndef SLIPWAY_CRT_CONFIG_H
#define SLIPWAY_CRT_CONFIG_H

#include <slipway/rpc_frame.h>
#include <slipway/tensor.h>

#define TVM_CRT_LOG_LEVEL 0
#define TVM_CRT_MAX_NDIM SLW_TENSOR_MAX_NDIM
#define TVM_CRT_MAX_STRLEN_FUNCTION_NAME SLW_RPC_NAME_MAX_BYTES
#define TVM_CRT_MAX_STRLEN_PARAM_NAME SLW_RPC_NAME_MAX_BYTES
#define TVM_CRT_STRLEN_NAME SLW_RPC_NAME_MAX_BYTES

#endif
"""

PLATFORM = "platform.c"
PLATFORM_TEXT = """\
/* What the runtime asks of the system it runs on: a skeleton to fill in, as slipway/platform.h
   describes it. A model compiled ahead of time with static memory needs none of the four, and a
   linker that drops unused functions drops them. */
#include <slipway/platform.h>

/* Zeroed memory, aligned to a power of two; NULL when there is none. */
void *slw_platform_alloc(size_t size_bytes, size_t alignment_bytes) {
  (void)size_bytes;
  (void)alignment_bytes;
  return NULL;
}

void slw_platform_free(void *memory) { (void)memory; }

/* A clock that never goes back; asked when functions are timed. */
uint64_t slw_platform_time_ns(void) { return 0; }

void slw_platform_sleep_ms(uint32_t duration_ms) { (void)duration_ms; }
"""

TEMPLATE_FILES = {CRT_CONFIG: CRT_CONFIG_TEXT, PLATFORM: PLATFORM_TEXT}
