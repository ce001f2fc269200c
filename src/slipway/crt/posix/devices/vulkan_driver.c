/* SPDX-License-Identifier: Apache-2.0 */
/* The Vulkan loader of this machine, and the devices of all drivers: discrete GPUs first, then
 * integrated and virtual ones, then processors.  A static program cannot open it. */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "slipway/error.h"
#include "vulkan.h"

#if !defined(SLW_STATIC)
#include <dlfcn.h>
#endif

#define MAX_DEVICES 16
#define MAX_FAMILIES 16

static slw_vulkan_functions driver;
static slw_vulkan_device devices[MAX_DEVICES];
static int32_t num_devices;
static const char *missing; /* what keeps Vulkan from working here; NULL: nothing */
static pid_t opened_by;     /* drivers have threads, which a fork of the process does not have */
static pthread_once_t looked = PTHREAD_ONCE_INIT;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

_Static_assert(sizeof(size_t) != 8U || (sizeof(vk_properties) == 824U &&
                                        offsetof(vk_properties, max_shared_bytes) == 512U &&
                                        offsetof(vk_properties, storage_alignment) == 624U),
               "VkPhysicalDeviceProperties");

#if !defined(SLW_STATIC)
static const char *const NAMES[] = {"libvulkan.so.1", "libvulkan.so", "libvulkan.1.dylib",
                                    "libMoltenVK.dylib"};

static int open_driver(void) {
  void *library = NULL;
  for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0] && library == NULL; ++i) {
    library = dlopen(NAMES[i], RTLD_NOW | RTLD_LOCAL);
  }
  if (library == NULL) {
    missing = "there is no libvulkan.so.1. Install the loader and the device's driver (Debian: sudo "
              "apt-get install libvulkan1 mesa-vulkan-drivers, which has one for the processor)";
    return 0;
  }
#define SLW_VULKAN_FIND(name, result, parameters)                             \
  {                                                                           \
    void *found = dlsym(library, "vk" #name);                                 \
    if (found == NULL) {                                                      \
      missing = "its libvulkan has no vk" #name ": Vulkan 1.1 has";           \
      return 0;                                                               \
    }                                                                         \
    memcpy(&driver.name, &found, sizeof found);                               \
  }
  SLW_VULKAN_FUNCTIONS(SLW_VULKAN_FIND)
#undef SLW_VULKAN_FIND
  return 1;
}
#else
static int open_driver(void) {
  missing = "this server is a static program, and the driver is a library for the system's loader. "
            "Run Python's server there: python -m slipway.exec.rpc_server";
  return 0;
}
#endif

