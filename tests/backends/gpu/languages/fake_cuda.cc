/* A libcuda.so.1 for tests: memory is the process's, and the kernels of some PTX are a library for
 * this processor that lies in $SLW_FAKE_CUDA under the text's FNV-1a hash.  It checks what a driver
 * checks, and knows two devices.  With FAKE_HIP it is a libamdhip64.so of AMD's (fake_hip.cc). */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <string>

static const uint64_t MOST_BYTES = uint64_t{1} << 30;
static std::map<uint64_t, std::pair<uint64_t, int>> memory; /* begin: size, device */
static int current = -1;
static int launched = 0; /* kernels */
#ifdef FAKE_HIP
static const int FIRST = 0, VERSION = 60443483; /* the devices' numbers are their names */
static int number_of(int attribute) { /* hipDeviceAttribute_t as CUDA's */
  static const std::map<int, int> SAME = {{56, 1},  {26, 2}, {27, 3},  {28, 4},  {74, 8},
                                          {87, 10}, {63, 16}, {5, 13}, {23, 75}, {61, 76}};
  auto found = SAME.find(attribute);
  return found == SAME.end() ? 0 : found->second;
}
#else
static const int FIRST = 40, VERSION = 12090;
static int number_of(int attribute) { return attribute; }
#endif
static int broken = 0; /* as after a kernel's fault: every call fails */

struct Kernel {
  int (*entry)(const size_t *, const size_t *, void **);
};

static bool inside(uint64_t at, uint64_t size) {
  auto next = memory.upper_bound(at);
  if (next == memory.begin()) {
    return false;
  }
  --next;
  return at + size <= next->first + next->second.first;
}

extern "C" {
int cuInit(unsigned) { return getenv("SLW_FAKE_CUDA_BROKEN") != nullptr ? 100 : 0; }
int cuDriverGetVersion(int *out) { return *out = VERSION, 0; }
int cuDeviceGetCount(int *out) { return *out = 2, 0; }
int cuDeviceGet(int *out, int ordinal) { return *out = ordinal + FIRST, 0; }
int cuDeviceGetName(char *out, int size, int device) {
  snprintf(out, (size_t)size, "Fake GPU %d", device - FIRST);
  return 0;
}
int cuDeviceGetAttribute(int *out, int attribute, int) {
  static const std::map<int, int> VALUES = {{1, 1024}, {2, 1024}, {3, 1024},    {4, 64}, {8, 49152},
                                            {10, 32},  {16, 7},   {13, 1500000}, {75, 8}, {76, 6}};
  auto found = VALUES.find(number_of(attribute));
  return (found == VALUES.end()) ? 1 : (*out = found->second, 0);
}
int cuDeviceTotalMem_v2(size_t *out, int) { return *out = MOST_BYTES, 0; }
#ifdef FAKE_HIP
int hipSetDevice(int device) { return current = device, broken; }
#else
int cuDevicePrimaryCtxRetain(void **out, int device) {
  *out = (void *)(intptr_t)(device + 1);
  return 0;
}
int cuCtxSetCurrent(void *context) { return current = (int)(intptr_t)context - 41, broken; }
#endif
int cuCtxSynchronize() { return broken; }
int cuMemAlloc_v2(uint64_t *out, size_t size) {
  if (current < 0) {
    return 201; /* no context */
  }
  if (size > MOST_BYTES) {
    return 2;
  }
  *out = (uint64_t)(uintptr_t)aligned_alloc(256, (size + 255) / 256 * 256);
  memory[*out] = {size, current};
  return 0;
}
int cuMemFree_v2(uint64_t at) {
  if (memory.erase(at) == 0) {
    return 1;
  }
  free((void *)(uintptr_t)at);
  return 0;
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) {
  return broken != 0 ? broken : !inside(to, size) ? 1 : (memcpy((void *)(uintptr_t)to, from, size), 0);
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
  return broken != 0 ? broken : !inside(from, size) ? 1 : (memcpy(to, (void *)(uintptr_t)from, size), 0);
}
int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t size) {
  if (!inside(to, size) || !inside(from, size)) {
    return 1;
  }
  memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, size);
  return 0;
}
int cuPointerGetAttribute(void *out, int attribute, uint64_t at) {
  auto next = memory.upper_bound(at);
  if (attribute != 9 || next == memory.begin() || !inside(at, 0)) {
    return 1;
  }
  --next;
  *(int *)out = next->second.second;
  return 0;
}
int cuModuleLoadDataEx(void **out, const void *text, unsigned count, int *options, void **values) {
  uint64_t hash = 14695981039346656037u;
  const char *begin = (const char *)text;
  size_t size = strlen(begin);
  if (memcmp(begin, "\177ELF", 4) == 0) { /* to the end of its table of sections */
    uint64_t table;
    uint16_t each, count;
    memcpy(&table, begin + 0x28, sizeof table);
    memcpy(&each, begin + 0x3a, sizeof each);
    memcpy(&count, begin + 0x3c, sizeof count);
    size = (size_t)(table + (uint64_t)each * count);
  }
  for (size_t i = 0; i < size; ++i) {
    hash = (hash ^ (uint8_t)begin[i]) * 1099511628211u;
  }
  char name[32];
  snprintf(name, sizeof name, "/%016llx.so", (unsigned long long)hash);
  *out = dlopen((std::string(getenv("SLW_FAKE_CUDA")) + name).c_str(), RTLD_NOW);
  if (*out == nullptr && count == 2 && options[0] == 5) {
    strncpy((char *)values[0], "ptxas fatal: no such program", (size_t)(uintptr_t)values[1]);
  }
  return *out == nullptr ? 218 : 0;
}
int cuModuleUnload(void *module) { return broken != 0 ? broken : dlclose(module); }
int cuModuleGetFunction(void **out, void *module, const char *name) {
  void *found = dlsym(module, (std::string("slw_entry_") + name).c_str());
  *out = found;
  return found == nullptr ? 500 : 0;
}
int cuFuncGetAttribute(int *out, int, void *) { return *out = 512, 0; }
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **arguments, void **extra) {
  const size_t grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
  if (broken != 0 || shared != 0 || stream != nullptr || extra != nullptr) {
    return broken != 0 ? broken : 1;
  }
  if (getenv("SLW_FAKE_CUDA_FAULT") != nullptr) {
    broken = 700; /* a GPU tells of a fault at a later call */
    return 0;
  }
  int (*entry)(const size_t *, const size_t *, void **);
  memcpy(&entry, &function, sizeof entry);
  ++launched;
  return entry(grid, block, arguments) != 0 ? 702 : 0;
}
/* By its clock each kernel takes a second. */
int cuEventCreate(void **out, unsigned flags) {
  *out = calloc(1, sizeof(double));
  return flags != 0 || *out == nullptr ? 1 : broken;
}
int cuEventRecord(void *event, void *stream) {
  *(double *)event = 1e6 + 1000.0 * launched;
  return stream != nullptr ? 1 : broken;
}
int cuEventSynchronize(void *) { return broken; }
int cuEventElapsedTime(float *out, void *from, void *to) {
  *out = (float)(*(double *)to - *(double *)from);
  return broken;
}
int cuEventDestroy_v2(void *event) { return free(event), 0; }
int cuGetErrorName(int code, const char **out) {
  *out = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR";
  return 0;
}
int cuGetErrorString(int, const char **out) { return *out = "as the driver says", 0; }
}
