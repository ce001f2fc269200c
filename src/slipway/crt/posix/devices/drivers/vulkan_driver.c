/* SPDX-License-Identifier: Apache-2.0 */
/* The Vulkan loader of this machine, and the devices of all drivers: discrete GPUs first, then
 * integrated and virtual ones, then processors.  */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "vulkan.h"

#define MAX_FAMILIES 16

_Static_assert(sizeof(size_t) != 8U || (sizeof(vk_properties) == 824U &&
                                        offsetof(vk_properties, max_shared_bytes) == 512U &&
                                        offsetof(vk_properties, storage_alignment) == 624U),
               "VkPhysicalDeviceProperties");

slw_vulkan_functions slw_vk;
static slw_vulkan_device devices[SLW_MAX_DEVICES];
static vk_handle instance;

static const char *list_devices(int32_t *num_devices);
static const char *device_name(int32_t device_id) { return devices[device_id].properties.name; }

#define SLW_VULKAN_SYMBOL(name, result, parameters) "vk" #name "\0"
slw_device_driver slw_vulkan = {
    .kind = "vulkan",
    .title = "Vulkan",
    .ending = ".spv",
    .libraries = "libvulkan.so.1\0libvulkan.so\0libvulkan.1.dylib\0libMoltenVK.dylib\0",
    .advice = "there is no libvulkan.so.1. Install the loader and the device's driver (Debian: sudo "
              "apt-get install libvulkan1 mesa-vulkan-drivers, which has one for the processor)",
    .symbols = SLW_VULKAN_FUNCTIONS(SLW_VULKAN_SYMBOL),
    .functions = &slw_vk,
    .list = list_devices,
    .name = device_name,
    .program = slw_vulkan_program,
    .kernel = slw_vulkan_kernel,
    .drop = slw_vulkan_drop,
    SLW_DRIVER_LOCKS,
};

static int find_family(vk_handle physical, uint32_t *family, uint32_t *time_bits) {
  vk_queue_family families[MAX_FAMILIES];
  uint32_t count = MAX_FAMILIES;
  slw_vk.GetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
  for (uint32_t i = 0; i < count; ++i) {
    if ((families[i].flags & VK_QUEUE_COMPUTE) != 0U && families[i].count > 0U) {
      *family = i;
      *time_bits = families[i].timestamp_bits;
      return 1;
    }
  }
  return 0;
}

/* Where a kind of device stands in the list. */
static int rank_of(uint32_t kind) {
  static const int RANKS[] = {4, 1, 0, 2, 3}; /* other, integrated, discrete, virtual, processor */
  return (kind < sizeof RANKS / sizeof RANKS[0]) ? RANKS[kind] : 4;
}

static void enter(vk_handle physical, int32_t *num_devices) {
  vk_properties properties;
  uint32_t family = 0;
  uint32_t time_bits = 0;
  int32_t at = *num_devices;
  slw_vk.GetPhysicalDeviceProperties(physical, &properties);
  if (properties.api < (uint32_t)VK_API_1_1 || !find_family(physical, &family, &time_bits) ||
      *num_devices == SLW_MAX_DEVICES) {
    return;
  }
  while (at > 0 && rank_of(devices[at - 1].properties.kind) > rank_of(properties.kind)) {
    devices[at] = devices[at - 1];
    --at;
  }
  memset(&devices[at], 0, sizeof devices[at]);
  devices[at].physical = physical;
  devices[at].family = family;
  devices[at].time_bits = time_bits;
  devices[at].properties = properties;
  slw_vk.GetPhysicalDeviceMemoryProperties(physical, &devices[at].memory);
  ++*num_devices;
}

static const char *list_devices(int32_t *num_devices) {
  vk_application application = {VK_TYPE_APPLICATION, NULL, "slipway", 1, "slipway", 1, VK_API_1_3};
  vk_instance_info info = {VK_TYPE_INSTANCE, NULL, 0, &application, 0, NULL, 0, NULL};
  vk_handle found[SLW_MAX_DEVICES];
  uint32_t count = SLW_MAX_DEVICES;
  if (slw_vk.CreateInstance(&info, NULL, &instance) != VK_SUCCESS) {
    return "its loader knows no driver (ls /usr/share/vulkan/icd.d)";
  }
  if (slw_vk.EnumeratePhysicalDevices(instance, &count, found) < VK_SUCCESS) {
    count = 0;
  }
  for (uint32_t i = 0; i < count; ++i) {
    enter(found[i], num_devices);
  }
  for (int32_t i = 0; i < *num_devices; ++i) {
    (void)pthread_mutex_init(&devices[i].lock, NULL);
  }
  return (*num_devices > 0) ? NULL : "its drivers have no device with Vulkan 1.1";
}

