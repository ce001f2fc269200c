/* The RPC session against mutated frames, in memory. Runs under ASan and UBSan.
 *
 * As a libFuzzer target: compile with -fsanitize=fuzzer -DSLW_LIBFUZZER.
 * By itself: rpc_session_fuzz ROUNDS SEED makes sessions of valid frames and damages them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slipway/error.h"
#include "slipway/object.h"
#include "slipway/rpc_session.h"
#include "slipway/tensor.h"

#define MAX_STREAM 32768u

static const uint8_t *input;
static size_t input_size, input_at;
static uint64_t sent_frames;
static size_t live_bytes;
static char file_part[4096];
static uint64_t file_size;
static slw_rpc_session session;
static TVMFFIObject *callbacks[64]; /* made in this session */
static uint32_t num_callbacks;

typedef struct list_object {
  TVMFFIObject object;
  TVMFFIAny *data; /* tvm-ffi's layout */
  int64_t size, capacity;
  void (*data_deleter)(void *);
  TVMFFIAny items[];
} list_object;

static ptrdiff_t read_input(void *context, void *buffer, size_t min, size_t max) {
  size_t left = input_size - input_at;
  size_t count = left < max ? left : max;
  (void)context;
  if (count < min || count == 0) {
    return 0;
  }
  memcpy(buffer, input + input_at, count);
  input_at += count;
  return (ptrdiff_t)count;
}

/* Touch every byte that is sent, so that the sanitizer sees reads beyond their objects. */
static int write_output(void *context, const slw_rpc_span *spans, size_t count) {
  volatile uint8_t sum = 0;
  size_t i, k;
  (void)context;
  for (i = 0; i < count; ++i) {
    for (k = 0; k < spans[i].size; ++k) {
      sum = (uint8_t)(sum + ((const uint8_t *)spans[i].data)[k]);
    }
  }
  ++sent_frames;
  return 0;
}

/* Call a function of the client's with the arguments of the call that it came in. */
static void call_if_callback(const TVMFFIAny *value, const TVMFFIAny *args) {
  slw_function function;
  TVMFFIAny result = {0};
  uint32_t i;
  for (i = 0; i < num_callbacks && i < 64u; ++i) {
    if (callbacks[i] == value->v_obj && slw_any_get_function(value, &function) == SLW_OK) {
      if (function.call(function.self, args, 1, &result) == 0) {
        slw_any_clear(&result);
      }
      return;
    }
  }
}

static int call_client(void *number, const TVMFFIAny *args, int32_t count, TVMFFIAny *result) {
  if (slw_rpc_session_call_back(&session, (uint64_t)(uintptr_t)number, args, count, result) == 0) {
    return 0;
  }
  return slw_error_setf(session.failure.kind, "%s", session.failure.message);
}

static int make_callback(void *context, uint64_t number, TVMFFIAny *out) {
  slw_function function = {call_client, (void *)(uintptr_t)number};
  (void)context;
  if (slw_any_set_function(out, function, NULL) != SLW_OK) {
    return SLW_RPC_FAIL_MEMORY;
  }
  callbacks[num_callbacks++ % 64u] = out->v_obj;
  return SLW_RPC_OK;
}

static void delete_list(void *self, int flags) {
  list_object *list = self;
  int64_t i;
  for (i = 0; (flags & 1) != 0 && i < list->size; ++i) {
    slw_any_clear(&list->items[i]);
  }
  if ((flags & 2) != 0) {
    free(self);
  }
}

static int make_list(void *context, TVMFFIAny *items, uint32_t count, TVMFFIAny *out) {
  list_object *list = malloc(sizeof *list + count * sizeof *items);
  (void)context;
  if (list == NULL) {
    return SLW_RPC_FAIL_MEMORY;
  }
  slw_object_init(&list->object, kTVMFFIArray, delete_list);
  list->data = list->items;
  list->size = count;
  list->capacity = count;
  list->data_deleter = NULL;
  if (count > 0u) {
    memcpy(list->items, items, count * sizeof *items);
  }
  out->type_index = kTVMFFIArray;
  out->v_obj = &list->object;
  return SLW_RPC_OK;
}

