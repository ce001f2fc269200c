/* A libMetal.dylib for tests: as much of an Objective-C runtime as the driver's calls need, and a
 * Metal of two devices, whose kernels are libraries that lie in $SLW_FAKE_METAL under their text's
 * FNV-1a hash.  The second device has memory of its own.  A command buffer does nothing before
 * somebody waits for it.  What nobody owns any more is gone, so that using it again is told. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

typedef unsigned long Count;
struct Size {
  Count width, height, depth;
};
struct Object {
  int owners = 1;
  virtual ~Object() = default;
  virtual std::string kind() const = 0;
};
typedef std::vector<Object *> Pool;

static std::set<Object *> living;
static std::vector<std::unique_ptr<Pool>> pools;
static size_t failing = 0; /* work that ends with an error from now on */

static void fail(const std::string &why) {
  fprintf(stderr, "fake Metal: %s\n", why.c_str());
  abort();
}
template <class T>
static T *made(T *object) {
  living.insert(object);
  return object;
}
template <class T>
static T *later(T *object) { /* autoreleased */
  if (pools.empty()) {
    fail("no pool for a " + object->kind());
  }
  pools.back()->push_back(object);
  return object;
}
static void release(Object *self) {
  if (living.count(self) == 0) {
    fail("released what is gone");
  }
  if (--self->owners == 0) {
    living.erase(self);
    delete self;
  }
}
static Object *retain(Object *self) { return ++self->owners, self; }

/* Owned for as long as a command buffer lives. */
struct Kept {
  Object *object;
  explicit Kept(Object *kept) : object(retain(kept)) {}
  ~Kept() { release(object); }
};

struct Text : Object {
  std::string text;
  explicit Text(std::string words) : text(std::move(words)) {}
  std::string kind() const override { return "NSString"; }
};
struct Error : Object {
  long code;
  std::string words;
  Error(long number, std::string text) : code(number), words(std::move(text)) {}
  std::string kind() const override { return "NSError"; }
};
struct Class : Object {
  std::string name;
  explicit Class(std::string text) : name(std::move(text)) {}
  std::string kind() const override { return "class " + name; }
};
struct Options : Object {
  bool is_fast = true;
  std::string kind() const override { return "MTLCompileOptions"; }
};
struct Process : Object {
  std::string kind() const override { return "NSProcessInfo"; }
};
struct Device : Object {
  int number;
  bool is_unified;
  Device(int at, bool unified) : number(at), is_unified(unified) {}
  std::string kind() const override { return "MTLDevice"; }
};
struct List : Object {
  std::vector<Device *> devices;
  std::string kind() const override { return "NSArray"; }
};
struct Buffer : Object {
  std::vector<char> bytes;
  bool is_shared;
  Buffer(size_t size, bool shared) : bytes(size, 0x5a), is_shared(shared) {}
  std::string kind() const override { return "MTLBuffer"; }
};
struct Library : Object {
  void *handle;
  explicit Library(void *opened) : handle(opened) {}
  std::string kind() const override { return "MTLLibrary"; }
};
typedef int (*Entry)(const size_t *, const size_t *, void **);
struct Function : Object {
  Entry entry;
  explicit Function(void *found) : entry((Entry)found) {}
  std::string kind() const override { return "MTLFunction"; }
};
struct Pipeline : Object {
  Entry entry;
  explicit Pipeline(Entry found) : entry(found) {}
  std::string kind() const override { return "MTLComputePipelineState"; }
};
struct Commands : Object {
  std::vector<std::function<int()>> work;
  Object *open = nullptr; /* an encoder */
  Count status = 0;
  double start = 0, end = 0;
  std::string kind() const override { return "MTLCommandBuffer"; }
  void give(std::function<int()> step) { work.push_back(std::move(step)); }
};
struct Queue : Object {
  std::vector<Commands *> committed;
  std::string kind() const override { return "MTLCommandQueue"; }
};
struct Argument {
  std::shared_ptr<Kept> buffer;
  size_t offset = 0;
  std::vector<char> bytes;
};
struct Encoder : Object {
  Commands *commands;
  bool copies;
  Pipeline *pipeline = nullptr;
  std::map<Count, Argument> arguments;
  Count given = 0; /* bytes of memory of a group, at 0 */
  Encoder(Commands *of, bool is_blit) : commands(of), copies(is_blit) {}
  std::string kind() const override { return copies ? "MTLBlitEncoder" : "MTLComputeEncoder"; }
};