static int find_family(vk_handle physical, uint32_t *family) {
  vk_queue_family families[MAX_FAMILIES];
  uint32_t count = MAX_FAMILIES;
  driver.GetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
  for (uint32_t i = 0; i < count; ++i) {
    if ((families[i].flags & VK_QUEUE_COMPUTE) != 0U && families[i].count > 0U) {
      *family = i;
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

static void enter(vk_handle physical) {
  vk_properties properties;
  uint32_t family = 0;
  int32_t at = num_devices;
  driver.GetPhysicalDeviceProperties(physical, &properties);
  if (properties.api < (uint32_t)VK_API_1_1 || !find_family(physical, &family) ||
      num_devices == MAX_DEVICES) {
    return;
  }
  while (at > 0 && rank_of(devices[at - 1].properties.kind) > rank_of(properties.kind)) {
    devices[at] = devices[at - 1];
    --at;
  }
  memset(&devices[at], 0, sizeof devices[at]);
  devices[at].physical = physical;
  devices[at].family = family;
  devices[at].properties = properties;
  driver.GetPhysicalDeviceMemoryProperties(physical, &devices[at].memory);
  ++num_devices;
}

static int is_forked(void) { return opened_by != 0 && opened_by != getpid(); }

static void look(void) {
  vk_application application = {VK_TYPE_APPLICATION, NULL, "slipway", 1, "slipway", 1, VK_API_1_2};
  vk_instance_info info = {VK_TYPE_INSTANCE, NULL, 0, &application, 0, NULL, 0, NULL};
  vk_handle instance = NULL;
  vk_handle found[MAX_DEVICES];
  uint32_t count = MAX_DEVICES;
  if (!open_driver()) {
    return;
  }
  opened_by = getpid();
  if (driver.CreateInstance(&info, NULL, &instance) != VK_SUCCESS) {
    missing = "its loader knows no driver (ls /usr/share/vulkan/icd.d)";
    return;
  }
  if (driver.EnumeratePhysicalDevices(instance, &count, found) < VK_SUCCESS) {
    count = 0;
  }
  for (uint32_t i = 0; i < count; ++i) {
    enter(found[i]);
  }
  for (int32_t i = 0; i < num_devices; ++i) {
    (void)pthread_mutex_init(&devices[i].lock, NULL);
  }
  missing = (num_devices > 0) ? NULL : "its drivers have no device with Vulkan 1.1";
}

int slw_vulkan_exists(int32_t device_id) {
  (void)pthread_once(&looked, look);
  return !is_forked() && device_id >= 0 && device_id < num_devices;
}

int slw_vulkan_is_open(int32_t device_id) {
  if (is_forked() || device_id < 0 || device_id >= num_devices) {
    return -1; /* the other process waits for its own work */
  }
  return devices[device_id].device != NULL;
}

const slw_vulkan_functions *slw_vulkan_driver(void) {
  (void)pthread_once(&looked, look);
  if (is_forked()) {
    (void)slw_error_setf("DeviceError",
                         "Vulkan does not work in a fork of a process that has used it. Start a "
                         "process of its own instead: rpc.PopenSession(), or an RPC server before "
                         "Vulkan is used here.");
    return NULL;
  }
  if (missing != NULL) {
    (void)slw_error_setf("DeviceError", "Vulkan does not work on this machine: %s.", missing);
    return NULL;
  }
  return &driver;
}

/* Open the device with those of its features that code may use. */
static vk_result open_device(slw_vulkan_device *device) {
  enum { FLOAT64 = 39, INT64 = 40, INT16 = 41 };
  static const float PRIORITY = 1.0F;
  vk_feature_set of_16 = {VK_TYPE_16BIT, NULL, {0, 0, 0, 0}};
  vk_feature_set of_8 = {VK_TYPE_8BIT, &of_16, {0, 0, 0, 0}};
  vk_feature_set int8 = {VK_TYPE_INT8, &of_8, {0, 0, 0, 0}};
  int has_8 = device->properties.api >= (uint32_t)VK_API_1_2; /* else they are extensions */
  vk_features all = {VK_TYPE_FEATURES_2, has_8 ? (void *)&int8 : (void *)&of_16, {0}};
  vk_queue_info queue = {VK_TYPE_QUEUE, NULL, 0, device->family, 1, &PRIORITY};
  vk_device_info info = {VK_TYPE_DEVICE, &all, 0, 1, &queue, 0, NULL, 0, NULL, NULL};
  vk_result code;
  uint32_t wanted[3];
  driver.GetPhysicalDeviceFeatures2(device->physical, &all);
  for (int i = 0; i < 3; ++i) {
    wanted[i] = all.flags[FLOAT64 + i];
  }
  memset(all.flags, 0, sizeof all.flags);
  for (int i = 0; i < 3; ++i) {
    all.flags[FLOAT64 + i] = wanted[i];
  }
  of_16.flags[1] = of_16.flags[2] = of_16.flags[3] = 0;
  of_8.flags[1] = of_8.flags[2] = 0;
  int8.flags[0] = 0; /* float16 */
  device->capabilities =
      (wanted[0] != 0U ? SLW_VULKAN_FLOAT64 : 0U) | (wanted[1] != 0U ? SLW_VULKAN_INT64 : 0U) |
      (wanted[2] != 0U ? SLW_VULKAN_INT16 : 0U) | (int8.flags[1] != 0U ? SLW_VULKAN_INT8 : 0U) |
      (of_16.flags[0] != 0U ? SLW_VULKAN_BUFFERS_OF_16_BITS : 0U) |
      (of_8.flags[0] != 0U ? SLW_VULKAN_BUFFERS_OF_8_BITS : 0U);
  code = driver.CreateDevice(device->physical, &info, NULL, &device->device);
  if (code == VK_SUCCESS) {
    driver.GetDeviceQueue(device->device, device->family, 0, &device->queue);
  }
  return code;
}

slw_vulkan_device *slw_vulkan_device_of(int32_t device_id) {
  slw_vulkan_device *device;
  slw_status status = SLW_OK;
  if (slw_vulkan_driver() == NULL) {
    return NULL;
  }
  if (!slw_vulkan_exists(device_id)) {
    (void)slw_error_setf("DeviceError", "there is no vulkan(%d): this machine has %d Vulkan device%s, "
                                        "vulkan(0)%s.",
                         (int)device_id, (int)num_devices, (num_devices == 1) ? "" : "s",
                         (num_devices == 1) ? "" : " and so on");
    return NULL;
  }
  device = &devices[device_id];
  (void)pthread_mutex_lock(&opening);
  if (device->queue == NULL) {
    vk_result code = open_device(device);
    status = (code == VK_SUCCESS) ? slw_vulkan_open_queue(device)
                                  : slw_vulkan_failed(device, "opening it", code);
    if (status != SLW_OK) {
      device->device = device->queue = NULL;
    }
  }
  (void)pthread_mutex_unlock(&opening);
  return (status == SLW_OK) ? device : NULL;
}

static const char *name_of(vk_result code) {
  static const struct {
    vk_result code;
    const char *name;
  } KNOWN[] = {
      {-1, "VK_ERROR_OUT_OF_HOST_MEMORY"},
      {-2, "VK_ERROR_OUT_OF_DEVICE_MEMORY: its memory is full"},
      {-3, "VK_ERROR_INITIALIZATION_FAILED"},
      {-4, "VK_ERROR_DEVICE_LOST: start the program again, and look at the system's log"},
      {-5, "VK_ERROR_MEMORY_MAP_FAILED"},
      {-8, "VK_ERROR_FEATURE_NOT_PRESENT"},
      {-9, "VK_ERROR_INCOMPATIBLE_DRIVER"},
      {-10, "VK_ERROR_TOO_MANY_OBJECTS"},
      {-12, "VK_ERROR_FRAGMENTED_POOL"},
      {-13, "VK_ERROR_UNKNOWN"},
      {2, "VK_TIMEOUT"},
  };
  for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; ++i) {
    if (KNOWN[i].code == code) {
      return KNOWN[i].name;
    }
  }
  return "see vulkan_core.h";
}

slw_status slw_vulkan_failed(const slw_vulkan_device *device, const char *what, vk_result code) {
  (void)slw_error_setf("DeviceError", "vulkan(%d) (%s): %s failed with error %d (%s).",
                       (int)(device - devices), device->properties.name, what, (int)code,
                       name_of(code));
  return SLW_ERROR_CALL;
}
