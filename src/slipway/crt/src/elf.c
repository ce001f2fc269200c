/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing read from the file is trusted: every table is located through a loaded segment and
 * stays inside the bytes that the file really has. */
#include "slipway/elf.h"

#include <string.h>

#include "bytes.h"
#include "elf_file.h"

#define TYPE_SHARED 3U
#define SEGMENT_LOAD 1U
#define SEGMENT_DYNAMIC 2U
#define SEGMENT_TLS 7U
#define MAX_SEGMENTS 64U
#define MAX_SPAN ((uint64_t)1 << 40)

enum {
  DT_NULL = 0,
  DT_PLTRELSZ = 2,
  DT_HASH = 4,
  DT_STRTAB = 5,
  DT_SYMTAB = 6,
  DT_RELA = 7,
  DT_RELASZ = 8,
  DT_STRSZ = 10,
  DT_REL = 17,
  DT_RELSZ = 18,
  DT_PLTREL = 20,
  DT_TEXTREL = 22,
  DT_JMPREL = 23,
  DT_INIT_ARRAY = 25,
  DT_INIT_ARRAYSZ = 27,
  DT_FLAGS = 30,
  DT_RELR = 36,
  DT_GNU_HASH = 0x6ffffef5
};

#define FLAG_TEXTREL 4U

slw_elf_segment slw_elf_get_segment(const slw_elf *elf, uint32_t index) {
  slw_elf_segment s;
  const uint8_t *p = elf->bytes + elf->segments_at;
  if (elf->is_64) {
    p += (size_t)index * 56U;
    s.type = slw_load32(p);
    s.flags = slw_load32(p + 4);
    s.offset = slw_load64(p + 8);
    s.address = slw_load64(p + 16);
    s.file_bytes = slw_load64(p + 32);
    s.memory_bytes = slw_load64(p + 40);
  } else {
    p += (size_t)index * 32U;
    s.type = slw_load32(p);
    s.offset = slw_load32(p + 4);
    s.address = slw_load32(p + 8);
    s.file_bytes = slw_load32(p + 16);
    s.memory_bytes = slw_load32(p + 20);
    s.flags = slw_load32(p + 24);
  }
  return s;
}

int slw_elf_file_offset(const slw_elf *elf, uint64_t address, uint64_t bytes, uint64_t *offset) {
  for (uint32_t i = 0; i < elf->num_segments; ++i) {
    slw_elf_segment s = slw_elf_get_segment(elf, i);
    if (s.type == SEGMENT_LOAD && address >= s.address &&
        slw_in_range(address - s.address, bytes, s.file_bytes)) {
      *offset = s.offset + (address - s.address);
      return 1;
    }
  }
  return 0;
}

/* Return whether two segments with different rights meet in one page of memory. */
static int pages_conflict(const slw_elf *elf, const slw_elf_segment *a, const slw_elf_segment *b) {
  uint64_t mask = ~(elf->page_bytes - 1U);
  uint64_t a_end = (a->address + a->memory_bytes + elf->page_bytes - 1U) & mask;
  uint64_t b_end = (b->address + b->memory_bytes + elf->page_bytes - 1U) & mask;
  return a->flags != b->flags && (a->address & mask) < b_end && (b->address & mask) < a_end;
}

static slw_status check_pages(const slw_elf *elf) {
  for (uint32_t i = 0; i < elf->num_segments; ++i) {
    slw_elf_segment a = slw_elf_get_segment(elf, i);
    for (uint32_t j = 0; j < i; ++j) {
      slw_elf_segment b = slw_elf_get_segment(elf, j);
      if (a.type == SEGMENT_LOAD && b.type == SEGMENT_LOAD && pages_conflict(elf, &a, &b)) {
        return SLW_ERROR_UNSUPPORTED;
      }
    }
  }
  return SLW_OK;
}

