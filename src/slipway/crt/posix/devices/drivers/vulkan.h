/* SPDX-License-Identifier: Apache-2.0 */
/* Vulkan 1.1 as far as the runtime uses it, restated so that no header of Khronos' is needed, and
 * the loader's functions, which are looked up when the first of them is wanted. */
#ifndef SLIPWAY_VULKAN_H_
#define SLIPWAY_VULKAN_H_

#include <pthread.h>

#include "device_driver.h"

typedef int32_t vk_result;
typedef void *vk_handle;   /* an instance, a device, a queue, a command buffer */
typedef uint64_t vk_object; /* every other thing that the driver makes */

enum {
  VK_SUCCESS = 0,
  VK_ERROR_DEVICE_LOST = -4, /* above it: memory that is full, a driver that does not start */
  VK_WHOLE = -1,
  VK_API_1_1 = 1 << 22 | 1 << 12,
  VK_API_1_2 = 1 << 22 | 2 << 12,
  VK_KIND_INTEGRATED = 1,
  VK_KIND_DISCRETE = 2,
  VK_QUEUE_COMPUTE = 2,
  VK_MEMORY_DEVICE_LOCAL = 1,
  VK_MEMORY_HOST_VISIBLE = 2,
  VK_MEMORY_HOST_COHERENT = 4,
  VK_MEMORY_HOST_CACHED = 8,
  VK_USAGE_TRANSFER_BOTH = 1 | 2,
  VK_USAGE_STORAGE = 0x20,
  VK_DESCRIPTOR_STORAGE_BUFFER = 7,
  VK_STAGE_COMPUTE = 0x20, /* of a shader */
  VK_BIND_COMPUTE = 1,
  VK_AT_COMPUTE = 0x800, /* of a pipeline */
  VK_AT_TRANSFER = 0x1000,
  VK_AT_HOST = 0x4000,
  VK_SHADER_READ = 0x20,
  VK_SHADER_WRITE = 0x40,
  VK_TRANSFER_READ = 0x800,
  VK_TRANSFER_WRITE = 0x1000,
  VK_HOST_READ = 0x2000,
  VK_POOL_RESET_COMMANDS = 2,
  VK_ONE_TIME_SUBMIT = 1,
  VK_FEATURES = 55
};

enum { /* sType */
  VK_TYPE_APPLICATION = 0,
  VK_TYPE_INSTANCE = 1,
  VK_TYPE_QUEUE = 2,
  VK_TYPE_DEVICE = 3,
  VK_TYPE_SUBMIT = 4,
  VK_TYPE_ALLOCATE = 5,
  VK_TYPE_FENCE = 8,
  VK_TYPE_BUFFER = 12,
  VK_TYPE_SHADER = 16,
  VK_TYPE_PIPELINE_CACHE = 17,
  VK_TYPE_STAGE = 18,
  VK_TYPE_PIPELINE = 29,
  VK_TYPE_LAYOUT = 30,
  VK_TYPE_SET_LAYOUT = 32,
  VK_TYPE_DESCRIPTOR_POOL = 33,
  VK_TYPE_QUERIES = 11,
  VK_TYPE_SETS = 34,
  VK_TYPE_WRITE = 35,
  VK_TYPE_COMMAND_POOL = 39,
  VK_TYPE_COMMANDS = 40,
  VK_TYPE_BEGIN = 42,
  VK_TYPE_BARRIER = 46,
  VK_TYPE_FEATURES_2 = 1000059000,
  VK_TYPE_INT8 = 1000082000,
  VK_TYPE_16BIT = 1000083000,
  VK_TYPE_8BIT = 1000177000
};

typedef struct {
  uint32_t type;
  const void *next;
  const char *application;
  uint32_t version;
  const char *engine;
  uint32_t engine_version;
  uint32_t api;
} vk_application;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t flags;
  const vk_application *application;
  uint32_t num_layers;
  const char *const *layers;
  uint32_t num_extensions;
  const char *const *extensions;
} vk_instance_info;