static std::map<Commands *, Queue *> queue_of;
static double now = 100; /* seconds; each launch takes one */

static void run(Commands *self) {
  self->start = now;
  for (auto &step : self->work) {
    now += 1;
    if (failing != 0 && --failing == 0) {
      self->status = 5;
      break;
    }
    if (step() != 0) {
      self->status = 5;
    }
  }
  self->end = now;
  self->status = self->status == 5 ? 5 : 4;
  self->work.clear();
}

/* --- methods: (object, selector, arguments) ------------------------------------------------------ */

static const char *utf8(Text *self, char *) { return self->text.c_str(); }
static Text *of_utf8(Class *, char *, const char *text) { return later(made(new Text(text))); }
static Object *make_new(Class *, char *) { return made(new Options); }
static void set_fast(Options *self, char *, signed char fast) { self->is_fast = fast != 0; }
static Process *process_info(Class *, char *) { return later(made(new Process)); }
static Text *version(Process *, char *) { return later(made(new Text("Version 14.5 (Build 23F79)"))); }
static Count count(List *self, char *) { return self->devices.size(); }
static Device *object_at(List *self, char *, Count at) { return self->devices.at(at); }
static Text *name(Device *self, char *) {
  return later(made(new Text("Fake Apple GPU " + std::to_string(self->number))));
}
static signed char unified(Device *self, char *) { return self->is_unified; }
static Count most_shared(Device *, char *) { return 32768; }
static uint64_t most_memory(Device *, char *) { return uint64_t{1} << 30; }
static Size most_threads(Device *, char *) { return {1024, 1024, 64}; }
static Queue *new_queue(Device *, char *) { return made(new Queue); }
static Buffer *new_buffer(Device *self, char *, Count size, Count options) {
  if (size > Count{1} << 28) {
    return nullptr;
  }
  const bool is_shared = options == 0;
  return is_shared || options == 32 ? made(new Buffer(size, is_shared || self->is_unified)) : nullptr;
}
static char *contents(Buffer *self, char *) {
  return self->is_shared ? self->bytes.data() : nullptr;
}
static Library *new_library(Device *, char *, Text *source, Options *options, Error **error) {
  uint64_t hash = 14695981039346656037ULL;
  for (unsigned char letter : source->text) {
    hash = (hash ^ letter) * 1099511628211ULL;
  }
  char file[32];
  snprintf(file, sizeof file, "/%016llx.so", (unsigned long long)hash);
  void *handle = dlopen((getenv("SLW_FAKE_METAL") + std::string(file)).c_str(), RTLD_NOW);
  if (handle == nullptr || options->is_fast) {
    *error = later(made(new Error(3, "program_source:1:1: error: unknown type name")));
    return nullptr;
  }
  return made(new Library(handle));
}
static Function *new_function(Library *self, char *, Text *name) {
  void *found = dlsym(self->handle, ("slw_entry_" + name->text).c_str());
  return found == nullptr ? nullptr : made(new Function(found));
}
static Pipeline *new_pipeline(Device *, char *, Function *function, Error **) {
  return made(new Pipeline(function->entry));
}
static Count most_of_pipeline(Pipeline *, char *) { return 512; }
static Commands *command_buffer(Queue *self, char *) {
  Commands *commands = later(made(new Commands));
  queue_of[commands] = self;
  return commands;
}
static Encoder *encoder_of(Commands *self, bool copies) {
  if (self->open != nullptr || self->status != 0) {
    fail("an encoder while another one is open, or after commit");
  }
  Encoder *encoder = later(made(new Encoder(self, copies)));
  self->open = encoder;
  return encoder;
}
static Encoder *compute(Commands *self, char *) { return encoder_of(self, false); }
static Encoder *blit(Commands *self, char *) { return encoder_of(self, true); }
static void end_encoding(Encoder *self, char *) {
  if (self->commands->open != self) {
    fail("an encoder ends twice");
  }
  self->commands->open = nullptr;
}
static void set_pipeline(Encoder *self, char *, Pipeline *pipeline) { self->pipeline = pipeline; }
static void set_buffer(Encoder *self, char *, Buffer *buffer, Count offset, Count at) {
  self->arguments[at] = {buffer ? std::make_shared<Kept>(buffer) : nullptr, offset, {}};
}
static void set_bytes(Encoder *self, char *, const char *bytes, Count size, Count at) {
  self->arguments[at] = {nullptr, 0, std::vector<char>(bytes, bytes + size)};
}
static void set_memory(Encoder *self, char *, Count size, Count at) {
  if (at != 0 || size % 16 != 0 || size > 32768) {
    fail("memory of a group that this device does not have");
  }
  self->given = size;
}
static void dispatch(Encoder *self, char *, Size grid, Size block) {
  if (self->copies || self->commands->open != self || block.width * block.height * block.depth > 512) {
    fail("a dispatch that this encoder or pipeline does not take");
  }
  auto pipeline = std::make_shared<Kept>(self->pipeline);
  self->commands->give([=, arguments = self->arguments, given = self->given]() mutable {
    const size_t extents[] = {grid.width, grid.height, grid.depth};
    const size_t threads[] = {block.width, block.height, block.depth};
    std::vector<void *> values(arguments.size()), pointers;
    for (auto &[at, argument] : arguments) {
      if (argument.buffer != nullptr) {
        values[at] = ((Buffer *)argument.buffer->object)->bytes.data() + argument.offset;
      }
      pointers.push_back(argument.bytes.empty() ? (void *)&values[at] : argument.bytes.data());
    }
    std::unique_ptr<char, void (*)(void *)> shared(nullptr, free);
    void *begin = nullptr; /* behind the others */
    if (given != 0) {
      shared.reset((char *)aligned_alloc(16, given));
      begin = memset(shared.get(), 0xff, given);
    }
    pointers.push_back(&begin);
    return ((Pipeline *)pipeline->object)->entry(extents, threads, pointers.data());
  });
}
static void copy(Encoder *self, char *, Buffer *from, Count from_offset, Buffer *to, Count to_offset,
                 Count size) {
  if (!self->copies || self->commands->open != self || from_offset + size > from->bytes.size() ||
      to_offset + size > to->bytes.size()) {
    fail("a copy that this encoder or the buffers do not take");
  }
  auto source = std::make_shared<Kept>(from), target = std::make_shared<Kept>(to);
  self->commands->give([=] {
    memmove(((Buffer *)target->object)->bytes.data() + to_offset,
            ((Buffer *)source->object)->bytes.data() + from_offset, size);
    return 0;
  });
}
static void commit(Commands *self, char *) {
  if (self->open != nullptr || self->status != 0) {
    fail("commit while an encoder is open, or twice");
  }
  self->status = 2;
  queue_of[self]->committed.push_back((Commands *)retain(self));
}
static void wait(Commands *self, char *) {
  if (self->status < 2) {
    fail("a wait for what was not committed");
  }
  auto &committed = queue_of[self]->committed;
  while (self->status == 2) {
    Commands *first = committed.front();
    committed.erase(committed.begin());
    run(first);
    release(first);
  }
}
static Count status(Commands *self, char *) { return self->status; }
static Error *error(Commands *, char *) {
  return later(made(new Error(3, "Caused GPU Address Fault Error (kIOGPUCommandBufferCallbackError)")));
}
static long code(Error *self, char *) { return self->code; }
static Text *description(Error *self, char *) { return later(made(new Text(self->words))); }
static double start_time(Commands *self, char *) { return self->start; }
static double end_time(Commands *self, char *) { return self->end; }
static Object *retained(Object *self, char *) { return retain(self); }
static void released(Object *self, char *) { release(self); }
static signed char responds(Object *self, char *, char *selector);

