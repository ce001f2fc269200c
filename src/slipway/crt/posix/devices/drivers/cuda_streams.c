/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of CUDA, or of HIP (hip.c): the driver's, made so that its default stream is in order with them. */
#include "cuda.h"

#include "slipway/error.h"

static pthread_mutex_t lock_of_streams = PTHREAD_MUTEX_INITIALIZER;
static slw_stream_set sets[SLW_MAX_DEVICES];
static _Thread_local uint64_t used_streams[SLW_MAX_DEVICES];
static slw_pinned_list pinned_memory = SLW_PINNED_EMPTY;

static slw_status told(int32_t device_id, const char *what, cu_int code) {
  return (code == CU_SUCCESS) ? SLW_OK : slw_cuda_failed(device_id, what, code);
}

/* The driver's stream of a number; 0 has none. */
static slw_status stream_of(int32_t device_id, uint64_t number, cu_object *out) {
  slw_stream *found = NULL;
  *out = NULL;
  if (number == 0U) {
    return SLW_OK;
  }
  (void)pthread_mutex_lock(&lock_of_streams);
  found = slw_stream_find(&slw_cuda, device_id, &sets[device_id], number);
  *out = (found != NULL) ? found->queue : NULL;
  (void)pthread_mutex_unlock(&lock_of_streams);
  return (found != NULL) ? SLW_OK : SLW_ERROR_ARGUMENT;
}

slw_status slw_cuda_stream_of(int32_t device_id, cu_object *stream) {
  return stream_of(device_id, used_streams[device_id], stream);
}

int slw_cuda_has_streams(int32_t device_id) {
  int has;
  (void)pthread_mutex_lock(&lock_of_streams);
  has = sets[device_id].count > 0U;
  (void)pthread_mutex_unlock(&lock_of_streams);
  return has;
}

static slw_status make_stream(int32_t device_id, uint64_t *out) {
  cu_object made = NULL;
  slw_stream *added;
  cu_int code;
  if (!slw_cuda_use(device_id)) {
    return SLW_ERROR_CALL;
  }
  code = slw_cu.StreamCreate(&made, 0U);
  if (code != CU_SUCCESS) {
    return slw_cuda_failed(device_id, "making a stream", code);
  }
  (void)pthread_mutex_lock(&lock_of_streams);
  added = slw_stream_add(&slw_cuda, device_id, &sets[device_id], made);
  *out = (added != NULL) ? added->number : 0U;
  (void)pthread_mutex_unlock(&lock_of_streams);
  if (added == NULL) {
    (void)slw_cu.StreamDestroy(made);
    return SLW_ERROR_UNSUPPORTED;
  }
  return SLW_OK;
}

/* Let what `stream` is given from now on run after what `before` was given; NULL is the default stream. */
static cu_int put_after(cu_object stream, cu_object before) {
  cu_object event = NULL;
  cu_int code = slw_cu.EventCreate(&event, CU_EVENT_WITHOUT_TIME);
  if (code == CU_SUCCESS) {
    code = slw_cu.EventRecord(event, before);
    if (code == CU_SUCCESS) {
      code = slw_cu.StreamWaitEvent(stream, event, 0U);
    }
    (void)slw_cu.EventDestroy(event); /* the driver keeps what is waited for */
  }
  return code;
}

/* The driver lets a stream's work go on when it is destroyed; the default stream stays behind it. */
static slw_status drop_stream(int32_t device_id, uint64_t number) {
  slw_stream *gone;
  cu_object stream = NULL;
  cu_int code;
  if (!slw_cuda_use(device_id)) {
    return SLW_ERROR_CALL;
  }
  (void)pthread_mutex_lock(&lock_of_streams);
  gone = slw_stream_find(&slw_cuda, device_id, &sets[device_id], number);
  if (gone != NULL) {
    stream = gone->queue;
    slw_stream_remove(&sets[device_id], gone);
  }
  (void)pthread_mutex_unlock(&lock_of_streams);
  if (gone == NULL) {
    return SLW_ERROR_ARGUMENT;
  }
  code = put_after(NULL, stream);
  if (code == CU_SUCCESS) {
    code = slw_cu.StreamDestroy(stream);
  }
  return told(device_id, "freeing a stream", code);
}

static slw_status use_stream(int32_t device_id, uint64_t number) {
  cu_object stream = NULL;
  slw_status status = slw_cuda_use(device_id) ? stream_of(device_id, number, &stream) : SLW_ERROR_CALL;
  if (status == SLW_OK) {
    used_streams[device_id] = number;
  }
  return status;
}