/* VkPhysicalDeviceProperties; of the limits those that matter here. */
typedef struct {
  uint32_t api;
  uint32_t driver;
  uint32_t vendor;
  uint32_t device;
  uint32_t kind;
  char name[256];
  uint8_t uuid[16];
  uint32_t images[8];
  uint32_t max_storage_range;
  uint32_t max_push_bytes;
  uint32_t allocations[2];
  uint64_t granularity[2];
  uint32_t sets[3];
  uint32_t max_storage_buffers;
  uint32_t graphics[34];
  uint32_t max_shared_bytes;
  uint32_t max_groups[3];
  uint32_t max_threads;
  uint32_t max_sizes[3];
  uint32_t drawing[14];
  size_t map_alignment;
  uint64_t alignments[2];
  uint64_t storage_alignment;
  uint32_t offsets[21];
  uint32_t has_timestamps;
  float timestamp_ns;
  uint32_t others[24];
} vk_properties;

typedef struct {
  uint32_t type;
  void *next;
  uint32_t flags[4];
} vk_feature_set; /* of an extension; the first flags of each */

typedef struct {
  uint32_t type;
  void *next;
  uint32_t flags[VK_FEATURES];
} vk_features;

typedef struct {
  uint32_t num_types;
  struct {
    uint32_t properties;
    uint32_t heap;
  } types[32];
  uint32_t num_heaps;
  struct {
    uint64_t size_bytes;
    uint32_t flags;
  } heaps[16];
} vk_memory_properties;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t flags;
  uint32_t kind; /* 2: times */
  uint32_t count;
  uint32_t statistics;
} vk_queries_info;

typedef struct {
  uint32_t flags;
  uint32_t count;
  uint32_t timestamp_bits;
  uint32_t granularity[3];
} vk_queue_family;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t flags;
  uint32_t family;
  uint32_t count;
  const float *priorities;
} vk_queue_info;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t flags;
  uint32_t num_queues;
  const vk_queue_info *queues;
  uint32_t num_layers;
  const char *const *layers;
  uint32_t num_extensions;
  const char *const *extensions;
  const uint32_t *features;
} vk_device_info;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t flags;
  uint64_t size;
  uint32_t usage;
  uint32_t sharing;
  uint32_t num_families;
  const uint32_t *families;
} vk_buffer_info;

typedef struct {
  uint64_t size;
  uint64_t alignment;
  uint32_t types;
} vk_requirements;

typedef struct {
  uint32_t type;
  const void *next;
  uint64_t size;
  uint32_t memory_type;
} vk_allocate_info;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t flags;
  size_t size_bytes;
  const uint32_t *code;
} vk_shader_info;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t flags;
  size_t size_bytes;
  const void *kept;
} vk_pipeline_cache_info;

typedef struct {
  uint32_t binding;
  uint32_t type;
  uint32_t count;
  uint32_t stages;
  const vk_object *samplers;
} vk_binding;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t flags;
  uint32_t count;
  const vk_binding *bindings;
} vk_set_layout_info;

typedef struct {
  uint32_t stages;
  uint32_t offset;
  uint32_t size;
} vk_push_range;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t flags;
  uint32_t num_sets;
  const vk_object *sets;
  uint32_t num_ranges;
  const vk_push_range *ranges;
} vk_layout_info;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t flags;
  struct {
    uint32_t type;
    const void *next;
    uint32_t flags;
    uint32_t stage;
    vk_object module;
    const char *name;
    const void *specialization;
  } stage;
  vk_object layout;
  vk_object base;
  int32_t base_index;
} vk_pipeline_info;

typedef struct {
  uint32_t type;
  uint32_t count;
} vk_pool_size;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t flags;
  uint32_t max_sets;
  uint32_t num_sizes;
  const vk_pool_size *sizes;
} vk_descriptor_pool_info;

typedef struct {
  uint32_t type;
  const void *next;
  vk_object pool;
  uint32_t count;
  const vk_object *layouts;
} vk_sets_info;

typedef struct {
  vk_object buffer;
  uint64_t offset;
  uint64_t range;
} vk_buffer_range;

