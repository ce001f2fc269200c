/* SPDX-License-Identifier: Apache-2.0
 * What a POSIX host offers a session: modules, tensors in main memory, files of the current
 * folder.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include "../devices/devices.h"
#include "slipway/error.h"
#include "slipway/module.h"
#include "slipway/packed.h"
#include "slipway/rpc_server.h"
#include "slipway/tensor.h"

#define PART_NAME ".upload"
/* Files from this size on are sent straight from the page cache. */
#define MAPPED_FILE_BYTES 65536u
/* Allocations from this size on are compared with what the system has left. */
#define LARGE_TENSOR_BYTES ((size_t)16 << 20)

typedef struct host {
  const slw_rpc_server_config *config;
  int fd; /* of the file in transfer */
  void *map; /* of a file that is read, or NULL */
  uint64_t size;
  char name[SLW_RPC_NAME_MAX_BYTES + 1];
} host;

static host the_host; /* one session in a process */

static int io_error(const char *doing, const char *name, int code) {
  (void)slw_error_setf(code == ENOENT ? "FileNotFoundError" : "OSError", "cannot %s '%s': %s",
                       doing, name, strerror(code));
  return code == ENOENT ? SLW_RPC_FAIL_NOT_FOUND : SLW_RPC_FAIL_IO;
}

/* What a function registered with tvm-ffi raised: kind, message, and where it was raised. */
static bool take_ffi_error(char *kind, size_t kind_size, char *message, size_t message_size) {
  const TVMFFIByteArray *texts; /* kind, message, backtrace */
  void *error = NULL;
  if (the_host.config->ffi_take_error == NULL) {
    return false;
  }
  the_host.config->ffi_take_error(&error);
  if (error == NULL) {
    return false;
  }
  texts = (const void *)((const char *)error + sizeof(TVMFFIObject));
  (void)snprintf(kind, kind_size, "%.*s", (int)texts[0].size, texts[0].data);
  (void)snprintf(message, message_size, "%.*s%s%.*s", (int)texts[1].size, texts[1].data,
                 texts[2].size > 0 ? "\nOn the device, innermost call first:\n" : "",
                 (int)texts[2].size, texts[2].data);
  slw_object_release(error);
  return true;
}

static void take_error(void *context, char *kind, size_t kind_size, char *message,
                       size_t message_size) {
  (void)context;
  if (!take_ffi_error(kind, kind_size, message, message_size)) {
    (void)snprintf(kind, kind_size, "%s", slw_error_kind());
    (void)snprintf(message, message_size, "%s", slw_error_message());
  }
  slw_error_clear();
}

/* --- modules --------------------------------------------------------------------------------- */

static void release(void *context, TVMFFIObject *object) {
  (void)context;
  slw_object_release(object);
}

static int load_module(void *context, const char *file_name, TVMFFIAny *out) {
  char path[SLW_RPC_NAME_MAX_BYTES + 3];
  struct stat status;
  slw_module *module = NULL;
  (void)context;
  if (!slw_rpc_is_file_name(file_name) || lstat(file_name, &status) != 0 ||
      !S_ISREG(status.st_mode)) {
    (void)slw_error_setf("FileNotFoundError",
                         "there is no file '%s' in this session; upload it first", file_name);
    return SLW_RPC_FAIL_NOT_FOUND;
  }
  (void)snprintf(path, sizeof path, "./%s", file_name);
  if (slw_module_open(path, &module) != SLW_OK) {
    return SLW_RPC_FAIL_REMOTE;
  }
  slw_any_set_module(out, module);
  return SLW_RPC_OK;
}

static int get_function(void *context, const TVMFFIAny *module, const char *name,
                        TVMFFIAny *out) {
  slw_function function;
  slw_status status;
  (void)context;
  status = slw_module_get_function(slw_any_get_module(module), name, &function);
  if (status == SLW_ERROR_NOT_FOUND) {
    slw_error_clear();
    return SLW_RPC_OK; /* the result stays None */
  }
  if (status != SLW_OK ||
      slw_any_set_function(out, function, (TVMFFIObject *)slw_any_get_module(module)) != SLW_OK) {
    return SLW_RPC_FAIL_MEMORY;
  }
  return SLW_RPC_OK;
}

