/* SPDX-License-Identifier: Apache-2.0 */
/* A page as an RPC device: the session of src/rpc_*.c, whose hooks lead to JavaScript.
 *
 * Every uploaded module has a memory of its own, and none of it is this session's: tensors,
 * functions and modules are numbers here, of things that JavaScript keeps (web/device/session.mjs).
 * The session never waits: JavaScript lets it take a step when a whole frame has come. */
#include <string.h>

#include "../../src/rpc_auth.h"
#include "../../src/rpc_internal.h"
#include "../web.h"
#include "slipway/error.h"
#include "slipway/format.h"
#include "slipway/platform.h"
#include "slipway/rpc_session.h"
#include "slipway/tensor.h"

#define FRAME_BYTES (1u << 20)
#define MAX_ARGS 1024u
#define MAX_HANDLES 65536u

#define PAGE(name) __attribute__((import_module("page"), import_name(#name))) page_##name

/* What JavaScript does; each that returns int returns 0 or an slw_rpc_failure, after it has set
 * the error. */
extern ptrdiff_t PAGE(read)(void *buffer, size_t min, size_t max);
extern void PAGE(write)(const void *data, size_t size_bytes, int is_last);
extern int PAGE(call)(uint32_t function, const TVMFFIAny *args, int32_t num_args,
                      TVMFFIAny *result);
extern int PAGE(time)(TVMFFIObject *function, const TVMFFIAny *args, int32_t num_args,
                      const slw_time_options *options, TVMFFIObject *preproc, double *results_s);
extern void PAGE(drop)(uint32_t number);
extern int PAGE(load)(const char *file_name, TVMFFIAny *out);
extern int PAGE(find)(TVMFFIObject *module, const char *name, TVMFFIAny *out);
extern uint32_t PAGE(tensor)(size_t size_bytes);
extern int PAGE(copy)(uint32_t tensor, size_t offset, void *host, size_t size_bytes,
                      int to_device);
extern int PAGE(file_create)(const char *name, double size_bytes);
extern void PAGE(file_write)(size_t offset, const void *data, size_t size_bytes);
extern void PAGE(file_end)(int is_whole);
extern double PAGE(file_open)(const char *name);
extern void PAGE(file_read)(size_t offset, void *data, size_t size_bytes);
extern int PAGE(file_remove)(const char *name);
extern size_t PAGE(file_list)(char *text, size_t capacity);
extern void PAGE(begins)(uint32_t id, uint32_t timeout_ms, const char *name);
extern void PAGE(ends)(void);
extern void PAGE(enters)(uint32_t timeout_ms);
extern void PAGE(delay)(void);
extern void PAGE(random)(uint8_t *out, size_t size_bytes);

/* The program that is this session has no compiled functions itself. */
const slw_image slw_web_image = {.magic = SLW_IMAGE_MAGIC, .version = SLW_IMAGE_VERSION,
                                 .pointer_bytes = sizeof(void *)};
slw_status (*const slw_web_make_graph)(const slw_image *image, slw_module *library,
                                       slw_module **out) = NULL;

/** A number of JavaScript's table, given back when nobody refers to it. */
typedef struct reference {
  TVMFFIObject object;
  uint32_t number;
} reference;

static slw_rpc_session session;
static slw_rpc_hooks hooks;
static char key[SLW_RPC_NAME_MAX_BYTES + 1];
static char lease[SLW_RPC_NAME_MAX_BYTES + 1]; /* "key:lease", or "" where none was handed out */
static char description[SLW_RPC_NAME_MAX_BYTES + 1];
static uint8_t token[256];

/* --- what JavaScript keeps ------------------------------------------------------------------ */

static void drop(void *self, int flags) {
  if ((flags & 1) != 0) {
    page_drop(((reference *)self)->number);
  }
  if ((flags & 2) != 0) {
    slw_platform_free(self);
  }
}

static int call(void *self, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  return page_call((uint32_t)(uintptr_t)self, args, num_args, result);
}

/** Wrap a number of the table as a function, a module or (with `tensor`, whose data is the number)
 * a tensor. @return 0, or -1 when there is no memory, and the number is not taken */
SLW_WEB_API
int slw_device_wrap(int32_t type_index, uint32_t number, const DLTensor *tensor, TVMFFIAny *out) {
  const slw_function function = {call, (void *)(uintptr_t)number};
  reference *made = slw_platform_alloc(sizeof *made, sizeof(uint64_t));
  slw_tensor *view = NULL;
  slw_status status = SLW_OK;
  if (made == NULL) {
    return slw_error_setf("MemoryError", "the page has no memory left");
  }
  slw_object_init(&made->object, type_index, drop);
  made->number = number;
  memset(out, 0, sizeof *out);
  if (type_index == kTVMFFIModule) {
    out->type_index = type_index;
    out->v_obj = &made->object;
    return 0;
  }
  if (type_index == kTVMFFIFunction) {
    status = slw_any_set_function(out, function, &made->object);
  } else {
    status = slw_tensor_view(tensor, &made->object, &view);
    if (status == SLW_OK) {
      out->type_index = kTVMFFITensor;
      out->v_obj = &view->object;
    }
  }
  if (status != SLW_OK) {
    slw_platform_free(made); /* the number stays JavaScript's */
    return slw_error_setf("MemoryError", "the page has no memory left");
  }
  slw_object_release(&made->object);
  return 0;
}

