/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of a static program, which cannot open a driver: it carries a small dynamic program, starts
 * it from memory with the machine's own loader and C library, and asks it.  Addresses are the child's;
 * nothing here follows one. */
#if defined(SLW_STATIC)
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device_wire.h"
#include "devices.h"
#include "slipway/error.h"
#include "slipway/object.h"
#include "slipway/sha256.h"

#define NO_LOADER 127 /* what a child exits with that could not become the program */
#define ENDS_WITHIN_MS 1000

extern char **environ;

/* The child's file; absent in programs that carry none. */
extern const char slw_device_child[] __attribute__((weak));
extern const char slw_device_child_end[] __attribute__((weak));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of an exchange */
static int channel = -1;
static pid_t started_by;
static pid_t lost_by; /* the process whose child has ended: with it, all that it had on devices */
static pid_t child;
static int how_it_ended; /* waitpid's status of that child */
static uint32_t used; /* a bit for each kind of device that something was done on */

static slw_status cannot(const char *why) {
  (void)slw_error_setf("DeviceError",
                       "this server is a static program, and its part that opens drivers %s. Run "
                       "Python's server there: python -m slipway.exec.rpc_server",
                       why);
  return SLW_ERROR_UNSUPPORTED;
}

static slw_status has_ended(void) {
  int signal_number = WIFSIGNALED(how_it_ended) ? WTERMSIG(how_it_ended) : 0;
  if (WIFEXITED(how_it_ended) && WEXITSTATUS(how_it_ended) == NO_LOADER) {
    return cannot("has ended: the machine has no loader for it (a C library other than glibc)");
  }
  (void)slw_error_setf("DeviceError",
                       "this server's part that opens drivers has ended, with all that was on devices "
                       "(signal %d%s). Open a new session, which starts another",
                       signal_number,
                       (signal_number == SIGKILL) ? ": most likely the machine ran out of memory"
                       : (signal_number != 0)     ? ", of its driver: the server's log has what it said"
                                                  : ": it ended by itself");
  return SLW_ERROR_UNSUPPORTED;
}

static int write_all(int file, const char *data, size_t size_bytes) {
  while (size_bytes > 0U) {
    ssize_t written = write(file, data, size_bytes);
    if (written <= 0) {
      return -1;
    }
    data += written;
    size_bytes -= (size_t)written;
  }
  return 0;
}

/* Never returns. */
static void become_child(int program, int end) {
  static const char *const ARGUMENTS[] = {"slipway-devices", NULL};
  if (dup2(end, SLW_DEVICE_SOCKET) == SLW_DEVICE_SOCKET) {
    (void)fexecve(program, (char *const *)(uintptr_t)ARGUMENTS, environ);
  }
  _exit(NO_LOADER);
}

static slw_status start(void) {
  size_t size_bytes = (size_t)(slw_device_child_end - slw_device_child);
  int ends[2];
  int program;
  if (channel >= 0 && started_by == getpid()) {
    return SLW_OK;
  }
  if (lost_by == getpid()) { /* another child would take old addresses for its own */
    return has_ended();
  }
  if (channel >= 0) { /* of the process that this one was forked from */
    (void)close(channel);
    channel = -1;
    used = 0;
  }
  if (slw_device_child == NULL || size_bytes == 0U) {
    return cannot("is not in it");
  }
  program = memfd_create("slipway-devices", MFD_CLOEXEC);
  if (program < 0 || write_all(program, slw_device_child, size_bytes) != 0 ||
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    if (program >= 0) {
      (void)close(program);
    }
    return cannot("could not be written to memory");
  }
  if (program == SLW_DEVICE_SOCKET) { /* dup2 would close it */
    program = fcntl(program, F_DUPFD_CLOEXEC, SLW_DEVICE_SOCKET + 1);
  }
  if (ends[1] == SLW_DEVICE_SOCKET) { /* whose copy of itself would be closed on exec */
    ends[1] = fcntl(ends[1], F_DUPFD_CLOEXEC, SLW_DEVICE_SOCKET + 1);
  }
  child = fork();
  if (child == 0) {
    become_child(program, ends[1]);
  }
  (void)close(program);
  (void)close(ends[1]);
  if (child < 0) {
    (void)close(ends[0]);
    return cannot("could not be started");
  }
  channel = ends[0];
  started_by = getpid();
  return SLW_OK;
}

