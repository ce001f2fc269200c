/* A libOpenCL.so.1 or (with WATCH_VULKAN) libvulkan.so.1 between the runtime and the real one, which
 * $SLW_REAL_DRIVER names: it counts the calls of each function that the runtime uses, and lets a chosen
 * one fail.  Each function is a jump through a slot, so that no parameter has to be known. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WATCH_VULKAN
#include "vulkan.h"
#define PREFIX "vk"
#define FUNCTIONS SLW_VULKAN_FUNCTIONS
#else
#include "opencl.h"
#define PREFIX "cl"
#define FUNCTIONS SLW_OPENCL_FUNCTIONS
#endif

typedef struct {
  void *real;
  int64_t calls;
  int64_t left; /* calls that go through; from then on all fail */
  int64_t code; /* what they return */
} slot;

#if !defined(__x86_64__)
#error "the jumps are written for x86-64"
#endif
#define WATCH(name, result, parameters)                                                            \
  __attribute__((used)) slot slot_##name = {NULL, 0, INT64_MAX, 0};                                \
  __asm__(".text\n.globl " PREFIX #name "\n.type " PREFIX #name ",@function\n" PREFIX #name ":\n"  \
          "mov slot_" #name "@GOTPCREL(%rip), %rax\nincq 8(%rax)\ndecq 16(%rax)\njs 1f\n"          \
          "jmp *(%rax)\n1: mov 24(%rax), %rax\nret\n");
FUNCTIONS(WATCH)

static const struct {
  const char *name;
  slot *slot;
} ALL[] = {
#define ENTRY(name, result, parameters) {#name, &slot_##name},
    FUNCTIONS(ENTRY)};

static slot *find(const char *name) {
  for (size_t i = 0; i < sizeof ALL / sizeof ALL[0]; ++i) {
    if (strcmp(ALL[i].name, name) == 0) {
      return ALL[i].slot;
    }
  }
  fprintf(stderr, "no function %s\n", name);
  abort();
}

int64_t watched_calls(const char *name) { return find(name)->calls; }

/* After `left` more calls of a function each fails with `code`; a negative `left`: none does. */
void watched_fail(const char *name, int64_t left, int64_t code) {
  slot *found = find(name);
  found->code = code;
  found->left = (left < 0) ? INT64_MAX : left;
}

#ifndef WATCH_VULKAN
/* Functions that return an object tell their error through the last parameter. */
#define CREATES(name, parameters, names, error)                                                    \
  static void *(*real_##name) parameters;                                                          \
  static int64_t left_##name = INT64_MAX, code_##name;                                             \
  static void *create_##name parameters {                                                          \
    if (--left_##name < 0) {                                                                       \
      *error = (cl_int)code_##name;                                                                \
      return NULL;                                                                                 \
    }                                                                                              \
    return real_##name names;                                                                      \
  }
CREATES(CreateBuffer, (void *a, uint64_t b, size_t c, void *d, cl_int *error), (a, b, c, d, error), error)
CREATES(CreateKernel, (void *a, const char *b, cl_int *error), (a, b, error), error)

void watched_fail_create(const char *name, int64_t left, int64_t code) {
  int64_t *to = (strcmp(name, "CreateBuffer") == 0) ? &left_CreateBuffer : &left_CreateKernel;
  *to = (left < 0) ? INT64_MAX : left;
  *((to == &left_CreateBuffer) ? &code_CreateBuffer : &code_CreateKernel) = code;
}
#endif

/* $SLW_FAULTS: "function left code, function left code" */
__attribute__((constructor)) static void start(void) {
  const char *path = getenv("SLW_REAL_DRIVER");
  const char *faults = getenv("SLW_FAULTS");
  void *real = (path != NULL) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  char symbol[80];
  char name[64];
  long left;
  long code;
  int used;
  if (real == NULL) {
    fprintf(stderr, "no driver: %s\n", dlerror());
    abort();
  }
  for (size_t i = 0; i < sizeof ALL / sizeof ALL[0]; ++i) {
    snprintf(symbol, sizeof symbol, PREFIX "%s", ALL[i].name);
    ALL[i].slot->real = dlsym(real, symbol);
  }
#ifndef WATCH_VULKAN
  *(void **)&real_CreateBuffer = slot_CreateBuffer.real;
  *(void **)&real_CreateKernel = slot_CreateKernel.real;
  slot_CreateBuffer.real = (void *)(uintptr_t)create_CreateBuffer;
  slot_CreateKernel.real = (void *)(uintptr_t)create_CreateKernel;
#endif
  while (faults != NULL && sscanf(faults, " %63s %ld %ld%n", name, &left, &code, &used) == 3) {
    watched_fail(name, left, code);
    faults += used;
    faults += (*faults == ',') ? 1 : 0;
  }
}