typedef struct {
  uint32_t type;
  const void *next;
  vk_object set;
  uint32_t binding;
  uint32_t element;
  uint32_t count;
  uint32_t kind;
  const void *images;
  const vk_buffer_range *buffers;
  const void *texels;
} vk_write;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t flags;
  uint32_t family;
} vk_command_pool_info;

typedef struct {
  uint32_t type;
  const void *next;
  vk_object pool;
  uint32_t level;
  uint32_t count;
} vk_commands_info;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t flags;
  const void *inheritance;
} vk_begin_info;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t source;
  uint32_t target;
} vk_barrier;

typedef struct {
  uint64_t from;
  uint64_t to;
  uint64_t size;
} vk_copy;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t num_waits;
  const vk_object *waits;
  const uint32_t *wait_stages;
  uint32_t num_commands;
  const vk_handle *commands;
  uint32_t num_signals;
  const vk_object *signals;
} vk_submit;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t flags;
} vk_fence_info;

/* Name in the table, result, parameters: the names of the loader's have "vk" in front. */
#define SLW_VULKAN_FUNCTIONS(X)                                                                   \
  X(CreateInstance, vk_result, (const vk_instance_info *, const void *, vk_handle *))             \
  X(EnumeratePhysicalDevices, vk_result, (vk_handle, uint32_t *, vk_handle *))                    \
  X(GetPhysicalDeviceProperties, void, (vk_handle, vk_properties *))                              \
  X(GetPhysicalDeviceFeatures2, void, (vk_handle, vk_features *))                                 \
  X(GetPhysicalDeviceMemoryProperties, void, (vk_handle, vk_memory_properties *))                 \
  X(GetPhysicalDeviceQueueFamilyProperties, void, (vk_handle, uint32_t *, vk_queue_family *))     \
  X(CreateDevice, vk_result, (vk_handle, const vk_device_info *, const void *, vk_handle *))      \
  X(GetDeviceQueue, void, (vk_handle, uint32_t, uint32_t, vk_handle *))                           \
  X(CreateBuffer, vk_result, (vk_handle, const vk_buffer_info *, const void *, vk_object *))      \
  X(DestroyBuffer, void, (vk_handle, vk_object, const void *))                                    \
  X(GetBufferMemoryRequirements, void, (vk_handle, vk_object, vk_requirements *))                 \
  X(AllocateMemory, vk_result, (vk_handle, const vk_allocate_info *, const void *, vk_object *))  \
  X(FreeMemory, void, (vk_handle, vk_object, const void *))                                       \
  X(BindBufferMemory, vk_result, (vk_handle, vk_object, vk_object, uint64_t))                     \
  X(MapMemory, vk_result, (vk_handle, vk_object, uint64_t, uint64_t, uint32_t, void **))          \
  X(CreateShaderModule, vk_result, (vk_handle, const vk_shader_info *, const void *,              \
                                    vk_object *))                                                 \
  X(DestroyShaderModule, void, (vk_handle, vk_object, const void *))                              \
  X(DestroyDescriptorSetLayout, void, (vk_handle, vk_object, const void *))                       \
  X(DestroyPipelineLayout, void, (vk_handle, vk_object, const void *))                            \
  X(DestroyPipeline, void, (vk_handle, vk_object, const void *))                                  \
  X(CreateDescriptorSetLayout, vk_result, (vk_handle, const vk_set_layout_info *, const void *,   \
                                           vk_object *))                                          \
  X(CreatePipelineLayout, vk_result, (vk_handle, const vk_layout_info *, const void *,            \
                                      vk_object *))                                               \
  X(CreatePipelineCache, vk_result, (vk_handle, const vk_pipeline_cache_info *, const void *,     \
                                     vk_object *))                                                \
  X(GetPipelineCacheData, vk_result, (vk_handle, vk_object, size_t *, void *))                    \
  X(DestroyPipelineCache, void, (vk_handle, vk_object, const void *))                             \
  X(CreateComputePipelines, vk_result, (vk_handle, vk_object, uint32_t, const vk_pipeline_info *, \
                                        const void *, vk_object *))                               \
  X(CreateDescriptorPool, vk_result, (vk_handle, const vk_descriptor_pool_info *, const void *,   \
                                      vk_object *))                                               \
  X(ResetDescriptorPool, vk_result, (vk_handle, vk_object, uint32_t))                             \
  X(AllocateDescriptorSets, vk_result, (vk_handle, const vk_sets_info *, vk_object *))            \
  X(UpdateDescriptorSets, void, (vk_handle, uint32_t, const vk_write *, uint32_t, const void *))  \
  X(CreateCommandPool, vk_result, (vk_handle, const vk_command_pool_info *, const void *,         \
                                   vk_object *))                                                  \
  X(AllocateCommandBuffers, vk_result, (vk_handle, const vk_commands_info *, vk_handle *))        \
  X(BeginCommandBuffer, vk_result, (vk_handle, const vk_begin_info *))                            \
  X(EndCommandBuffer, vk_result, (vk_handle))                                                     \
  X(CmdBindPipeline, void, (vk_handle, uint32_t, vk_object))                                      \
  X(CmdBindDescriptorSets, void, (vk_handle, uint32_t, vk_object, uint32_t, uint32_t,             \
                                  const vk_object *, uint32_t, const uint32_t *))                 \
  X(CmdPushConstants, void, (vk_handle, vk_object, uint32_t, uint32_t, uint32_t, const void *))   \
  X(CmdDispatch, void, (vk_handle, uint32_t, uint32_t, uint32_t))                                 \
  X(CmdPipelineBarrier, void, (vk_handle, uint32_t, uint32_t, uint32_t, uint32_t,                 \
                               const vk_barrier *, uint32_t, const void *, uint32_t,              \
                               const void *))                                                     \
  X(CmdCopyBuffer, void, (vk_handle, vk_object, vk_object, uint32_t, const vk_copy *))            \
  X(CreateQueryPool, vk_result, (vk_handle, const vk_queries_info *, const void *, vk_object *))  \
  X(CmdResetQueryPool, void, (vk_handle, vk_object, uint32_t, uint32_t))                          \
  X(CmdWriteTimestamp, void, (vk_handle, uint32_t, vk_object, uint32_t))                          \
  X(GetQueryPoolResults, vk_result, (vk_handle, vk_object, uint32_t, uint32_t, size_t, void *,    \
                                     uint64_t, uint32_t))                                         \
  X(QueueSubmit, vk_result, (vk_handle, uint32_t, const vk_submit *, vk_object))                  \
  X(CreateFence, vk_result, (vk_handle, const vk_fence_info *, const void *, vk_object *))        \
  X(WaitForFences, vk_result, (vk_handle, uint32_t, const vk_object *, uint32_t, uint64_t))       \
  X(ResetFences, vk_result, (vk_handle, uint32_t, const vk_object *))

