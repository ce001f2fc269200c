/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of OpenCL are queues of the device's context, which keep the order of what each is given;
 * what one must wait for in another is an event there. */
#include "../device_streams.h"
#include "opencl.h"
#include "slipway/error.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all sets, and of the order of work */
static _Thread_local uint64_t used[SLW_MAX_DEVICES];
static slw_pinned_list pinned = SLW_PINNED_EMPTY;

static slw_status checked(int32_t device_id, const char *what, cl_int code) {
  return (code == CL_SUCCESS) ? SLW_OK : slw_opencl_failed(device_id, what, code);
}

/* An event when all that a queue was given is done. */
static slw_status event_of(int32_t device_id, cl_object queue, cl_object *event) {
  cl_int code = slw_cl.EnqueueMarkerWithWaitList(queue, 0, NULL, event);
  if (code == CL_SUCCESS) {
    code = slw_cl.Flush(queue); /* or nothing might ever start what is waited for */
  }
  return checked(device_id, "ordering its streams", code);
}

static slw_status put_behind(int32_t device_id, cl_object queue, cl_object before) {
  cl_object event = NULL;
  slw_status status = event_of(device_id, before, &event);
  if (status == SLW_OK) {
    status = checked(device_id, "ordering its streams",
                     slw_cl.EnqueueBarrierWithWaitList(queue, 1, &event, NULL));
  }
  if (event != NULL) {
    (void)slw_cl.ReleaseEvent(event);
  }
  return status;
}

static slw_status own_behind_all(slw_opencl_device *device, int32_t device_id) {
  slw_stream_set *set = &device->streams;
  slw_status status = SLW_OK;
  for (size_t i = 0; i < SLW_MAX_STREAMS && status == SLW_OK; ++i) {
    slw_stream *stream = &set->streams[i];
    if (stream->number != 0U && stream->has_work) {
      status = put_behind(device_id, device->queue, stream->queue);
      stream->has_work = status != SLW_OK;
    }
  }
  ++set->own_work;
  return status;
}

slw_status slw_opencl_begin(slw_opencl_device *device, int32_t device_id, int is_own,
                            cl_object *queue) {
  slw_stream_set *set = &device->streams;
  uint64_t number = is_own ? 0U : used[device_id];
  slw_status status = SLW_OK;
  (void)pthread_mutex_lock(&lock);
  *queue = device->queue;
  if (number != 0U) {
    slw_stream *stream = slw_stream_find(&slw_opencl, device_id, set, number);
    status = (stream == NULL) ? SLW_ERROR_ARGUMENT
             : (stream->seen != set->own_work)
                 ? put_behind(device_id, stream->queue, device->queue)
                 : SLW_OK;
    if (status == SLW_OK) {
      stream->seen = set->own_work;
      stream->has_work = 1;
      *queue = stream->queue;
    }
  } else if (set->count > 0U) {
    status = own_behind_all(device, device_id);
  }
  if (status != SLW_OK) {
    (void)pthread_mutex_unlock(&lock);
  }
  return status;
}

void slw_opencl_end(void) { (void)pthread_mutex_unlock(&lock); }

slw_status slw_opencl_finish(int32_t device_id, cl_object *event, const char *what, cl_int code) {
  slw_opencl_end();
  if (code == CL_SUCCESS) {
    code = slw_cl.WaitForEvents(1, event);
    (void)slw_cl.ReleaseEvent(*event);
  }
  return checked(device_id, what, code);
}

static slw_status make_stream(int32_t device_id, uint64_t *out) {
  slw_opencl_device *device = slw_opencl_device_of(device_id);
  cl_int code = CL_SUCCESS;
  cl_object queue;
  slw_stream *made;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  queue = slw_cl.CreateCommandQueue(device->context, device->id, 0, &code);
  if (code != CL_SUCCESS) {
    return slw_opencl_failed(device_id, "making a stream", code);
  }
  (void)pthread_mutex_lock(&lock);
  made = slw_stream_add(&slw_opencl, device_id, &device->streams, queue);
  *out = (made != NULL) ? made->number : 0U;
  (void)pthread_mutex_unlock(&lock);
  if (made == NULL) {
    (void)slw_cl.ReleaseCommandQueue(queue);
    return SLW_ERROR_UNSUPPORTED;
  }
  return SLW_OK;
}