/* --- hooks ---------------------------------------------------------------------------------- */

static void take_error(void *context, char *kind, size_t kind_size, char *message,
                       size_t message_size) {
  (void)context;
  (void)slw_format(kind, kind_size, "%s", slw_error_kind());
  (void)slw_format(message, message_size, "%s", slw_error_message());
  slw_error_clear();
}

static void release(void *context, TVMFFIObject *object) {
  (void)context;
  slw_object_release(object);
}

static int load_module(void *context, const char *file_name, TVMFFIAny *out) {
  (void)context;
  return page_load(file_name, out);
}

static int get_function(void *context, const TVMFFIAny *module, const char *name, TVMFFIAny *out) {
  (void)context;
  return page_find(module->v_obj, name, out);
}

static int get_global(void *context, const char *name, TVMFFIAny *out) {
  (void)context;
  return page_find(NULL, name, out);
}

static int time_function(void *context, slw_function function, const TVMFFIAny *args,
                         int32_t num_args, const slw_time_options *options, slw_function preproc,
                         double *results_s) {
  (void)context;
  return page_time(function.self, args, num_args, options, preproc.self,
                   results_s);
}

static int tensor_alloc(void *context, const int64_t *shape, int32_t ndim, DLDataType dtype,
                        DLDevice device, TVMFFIAny *out) {
  DLTensor tensor = {.device = device, .ndim = ndim, .dtype = dtype};
  uint32_t number;
  size_t size = 0;
  (void)context;
  if (device.device_type != kDLCPU || device.device_id != 0) {
    (void)slw_error_setf("RuntimeError", "this page has no device (%d, %d); it has cpu(0)",
                         (int)device.device_type, (int)device.device_id);
    return SLW_RPC_FAIL_ARGUMENT;
  }
  if (slw_tensor_size_bytes(shape, ndim, dtype, &size) != SLW_OK || dtype.lanes != 1) {
    (void)slw_error_setf("ValueError", "no tensor of a page can have that shape and type: it has 4 GB at most");
    return SLW_RPC_FAIL_ARGUMENT;
  }
  number = page_tensor(size);
  if (number == 0) {
    (void)slw_error_setf("MemoryError", "the page cannot allocate a tensor of %zu bytes", size);
    return SLW_RPC_FAIL_MEMORY;
  }
  tensor.data = (void *)(uintptr_t)number;
  tensor.shape = (int64_t *)(uintptr_t)shape;
  if (slw_device_wrap(kTVMFFITensor, number, &tensor, out) != 0) {
    page_drop(number);
    return SLW_RPC_FAIL_MEMORY;
  }
  return SLW_RPC_OK;
}

static int tensor_copy(void *context, DLTensor *tensor, uint64_t offset, void *host, size_t size,
                       bool to_device) {
  (void)context;
  return page_copy((uint32_t)(uintptr_t)tensor->data, (size_t)offset, host, size, to_device);
}

static int file_create(void *context, const char *name, uint64_t size, void **memory) {
  (void)context;
  (void)memory;
  return page_file_create(name, (double)size);
}

static int file_write(void *context, uint64_t offset, const void *data, size_t size) {
  (void)context;
  page_file_write((size_t)offset, data, size);
  return SLW_RPC_OK;
}

static int file_commit(void *context) {
  (void)context;
  page_file_end(1);
  return SLW_RPC_OK;
}

static void file_abort(void *context) {
  (void)context;
  page_file_end(0);
}

static int file_open(void *context, const char *name, uint64_t *size, const void **memory) {
  double found = page_file_open(name);
  (void)context;
  *memory = NULL;
  if (found < 0) {
    return SLW_RPC_FAIL_NOT_FOUND;
  }
  *size = (uint64_t)found;
  return SLW_RPC_OK;
}

static int file_read(void *context, uint64_t offset, void *data, size_t size) {
  (void)context;
  page_file_read((size_t)offset, data, size);
  return SLW_RPC_OK;
}

static void file_close(void *context) { (void)context; }

static int file_remove(void *context, const char *name) {
  (void)context;
  return page_file_remove(name);
}

static int file_list(void *context, char *text, size_t capacity, size_t *size) {
  (void)context;
  *size = page_file_list(text, capacity);
  return SLW_RPC_OK;
}

static void call_begins(void *context, uint32_t id, uint32_t timeout_ms, const char *name) {
  (void)context;
  page_begins(id, timeout_ms, name);
}