/* A child whose socket is closed ends; one that its driver keeps from that is not waited for. */
static void wait_for_child(void) {
  static const struct timespec PAUSE = {0, 1000000};
  how_it_ended = 0;
  for (int i = 0; i < ENDS_WITHIN_MS && waitpid(child, &how_it_ended, WNOHANG) == 0; ++i) {
    (void)nanosleep(&PAUSE, NULL);
  }
}

static slw_status lost(void) {
  (void)close(channel);
  wait_for_child();
  channel = -1;
  used = 0;
  lost_by = getpid();
  return has_ended();
}

static slw_status told_error(const char *text, size_t size_bytes) {
  size_t kind = strnlen(text, size_bytes);
  slw_error_set(text, (kind < size_bytes) ? text + kind + 1U : "");
  return SLW_ERROR_CALL;
}

/* Take the bytes of an answer: into `into` if they are those that were asked for, else as text. */
static slw_status take_answer(slw_device_message *message, void *into, size_t into_bytes,
                              char **text) {
  slw_status status = SLW_OK;
  char *bytes;
  if (message->status == SLW_OK && into != NULL && message->size_bytes == into_bytes) {
    return (slw_device_take(channel, into, into_bytes) == 0) ? SLW_OK : lost();
  }
  bytes = calloc(1, (size_t)message->size_bytes + 1U);
  if (bytes == NULL || slw_device_take(channel, bytes, (size_t)message->size_bytes) != 0) {
    free(bytes);
    return lost();
  }
  if (message->status != SLW_OK) {
    status = told_error(bytes, (size_t)message->size_bytes);
  }
  if (status == SLW_OK && text != NULL) {
    *text = bytes;
    return SLW_OK;
  }
  free(bytes);
  return status;
}

/* Say a message with up to two pieces of bytes, and replace it by the answer. */
static slw_status exchange(slw_device_message *message, const void *head, size_t head_bytes,
                           const void *data, size_t data_bytes, void *into, size_t into_bytes,
                           char **text) {
  slw_status status;
  message->size_bytes = head_bytes + data_bytes;
  (void)pthread_mutex_lock(&lock);
  status = start();
  if (status == SLW_OK && (slw_device_send(channel, message, sizeof *message) != 0 ||
                           slw_device_send(channel, head, head_bytes) != 0 ||
                           slw_device_send(channel, data, data_bytes) != 0 ||
                           slw_device_take(channel, message, sizeof *message) != 0)) {
    status = lost();
  }
  if (status == SLW_OK) {
    status = take_answer(message, into, into_bytes, text);
  }
  (void)pthread_mutex_unlock(&lock);
  return status;
}

static slw_device_message message_of(slw_device_op op, int32_t kind, int32_t device) {
  slw_device_message message;
  memset(&message, 0, sizeof message);
  message.op = (int32_t)op;
  message.kind = kind;
  message.device = device;
  return message;
}

static slw_status request(slw_device_message *message) {
  return exchange(message, NULL, 0, NULL, 0, NULL, 0, NULL);
}

/* --- the functions of device_api.h, for a kind --------------------------------------------------- */

static slw_status alloc_memory(int32_t kind, int32_t device, size_t size_bytes, void **out) {
  slw_device_message message = message_of(SLW_DEVICE_ALLOC, kind, device);
  slw_status status;
  message.first = size_bytes;
  status = request(&message);
  used |= (status == SLW_OK) ? 1U << kind : 0U;
  *out = (status == SLW_OK) ? (void *)(uintptr_t)message.first : NULL;
  return status;
}

static slw_status alloc_image(int32_t device, size_t width, size_t height, int32_t bits, void **out) {
  slw_device_message message = message_of(SLW_DEVICE_ALLOC_IMAGE, kDLOpenCL, device);
  slw_status status;
  message.first = width;
  message.second = height;
  message.third = (uint64_t)bits;
  status = request(&message);
  used |= (status == SLW_OK) ? 1U << kDLOpenCL : 0U;
  *out = (status == SLW_OK) ? (void *)(uintptr_t)message.first : NULL;
  return status;
}

static void release_memory(int32_t kind, void *memory) {
  slw_device_message message = message_of(SLW_DEVICE_RELEASE, kind, 0);
  message.first = (uint64_t)(uintptr_t)memory;
  if (channel >= 0 && started_by == getpid()) {
    (void)request(&message);
  }
}