static slw_status wait_for_stream(int32_t device_id, uint64_t number) {
  cu_object stream = NULL;
  slw_status status = slw_cuda_use(device_id) ? stream_of(device_id, number, &stream) : SLW_ERROR_CALL;
  return (status != SLW_OK) ? status
                            : told(device_id, "waiting for a stream",
                                   slw_cu.StreamSynchronize(stream));
}

static slw_status wait_in_stream(int32_t device_id, uint64_t number, uint64_t before) {
  cu_object stream = NULL;
  cu_object earlier = NULL;
  if (!slw_cuda_use(device_id) || stream_of(device_id, number, &stream) != SLW_OK ||
      stream_of(device_id, before, &earlier) != SLW_OK) {
    return SLW_ERROR_CALL;
  }
  if (stream == NULL || earlier == NULL || stream == earlier) {
    return SLW_OK; /* the default stream is in order with all */
  }
  return told(device_id, "ordering its streams", put_after(stream, earlier));
}

/* --- the host's memory ------------------------------------------------------------------------ */

static slw_status host_alloc(int32_t device_id, size_t size_bytes, void **out) {
  slw_pinned made = {NULL, NULL, size_bytes, device_id, NULL};
  cu_int code;
  slw_status status;
  if (!slw_cuda_use(device_id)) {
    return SLW_ERROR_CALL;
  }
  code = slw_cu.MemHostAlloc(&made.held, (size_bytes > 0U) ? size_bytes : 1U, 0U);
  if (code != CU_SUCCESS) {
    return slw_cuda_failed(device_id, "asking for pinned memory of the host", code);
  }
  made.base = made.held;
  status = slw_pinned_add(&pinned_memory, &made);
  if (status != SLW_OK) {
    (void)slw_cu.MemFreeHost(made.held);
    return status;
  }
  *out = made.base;
  return SLW_OK;
}

static void host_release(void *memory) {
  slw_pinned gone;
  if (slw_driver_works(&slw_cuda) && slw_pinned_remove(&pinned_memory, memory, &gone) &&
      slw_cuda_use(gone.device_id)) {
    (void)slw_cu.CtxSynchronize(); /* a copy may still use it */
    (void)slw_cu.MemFreeHost(gone.held);
  }
}

/* Make ready for a copy of pinned bytes: the device of `address` is in use then. */
static slw_status begin_copy(const void *address, const void *host, size_t size_bytes,
                             int32_t *device_id, cu_object *stream) {
  if (!slw_driver_works(&slw_cuda)) {
    return SLW_ERROR_CALL;
  }
  if (slw_cu.PointerGetAttribute(device_id, CU_POINTER_DEVICE_ORDINAL,
                                 (cu_pointer)(uintptr_t)address) != CU_SUCCESS) {
    slw_error_set("DeviceError", "an address is not in memory of a " SLW_GPU_TITLE " device.");
    return SLW_ERROR_TENSOR;
  }
  if (slw_pinned_check(&slw_cuda, &pinned_memory, host, size_bytes, NULL) != SLW_OK) {
    return SLW_ERROR_ARGUMENT;
  }
  return slw_cuda_use(*device_id) ? slw_cuda_stream_of(*device_id, stream) : SLW_ERROR_CALL;
}

static slw_status read_later(const void *from, void *host, size_t size_bytes) {
  int32_t id = 0;
  cu_object stream = NULL;
  slw_status status = begin_copy(from, host, size_bytes, &id, &stream);
  return (status != SLW_OK)
             ? status
             : told(id, "reading its memory",
                    slw_cu.MemcpyDtoHAsync(host, (cu_pointer)(uintptr_t)from, size_bytes, stream));
}

static slw_status write_later(void *to, const void *host, size_t size_bytes) {
  int32_t id = 0;
  cu_object stream = NULL;
  slw_status status = begin_copy(to, host, size_bytes, &id, &stream);
  return (status != SLW_OK)
             ? status
             : told(id, "writing its memory",
                    slw_cu.MemcpyHtoDAsync((cu_pointer)(uintptr_t)to, host, size_bytes, stream));
}

const slw_device_streams slw_cuda_streams = {
    make_stream,  drop_stream, use_stream, wait_for_stream, wait_in_stream, host_alloc,
    host_release, read_later,  write_later,
};
