/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The two ways of bringing a checked shared object into memory. Private to library.c.
 */
#ifndef SLW_CODE_H_
#define SLW_CODE_H_

#include "slipway/elf.h"

typedef struct {
  void *handle;   /* dlopen's handle, or the start of the mapping */
  size_t mapped_bytes;
  int file; /* kept open as long as dlopen knows the library by its number; -1: none */
} slw_code;

/** On failure the thread's error is set. */
slw_status slw_code_open(slw_code *code, const slw_elf *elf, const char *name);
void slw_code_close(slw_code *code);
void *slw_code_symbol(const slw_code *code, const slw_elf *elf, const char *symbol);

#endif /* SLW_CODE_H_ */