static slw_status check_segments(slw_elf *elf, uint64_t *dynamic_at, uint64_t *dynamic_bytes) {
  uint64_t lowest = UINT64_MAX;
  uint64_t highest = 0;
  *dynamic_bytes = 0;
  for (uint32_t i = 0; i < elf->num_segments; ++i) {
    slw_elf_segment s = slw_elf_get_segment(elf, i);
    if (s.type == SEGMENT_TLS) {
      return SLW_ERROR_UNSUPPORTED;
    }
    if (s.type != SEGMENT_LOAD && s.type != SEGMENT_DYNAMIC) {
      continue;
    }
    if (!slw_in_range(s.offset, s.file_bytes, elf->size_bytes)) {
      return SLW_ERROR_TRUNCATED;
    }
    if (s.type == SEGMENT_DYNAMIC) {
      *dynamic_at = s.offset;
      *dynamic_bytes = s.file_bytes;
      continue;
    }
    if (s.memory_bytes < s.file_bytes || !slw_in_range(s.address, s.memory_bytes, MAX_SPAN)) {
      return SLW_ERROR_FORMAT;
    }
    if ((s.flags & SLW_ELF_WRITE) != 0 && (s.flags & SLW_ELF_EXECUTE) != 0) {
      return SLW_ERROR_UNSUPPORTED; /* memory is never writable and executable at once */
    }
    lowest = (s.address < lowest) ? s.address : lowest;
    highest = (s.address + s.memory_bytes > highest) ? s.address + s.memory_bytes : highest;
  }
  if (highest == 0 || *dynamic_bytes == 0) {
    return SLW_ERROR_FORMAT;
  }
  elf->lowest = lowest & ~(elf->page_bytes - 1U);
  elf->span_bytes = ((highest + elf->page_bytes - 1U) & ~(elf->page_bytes - 1U)) - elf->lowest;
  return check_pages(elf);
}

typedef struct {
  uint64_t value[64]; /* tags below 64 */
  uint64_t gnu_hash;
} dynamic_table;

static void read_dynamic(const slw_elf *elf, uint64_t at, uint64_t bytes, dynamic_table *table) {
  uint64_t step = elf->is_64 ? 16U : 8U;
  memset(table, 0, sizeof *table);
  for (uint64_t used = 0; used + step <= bytes; used += step) {
    const uint8_t *p = elf->bytes + at + used;
    uint64_t tag = elf->is_64 ? slw_load64(p) : slw_load32(p);
    uint64_t value = elf->is_64 ? slw_load64(p + 8) : slw_load32(p + 4);
    if (tag == DT_NULL) {
      return;
    }
    if (tag < 64U) {
      table->value[tag] = value;
    } else if (tag == DT_GNU_HASH) {
      table->gnu_hash = value;
    }
  }
}

/* The GNU hash table does not state how many symbols there are: the last chain tells. */
static int count_gnu_symbols(const slw_elf *elf, uint64_t address, uint32_t *count) {
  uint64_t at = 0;
  uint32_t buckets;
  uint32_t first;
  uint64_t buckets_address;
  uint64_t chains_address;
  uint32_t last = 0;
  if (!slw_elf_file_offset(elf, address, 16, &at)) {
    return 0;
  }
  buckets = slw_load32(elf->bytes + at);
  first = slw_load32(elf->bytes + at + 4);
  buckets_address =
      address + 16U + (uint64_t)slw_load32(elf->bytes + at + 8) * (elf->is_64 ? 8U : 4U);
  chains_address = buckets_address + (uint64_t)buckets * 4U;
  if (!slw_elf_file_offset(elf, buckets_address, (uint64_t)buckets * 4U, &at)) {
    return 0;
  }
  for (uint32_t i = 0; i < buckets; ++i) {
    uint32_t symbol = slw_load32(elf->bytes + at + (uint64_t)i * 4U);
    last = (symbol > last) ? symbol : last;
  }
  if (last < first) {
    *count = first;
    return 1;
  }
  for (;; ++last) {
    if (!slw_elf_file_offset(elf, chains_address + (uint64_t)(last - first) * 4U, 4, &at)) {
      return 0;
    }
    if ((slw_load32(elf->bytes + at) & 1U) != 0) {
      *count = last + 1U;
      return 1;
    }
  }
}

static int count_symbols(const slw_elf *elf, const dynamic_table *table, uint32_t *count) {
  uint64_t at = 0;
  if (table->value[DT_HASH] != 0) {
    if (!slw_elf_file_offset(elf, table->value[DT_HASH], 8, &at)) {
      return 0;
    }
    *count = slw_load32(elf->bytes + at + 4);
    return 1;
  }
  return table->gnu_hash != 0 && count_gnu_symbols(elf, table->gnu_hash, count);
}