/* Reads every argument completely, returns the last. */
static int echo(void *self, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  volatile uint64_t sum = 0;
  int32_t i;
  size_t k;
  (void)self;
  (void)sum;
  for (i = 0; i < num_args; ++i) {
    const char *data = NULL;
    size_t size = 0;
    const DLTensor *tensor = slw_any_get_tensor(&args[i]);
    if (args[i].type_index == kTVMFFIFunction) {
      call_if_callback(&args[i], args);
    } else if (args[i].type_index == kTVMFFIArray) {
      const list_object *list = (const list_object *)(const void *)args[i].v_obj;
      for (k = 0; k < (size_t)list->size; ++k) {
        sum += (uint64_t)list->items[k].type_index;
      }
    } else if (slw_any_get_bytes(&args[i], &data, &size) == SLW_OK) {
      for (k = 0; k < size; ++k) {
        sum += (uint8_t)data[k];
      }
    } else if (tensor != NULL &&
               slw_tensor_size_bytes(tensor->shape, tensor->ndim, tensor->dtype, &size) ==
                   SLW_OK) {
      for (k = 0; k < size; ++k) {
        sum += ((const uint8_t *)tensor->data)[k];
      }
    }
  }
  if (num_args == 0) {
    return slw_error_setf("ValueError", "no arguments");
  }
  *result = args[num_args - 1];
  if (result->type_index >= kTVMFFIStaticObjectBegin) {
    slw_object_retain(result->v_obj);
  }
  return 0;
}

static int get_global(void *context, const char *name, TVMFFIAny *out) {
  slw_function function = {echo, NULL};
  (void)context;
  if (name[0] != 'f') {
    return SLW_RPC_OK;
  }
  return slw_any_set_function(out, function, NULL) == SLW_OK ? SLW_RPC_OK : SLW_RPC_FAIL_MEMORY;
}

static int tensor_alloc(void *context, const int64_t *shape, int32_t ndim, DLDataType dtype,
                        DLDevice device, TVMFFIAny *out) {
  slw_tensor *tensor = NULL;
  size_t size = 0;
  (void)context;
  if (slw_tensor_size_bytes(shape, ndim, dtype, &size) != SLW_OK || size > 65536u ||
      slw_tensor_alloc(shape, ndim, dtype, device, &tensor) != SLW_OK) {
    (void)slw_error_setf("MemoryError", "no");
    return SLW_RPC_FAIL_MEMORY;
  }
  live_bytes += size;
  out->type_index = kTVMFFITensor;
  out->v_obj = &tensor->object;
  return SLW_RPC_OK;
}

static void release(void *context, TVMFFIObject *object) {
  (void)context;
  slw_object_release(object);
}

static void take_error(void *context, char *kind, size_t kind_size, char *message,
                       size_t message_size) {
  (void)context;
  (void)snprintf(kind, kind_size, "%s", slw_error_kind());
  (void)snprintf(message, message_size, "%s", slw_error_message());
}

static int run_time(void *context, slw_function function, const TVMFFIAny *args, int32_t num_args,
                    const slw_time_options *options, slw_function preproc, double *results_s) {
  int32_t i;
  (void)context, (void)function, (void)args, (void)num_args, (void)preproc;
  for (i = 0; i < options->repeat; ++i) {
    results_s[i] = 1.0;
  }
  return SLW_RPC_OK;
}

static int file_create(void *context, const char *name, uint64_t size, void **memory) {
  (void)context;
  if (strchr(name, '/') != NULL || size > sizeof file_part) {
    return SLW_RPC_FAIL_LIMIT;
  }
  file_size = size;
  *memory = (name[0] == 'm') ? file_part : NULL;
  return SLW_RPC_OK;
}

static int file_write(void *context, uint64_t offset, const void *data, size_t size) {
  (void)context;
  if (offset > file_size || size > file_size - offset) {
    abort(); /* the session promises to stay inside the announced size */
  }
  memcpy(file_part + offset, data, size);
  return SLW_RPC_OK;
}

static int file_commit(void *context) {
  (void)context;
  return SLW_RPC_OK;
}

static void file_abort(void *context) { (void)context; }

static int file_open(void *context, const char *name, uint64_t *size, const void **memory) {
  (void)context;
  *size = file_size;
  *memory = (name[0] == 'm') ? file_part : NULL;
  return SLW_RPC_OK;
}

static int file_read(void *context, uint64_t offset, void *data, size_t size) {
  (void)context;
  memcpy(data, file_part + offset, size);
  return SLW_RPC_OK;
}

static int random_bytes(void *context, uint8_t *out, size_t size) {
  (void)context;
  memset(out, 7, size);
  return SLW_RPC_OK;
}

