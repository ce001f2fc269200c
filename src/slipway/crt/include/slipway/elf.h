/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Reading and placing ELF shared objects that need nothing from outside. Freestanding: the
 * caller gives the memory and sets its protection.
 *
 * Supported: 32 and 64 bit, little-endian; relocations of x86-64, AArch64, ARM, RISC-V.
 * Refused, with a status: thread-local storage, IFUNC, packed (RELR) relocations, text
 * relocations, and strong symbols that the library does not define itself.
 */
#ifndef SLIPWAY_ELF_H_
#define SLIPWAY_ELF_H_

#include "slipway/abi.h"
#include "slipway/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  SLW_ELF_ARM = 40,
  SLW_ELF_X86_64 = 62,
  SLW_ELF_HEXAGON = 164,
  SLW_ELF_AARCH64 = 183,
  SLW_ELF_RISCV = 243
};

#define SLW_ELF_EXECUTE 1u
#define SLW_ELF_WRITE 2u
#define SLW_ELF_READ 4u

/** One checked shared object; offsets are into the file's bytes, addresses as in the file. */
typedef struct {
  const uint8_t *bytes;
  size_t size_bytes;
  int is_64;
  uint16_t machine;
  uint32_t num_segments;
  uint64_t segments_at;
  uint64_t lowest;      /* first address of any PT_LOAD, rounded down to `page` */
  uint64_t span_bytes;  /* memory from there to the end of the last one, rounded up */
  uint64_t page_bytes;
  uint64_t symbols_at;
  uint32_t num_symbols;
  uint64_t strings_at;
  uint64_t strings_bytes;
  uint64_t rela_at, rela_bytes; /* RELA table; bytes 0: none */
  uint64_t rel_at, rel_bytes;
  uint64_t plt_at, plt_bytes;
  int plt_is_rela;
  uint64_t init_array, init_array_bytes; /* address, bytes */
} slw_elf;

/** Check headers, segments and the dynamic table. Any machine is accepted here.
 * @param page_bytes the page size that segments will be protected with
 * @retval SLW_ERROR_FORMAT not a usable shared object; SLW_ERROR_TRUNCATED; _UNSUPPORTED */
SLW_API slw_status slw_elf_parse(slw_elf *elf, const void *bytes, size_t size_bytes,
                                 uint64_t page_bytes);

/** The machine number this code was compiled for; 0 if the loader does not know it. */
SLW_API uint16_t slw_elf_this_machine(void);

/** A machine's name ("aarch64"), for messages. */
SLW_API const char *slw_elf_machine_name(uint16_t machine);

/** Find a defined symbol. `*address` is relative to `lowest`. `*size` may be NULL.
 * @retval SLW_ERROR_NOT_FOUND */
SLW_API slw_status slw_elf_symbol(const slw_elf *elf, const char *name, uint64_t *address,
                                  uint64_t *size);

/** View the bytes of a data symbol in the file, before anything is loaded. */
SLW_API slw_status slw_elf_symbol_data(const slw_elf *elf, const char *name,
                                       const uint8_t **data, size_t *size_bytes);

/** The name of dynamic symbol `index` if it is a defined, exported one; else NULL. */
SLW_API const char *slw_elf_exported_name(const slw_elf *elf, uint32_t index);

/** Copy all segments to `memory` (span_bytes, zeroed, page-aligned) and relocate them.
 * @param missing on SLW_ERROR_UNDEFINED: the symbol nobody defines */
SLW_API slw_status slw_elf_load(const slw_elf *elf, uint8_t *memory, const char **missing);

/** The pages that segment `index` covers: offset from `memory`, bytes, SLW_ELF_* flags; bytes
 * is 0 for a segment that is not loaded. */
SLW_API void slw_elf_pages(const slw_elf *elf, uint32_t index, uint64_t *offset, uint64_t *bytes,
                           unsigned *flags);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_ELF_H_ */
