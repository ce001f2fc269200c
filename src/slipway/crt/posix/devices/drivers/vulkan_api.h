/* SPDX-License-Identifier: Apache-2.0 */
/* Vulkan 1.1 as far as the runtime uses it, restated so that no header of Khronos' is needed. */
#ifndef SLIPWAY_VULKAN_API_H_
#define SLIPWAY_VULKAN_API_H_

#include <stddef.h>
#include <stdint.h>

typedef int32_t vk_result;
typedef void *vk_handle;   /* an instance, a device, a queue, a command buffer */
typedef uint64_t vk_object; /* every other thing that the driver makes */

enum {
  VK_SUCCESS = 0,
  VK_ERROR_DEVICE_LOST = -4, /* above it: memory that is full, a driver that does not start */
  VK_WHOLE = -1,
  VK_API_1_1 = 1 << 22 | 1 << 12,
  VK_API_1_2 = 1 << 22 | 2 << 12,
  VK_API_1_3 = 1 << 22 | 3 << 12,
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
  VK_FULL_SUBGROUPS = 2, /* of a stage: no subgroup lacks a thread */
  VK_SUBGROUP_SHUFFLE = 0x10,
  VK_SCOPE_SUBGROUP = 3,
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
  VK_TYPE_PROPERTIES_2 = 1000059001,
  VK_TYPE_SUBGROUPS = 1000094000,
  VK_TYPE_MEMORY_MODEL = 1000211000,
  VK_TYPE_MATRICES = 1000506000,
  VK_TYPE_MATRIX_SIZE = 1000506001,
  VK_TYPE_SUBGROUP_SIZES = 1000225000,
  VK_TYPE_STAGE_SUBGROUPS = 1000225001,
  VK_TYPE_SUBGROUP_CONTROL = 1000225002,
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
  uint32_t type;
  void *next;
  vk_properties properties;
} vk_properties_2;

typedef struct {
  uint32_t type;
  void *next;
  uint32_t size;
  uint32_t stages;
  uint32_t operations;
  uint32_t quads;
} vk_subgroups;

typedef struct {
  uint32_t type;
  void *next;
  uint32_t minimum;
  uint32_t maximum;
  uint32_t most_groups;
  uint32_t stages; /* that may say how many threads their subgroups have */
} vk_subgroup_sizes;

typedef struct {
  uint32_t type;
  const void *next;
  uint32_t size;
} vk_stage_subgroups;

typedef struct {
  uint32_t type;
  void *next;
  uint32_t rows;
  uint32_t columns;
  uint32_t depth;
  uint32_t dtypes[4]; /* of both operands, the sums before and after */
  uint32_t saturates;
  uint32_t scope;
} vk_matrix_size; /* VkCooperativeMatrixPropertiesKHR */

typedef void (*vk_function)(void);

typedef struct {
  char name[256];
  uint32_t version;
} vk_extension;

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

/* Of an extension: the loader gives it, where a driver has it. */
typedef vk_result (*vk_list_matrices)(vk_handle, uint32_t *, vk_matrix_size *);

/* Name in the table, result, parameters: the names of the loader's have "vk" in front. */
#define SLW_VULKAN_FUNCTIONS(X)                                                                   \
  X(CreateInstance, vk_result, (const vk_instance_info *, const void *, vk_handle *))             \
  X(GetInstanceProcAddr, vk_function, (vk_handle, const char *))                                  \
  X(EnumeratePhysicalDevices, vk_result, (vk_handle, uint32_t *, vk_handle *))                    \
  X(GetPhysicalDeviceProperties, void, (vk_handle, vk_properties *))                              \
  X(GetPhysicalDeviceProperties2, void, (vk_handle, vk_properties_2 *))                           \
  X(GetPhysicalDeviceFeatures2, void, (vk_handle, vk_features *))                                 \
  X(EnumerateDeviceExtensionProperties, vk_result, (vk_handle, const char *, uint32_t *,          \
                                                    vk_extension *))                              \
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

#endif /* SLIPWAY_VULKAN_API_H_ */