static void call_ends(void *context) {
  (void)context;
  page_ends();
}

static int admit(void *context, const char *requested) {
  (void)context;
  if (lease[0] == '\0' ? (requested[0] == '\0' || strcmp(requested, key) == 0) : strcmp(requested, lease) == 0) {
    return SLW_RPC_OK;
  }
  (void)slw_error_setf("RPCError",
                       lease[0] == '\0'
                           ? "the client asked for a device of another kind than '%s'"
                           : "this device ('%s') was not handed out to that client; ask for one",
                       key);
  return SLW_RPC_FAIL_AUTH;
}

static int enter(void *context) {
  (void)context;
  page_enters(session.greeting.timeout_ms);
  return SLW_RPC_OK;
}

static void delay_refusal(void *context) {
  (void)context;
  page_delay();
}

static int random_bytes(void *context, uint8_t *out, size_t size) {
  (void)context;
  page_random(out, size);
  return SLW_RPC_OK;
}

static ptrdiff_t read_bytes(void *context, void *buffer, size_t min, size_t max) {
  (void)context;
  return page_read(buffer, min, max);
}

static int write_bytes(void *context, const slw_rpc_span *spans, size_t count) {
  (void)context;
  for (size_t i = 0; i < count; ++i) {
    page_write(spans[i].data, spans[i].size, i + 1 == count);
  }
  return 0;
}

/* --- the session ---------------------------------------------------------------------------- */

/** Begin the one session of this instance; texts end with NUL. @return 0, or -1: no memory */
SLW_WEB_API
int slw_device_begin(const char *device_key, const char *leased, const char *about,
                     const uint8_t *secret, size_t secret_bytes, int needs_token) {
  slw_rpc_config config = {.transport = {NULL, read_bytes, write_bytes},
                           .hooks = &hooks,
                           .key = key,
                           .description = description,
                           .token = token,
                           .token_size = secret_bytes,
                           .needs_token = needs_token != 0,
                           .max_args = MAX_ARGS,
                           .max_handles = MAX_HANDLES,
                           .name_bytes = 64,
                           .frame_bytes = FRAME_BYTES};
  void *memory;
  hooks = (slw_rpc_hooks){.get_global = get_global,
                          .get_function = get_function,
                          .load_module = load_module,
                          .release = release,
                          .take_error = take_error,
                          .call_begins = call_begins,
                          .call_ends = call_ends,
                          .time = time_function,
                          .tensor_alloc = tensor_alloc,
                          .tensor_copy = tensor_copy,
                          .memory_is_apart = true,
                          .file_create = file_create,
                          .file_write = file_write,
                          .file_commit = file_commit,
                          .file_abort = file_abort,
                          .file_open = file_open,
                          .file_read = file_read,
                          .file_close = file_close,
                          .file_remove = file_remove,
                          .file_list = file_list,
                          .admit = admit,
                          .enter = enter,
                          .delay_refusal = delay_refusal,
                          .random = random_bytes};
  if (secret_bytes > sizeof token) {
    return slw_error_setf("ValueError", "a token of a page has at most %zu bytes", sizeof token);
  }
  memcpy(token, secret, secret_bytes);
  (void)slw_format(key, sizeof key, "%s", device_key);
  (void)slw_format(lease, sizeof lease, "%s", leased);
  (void)slw_format(description, sizeof description, "%s", about);
  memory = slw_platform_alloc(slw_rpc_session_memory(&config), 64);
  if (memory == NULL) {
    return slw_error_setf("MemoryError", "the page has no memory for a session");
  }
  slw_rpc_session_init(&session, &config, memory);
  return 0;
}

/** Handle the one frame that has come: step 0 is HELLO, 1 the proof, 2 every other.
 * @return the next frame's step, or -1: the session is over */
SLW_WEB_API
int slw_device_step(int step) {
  int status = (step == 0)   ? slw_rpc_session_greet_hello(&session)
               : (step == 1) ? slw_rpc_session_greet_proof(&session)
                             : slw_rpc_session_step(&session);
  if (status < 0) {
    return -1;
  }
  return (step == 0 && status == 1) ? 1 : 2;
}

/** Send what waits, as the session does itself before it waits for a frame. */
SLW_WEB_API
void slw_device_flush(void) { (void)slw_rpc_flush(&session); }

SLW_WEB_API
void slw_device_close(void) { slw_rpc_session_close(&session); }

/** The largest payload that a frame may have. */
SLW_WEB_API
uint32_t slw_device_frame_bytes(void) { return FRAME_BYTES; }

/** HMAC-SHA-256(secret, label, NUL, first, second), the last two of 32 bytes: a proof. */
SLW_WEB_API
void slw_device_proof(const uint8_t *secret, size_t secret_bytes, const char *label,
                      const uint8_t *first, const uint8_t *second, uint8_t *out) {
  slw_rpc_mac(secret, secret_bytes, label, first, second, out);
}