static const char SUBGROUP_CONTROL[] = "VK_EXT_subgroup_size_control"; /* before Vulkan 1.3 */
static const char MATRICES[] = "VK_KHR_cooperative_matrix";

static int has_extension(vk_handle physical, const char *name) {
  vk_extension *all = NULL;
  uint32_t count = 0;
  int found = 0;
  if (slw_vk.EnumerateDeviceExtensionProperties(physical, NULL, &count, NULL) == VK_SUCCESS) {
    all = calloc((size_t)count + 1U, sizeof *all);
  }
  if (all != NULL &&
      slw_vk.EnumerateDeviceExtensionProperties(physical, NULL, &count, all) == VK_SUCCESS) {
    for (uint32_t i = 0; i < count; ++i) {
      found |= strcmp(all[i].name, name) == 0;
    }
  }
  free(all);
  return found;
}

/* What subgroups the device has, and whether code may say how many threads they are of. */
static int asks_subgroups(slw_vulkan_device *device, const vk_feature_set *control) {
  vk_properties_2 about = {VK_TYPE_PROPERTIES_2, &device->subgroups, device->properties};
  device->subgroup_sizes.type = VK_TYPE_SUBGROUP_SIZES;
  device->subgroups.type = VK_TYPE_SUBGROUPS;
  device->subgroups.next = &device->subgroup_sizes;
  slw_vk.GetPhysicalDeviceProperties2(device->physical, &about);
  device->subgroups.next = NULL;
  return control->flags[0] != 0U && control->flags[1] != 0U &&
         (device->subgroup_sizes.stages & VK_STAGE_COMPUTE) != 0U &&
         (device->subgroups.stages & VK_STAGE_COMPUTE) != 0U &&
         (device->subgroups.operations & VK_SUBGROUP_SHUFFLE) != 0U;
}