typedef struct {
#define SLW_VULKAN_FIELD(name, result, parameters) result(*name) parameters;
  SLW_VULKAN_FUNCTIONS(SLW_VULKAN_FIELD)
#undef SLW_VULKAN_FIELD
} slw_vulkan_functions;

/* Commands that are recorded, or run: after the last of them the fence is signalled. */
#define SLW_VULKAN_BATCHES 4
typedef struct {
  vk_handle commands;
  vk_object sets; /* a descriptor pool */
  vk_object fence;
  uint32_t num_sets;
  uint32_t num_descriptors;
  int is_recording;
  int is_submitted;
} slw_vulkan_batch;

typedef struct {
  vk_object buffer;
  vk_object memory;
  char *mapped; /* NULL: the processor does not see it */
  size_t size_bytes;
} slw_vulkan_buffer;

#define SLW_VULKAN_SPARE 32

/* A device with its queue, made when something is first done there. */
typedef struct {
  vk_handle physical;
  vk_handle device; /* NULL: not opened */
  vk_handle queue;
  uint32_t family;
  vk_properties properties;
  vk_memory_properties memory;
  uint32_t capabilities; /* bits of slw_vulkan_needs */
  slw_vulkan_batch batches[SLW_VULKAN_BATCHES];
  size_t current;
  vk_result failure; /* the last of its work's */
  int is_untold;     /* nobody has been told of it */
  slw_vulkan_buffer staging; /* what memory that is not mapped is copied through */
  slw_vulkan_buffer spare[SLW_VULKAN_SPARE]; /* released, and perhaps in use by recorded work */
  size_t num_spare;
  size_t spare_bytes; /* of all of them */
  vk_object times;      /* marks of its clock, made for the first of them */
  uint32_t num_marks;   /* so far; each takes the place of an old one */
  uint32_t time_bits;   /* that count; 0: it has no clock */
  pthread_mutex_t lock;      /* of all below `device` */
} slw_vulkan_device;