static const slw_rpc_hooks HOOKS = {
    .random = random_bytes,
    .get_global = get_global,
    .release = release,
    .take_error = take_error,
    .time = run_time,
    .tensor_alloc = tensor_alloc,
    .make_callback = make_callback,
    .make_list = make_list,
    .file_create = file_create,
    .file_write = file_write,
    .file_commit = file_commit,
    .file_abort = file_abort,
    .file_open = file_open,
    .file_read = file_read,
    .file_close = file_abort,
};

static void run_session(const uint8_t *data, size_t size) {
  slw_rpc_config config = {0};
  size_t bytes;
  void *memory;
  input = data;
  input_size = size;
  input_at = 0;
  num_callbacks = 0;
  config.transport.read = read_input;
  config.transport.write = write_output;
  config.hooks = &HOOKS;
  config.key = "";
  config.description = "fuzz";
  config.max_args = 8;
  config.max_handles = 16;
  config.name_bytes = 16;
  config.frame_bytes = 2048;
  config.read_ahead_bytes = 64;
  config.token = (const uint8_t *)"token";
  config.token_size = 5;
  config.needs_token = size % 16u == 3u;
  bytes = slw_rpc_session_memory(&config);
  memory = aligned_alloc(64, bytes);
  if (bytes == 0 || memory == NULL) {
    abort();
  }
  memset(memory, 0, bytes);
  slw_rpc_session_init(&session, &config, memory);
  slw_rpc_session_serve(&session);
  if (session.live_entries > config.max_handles || live_bytes > (size_t)1 << 30) {
    abort();
  }
  live_bytes = 0;
  free(memory);
}

#ifdef SLW_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  run_session(data, size);
  return 0;
}
#else

static uint64_t state;

static uint32_t next(uint32_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33) % below;
}

/* Numbers that break things, and numbers that do not. */
static uint64_t number(void) {
  static const uint64_t EDGES[] = {0, 1, 2, 7, 8, 15, 16, 24, 32, 64, 255, 2047, 2048, 65536,
                                   0x7fffffffu, 0x80000000u, 0xffffffffu, 0x100000001u,
                                   0x200000001u, 0x100000002u, UINT64_MAX, UINT64_MAX - 7u,
                                   UINT64_MAX / 2u};
  return next(4) == 0 ? next(4096) : EDGES[next(sizeof EDGES / sizeof EDGES[0])];
}

static void put_frame(slw_rpc_writer *out, uint16_t code, uint16_t flags, slw_rpc_writer *payload) {
  uint8_t head[SLW_RPC_HEADER_BYTES];
  slw_rpc_header header = {0};
  slw_rpc_put_padding(payload);
  header.size = (uint32_t)payload->at;
  header.code = code;
  header.flags = flags;
  header.id = 1 + next(3);
  slw_rpc_header_put(head, &header);
  slw_rpc_put_bytes(out, head, sizeof head);
  slw_rpc_put_bytes(out, payload->base, payload->at);
}

static void put_hello(slw_rpc_writer *out) {
  uint8_t buffer[256];
  slw_rpc_writer payload = slw_rpc_writer_on(buffer, sizeof buffer);
  slw_rpc_put_bytes(&payload, SLW_RPC_MAGIC, 8);
  slw_rpc_put_u16(&payload, 1);
  slw_rpc_put_u16(&payload, 1);
  slw_rpc_put_u32(&payload, 0);
  slw_rpc_put_u64(&payload, 0);
  slw_rpc_put_u32(&payload, 1024u << next(3));
  slw_rpc_put_u32(&payload, 0);
  slw_rpc_put_u16(&payload, 0);
  slw_rpc_put_u16(&payload, 4);
  slw_rpc_put_u32(&payload, 0);
  slw_rpc_put_bytes(&payload, "\0test", 6);
  put_frame(out, SLW_RPC_HELLO, 0, &payload);
}

static void put_random_value(slw_rpc_writer *payload) {
  static const int32_t TAGS[] = {0, 1, 2, 3, 5, 6, 8, 9, 68, 69, 70, 71, 73, 128, 129, 130, -1};
  int32_t tag = TAGS[next(sizeof TAGS / sizeof TAGS[0])];
  uint32_t size = next(3) == 0 ? (uint32_t)number() : next(40);
  switch (next(3)) {
    case 0:
      slw_rpc_put_value(payload, tag, size, number());
      break;
    case 1:
      slw_rpc_put_value(payload, tag, size, (uint64_t)1 << 32 | (1 + next(4)));
      break;
    default:
      slw_rpc_put_value(payload, tag, size, next(256));
      break;
  }
}

