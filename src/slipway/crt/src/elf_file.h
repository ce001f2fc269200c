/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Entries of a checked ELF file, the same for 32 and 64 bits. Private to elf.c, elf_load.c.
 */
#ifndef SLW_ELF_FILE_H_
#define SLW_ELF_FILE_H_

#include "slipway/elf.h"

typedef struct {
  uint32_t type;
  uint32_t flags;
  uint64_t offset;
  uint64_t address;
  uint64_t file_bytes;
  uint64_t memory_bytes;
} slw_elf_segment;

typedef struct {
  uint64_t value;
  uint64_t size;
  uint32_t name;
  uint16_t section; /* 0: not defined here */
  uint8_t info;     /* binding << 4 | type */
} slw_elf_sym;

/** `index` must be below num_segments, num_symbols. */
slw_elf_segment slw_elf_get_segment(const slw_elf *elf, uint32_t index);
slw_elf_sym slw_elf_get_symbol(const slw_elf *elf, uint32_t index);
const char *slw_elf_symbol_name(const slw_elf *elf, const slw_elf_sym *symbol);

/** Translate an address range into a file offset; 0 unless one segment's file part holds it. */
int slw_elf_file_offset(const slw_elf *elf, uint64_t address, uint64_t bytes, uint64_t *offset);

#endif /* SLW_ELF_FILE_H_ */