static int get_global(void *context, const char *name, TVMFFIAny *out) {
  static const struct {
    const char *name;
    int (*call)(void *handle, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result);
  } own[] = {
      {"cache_flush_cpu_non_first_arg", slw_packed_cache_flush},
      {"runtime.config_threadpool", slw_packed_config_threadpool},
      {"runtime.device_sync", slw_packed_device_sync},
      {"runtime.device_trim", slw_packed_device_trim},
      {"slipway.about", slw_packed_about},
      {"rpc.Connect", slw_packed_rpc_connect},
      {"rpc.PopenSession", slw_packed_rpc_popen},
  };
  TVMFFIByteArray key;
  void *function = NULL;
  size_t i;
  (void)context;
  for (i = 0; i < sizeof own / sizeof own[0]; ++i) {
    if (strcmp(name, own[i].name) == 0) {
      slw_function function_of_ours = {own[i].call, NULL};
      return slw_any_set_function(out, function_of_ours, NULL) == SLW_OK ? SLW_RPC_OK
                                                                         : SLW_RPC_FAIL_MEMORY;
    }
  }
  key.data = name;
  key.size = strlen(name);
  if (the_host.config->ffi_get_global == NULL ||
      the_host.config->ffi_get_global(&key, &function) != 0 || function == NULL) {
    return SLW_RPC_OK; /* no such function: the result stays None */
  }
  out->type_index = kTVMFFIFunction;
  out->v_obj = function;
  return SLW_RPC_OK;
}

static int time_function(void *context, slw_function function, const TVMFFIAny *args,
                         int32_t num_args, const slw_time_options *options,
                         slw_function preproc, double *results_s) {
  (void)context;
  return slw_time_evaluate(function, args, num_args, options, preproc, results_s) == SLW_OK
             ? SLW_RPC_OK
             : SLW_RPC_FAIL_REMOTE;
}

/* --- tensors --------------------------------------------------------------------------------- */

/* Memory that the system could give now; SIZE_MAX where it does not say. */
static size_t available_memory(void) {
  char line[128];
  unsigned long long kilobytes = 0;
  size_t result = SIZE_MAX;
  FILE *file = fopen("/proc/meminfo", "re");
  if (file == NULL) {
    return SIZE_MAX;
  }
  while (fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1) {
      result = kilobytes > SIZE_MAX / 1024u ? SIZE_MAX : (size_t)kilobytes * 1024u;
      break;
    }
  }
  (void)fclose(file);
  return result;
}

static int tensor_alloc(void *context, const int64_t *shape, int32_t ndim, DLDataType dtype,
                        DLDevice device, TVMFFIAny *out) {
  slw_tensor *tensor = NULL;
  slw_status status;
  size_t size = 0;
  (void)context;
  if ((device.device_type == kDLCPU) ? device.device_id != 0
                                     : slw_device_find(device.device_type) == NULL) {
    (void)slw_error_setf("RuntimeError", "this server has no %s(%d); it has cpu(0), and what exists of others",
                         slw_device_kind(device.device_type), (int)device.device_id);
    return SLW_RPC_FAIL_ARGUMENT;
  }
  status = slw_tensor_size_bytes(shape, ndim, dtype, &size);
  if (status != SLW_OK) {
    (void)slw_error_setf("ValueError", "no tensor can have that shape and type");
    return SLW_RPC_FAIL_ARGUMENT;
  }
  if (device.device_type == kDLCPU && size >= LARGE_TENSOR_BYTES && size > available_memory()) {
    (void)slw_error_setf("MemoryError",
                         "a tensor of %zu bytes is more than the device has free (%zu bytes)",
                         size, available_memory());
    return SLW_RPC_FAIL_MEMORY;
  }
  slw_error_clear();
  if (slw_tensor_alloc(shape, ndim, dtype, device, &tensor) != SLW_OK) {
    if (slw_error_message()[0] == '\0') {
      (void)slw_error_setf("MemoryError", "the device cannot allocate a tensor of %zu bytes", size);
    }
    return SLW_RPC_FAIL_MEMORY;
  }
  out->type_index = kTVMFFITensor;
  out->v_obj = &tensor->object;
  return SLW_RPC_OK;
}

static int tensor_copy(void *context, DLTensor *tensor, uint64_t offset, void *host, size_t size,
                       bool to_device) {
  const slw_device_api *api = slw_device_find(tensor->device.device_type);
  char *address = (char *)tensor->data + tensor->byte_offset + offset;
  slw_status status;
  (void)context;
  if (api == NULL) {
    slw_error_set("RuntimeError", "this machine has no device of that kind");
    return SLW_RPC_FAIL_ARGUMENT;
  }
  status = to_device ? api->write(address, host, size) : api->read(address, host, size);
  return (status == SLW_OK) ? SLW_RPC_OK : SLW_RPC_FAIL_REMOTE;
}