static const std::map<std::string, void *> METHODS = {
    {"NSString UTF8String", (void *)utf8},
    {"class NSString stringWithUTF8String:", (void *)of_utf8},
    {"class MTLCompileOptions new", (void *)make_new},
    {"MTLCompileOptions setFastMathEnabled:", (void *)set_fast},
    {"class NSProcessInfo processInfo", (void *)process_info},
    {"NSProcessInfo operatingSystemVersionString", (void *)version},
    {"NSArray count", (void *)count},
    {"NSArray objectAtIndex:", (void *)object_at},
    {"MTLDevice name", (void *)name},
    {"MTLDevice hasUnifiedMemory", (void *)unified},
    {"MTLDevice maxThreadgroupMemoryLength", (void *)most_shared},
    {"MTLDevice recommendedMaxWorkingSetSize", (void *)most_memory},
    {"MTLDevice maxThreadsPerThreadgroup", (void *)most_threads},
    {"MTLDevice newCommandQueue", (void *)new_queue},
    {"MTLDevice newBufferWithLength:options:", (void *)new_buffer},
    {"MTLBuffer contents", (void *)contents},
    {"MTLDevice newLibraryWithSource:options:error:", (void *)new_library},
    {"MTLLibrary newFunctionWithName:", (void *)new_function},
    {"MTLDevice newComputePipelineStateWithFunction:error:", (void *)new_pipeline},
    {"MTLComputePipelineState maxTotalThreadsPerThreadgroup", (void *)most_of_pipeline},
    {"MTLCommandQueue commandBuffer", (void *)command_buffer},
    {"MTLCommandBuffer computeCommandEncoder", (void *)compute},
    {"MTLCommandBuffer blitCommandEncoder", (void *)blit},
    {"MTLComputeEncoder endEncoding", (void *)end_encoding},
    {"MTLBlitEncoder endEncoding", (void *)end_encoding},
    {"MTLComputeEncoder setComputePipelineState:", (void *)set_pipeline},
    {"MTLComputeEncoder setBuffer:offset:atIndex:", (void *)set_buffer},
    {"MTLComputeEncoder setBytes:length:atIndex:", (void *)set_bytes},
    {"MTLComputeEncoder setThreadgroupMemoryLength:atIndex:", (void *)set_memory},
    {"MTLComputeEncoder dispatchThreadgroups:threadsPerThreadgroup:", (void *)dispatch},
    {"MTLBlitEncoder copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", (void *)copy},
    {"MTLCommandBuffer commit", (void *)commit},
    {"MTLCommandBuffer waitUntilCompleted", (void *)wait},
    {"MTLCommandBuffer status", (void *)status},
    {"MTLCommandBuffer error", (void *)error},
    {"MTLCommandBuffer GPUStartTime", (void *)start_time},
    {"MTLCommandBuffer GPUEndTime", (void *)end_time},
    {"NSError code", (void *)code},
    {"NSError localizedDescription", (void *)description},
};

