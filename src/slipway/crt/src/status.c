/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/status.h"

static const char *const STATUS_TEXT[SLW_STATUS_COUNT] = {
    "success",
    "an argument is unusable",
    "memory is exhausted or a buffer is too small",
    "the data ends before what it announces",
    "the data is damaged or not of the expected format",
    "the format version is not one this runtime reads",
    "the code is for another kind of processor",
    "the code needs processor features that this one lacks",
    "the file uses something this runtime does not support",
    "the library needs a symbol that nobody defines",
    "not found",
    "a SHA-256 sum does not match: the file is damaged",
    "the tensor does not fit",
    "the operating system refused",
    "a called function failed",
};

const char *slw_status_text(slw_status status) {
  if ((unsigned)status >= (unsigned)SLW_STATUS_COUNT) {
    return "unknown status";
  }
  return STATUS_TEXT[status];
}