static int device_query(void *context, DLDevice device, uint32_t attribute, TVMFFIAny *out) {
  const slw_device_api *api = slw_device_find(device.device_type);
  (void)context;
  if (api == NULL) {
    out->type_index = kTVMFFIInt;
    out->v_int64 = (device.device_type == kDLCPU && device.device_id == 0) ? 1 : 0;
    return SLW_RPC_OK;
  }
  return (api->attribute(device.device_id, (int32_t)attribute, out) == SLW_OK)
             ? SLW_RPC_OK
             : SLW_RPC_FAIL_REMOTE;
}

/* --- files ----------------------------------------------------------------------------------- */

static void close_file(void) {
  if (the_host.map != NULL) {
    (void)munmap(the_host.map, (size_t)the_host.size);
    the_host.map = NULL;
  }
  if (the_host.fd >= 0) {
    (void)close(the_host.fd);
    the_host.fd = -1;
  }
}

static void file_abort(void *context) {
  (void)context;
  close_file();
  (void)unlink(PART_NAME);
}

/* Where space cannot be reserved: whether there is enough now, as far as the file system says. */
static int look_for_space(int fd, uint64_t size) {
  struct statvfs space;
  if (fstatvfs(fd, &space) == 0 && space.f_blocks > 0u &&
      size / (space.f_frsize > 0u ? space.f_frsize : 1u) > space.f_bavail) {
    return ENOSPC;
  }
  /* Some file systems do not lengthen files so; then the writes do. */
  return ftruncate(fd, (off_t)size) != 0 && (errno == EFBIG || errno == ENOSPC) ? errno : 0;
}

/* Take the space now, so that a full disk is known before the bytes travel; an errno, or 0. */
static int reserve_space(int fd, uint64_t size) {
#if defined(__linux__)
  int code;
  if (size == 0u) {
    return 0;
  }
  /* Not posix_fallocate: C libraries differ in what that returns and where it puts the error. */
  do {
    code = fallocate(fd, 0, 0, (off_t)size) == 0 ? 0 : errno;
  } while (code == EINTR);
  /* JFFS2, UBIFS, FAT, NFS and ramfs have no such thing, nor do old kernels. */
  if (code != EOPNOTSUPP && code != ENOSYS && code != EINVAL && code != EPERM && code != ENODEV) {
    return code;
  }
#endif
  return look_for_space(fd, size);
}

static int file_create(void *context, const char *name, uint64_t size, void **memory) {
  uint64_t most = the_host.config->max_upload_bytes;
  int code;
  (void)context;
  (void)memory;
  if ((most != 0u && size > most) || size > (uint64_t)INT64_MAX) {
    if (most == 0u || most > (uint64_t)INT64_MAX) {
      most = (uint64_t)INT64_MAX; /* what files can have */
    }
    (void)slw_error_setf("ValueError",
                         "'%s' has %llu bytes; this device takes uploads up to %llu bytes "
                         "(its --max-upload)", name,
                         (unsigned long long)size, (unsigned long long)most);
    return SLW_RPC_FAIL_LIMIT;
  }
  if (strcmp(name, PART_NAME) == 0) {
    return io_error("create", name, EPERM);
  }
  (void)unlink(PART_NAME);
  the_host.fd = open(PART_NAME, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (the_host.fd < 0) {
    return io_error("create", name, errno);
  }
  code = reserve_space(the_host.fd, size);
  if (code != 0) {
    file_abort(NULL);
    return io_error("reserve space for", name, code);
  }
  the_host.size = size;
  (void)snprintf(the_host.name, sizeof the_host.name, "%s", name);
  return SLW_RPC_OK;
}

static int file_write(void *context, uint64_t offset, const void *data, size_t size) {
  const char *at = data;
  (void)context;
  while (size > 0u) {
    ssize_t count = pwrite(the_host.fd, at, size, (off_t)offset);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return io_error("write", the_host.name, count == 0 ? ENOSPC : errno);
    }
    at += count;
    offset += (uint64_t)count;
    size -= (size_t)count;
  }
  return SLW_RPC_OK;
}