static slw_status locate_tables(slw_elf *elf, const dynamic_table *table) {
  const uint64_t *value = table->value;
  uint64_t symbol_bytes = elf->is_64 ? 24U : 16U;
  if (value[DT_RELR] != 0 || value[DT_TEXTREL] != 0 || (value[DT_FLAGS] & FLAG_TEXTREL) != 0) {
    return SLW_ERROR_UNSUPPORTED;
  }
  elf->strings_bytes = value[DT_STRSZ];
  if (elf->strings_bytes == 0 ||
      !slw_elf_file_offset(elf, value[DT_STRTAB], elf->strings_bytes, &elf->strings_at) ||
      elf->bytes[elf->strings_at + elf->strings_bytes - 1U] != 0 ||
      !count_symbols(elf, table, &elf->num_symbols) ||
      !slw_elf_file_offset(elf, value[DT_SYMTAB], (uint64_t)elf->num_symbols * symbol_bytes,
                           &elf->symbols_at)) {
    return SLW_ERROR_FORMAT;
  }
  elf->rela_bytes = value[DT_RELASZ];
  elf->rel_bytes = value[DT_RELSZ];
  elf->plt_bytes = value[DT_PLTRELSZ];
  elf->plt_is_rela = value[DT_PLTREL] == DT_RELA;
  elf->init_array = value[DT_INIT_ARRAY];
  elf->init_array_bytes = value[DT_INIT_ARRAYSZ];
  if ((elf->rela_bytes != 0 &&
       !slw_elf_file_offset(elf, value[DT_RELA], elf->rela_bytes, &elf->rela_at)) ||
      (elf->rel_bytes != 0 &&
       !slw_elf_file_offset(elf, value[DT_REL], elf->rel_bytes, &elf->rel_at)) ||
      (elf->plt_bytes != 0 &&
       !slw_elf_file_offset(elf, value[DT_JMPREL], elf->plt_bytes, &elf->plt_at)) ||
      (elf->init_array_bytes != 0 &&
       (elf->init_array < elf->lowest ||
        !slw_in_range(elf->init_array - elf->lowest, elf->init_array_bytes, elf->span_bytes)))) {
    return SLW_ERROR_FORMAT;
  }
  return SLW_OK;
}

slw_status slw_elf_parse(slw_elf *elf, const void *bytes, size_t size_bytes, uint64_t page_bytes) {
  const uint8_t *p = bytes;
  uint64_t entry_bytes;
  uint64_t sections_at;
  uint64_t sections_bytes;
  uint64_t dynamic_at = 0;
  uint64_t dynamic_bytes = 0;
  dynamic_table table;
  slw_status status;
  memset(elf, 0, sizeof *elf);
  if (size_bytes < 16 || memcmp(p, "\177ELF", 4) != 0) {
    return SLW_ERROR_FORMAT;
  }
  if ((p[4] != 1 && p[4] != 2) || p[5] != 1 || p[6] != 1) {
    return SLW_ERROR_FORMAT; /* 32 or 64 bits, little-endian, version 1 */
  }
  elf->is_64 = p[4] == 2;
  if (size_bytes < (elf->is_64 ? 64U : 52U)) {
    return SLW_ERROR_TRUNCATED;
  }
  elf->bytes = bytes;
  elf->size_bytes = size_bytes;
  elf->page_bytes = page_bytes;
  elf->machine = slw_load16(p + 18);
  elf->segments_at = elf->is_64 ? slw_load64(p + 32) : slw_load32(p + 28);
  entry_bytes = slw_load16(p + (elf->is_64 ? 54 : 42));
  elf->num_segments = slw_load16(p + (elf->is_64 ? 56 : 44));
  if (slw_load16(p + 16) != TYPE_SHARED || entry_bytes != (elf->is_64 ? 56U : 32U) ||
      elf->num_segments == 0 || elf->num_segments > MAX_SEGMENTS) {
    return SLW_ERROR_FORMAT;
  }
  /* Section headers are not used, but they come last: a file without them has been cut. */
  sections_at = elf->is_64 ? slw_load64(p + 40) : slw_load32(p + 32);
  sections_bytes = (uint64_t)slw_load16(p + (elf->is_64 ? 58 : 46)) *
                   slw_load16(p + (elf->is_64 ? 60 : 48));
  if (!slw_in_range(elf->segments_at, entry_bytes * elf->num_segments, size_bytes) ||
      !slw_in_range(sections_at, sections_bytes, size_bytes)) {
    return SLW_ERROR_TRUNCATED;
  }
  status = check_segments(elf, &dynamic_at, &dynamic_bytes);
  if (status != SLW_OK) {
    return status;
  }
  read_dynamic(elf, dynamic_at, dynamic_bytes, &table);
  return locate_tables(elf, &table);
}