static slw_status where_is(int32_t kind, const void *address, int32_t *device) {
  slw_device_message message = message_of(SLW_DEVICE_WHERE, kind, 0);
  slw_status status;
  message.first = (uint64_t)(uintptr_t)address;
  status = request(&message);
  *device = message.device;
  return status;
}

static slw_status read_memory(int32_t kind, const void *from, void *host, size_t size_bytes) {
  slw_device_message message = message_of(SLW_DEVICE_READ, kind, 0);
  message.first = (uint64_t)(uintptr_t)from;
  message.second = size_bytes;
  return exchange(&message, NULL, 0, NULL, 0, host, size_bytes, NULL);
}

static slw_status write_memory(int32_t kind, void *to, const void *host, size_t size_bytes) {
  slw_device_message message = message_of(SLW_DEVICE_WRITE, kind, 0);
  message.first = (uint64_t)(uintptr_t)to;
  return exchange(&message, NULL, 0, host, size_bytes, NULL, 0, NULL);
}

static slw_status copy_memory(int32_t kind, const void *from, void *to, size_t size_bytes) {
  slw_device_message message = message_of(SLW_DEVICE_COPY, kind, 0);
  message.first = (uint64_t)(uintptr_t)from;
  message.second = (uint64_t)(uintptr_t)to;
  message.third = size_bytes;
  return request(&message);
}

static slw_status add_code(int32_t kind, const char *digest, const void *code,
                           size_t size_bytes) {
  slw_device_message message = message_of(SLW_DEVICE_ADD_CODE, kind, 0);
  return exchange(&message, digest, 2U * SLW_SHA256_BYTES, code, size_bytes, NULL, 0, NULL);
}

static void drop_code(int32_t kind, const char *digest) {
  slw_device_message message = message_of(SLW_DEVICE_DROP_CODE, kind, 0);
  if (channel >= 0 && started_by == getpid()) {
    (void)exchange(&message, digest, 2U * SLW_SHA256_BYTES, NULL, 0, NULL, 0, NULL);
  }
}

static char *put(char *at, const void *data, size_t size_bytes) {
  memcpy(at, data, size_bytes);
  return at + size_bytes;
}

static slw_status launch_kernel(int32_t kind, const slw_device_launch *launch) {
  slw_device_message message = message_of(SLW_DEVICE_LAUNCH, kind, 0);
  slw_device_wire_launch head;
  size_t num_args = strlen(launch->signature);
  size_t args_bytes = num_args * sizeof(TVMFFIAny);
  size_t name_bytes = strlen(launch->kernel) + 1U;
  size_t size_bytes = args_bytes + strlen(launch->digest) + 1U + name_bytes + num_args + 1U;
  char *data = malloc(size_bytes);
  char *at = data;
  slw_status status;
  if (data == NULL) {
    slw_error_set("MemoryError", "no memory for a launch");
    return SLW_ERROR_MEMORY;
  }
  for (int i = 0; i < 3; ++i) {
    head.grid[i] = launch->grid[i];
    head.block[i] = launch->block[i];
  }
  head.num_args = num_args;
  at = put(at, launch->args, args_bytes);
  at = put(at, launch->digest, strlen(launch->digest) + 1U);
  at = put(at, launch->kernel, name_bytes);
  (void)put(at, launch->signature, num_args + 1U);
  status = exchange(&message, &head, sizeof head, data, size_bytes, NULL, 0, NULL);
  free(data);
  return status;
}

static slw_status synchronize(int32_t kind, int32_t device) {
  slw_device_message message = message_of(SLW_DEVICE_SYNC, kind, device);
  return request(&message);
}

static slw_status wait_all(int32_t kind) {
  slw_device_message message = message_of(SLW_DEVICE_WAIT_ALL, kind, 0);
  return (started_by == getpid() && (used >> kind & 1U) != 0U) ? request(&message) : SLW_OK;
}

static uint64_t launches(int32_t kind, int32_t device) {
  slw_device_message message = message_of(SLW_DEVICE_LAUNCHES, kind, device);
  int is_used = started_by == getpid() && (used >> kind & 1U) != 0U;
  return (is_used && request(&message) == SLW_OK) ? message.first : 0U;
}

static slw_status mark(int32_t kind, int32_t device, uint64_t *out) {
  slw_device_message message = message_of(SLW_DEVICE_MARK, kind, device);
  slw_status status = request(&message);
  *out = message.first;
  return status;
}