static int file_commit(void *context) {
  (void)context;
  close_file();
  if (rename(PART_NAME, the_host.name) != 0) {
    int code = errno;
    (void)unlink(PART_NAME);
    return io_error("complete", the_host.name, code);
  }
  return SLW_RPC_OK;
}

static int file_open(void *context, const char *name, uint64_t *size, const void **memory) {
  struct stat status;
  (void)context;
  the_host.fd = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (the_host.fd < 0) {
    return io_error("read", name, errno);
  }
  if (fstat(the_host.fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < 0) {
    close_file();
    return io_error("read", name, EINVAL);
  }
  the_host.size = (uint64_t)status.st_size;
  *size = the_host.size;
  (void)snprintf(the_host.name, sizeof the_host.name, "%s", name);
  *memory = NULL;
  if (the_host.size >= MAPPED_FILE_BYTES && the_host.size <= SIZE_MAX / 2u) {
    void *map = mmap(NULL, (size_t)the_host.size, PROT_READ, MAP_PRIVATE, the_host.fd, 0);
    if (map != MAP_FAILED) {
      the_host.map = map;
      *memory = map;
    }
  }
  return SLW_RPC_OK;
}

static int file_read(void *context, uint64_t offset, void *data, size_t size) {
  char *at = data;
  (void)context;
  while (size > 0u) {
    ssize_t count = pread(the_host.fd, at, size, (off_t)offset);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return io_error("read", the_host.name, count == 0 ? EIO : errno);
    }
    at += count;
    offset += (uint64_t)count;
    size -= (size_t)count;
  }
  return SLW_RPC_OK;
}

static void file_close(void *context) {
  (void)context;
  close_file();
}

static int file_remove(void *context, const char *name) {
  (void)context;
  return unlink(name) == 0 ? SLW_RPC_OK : io_error("remove", name, errno);
}

static int file_list(void *context, char *text, size_t capacity, size_t *size) {
  DIR *folder = opendir(".");
  struct dirent *entry;
  struct stat status;
  size_t at = 0;
  (void)context;
  if (folder == NULL) {
    return io_error("list", ".", errno);
  }
  for (entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    int count;
    if (lstat(entry->d_name, &status) != 0 || !S_ISREG(status.st_mode) ||
        strcmp(entry->d_name, PART_NAME) == 0) {
      continue;
    }
    count = snprintf(text + at, capacity - at, "%lld %s\n", (long long)status.st_size,
                     entry->d_name);
    if (count < 0 || (size_t)count >= capacity - at) {
      break; /* the list is cut: the reply's frame is full */
    }
    at += (size_t)count;
  }
  (void)closedir(folder);
  *size = at;
  return SLW_RPC_OK;
}

static int random_bytes(void *context, uint8_t *out, size_t size) {
  ssize_t count = 0;
  int fd;
  (void)context;
#if defined(SYS_getrandom)
  /* As a system call: it needs no file, but is not in every C library, nor in every kernel. */
  count = (ssize_t)syscall(SYS_getrandom, out, size, 0);
  if (count == (ssize_t)size) {
    return SLW_RPC_OK;
  }
#endif
  fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return SLW_RPC_FAIL_IO;
  }
  do {
    count = read(fd, out, size);
  } while (count < 0 && errno == EINTR);
  (void)close(fd);
  return count == (ssize_t)size ? SLW_RPC_OK : SLW_RPC_FAIL_IO;
}

void slw_rpc_host_hooks(slw_rpc_hooks *hooks, const slw_rpc_server_config *config) {
  slw_devices_setup();
  memset(&the_host, 0, sizeof the_host);
  the_host.fd = -1;
  the_host.config = config;
  memset(hooks, 0, sizeof *hooks);
  hooks->get_global = get_global;
  hooks->get_function = get_function;
  hooks->load_module = load_module;
  hooks->release = release;
  hooks->take_error = take_error;
  hooks->time = time_function;
  hooks->tensor_alloc = tensor_alloc;
  hooks->tensor_copy = tensor_copy;
  hooks->device_query = device_query;
  hooks->file_create = file_create;
  hooks->file_write = file_write;
  hooks->file_commit = file_commit;
  hooks->file_abort = file_abort;
  hooks->file_open = file_open;
  hooks->file_read = file_read;
  hooks->file_close = file_close;
  hooks->file_remove = file_remove;
  hooks->file_list = file_list;
  hooks->random = random_bytes;
}
