/* A libcuda.so.1 for tests: memory is the process's, and the kernels of some PTX are a library for
 * this processor that lies in $SLW_FAKE_CUDA under the text's FNV-1a hash.  It checks what a driver
 * checks, and knows two devices.  Streams put off what they are given for as long as a GPU might.  With FAKE_HIP it is a libamdhip64.so of AMD's (fake_hip.cc). */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

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

typedef int (*Entry)(const size_t *, const size_t *, void **);
static std::map<void *, size_t> counts; /* of the arguments of an entry */
static const int STATIC_BYTES = 49152, MOST_SHARED = 101376;
static std::map<void *, unsigned char *> dynamic; /* the shared memory that launches give an entry */
static std::map<void *, int> most_given;

/* Work that a stream was given and has not done. */
struct Stream {
  std::deque<std::function<int()>> work;
  int step() {
    auto first = work.front();
    work.pop_front();
    int code = first();
    return code != 0 ? broken = code : 0;
  }
  int finish() {
    while (!work.empty()) {
      step();
    }
    return broken;
  }
};
static std::vector<Stream *> streams;
/* The default stream is behind all. The latest go first: nothing may hang on another order. */
static int finish_all() {
  for (size_t i = streams.size(); i-- > 0;) {
    streams[i]->finish();
  }
  return broken;
}
static int give(void *stream, std::function<int()> work) {
  if (stream == nullptr) {
    finish_all();
    int code = work();
    return code != 0 ? broken = code : broken;
  }
  if (broken == 0) {
    ((Stream *)stream)->work.push_back(std::move(work));
  }
  return broken;
}
struct Event {
  double time = 0;
  std::shared_ptr<bool> is_done = std::make_shared<bool>(true);
  Stream *stream = nullptr;
};
static std::map<uint64_t, uint64_t> pinned; /* begin: size */

