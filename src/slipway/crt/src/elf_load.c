/* SPDX-License-Identifier: Apache-2.0 */
/* Copying segments and applying relocations, as the ABI supplements of each processor define. */
#include <string.h>

#include "bytes.h"
#include "elf_file.h"

#define SEGMENT_LOAD 1U
#define BINDING_WEAK 2U
#define TYPE_TLS 6U
#define TYPE_IFUNC 10U

typedef enum { KIND_NONE, KIND_RELATIVE, KIND_SYMBOL, KIND_SYMBOL_ADDEND, KIND_UNKNOWN } reloc_kind;

/* What each relocation type stores: base + addend; symbol; symbol + addend. */
static reloc_kind kind_of(uint16_t machine, int is_64, uint32_t type) {
  switch (machine) {
    case SLW_ELF_X86_64:
      switch (type) {
        case 0: return KIND_NONE;
        case 1: return KIND_SYMBOL_ADDEND; /* R_X86_64_64 */
        case 6: return KIND_SYMBOL;        /* GLOB_DAT */
        case 7: return KIND_SYMBOL;        /* JUMP_SLOT */
        case 8: return KIND_RELATIVE;
        default: return KIND_UNKNOWN;
      }
    case SLW_ELF_AARCH64:
      switch (type) {
        case 0: return KIND_NONE;
        case 257: return KIND_SYMBOL_ADDEND;  /* R_AARCH64_ABS64 */
        case 1025: return KIND_SYMBOL_ADDEND; /* GLOB_DAT */
        case 1026: return KIND_SYMBOL_ADDEND; /* JUMP_SLOT */
        case 1027: return KIND_RELATIVE;
        default: return KIND_UNKNOWN;
      }
    case SLW_ELF_ARM:
      switch (type) {
        case 0: return KIND_NONE;
        case 2: return KIND_SYMBOL_ADDEND; /* R_ARM_ABS32 */
        case 21: return KIND_SYMBOL;       /* GLOB_DAT */
        case 22: return KIND_SYMBOL;       /* JUMP_SLOT */
        case 23: return KIND_RELATIVE;
        default: return KIND_UNKNOWN;
      }
    case SLW_ELF_HEXAGON:
      switch (type) {
        case 0: return KIND_NONE;
        case 6: return KIND_SYMBOL_ADDEND;  /* R_HEX_32 */
        case 33: return KIND_SYMBOL_ADDEND; /* GLOB_DAT */
        case 34: return KIND_SYMBOL_ADDEND; /* JMP_SLOT */
        case 35: return KIND_RELATIVE;
        default: return KIND_UNKNOWN;
      }
    case SLW_ELF_RISCV:
      switch (type) {
        case 0: return KIND_NONE;
        case 1: return is_64 ? KIND_UNKNOWN : KIND_SYMBOL_ADDEND; /* R_RISCV_32 */
        case 2: return is_64 ? KIND_SYMBOL_ADDEND : KIND_UNKNOWN; /* R_RISCV_64 */
        case 3: return KIND_RELATIVE;
        case 5: return KIND_SYMBOL_ADDEND; /* JUMP_SLOT */
        default: return KIND_UNKNOWN;
      }
    default:
      return KIND_UNKNOWN;
  }
}

/* Addresses in memory are computed modulo the pointer width, as the processor does. */
static slw_status symbol_address(const slw_elf *elf, uint64_t base, uint32_t index,
                                 uint64_t *address, const char **missing) {
  slw_elf_sym symbol;
  if (index >= elf->num_symbols) {
    return SLW_ERROR_FORMAT;
  }
  symbol = slw_elf_get_symbol(elf, index);
  if ((symbol.info & 0xfU) == TYPE_TLS || (symbol.info & 0xfU) == TYPE_IFUNC) {
    return SLW_ERROR_UNSUPPORTED;
  }
  if (symbol.section != 0) {
    *address = base + symbol.value;
    return SLW_OK;
  }
  if ((symbol.info >> 4) == BINDING_WEAK || index == 0) {
    *address = 0;
    return SLW_OK;
  }
  *missing = slw_elf_symbol_name(elf, &symbol);
  return SLW_ERROR_UNDEFINED;
}

static void store_word(const slw_elf *elf, uint8_t *where, uint64_t value) {
  size_t width = elf->is_64 ? 8U : 4U;
  for (size_t i = 0; i < width; ++i) {
    where[i] = (uint8_t)(value >> (8U * i));
  }
}

static slw_status apply_table(const slw_elf *elf, uint8_t *memory, uint64_t at, uint64_t bytes,
                              int is_rela, const char **missing) {
  uint64_t width = elf->is_64 ? 8U : 4U;
  uint64_t step = width * (is_rela ? 3U : 2U);
  uint64_t base = (uint64_t)(uintptr_t)memory - elf->lowest;
  for (uint64_t used = 0; used + step <= bytes; used += step) {
    const uint8_t *p = elf->bytes + at + used;
    uint64_t offset = elf->is_64 ? slw_load64(p) : slw_load32(p);
    uint64_t info = elf->is_64 ? slw_load64(p + 8) : slw_load32(p + 4);
    uint32_t type = elf->is_64 ? (uint32_t)info : (uint32_t)(info & 0xffU);
    uint32_t symbol = elf->is_64 ? (uint32_t)(info >> 32) : (uint32_t)(info >> 8);
    uint64_t addend = 0;
    uint64_t value = 0;
    uint8_t *where;
    reloc_kind kind = kind_of(elf->machine, elf->is_64, type);
    if (kind == KIND_NONE) {
      continue;
    }
    if (kind == KIND_UNKNOWN) {
      return SLW_ERROR_UNSUPPORTED;
    }
    if (offset < elf->lowest || !slw_in_range(offset - elf->lowest, width, elf->span_bytes)) {
      return SLW_ERROR_FORMAT;
    }
    where = memory + (offset - elf->lowest);
    if (is_rela) {
      addend = elf->is_64 ? slw_load64(p + 16) : slw_load32(p + 8);
    } else if (kind != KIND_SYMBOL) {
      addend = elf->is_64 ? slw_load64(where) : slw_load32(where);
    }
    if (kind == KIND_RELATIVE) {
      value = base;
    } else {
      slw_status status = symbol_address(elf, base, symbol, &value, missing);
      if (status != SLW_OK) {
        return status;
      }
    }
    store_word(elf, where, (kind == KIND_SYMBOL) ? value : value + addend);
  }
  return SLW_OK;
}

slw_status slw_elf_load(const slw_elf *elf, uint8_t *memory, const char **missing) {
  slw_status status = SLW_OK;
  *missing = NULL;
  for (uint32_t i = 0; i < elf->num_segments; ++i) {
    slw_elf_segment s = slw_elf_get_segment(elf, i);
    if (s.type == SEGMENT_LOAD && s.file_bytes > 0) {
      memcpy(memory + (s.address - elf->lowest), elf->bytes + s.offset, (size_t)s.file_bytes);
    }
  }
  if (elf->rela_bytes != 0) {
    status = apply_table(elf, memory, elf->rela_at, elf->rela_bytes, 1, missing);
  }
  if (status == SLW_OK && elf->rel_bytes != 0) {
    status = apply_table(elf, memory, elf->rel_at, elf->rel_bytes, 0, missing);
  }
  if (status == SLW_OK && elf->plt_bytes != 0) {
    status = apply_table(elf, memory, elf->plt_at, elf->plt_bytes, elf->plt_is_rela, missing);
  }
  return status;
}
