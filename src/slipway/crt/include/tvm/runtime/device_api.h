/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Memory of devices: of the processor, and of those that the runtime finds (slipway/device_api.h).
 */
#ifndef TVM_RUNTIME_DEVICE_API_H_
#define TVM_RUNTIME_DEVICE_API_H_

#include "slipway/device_api.h"
#include "tvm/runtime/ndarray.h"

namespace tvm {
namespace runtime {

constexpr int kAllocAlignment = 64;      /* bytes of what AllocDataSpace returns, at least */
constexpr int kTempAllocaAlignment = 64; /* of what AllocWorkspace returns */

inline const char *DeviceName(int type) {
  switch (type) {
    case kDLCPU:
      return "cpu";
    case kDLCUDA:
      return "cuda";
    case kDLOpenCL:
      return "opencl";
    case kDLVulkan:
      return "vulkan";
    case kDLMetal:
      return "metal";
    case kDLWebGPU:
      return "webgpu";
    case kDLHexagon:
      return "hexagon";
    default:
      return "unknown";
  }
}

/** "cpu(0)" */
template <typename Traits>
std::basic_ostream<char, Traits> &operator<<(std::basic_ostream<char, Traits> &out,
                                             Device device) {
  return out << DeviceName(static_cast<int>(device.device_type)) << '(' << device.device_id << ')';
}

class DeviceAPI {
 public:
  /** Return the interface of a device; nullptr, for one that is not there, if missing is allowed. */
  static DeviceAPI *Get(Device device, bool allow_missing = false) {
    static DeviceAPI all; /* the device is named in each call */
    const int type = static_cast<int>(device.device_type);
#if !defined(SLW_NO_THREADS)
    slw_classic_find_devices();
#endif
    if (type == kDLCPU || slw_device_find(type) != nullptr) {
      return &all;
    }
    if (!allow_missing) {
      detail::Fail("ValueError", std::string("this runtime has no device ") + DeviceName(type) +
                                     "; use kDLCPU");
    }
    return nullptr;
  }

  /** The device is named in each call: there is no current one. */
  void SetDevice(Device device) { (void)Get(device); }
  void *AllocDataSpace(Device device, std::size_t nbytes, std::size_t alignment,
                       DLDataType type_hint) {
    void *memory = nullptr;
    detail::Succeeded(TVMDeviceAllocDataSpace(device, nbytes, alignment, type_hint, &memory));
    return memory;
  }
  void FreeDataSpace(Device device, void *memory) { TVMDeviceFreeDataSpace(device, memory); }
  void CopyDataFromTo(DLTensor *from, DLTensor *to, TVMStreamHandle stream) {
    detail::Succeeded(TVMDeviceCopyDataFromTo(from, to, stream));
  }
  void StreamSync(Device device, TVMStreamHandle stream) {
    detail::Succeeded(
        TVMSynchronize(static_cast<int>(device.device_type), device.device_id, stream));
  }
};

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_DEVICE_API_H_