/* Which matrices the subgroups of a device multiply. */
static void list_matrices(slw_vulkan_device *device) {
  vk_function found = slw_vk.GetInstanceProcAddr(
      instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  uint32_t count = SLW_VULKAN_MATRIX_SIZES;
  if (found == NULL) {
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    device->matrices[i].type = VK_TYPE_MATRIX_SIZE;
  }
  if (((vk_list_matrices)found)(device->physical, &count, device->matrices) >= VK_SUCCESS) {
    device->num_matrices = count;
  }
}

/* Open the device with those of its features that code may use. */
static vk_result open_device(slw_vulkan_device *device) {
  enum { FLOAT64 = 39, INT64 = 40, INT16 = 41 };
  static const float PRIORITY = 1.0F;
  vk_feature_set of_16 = {VK_TYPE_16BIT, NULL, {0, 0, 0, 0}};
  vk_feature_set of_8 = {VK_TYPE_8BIT, &of_16, {0, 0, 0, 0}};
  vk_feature_set int8 = {VK_TYPE_INT8, &of_8, {0, 0, 0, 0}};
  int has_8 = device->properties.api >= (uint32_t)VK_API_1_2; /* else they are extensions */
  vk_feature_set control = {VK_TYPE_SUBGROUP_CONTROL, has_8 ? (void *)&int8 : (void *)&of_16, {0}};
  int is_extension = device->properties.api < (uint32_t)VK_API_1_3;
  int has_control = !is_extension || has_extension(device->physical, SUBGROUP_CONTROL);
  vk_feature_set model = {VK_TYPE_MEMORY_MODEL, has_control ? (void *)&control : control.next, {0}};
  vk_feature_set matrices = {VK_TYPE_MATRICES, &model, {0}};
  int has_matrices = has_8 && has_extension(device->physical, MATRICES);
  const char *extensions[2];
  vk_features all = {VK_TYPE_FEATURES_2, has_matrices ? (void *)&matrices : model.next, {0}};
  vk_queue_info queue = {VK_TYPE_QUEUE, NULL, 0, device->family, 1, &PRIORITY};
  vk_device_info info = {VK_TYPE_DEVICE, &all, 0, 1, &queue, 0, NULL, 0, NULL, NULL};
  vk_result code;
  uint32_t wanted[3];
  slw_vk.GetPhysicalDeviceFeatures2(device->physical, &all);
  for (int i = 0; i < 3; ++i) {
    wanted[i] = all.flags[FLOAT64 + i];
  }
  memset(all.flags, 0, sizeof all.flags);
  for (int i = 0; i < 3; ++i) {
    all.flags[FLOAT64 + i] = wanted[i];
  }
  of_16.flags[1] = of_16.flags[2] = of_16.flags[3] = 0;
  of_8.flags[1] = of_8.flags[2] = 0;
  device->capabilities =
      (wanted[0] != 0U ? SLW_VULKAN_FLOAT64 : 0U) | (wanted[1] != 0U ? SLW_VULKAN_INT64 : 0U) |
      (wanted[2] != 0U ? SLW_VULKAN_INT16 : 0U) | (int8.flags[1] != 0U ? SLW_VULKAN_INT8 : 0U) |
      (int8.flags[0] != 0U ? SLW_VULKAN_FLOAT16 : 0U) |
      (of_16.flags[0] != 0U ? SLW_VULKAN_BUFFERS_OF_16_BITS : 0U) |
      (of_8.flags[0] != 0U ? SLW_VULKAN_BUFFERS_OF_8_BITS : 0U);
  if (has_control && asks_subgroups(device, &control)) {
    device->capabilities |= SLW_VULKAN_SHUFFLES;
  }
  matrices.flags[1] = model.flags[1] = model.flags[2] = 0;
  if (matrices.flags[0] != 0U && model.flags[0] != 0U) {
    list_matrices(device);
    device->capabilities |= SLW_VULKAN_MATRICES;
    extensions[info.num_extensions++] = MATRICES;
  }
  if (has_control && is_extension) {
    extensions[info.num_extensions++] = SUBGROUP_CONTROL;
  }
  info.extensions = extensions;
  code = slw_vk.CreateDevice(device->physical, &info, NULL, &device->device);
  if (code == VK_SUCCESS) {
    slw_vk.GetDeviceQueue(device->device, device->family, 0, &device->queue);
  }
  return code;
}

static slw_status start_device(int32_t device_id) {
  slw_vulkan_device *device = &devices[device_id];
  vk_result code = open_device(device);
  slw_status status = (code == VK_SUCCESS) ? slw_vulkan_open_queue(device)
                                           : slw_vulkan_failed(device, "opening it", code);
  if (status != SLW_OK) {
    device->device = device->queue = NULL;
  }
  return status;
}

uint64_t slw_vulkan_memory_of(const slw_vulkan_device *device) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < device->memory.num_heaps; ++i) {
    if ((device->memory.heaps[i].flags & 1U) != 0U && device->memory.heaps[i].size_bytes > most) {
      most = device->memory.heaps[i].size_bytes;
    }
  }
  return most;
}

slw_vulkan_device *slw_vulkan_device_of(int32_t device_id) {
  return slw_driver_opens(&slw_vulkan, device_id, start_device) ? &devices[device_id] : NULL;
}

slw_status slw_vulkan_failed(const slw_vulkan_device *device, const char *what, vk_result code) {
  static const slw_driver_error KNOWN[] = {
    {-1, "VK_ERROR_OUT_OF_HOST_MEMORY: the host's memory is full: " SLW_SPARE},
    {-2, SLW_FULL "VK_ERROR_OUT_OF_DEVICE_MEMORY: "},
    {-3, "VK_ERROR_INITIALIZATION_FAILED"},
    {-4, SLW_LOST "VK_ERROR_DEVICE_LOST: "},
    {-5, "VK_ERROR_MEMORY_MAP_FAILED"},
    {-8, "VK_ERROR_FEATURE_NOT_PRESENT"},
    {-9, "VK_ERROR_INCOMPATIBLE_DRIVER"},
    {-10, "VK_ERROR_TOO_MANY_OBJECTS"},
    {-12, "VK_ERROR_FRAGMENTED_POOL"},
    {-13, "VK_ERROR_UNKNOWN"},
    {2, "VK_TIMEOUT"},
    {0, NULL},
  };
  return slw_driver_failed(&slw_vulkan, (int32_t)(device - devices), what, code,
                           slw_driver_words(KNOWN, code, "see vulkan_core.h"));
}