/* The device's own queue keeps the order of what a stream was given when that is gone. */
static slw_status drop_stream(int32_t device_id, uint64_t number) {
  slw_opencl_device *device = slw_opencl_device_of(device_id);
  slw_status status = (device != NULL) ? SLW_OK : SLW_ERROR_CALL;
  slw_stream *gone = NULL;
  if (status != SLW_OK) {
    return status;
  }
  (void)pthread_mutex_lock(&lock);
  gone = slw_stream_find(&slw_opencl, device_id, &device->streams, number);
  if (gone == NULL) {
    status = SLW_ERROR_ARGUMENT;
  } else {
    status = own_behind_all(device, device_id);
    (void)slw_cl.ReleaseCommandQueue(gone->queue);
    slw_stream_remove(&device->streams, gone);
  }
  (void)pthread_mutex_unlock(&lock);
  return status;
}

static slw_status use_stream(int32_t device_id, uint64_t number) {
  slw_opencl_device *device = slw_opencl_device_of(device_id);
  slw_status status = (device != NULL) ? SLW_OK : SLW_ERROR_CALL;
  if (status == SLW_OK && number != 0U) {
    (void)pthread_mutex_lock(&lock);
    status = (slw_stream_find(&slw_opencl, device_id, &device->streams, number) != NULL)
                 ? SLW_OK
                 : SLW_ERROR_ARGUMENT;
    (void)pthread_mutex_unlock(&lock);
  }
  if (status == SLW_OK) {
    used[device_id] = number;
  }
  return status;
}

static slw_status wait_for_stream(int32_t device_id, uint64_t number) {
  slw_opencl_device *device = slw_opencl_device_of(device_id);
  slw_status status = (device != NULL) ? SLW_OK : SLW_ERROR_CALL;
  slw_stream *stream = NULL;
  cl_object event = NULL;
  if (status != SLW_OK) {
    return status;
  }
  (void)pthread_mutex_lock(&lock);
  if (number == 0U) {
    status = own_behind_all(device, device_id);
  } else {
    stream = slw_stream_find(&slw_opencl, device_id, &device->streams, number);
    status = (stream != NULL) ? SLW_OK : SLW_ERROR_ARGUMENT;
  }
  if (status == SLW_OK) {
    status = event_of(device_id, (stream != NULL) ? stream->queue : device->queue, &event);
  }
  (void)pthread_mutex_unlock(&lock);
  if (status == SLW_OK) {
    status = checked(device_id, "waiting for a stream", slw_cl.WaitForEvents(1, &event));
  }
  if (event != NULL) {
    (void)slw_cl.ReleaseEvent(event);
  }
  return status;
}

static slw_status wait_in_stream(int32_t device_id, uint64_t number, uint64_t before) {
  slw_opencl_device *device = slw_opencl_device_of(device_id);
  slw_status status = (device != NULL) ? SLW_OK : SLW_ERROR_CALL;
  slw_stream *stream;
  slw_stream *earlier;
  if (status != SLW_OK || number == before || number == 0U || before == 0U) {
    return status; /* the own queue is in order with all */
  }
  (void)pthread_mutex_lock(&lock);
  stream = slw_stream_find(&slw_opencl, device_id, &device->streams, number);
  earlier = slw_stream_find(&slw_opencl, device_id, &device->streams, before);
  status = (stream != NULL && earlier != NULL)
               ? put_behind(device_id, stream->queue, earlier->queue)
               : SLW_ERROR_ARGUMENT;
  (void)pthread_mutex_unlock(&lock);
  return status;
}

/* --- the host's memory ------------------------------------------------------------------------ */