static bool is_pinned(const void *at, uint64_t size) {
  auto next = pinned.upper_bound((uint64_t)(uintptr_t)at);
  if (next == pinned.begin()) {
    return false;
  }
  --next;
  return (uint64_t)(uintptr_t)at + size <= next->first + next->second;
}

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
                                            {97, MOST_SHARED}, {10, 32},  {16, 7},   {13, 1500000}, {75, 8}, {76, 6}};
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
int cuCtxSynchronize() { return finish_all(); }
int cuStreamCreate(void **out, unsigned flags) {
  Stream *made = new Stream;
  streams.push_back(made);
  *out = made;
  return flags != 0 ? 1 : broken;
}
int cuStreamDestroy_v2(void *stream) {
  int code = ((Stream *)stream)->finish();
  for (size_t i = 0; i < streams.size(); ++i) {
    if (streams[i] == stream) {
      streams.erase(streams.begin() + (long)i);
      delete (Stream *)stream;
      return code;
    }
  }
  return 400; /* no such stream */
}
int cuStreamSynchronize(void *stream) {
  return stream == nullptr ? finish_all() : ((Stream *)stream)->finish();
}
int cuMemHostAlloc(void **out, size_t size, unsigned flags) {
  *out = aligned_alloc(256, (size + 255) / 256 * 256);
  pinned[(uint64_t)(uintptr_t)*out] = size;
  return flags != 0 ? 1 : broken;
}
int cuMemFreeHost(void *memory) {
  if (pinned.erase((uint64_t)(uintptr_t)memory) == 0) {
    return 1;
  }
  free(memory);
  return broken;
}
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
int fake_cuda_pieces() { return (int)memory.size(); }
int cuMemFree_v2(uint64_t at) {
  finish_all(); /* the driver waits for what uses it */
  if (memory.erase(at) == 0) {
    return 1;
  }
  free((void *)(uintptr_t)at);
  return 0;
}
static int copy(void *to, const void *from, size_t size, void *stream) {
  return give(stream, [=] { return memmove(to, from, size), 0; });
}
static void *at(uint64_t address) { return (void *)(uintptr_t)address; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) {
  return inside(to, size) ? copy(at(to), from, size, nullptr) : 1;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
  return inside(from, size) ? copy(to, at(from), size, nullptr) : 1;
}
int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t size) {
  return inside(to, size) && inside(from, size) ? copy(at(to), at(from), size, nullptr) : 1;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream) {
  return inside(to, size) && is_pinned(from, size) ? copy(at(to), from, size, stream) : 1;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) {
  return inside(from, size) && is_pinned(to, size) ? copy(to, at(from), size, stream) : 1;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream) {
  return inside(to, size) && inside(from, size) ? copy(at(to), at(from), size, stream) : 1;
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
int cuModuleUnload(void *module) { return finish_all() != 0 ? broken : dlclose(module); }
int cuModuleGetFunction(void **out, void *module, const char *name) {
  void *found = dlsym(module, (std::string("slw_entry_") + name).c_str());
  *out = found;
  if (found != nullptr) {
    dynamic[found] = (unsigned char *)dlsym(module, "slw_dynamic");
    counts[found] = ((size_t(*)())dlsym(module, (std::string("slw_count_") + name).c_str()))();
  }
  return found == nullptr ? 500 : 0;
}
int cuFuncGetAttribute(int *out, int attribute, void *) {
  return *out = attribute == 0 ? 512 : 0, attribute > 1;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
  if (attribute != 8 || value > MOST_SHARED) {
    return 1;
  }
  most_given[function] = value;
  return 0;
}
static bool is_given(void *function, unsigned shared) {
#ifdef FAKE_HIP
  const int most = 65536;
#else
  const int most = most_given.count(function) != 0 ? most_given[function] : STATIC_BYTES;
#endif
  return (int)shared <= most && (shared == 0 || dynamic[function] != nullptr);
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **arguments, void **extra) {
  if (broken != 0 || !is_given(function, shared) || extra != nullptr) {
    return broken != 0 ? broken : 1;
  }
  if (stream == nullptr) {
    finish_all();
  }
  ++launched;
  std::vector<uint64_t> held(counts[function]); /* what is pointed to is taken at the call */
  for (size_t i = 0; i < held.size(); ++i) {
    memcpy(&held[i], arguments[i], sizeof held[i]);
  }
  auto run = [=]() mutable {
    const size_t grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
    std::vector<void *> pointers;
    for (uint64_t &value : held) {
      pointers.push_back(&value);
    }
    Entry entry;
    memcpy(&entry, &function, sizeof entry);
    if (shared != 0) {
      memset(dynamic[function], 0xff, shared);
    }
    if (getenv("SLW_FAKE_CUDA_FAULT") != nullptr) {
      return 700;
    }
    return entry(grid, block, pointers.data()) != 0 ? 702 : 0;
  };
  int code = give(stream, run);
  return code == 700 ? 0 : code; /* a GPU tells of a fault at a later call */
}
/* By its clock each kernel takes a second. */
int cuEventCreate(void **out, unsigned flags) {
  *out = new Event;
  return flags != 0 && flags != 2 ? 1 : broken;
}
int cuEventRecord(void *event, void *stream) {
  Event *self = (Event *)event;
  auto is_done = self->is_done = std::make_shared<bool>(false);
  self->stream = (Stream *)stream;
  self->time = 1e6 + 1000.0 * launched;
  return give(stream, [=] { return *is_done = true, 0; });
}
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  Event *self = (Event *)event;
  auto is_done = self->is_done;
  Stream *other = self->stream;
  return flags != 0 ? 1 : give(stream, [=] {
    while (!*is_done && broken == 0) {
      other->step();
    }
    return 0;
  });
}
int cuEventSynchronize(void *event) {
  Event *self = (Event *)event;
  while (!*self->is_done && broken == 0) {
    self->stream->step();
  }
  return broken;
}
int cuEventElapsedTime(float *out, void *from, void *to) {
  *out = (float)(((Event *)to)->time - ((Event *)from)->time);
  return broken;
}
int cuEventDestroy_v2(void *event) { return delete (Event *)event, 0; }
int cuGetErrorName(int code, const char **out) {
  *out = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR";
  return 0;
}
int cuGetErrorString(int, const char **out) { return *out = "as the driver says", 0; }
}