/* A tensor by value that is right, and lies right behind its value. */
static void put_tensor_by_value(slw_rpc_writer *payload) {
  static const uint8_t data[16] = {1, 2, 3};
  slw_rpc_put_value(payload, SLW_RPC_TENSOR_DATA, 0, payload->at + SLW_RPC_VALUE_BYTES);
  slw_rpc_put_u64(payload, 0);
  slw_rpc_put_u32(payload, 1);
  slw_rpc_put_u32(payload, 0);
  slw_rpc_put_u32(payload, 0x00012002u);
  slw_rpc_put_u32(payload, 1);
  slw_rpc_put_u64(payload, 16);
  slw_rpc_put_u64(payload, 4);
  slw_rpc_put_bytes(payload, data, sizeof data);
}

/* A function of the client's, and a list of two values right behind it. */
static void put_callback_and_list(slw_rpc_writer *payload) {
  slw_rpc_put_value(payload, SLW_RPC_CALLBACK, 0, next(3));
  slw_rpc_put_value(payload, SLW_RPC_LIST, next(8) == 0 ? (uint32_t)number() : 2,
                    payload->at + SLW_RPC_VALUE_BYTES);
  put_random_value(payload);
  slw_rpc_put_value(payload, SLW_RPC_INT, 0, number());
}

/* What a client answers to a callback. */
static void put_answer(slw_rpc_writer *out, uint32_t which) {
  uint8_t buffer[128] = {0};
  size_t start = out->at;
  slw_rpc_writer payload = slw_rpc_writer_on(buffer, sizeof buffer);
  uint32_t id = 0x80000000u | which;
  bool fails = next(4) == 0;
  if (fails) {
    slw_rpc_put_u64(&payload, (uint64_t)3 << 32 | 12u);
    slw_rpc_put_u64(&payload, 4);
    slw_rpc_put_bytes(&payload, "Bad\0oops\0", 9);
  } else {
    put_random_value(&payload);
    payload.at += next(64);
  }
  put_frame(out, fails ? SLW_RPC_ERROR : SLW_RPC_RETURN, 0, &payload);
  if (out->ok) {
    memcpy(out->base + start + 8, &id, 4);
  }
}

static void put_name(slw_rpc_writer *payload) {
  static const char *const NAMES[] = {"f", "m", "file", "../x", "a/b", "..", ""};
  const char *name = NAMES[next(2) == 0 ? 0 : next(7)];
  slw_rpc_put_u32(payload, (uint32_t)strlen(name));
  slw_rpc_put_u32(payload, 0);
  slw_rpc_put_bytes(payload, name, strlen(name) + 1);
}

/* Handles 1 (a function) and 2 (a tensor), for the random frames to use. */
static void put_objects(slw_rpc_writer *out) {
  uint8_t buffer[64] = {0};
  slw_rpc_writer payload = slw_rpc_writer_on(buffer, sizeof buffer);
  slw_rpc_put_u64(&payload, 0);
  slw_rpc_put_u64(&payload, 1);
  slw_rpc_put_bytes(&payload, "f", 2);
  put_frame(out, SLW_RPC_GET_FUNCTION, 0, &payload);
  payload = slw_rpc_writer_on(buffer, sizeof buffer);
  slw_rpc_put_u64(&payload, 1);
  slw_rpc_put_u32(&payload, 0x00012002u);
  slw_rpc_put_u32(&payload, 1);
  slw_rpc_put_u64(&payload, 4);
  put_frame(out, SLW_RPC_TENSOR_ALLOC, 0, &payload);
}

static uint32_t answers; /* callbacks so far, if all went well */

