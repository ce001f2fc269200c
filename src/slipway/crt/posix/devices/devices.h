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
#if defined(__APPLE__) && !defined(SLW_HAS_METAL) /* elsewhere the tests do, with a framework of theirs */
#define SLW_HAS_METAL
#endif
void slw_metal_setup(void); /* where SLW_HAS_METAL is defined */

/* What code is known under: its SHA-256 in hexadecimal, with a NUL. */
#define SLW_DEVICE_DIGEST_BYTES 65
void slw_device_digest(const void *code, size_t size_bytes, char *digest);

/* Hand the code of devices that a library carries to them, its data __slipway_device_code, and take it
 * from them when the library is closed. */
SLW_API slw_status slw_device_code_add(const void *data, size_t size_bytes, const char *name);
SLW_API void slw_device_code_drop(const void *data, size_t size_bytes);

/* Whether a file's name says that it is code of a device; such a file as a module that has no
 * function: what it holds is known to the device as long as the module lives. */
int slw_device_is_code(const char *path);
slw_status slw_device_module_open(const char *path, slw_module **out);

#endif /* SLIPWAY_DEVICES_H_ */