static slw_status between(int32_t kind, int32_t device, uint64_t from, uint64_t to,
                          uint64_t *duration_ns) {
  slw_device_message message = message_of(SLW_DEVICE_BETWEEN, kind, device);
  slw_status status;
  message.first = from;
  message.second = to;
  status = request(&message);
  *duration_ns = message.first;
  return status;
}

/* Whether the kind keeps any memory is the child's to know. */
static slw_status trim(int32_t kind, int32_t device) {
  slw_device_message message = message_of(SLW_DEVICE_TRIM, kind, device);
  return request(&message);
}

static slw_status give_attribute(int32_t kind, int32_t device, int32_t attribute,
                                 TVMFFIAny *out) {
  slw_device_message message = message_of(SLW_DEVICE_ATTRIBUTE, kind, device);
  char *text = NULL;
  slw_status status;
  message.first = (uint64_t)attribute;
  memset(out, 0, sizeof *out);
  status = exchange(&message, NULL, 0, NULL, 0, NULL, 0, &text);
  if (status != SLW_OK && attribute == SLW_DEVICE_EXIST) {
    out->type_index = kTVMFFIInt; /* nothing that could open one is there */
    return SLW_OK;
  }
  if (status == SLW_OK && message.size_bytes > 0U) {
    status = slw_any_set_string(out, text, (size_t)message.size_bytes);
  } else if (status == SLW_OK) {
    out->type_index = (int32_t)message.second;
    out->v_int64 = (int64_t)message.first;
  }
  free(text);
  return status;
}

#define KIND(name, number, images)                                                                 \
  static slw_status name##_alloc(int32_t device, size_t size_bytes, void **out) {                  \
    return alloc_memory(number, device, size_bytes, out);                                          \
  }                                                                                                \
  static void name##_release(void *memory) { release_memory(number, memory); }                     \
  static slw_status name##_where(const void *address, int32_t *device) {                           \
    return where_is(number, address, device);                                                      \
  }                                                                                                \
  static slw_status name##_read(const void *from, void *host, size_t size_bytes) {                 \
    return read_memory(number, from, host, size_bytes);                                            \
  }                                                                                                \
  static slw_status name##_write(void *to, const void *host, size_t size_bytes) {                  \
    return write_memory(number, to, host, size_bytes);                                             \
  }                                                                                                \
  static slw_status name##_copy(const void *from, void *to, size_t size_bytes) {                   \
    return copy_memory(number, from, to, size_bytes);                                              \
  }                                                                                                \
  static slw_status name##_add_code(const char *digest, const void *code, size_t size_bytes) {     \
    return add_code(number, digest, code, size_bytes);                                             \
  }                                                                                                \
  static void name##_drop_code(const char *digest) { drop_code(number, digest); }                  \
  static slw_status name##_launch(const slw_device_launch *launch) {                               \
    return launch_kernel(number, launch);                                                          \
  }                                                                                                \
  static slw_status name##_sync(int32_t device) { return synchronize(number, device); }            \
  static slw_status name##_wait_all(void) { return wait_all(number); }                             \
  static slw_status name##_attribute(int32_t device, int32_t attribute, TVMFFIAny *out) {          \
    return give_attribute(number, device, attribute, out);                                         \
  }                                                                                                \
  static uint64_t name##_launches(int32_t device) { return launches(number, device); }             \
  static slw_status name##_mark(int32_t device, uint64_t *out) { return mark(number, device, out); } \
  static slw_status name##_between(int32_t device, uint64_t from, uint64_t to, uint64_t *out) {    \
    return between(number, device, from, to, out);                                                 \
  }                                                                                                \
  static slw_status name##_trim(int32_t device) { return trim(number, device); }                   \
  static const slw_device_api name##_api = {                                                       \
      #name,        name##_alloc,    name##_release, name##_where, name##_read,     name##_write,  \
      name##_copy,  name##_add_code, name##_drop_code, name##_launch, name##_sync,                 \
      name##_wait_all, name##_attribute, name##_launches, name##_mark, name##_between,             \
      name##_trim, NULL, images,                                                                   \
  };                                                                                               \
  void slw_##name##_setup(void) { slw_device_register(number, &name##_api); }

KIND(opencl, kDLOpenCL, alloc_image)
KIND(cuda, kDLCUDA, NULL)
KIND(hip, kDLROCM, NULL)
KIND(vulkan, kDLVulkan, NULL)
#else
typedef int slw_device_proxy_is_for_static_programs;
#endif