static void *method_of(Object *self, const char *selector) {
  if (living.count(self) == 0) {
    fail(std::string("a message to what is gone: ") + selector);
  }
  if (strcmp(selector, "retain") == 0) {
    return (void *)retained;
  }
  if (strcmp(selector, "release") == 0) {
    return (void *)released;
  }
  if (strcmp(selector, "respondsToSelector:") == 0) {
    return (void *)responds;
  }
  auto found = METHODS.find(self->kind() + " " + selector);
  return found == METHODS.end() ? nullptr : found->second;
}
static signed char responds(Object *self, char *, char *selector) {
  return method_of(self, selector) != nullptr;
}

extern "C" {
void *fake_method(Object *self, const char *selector) {
  void *found = method_of(self, selector);
  if (found == nullptr) {
    fail("a " + self->kind() + " has no " + selector);
  }
  return found;
}
/* Find the method, and go there with everything as it was. */
void objc_msgSend();
asm(R"(
  .globl objc_msgSend
  .type objc_msgSend, @function
objc_msgSend:
  push %rbp
  mov %rsp, %rbp
  push %rdi
  push %rsi
  push %rdx
  push %rcx
  push %r8
  push %r9
  call fake_method@PLT
  mov %rax, %r11
  pop %r9
  pop %r8
  pop %rcx
  pop %rdx
  pop %rsi
  pop %rdi
  pop %rbp
  jmp *%r11
  .size objc_msgSend, .-objc_msgSend
)");
Size objc_msgSend_stret(Object *self, char *selector) {
  return ((Size(*)(Object *, char *))fake_method(self, selector))(self, selector);
}
Object *objc_getClass(const char *name) {
  static std::map<std::string, Class *> classes;
  Class *&found = classes[name];
  return found != nullptr ? found : found = made(new Class(name));
}
const char *sel_registerName(const char *name) {
  static std::set<std::string> names;
  return names.insert(name).first->c_str();
}
void *objc_autoreleasePoolPush() {
  pools.push_back(std::make_unique<Pool>());
  return pools.back().get();
}
void objc_autoreleasePoolPop(void *pool) {
  if (pools.empty() || pools.back().get() != pool) {
    fail("a pool ends that is not the last");
  }
  Pool held;
  held.swap(*pools.back());
  pools.pop_back();
  for (Object *object : held) {
    release(object);
  }
}
Object *MTLCopyAllDevices() {
  List *list = made(new List);
  if (getenv("SLW_FAKE_METAL_EMPTY") == nullptr) {
    list->devices = {made(new Device(0, true)), made(new Device(1, false))};
  }
  return list;
}
/* For the tests. */
int fake_metal_living() { return (int)living.size(); }
void fake_metal_fail(int at) { failing = (size_t)at; }
}
