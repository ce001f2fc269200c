/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of device that a program under an operating system has. */
#ifndef SLIPWAY_DEVICES_H_
#define SLIPWAY_DEVICES_H_

#include "slipway/device_api.h"
#include "slipway/module.h"

/* Enter all kinds (device_api.h) and the functions by which compiled code reaches them
 * (registry.h); again is nothing. */
SLW_API void slw_devices_setup(void);

void slw_opencl_setup(void);
void slw_cuda_setup(void);
void slw_hip_setup(void);
void slw_vulkan_setup(void);

/* Make code known to one kind, under its SHA-256. */
slw_status slw_device_code_known(const slw_device_api *api, const void *code, size_t size_bytes);

/* Hand the code of devices that a library carries to them: its data __slipway_device_code. */
SLW_API slw_status slw_device_code_add(const void *data, size_t size_bytes, const char *name);

/* Whether a file's name says that it is code of a device; such a file as a module that has no
 * function: what it holds is known to the device from then on. */
int slw_device_is_code(const char *path);
slw_status slw_device_module_open(const char *path, slw_module **out);

#endif /* SLIPWAY_DEVICES_H_ */