static void put_random_frame(slw_rpc_writer *out) {
  static const uint16_t CODES[] = {16, 17, 17, 17, 18, 18, 19, 20, 21, 21, 22, 22, 23, 23, 24, 25,
                                   25, 26, 27, 28, 29, 30, 31, 5,  1,  128};
  uint8_t buffer[1024] = {0};
  slw_rpc_writer payload = slw_rpc_writer_on(buffer, sizeof buffer);
  uint16_t code = CODES[next(next(20) == 0 ? 26 : 23)];
  uint32_t i, count = next(5);
  switch (code) {
    case SLW_RPC_CALL:
      slw_rpc_put_u64(&payload, (uint64_t)1 << 32 | (1 + (next(5) == 0 ? next(4) : 0)));
      slw_rpc_put_u32(&payload, 0);
      if (next(3) == 0) {
        slw_rpc_put_u32(&payload, 1);
        put_tensor_by_value(&payload);
        break;
      }
      if (next(3) == 0) {
        slw_rpc_put_u32(&payload, 2);
        put_callback_and_list(&payload);
        put_frame(out, code, 0, &payload);
        while (next(3) != 0) {
          put_random_frame(out); /* requests from within the callback */
        }
        put_answer(out, answers++);
        return;
      }
      slw_rpc_put_u32(&payload, next(8) == 0 ? (uint32_t)number() : count);
      for (i = 0; i < count; ++i) {
        put_random_value(&payload);
      }
      payload.at += next(200);
      break;
    case SLW_RPC_GET_FUNCTION:
      slw_rpc_put_u64(&payload, next(4) == 0 ? number() : 0);
      put_name(&payload);
      break;
    case SLW_RPC_TENSOR_ALLOC:
      slw_rpc_put_u32(&payload, 1 + next(2));
      slw_rpc_put_u32(&payload, 0);
      slw_rpc_put_u32(&payload, next(4) == 0 ? (uint32_t)number() : 0x00012002u);
      slw_rpc_put_u32(&payload, count);
      for (i = 0; i < count; ++i) {
        slw_rpc_put_u64(&payload, next(4) == 0 ? number() : next(9));
      }
      break;
    case SLW_RPC_TENSOR_WRITE:
    case SLW_RPC_TENSOR_READ:
    case SLW_RPC_TENSOR_COPY:
      slw_rpc_put_u64(&payload, (uint64_t)(1 + next(2)) << 32 | (1 + next(4)));
      for (i = 0; i < 4; ++i) {
        slw_rpc_put_u64(&payload, next(3) == 0 ? number() : 8u * next(4));
      }
      payload.at += next(64);
      break;
    case SLW_RPC_FILE_WRITE:
      slw_rpc_put_u64(&payload, next(4) == 0 ? number() : 32);
      slw_rpc_put_u64(&payload, 8u * next(4));
      slw_rpc_put_u64(&payload, next(4) == 0 ? number() : 8);
      put_name(&payload);
      slw_rpc_put_padding(&payload);
      payload.at += 8u * next(3);
      break;
    case SLW_RPC_LOAD_MODULE:
    case SLW_RPC_FILE_READ:
    case SLW_RPC_FILE_REMOVE:
      put_name(&payload);
      break;
    case SLW_RPC_TIME:
      slw_rpc_put_u64(&payload, (uint64_t)1 << 32 | (1 + next(4)));
      slw_rpc_put_u64(&payload, next(3) == 0 ? number() : 0);
      slw_rpc_put_u32(&payload, 0);
      slw_rpc_put_u32(&payload, 1);
      for (i = 0; i < 6; ++i) {
        slw_rpc_put_u32(&payload, next(8) == 0 ? (uint32_t)number() : 1 + next(4));
      }
      put_random_value(&payload);
      break;
    default:
      payload.at = next(64);
      for (i = 0; i < payload.at; ++i) {
        buffer[i] = (uint8_t)next(256);
      }
      break;
  }
  put_frame(out, code, next(6) == 0 ? (uint16_t)next(4) : 0, &payload);
}

int main(int argc, char **argv) {
  static uint8_t stream[MAX_STREAM];
  unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
  unsigned long frames = 0;
  unsigned long i;
  state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  for (i = 0; i < rounds; ++i) {
    slw_rpc_writer out = slw_rpc_writer_on(stream, sizeof stream);
    uint32_t count = 1 + next(20);
    uint32_t flips = next(3) == 0 ? next(6) : 0;
    answers = 0;
    put_hello(&out);
    put_objects(&out);
    frames += count;
    while (count-- > 0) {
      put_random_frame(&out);
    }
    while (flips-- > 0) {
      stream[next((uint32_t)out.at)] ^= (uint8_t)(1u << next(8));
    }
    run_session(stream, next(4) == 0 ? next((uint32_t)out.at) : out.at);
  }
  (void)printf("%lu frames in %lu sessions, %llu writes\n", frames, rounds,
               (unsigned long long)sent_frames);
  return 0;
}
#endif