uint16_t slw_elf_this_machine(void) {
#if defined(__x86_64__)
  return SLW_ELF_X86_64;
#elif defined(__aarch64__)
  return SLW_ELF_AARCH64;
#elif defined(__arm__)
  return SLW_ELF_ARM;
#elif defined(__riscv)
  return SLW_ELF_RISCV;
#elif defined(__hexagon__)
  return SLW_ELF_HEXAGON;
#else
  return 0;
#endif
}

const char *slw_elf_machine_name(uint16_t machine) {
  switch (machine) {
    case SLW_ELF_ARM:
      return "arm";
    case SLW_ELF_X86_64:
      return "x86-64";
    case SLW_ELF_AARCH64:
      return "aarch64";
    case SLW_ELF_HEXAGON:
      return "hexagon";
    case SLW_ELF_RISCV:
      return "riscv";
    default:
      return "another processor";
  }
}

slw_elf_sym slw_elf_get_symbol(const slw_elf *elf, uint32_t index) {
  slw_elf_sym s;
  const uint8_t *p = elf->bytes + elf->symbols_at;
  if (elf->is_64) {
    p += (size_t)index * 24U;
    s.name = slw_load32(p);
    s.info = p[4];
    s.section = slw_load16(p + 6);
    s.value = slw_load64(p + 8);
    s.size = slw_load64(p + 16);
  } else {
    p += (size_t)index * 16U;
    s.name = slw_load32(p);
    s.value = slw_load32(p + 4);
    s.size = slw_load32(p + 8);
    s.info = p[12];
    s.section = slw_load16(p + 14);
  }
  return s;
}

const char *slw_elf_symbol_name(const slw_elf *elf, const slw_elf_sym *symbol) {
  /* The table ends with NUL, so any offset inside it starts a terminated string. */
  return (symbol->name < elf->strings_bytes)
             ? (const char *)elf->bytes + elf->strings_at + symbol->name
             : "";
}

const char *slw_elf_exported_name(const slw_elf *elf, uint32_t index) {
  slw_elf_sym symbol;
  if (index >= elf->num_symbols) {
    return NULL;
  }
  symbol = slw_elf_get_symbol(elf, index);
  return (symbol.section != 0 && (symbol.info >> 4) != 0) ? slw_elf_symbol_name(elf, &symbol)
                                                          : NULL;
}

slw_status slw_elf_symbol(const slw_elf *elf, const char *name, uint64_t *address,
                          uint64_t *size) {
  for (uint32_t i = 1; i < elf->num_symbols; ++i) {
    const char *candidate = slw_elf_exported_name(elf, i);
    if (candidate != NULL && slw_text_equal(candidate, name)) {
      slw_elf_sym symbol = slw_elf_get_symbol(elf, i);
      if (symbol.value < elf->lowest ||
          !slw_in_range(symbol.value - elf->lowest, symbol.size, elf->span_bytes)) {
        return SLW_ERROR_FORMAT;
      }
      *address = symbol.value - elf->lowest;
      if (size != NULL) {
        *size = symbol.size;
      }
      return SLW_OK;
    }
  }
  return SLW_ERROR_NOT_FOUND;
}

slw_status slw_elf_symbol_data(const slw_elf *elf, const char *name, const uint8_t **data,
                               size_t *size_bytes) {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t at = 0;
  slw_status status = slw_elf_symbol(elf, name, &address, &size);
  if (status != SLW_OK) {
    return status;
  }
  if (!slw_elf_file_offset(elf, elf->lowest + address, size, &at)) {
    return SLW_ERROR_FORMAT;
  }
  *data = elf->bytes + at;
  *size_bytes = (size_t)size;
  return SLW_OK;
}

void slw_elf_pages(const slw_elf *elf, uint32_t index, uint64_t *offset, uint64_t *bytes,
                   unsigned *flags) {
  slw_elf_segment s = slw_elf_get_segment(elf, index);
  uint64_t end;
  *bytes = 0;
  if (s.type != SEGMENT_LOAD || s.memory_bytes == 0) {
    return;
  }
  *offset = (s.address & ~(elf->page_bytes - 1U)) - elf->lowest;
  end = ((s.address + s.memory_bytes + elf->page_bytes - 1U) & ~(elf->page_bytes - 1U)) -
        elf->lowest;
  *bytes = end - *offset;
  *flags = s.flags & (SLW_ELF_READ | SLW_ELF_WRITE | SLW_ELF_EXECUTE);
}
