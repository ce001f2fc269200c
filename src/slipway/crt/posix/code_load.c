/* SPDX-License-Identifier: Apache-2.0 */
/* Our own loader: anonymous pages, filled and relocated while writable, then protected segment
 * by segment, so that no page is ever writable and executable at once. */
#if defined(SLW_STATIC)

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "code.h"
#include "slipway/error.h"
#include "slipway/library.h"

/* Let the processor see what was written as instructions. */
static void clear_cache(char *begin, char *end) {
#if defined(__hexagon__) /* whose compiler calls a function that no library has */
  enum { LINE_BYTES = 32 };
  for (char *at = begin; at < end; at += LINE_BYTES) {
    __asm__ volatile("dccleana(%0)" : : "r"(at) : "memory");
    __asm__ volatile("icinva(%0)" : : "r"(at) : "memory");
  }
  __asm__ volatile("syncht\n\tisync" : : : "memory");
#else
  __builtin___clear_cache(begin, end);
#endif
}

static slw_status protect(const slw_elf *elf, uint8_t *memory) {
  for (uint32_t i = 0; i < elf->num_segments; ++i) {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    unsigned flags = 0;
    int protection = PROT_NONE;
    slw_elf_pages(elf, i, &offset, &bytes, &flags);
    if (bytes == 0) {
      continue;
    }
    protection |= (flags & SLW_ELF_READ) ? PROT_READ : 0;
    protection |= (flags & SLW_ELF_WRITE) ? PROT_WRITE : 0;
    protection |= (flags & SLW_ELF_EXECUTE) ? PROT_EXEC : 0;
    if ((flags & SLW_ELF_EXECUTE) != 0) {
      clear_cache((char *)memory + offset, (char *)memory + offset + bytes);
    }
    if (mprotect(memory + offset, (size_t)bytes, protection) != 0) {
      return SLW_ERROR_IO;
    }
  }
  return SLW_OK;
}

static void run_initialisers(const slw_elf *elf, uint8_t *memory) {
  size_t width = elf->is_64 ? 8U : 4U;
  if (width != sizeof(uintptr_t)) {
    return;
  }
  for (uint64_t used = 0; used + width <= elf->init_array_bytes; used += width) {
    uintptr_t address;
    void (*initialise)(void);
    memcpy(&address, memory + (elf->init_array - elf->lowest) + used, sizeof address);
    if (address != 0 && address != UINTPTR_MAX) {
      memcpy(&initialise, &address, sizeof initialise);
      initialise();
    }
  }
}

slw_status slw_code_open(slw_code *code, const slw_elf *elf, const char *name) {
  const char *missing = NULL;
  uint8_t *memory;
  slw_status status;
  if (elf->span_bytes > SIZE_MAX / 2) {
    return (slw_status)(slw_error_set("ArtifactError", "the library is too large"),
                        SLW_ERROR_MEMORY);
  }
  memory = mmap(NULL, (size_t)elf->span_bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    (void)slw_error_setf("MemoryError", "cannot load %s: no memory for its %llu bytes", name,
                         (unsigned long long)elf->span_bytes);
    return SLW_ERROR_MEMORY;
  }
  status = slw_elf_load(elf, memory, &missing);
  if (status == SLW_OK) {
    status = protect(elf, memory);
    if (status != SLW_OK) {
      (void)slw_error_setf("OSError", "cannot make the code of %s executable: %s. A hardened "
                                      "system may forbid it.", name, strerror(errno));
    }
  } else {
    (void)slw_error_setf("ArtifactError", "cannot load %s: %s%s%s. Export the library again with "
                                          "Slipway's own linker.", name, slw_status_text(status),
                         (missing != NULL) ? ": " : "", (missing != NULL) ? missing : "");
  }
  if (status != SLW_OK) {
    (void)munmap(memory, (size_t)elf->span_bytes);
    return status;
  }
  code->handle = memory;
  code->mapped_bytes = (size_t)elf->span_bytes;
  run_initialisers(elf, memory);
  return SLW_OK;
}

void slw_code_close(slw_code *code) { (void)munmap(code->handle, code->mapped_bytes); }

void *slw_code_symbol(const slw_code *code, const slw_elf *elf, const char *symbol) {
  uint64_t address = 0;
  if (slw_elf_symbol(elf, symbol, &address, NULL) != SLW_OK) {
    return NULL;
  }
  return (uint8_t *)code->handle + address;
}

void slw_library_pin(const void *address) { (void)address; }

#else
typedef int slw_code_load_is_for_static_programs;
#endif