/* What code may need and a device may lack. */
enum {
  SLW_VULKAN_FLOAT64 = 1,
  SLW_VULKAN_INT64 = 2,
  SLW_VULKAN_INT16 = 4,
  SLW_VULKAN_INT8 = 8,
  SLW_VULKAN_BUFFERS_OF_16_BITS = 16,
  SLW_VULKAN_BUFFERS_OF_8_BITS = 32
};

/* --- vulkan_driver.c --- */

extern slw_device_driver slw_vulkan;

/* The loader's functions, once it works. */
extern slw_vulkan_functions slw_vk;

/* A device ready for work, or NULL with the thread's error set. */
slw_vulkan_device *slw_vulkan_device_of(int32_t device_id);

/* Bytes of its largest memory. */
uint64_t slw_vulkan_memory_of(const slw_vulkan_device *device);

/* Set the thread's error: `what` could not be done on `device`. */
slw_status slw_vulkan_failed(const slw_vulkan_device *device, const char *what, vk_result code);

/* --- vulkan_memory.c --- */

slw_status slw_vulkan_make_buffer(slw_vulkan_device *device, size_t size_bytes, int is_for_host,
                                  slw_vulkan_buffer *out);
slw_status slw_vulkan_alloc(int32_t device_id, size_t size_bytes, void **out);
void slw_vulkan_release(void *memory);
slw_status slw_vulkan_trim(int32_t device_id);
/* The buffer that an address lies in, with the byte where it lies, and the number of the device.
 * NULL with the thread's error set: less than `size_bytes` are there. */
const slw_vulkan_buffer *slw_vulkan_locate(const void *address, size_t size_bytes, size_t *offset,
                                           int32_t *device_id);
/* --- vulkan_queue.c; the device's lock is held --- */

slw_status slw_vulkan_open_queue(slw_vulkan_device *device);
/* The batch that commands are recorded to, with room for a kernel of so many buffers. */
slw_vulkan_batch *slw_vulkan_record(slw_vulkan_device *device, uint32_t num_descriptors);
/* Let what follows see what came before. */
void slw_vulkan_order(const slw_vulkan_batch *batch);
slw_status slw_vulkan_flush(slw_vulkan_device *device);
slw_status slw_vulkan_wait(slw_vulkan_device *device);
/* Wait where nobody can be told what fails: who waits next is. */
void slw_vulkan_settle(slw_vulkan_device *device);

/* --- vulkan_clock.c: as device_api.h says --- */

uint64_t slw_vulkan_launches(int32_t device_id);
slw_status slw_vulkan_mark(int32_t device_id, uint64_t *out);
slw_status slw_vulkan_between(int32_t device_id, uint64_t from, uint64_t to, uint64_t *duration_ns);

/* --- vulkan_code.c --- */

/* The handles of a kernel. */
enum { SLW_VULKAN_PIPELINE, SLW_VULKAN_LAYOUT, SLW_VULKAN_SET_LAYOUT };

slw_status slw_vulkan_program(int32_t device_id, const slw_device_text *code, const char *kernel,
                              uint64_t *handle);
slw_status slw_vulkan_kernel(int32_t device_id, uint64_t program, const slw_device_launch *launch,
                             slw_device_kernel *out);
void slw_vulkan_drop(int32_t device_id, const slw_device_program *program);
/* The bytes of a scalar parameter in the push constants, where `at` are taken: from the place
 * that is returned. */
uint32_t slw_vulkan_push_place(char kind, uint32_t *at);

#endif /* SLIPWAY_VULKAN_H_ */