static slw_status host_alloc(int32_t device_id, size_t size_bytes, void **out) {
  slw_opencl_device *device = slw_opencl_device_of(device_id);
  slw_pinned made = {NULL, NULL, size_bytes, device_id, NULL};
  cl_int code = CL_SUCCESS;
  size_t taken = (size_bytes > 0U) ? size_bytes : 1U;
  slw_status status;
  if (device == NULL) {
    return SLW_ERROR_CALL;
  }
  made.held = slw_cl.CreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, taken,
                                  NULL, &code);
  if (code == CL_SUCCESS) {
    made.base = slw_cl.EnqueueMapBuffer(device->queue, made.held, 1, CL_MAP_READ | CL_MAP_WRITE, 0,
                                        taken, 0, NULL, NULL, &code);
    if (code != CL_SUCCESS) {
      (void)slw_cl.ReleaseMemObject(made.held);
    }
  }
  if (code != CL_SUCCESS) {
    return slw_opencl_failed(device_id, "asking for pinned memory of the host", code);
  }
  status = slw_pinned_add(&pinned, &made);
  if (status != SLW_OK) {
    (void)slw_cl.EnqueueUnmapMemObject(device->queue, made.held, made.base, 0, NULL, NULL);
    (void)slw_cl.ReleaseMemObject(made.held);
    return status;
  }
  *out = made.base;
  return SLW_OK;
}

/* Its own queue is behind all copies. */
static void host_release(void *memory) {
  slw_pinned gone;
  if (slw_driver_works(&slw_opencl) && slw_pinned_remove(&pinned, memory, &gone)) {
    slw_opencl_device *device = slw_opencl_device_of(gone.device_id);
    cl_object queue = NULL;
    if (slw_opencl_begin(device, gone.device_id, 1, &queue) == SLW_OK) {
      slw_opencl_end();
    }
    (void)slw_cl.EnqueueUnmapMemObject(device->queue, gone.held, gone.base, 0, NULL, NULL);
    (void)slw_cl.Finish(device->queue);
    (void)slw_cl.ReleaseMemObject(gone.held);
  }
}

/* The buffer that bytes of the device are in, and the queue of the thread's stream, to be ended. */
static slw_status begin_copy(const void *address, const void *host, size_t size_bytes,
                             size_t *offset, int32_t *device_id, cl_object *buffer,
                             cl_object *queue) {
  size_t left = 0;
  *buffer = slw_opencl_locate(address, offset, &left, device_id);
  if (*buffer == NULL) {
    return SLW_ERROR_CALL;
  }
  if (size_bytes > left) {
    slw_error_set("DeviceError", "a copy would go beyond the end of memory of an OpenCL device.");
    return SLW_ERROR_TENSOR;
  }
  if (slw_pinned_check(&slw_opencl, &pinned, host, size_bytes, NULL) != SLW_OK) {
    return SLW_ERROR_ARGUMENT;
  }
  return slw_opencl_begin(slw_opencl_device_of(*device_id), *device_id, 0, queue);
}

static slw_status end_copy(int32_t device_id, const char *what, cl_object queue, cl_int code) {
  if (code == CL_SUCCESS) {
    code = slw_cl.Flush(queue);
  }
  slw_opencl_end();
  return checked(device_id, what, code);
}

static slw_status read_later(const void *from, void *host, size_t size_bytes) {
  size_t offset = 0;
  int32_t id = 0;
  cl_object buffer = NULL;
  cl_object queue = NULL;
  slw_status status = begin_copy(from, host, size_bytes, &offset, &id, &buffer, &queue);
  return (status != SLW_OK)
             ? status
             : end_copy(id, "reading its memory", queue,
                        slw_cl.EnqueueReadBuffer(queue, buffer, 0, offset, size_bytes, host, 0,
                                                 NULL, NULL));
}

static slw_status write_later(void *to, const void *host, size_t size_bytes) {
  size_t offset = 0;
  int32_t id = 0;
  cl_object buffer = NULL;
  cl_object queue = NULL;
  slw_status status = begin_copy(to, host, size_bytes, &offset, &id, &buffer, &queue);
  return (status != SLW_OK)
             ? status
             : end_copy(id, "writing its memory", queue,
                        slw_cl.EnqueueWriteBuffer(queue, buffer, 0, offset, size_bytes, host, 0,
                                                  NULL, NULL));
}

const slw_device_streams slw_opencl_streams = {
    make_stream,  drop_stream, use_stream, wait_for_stream, wait_in_stream, host_alloc,
    host_release, read_later,  write_later,
};
