/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The runtime's own services in the calling convention, for hosts whose language binding calls
 * nothing else (Python through tvm-ffi) and for RPC sessions. `handle` is ignored.
 */
#ifndef SLIPWAY_PACKED_H_
#define SLIPWAY_PACKED_H_

#include "slipway/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/** (function, number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms,
 *  repeats_to_cooldown, preproc function or None, *args) -> bytes: float64 seconds[repeat] */
SLW_API int slw_packed_time_evaluate(void *handle, const TVMFFIAny *args, int32_t num_args,
                                     TVMFFIAny *result);

/** (path) -> module */
SLW_API int slw_packed_module_open(void *handle, const TVMFFIAny *args, int32_t num_args,
                                   TVMFFIAny *result);

/** (address, object) -> function at the address, which keeps the object alive and never fails
 * without an error, whatever the code there does */
SLW_API int slw_packed_function(void *handle, const TVMFFIAny *args, int32_t num_args,
                                TVMFFIAny *result);

/** (module, name) -> function, which keeps the module alive */
SLW_API int slw_packed_module_get_function(void *handle, const TVMFFIAny *args, int32_t num_args,
                                           TVMFFIAny *result);

/** (type key, finder) -> module whose functions another language finds: finder(name) gives a
 * function, or None */
SLW_API int slw_packed_module_wrap(void *handle, const TVMFFIAny *args, int32_t num_args,
                                   TVMFFIAny *result);

/** (graph.bin bytes, device type, device, name, function or address, name, function or address,
 * ...) -> graph module.
 * The caller keeps the functions alive. */
SLW_API int slw_packed_graph_create(void *handle, const TVMFFIAny *args, int32_t num_args,
                                    TVMFFIAny *result);

/** (affinity mode, threads, processor, processor, ...): slw_configure_threads; the classic
 * runtime.config_threadpool */
SLW_API int slw_packed_config_threadpool(void *handle, const TVMFFIAny *args, int32_t num_args,
                                         TVMFFIAny *result);

/** (*args): let what tensors on the CPU but the first argument hold be in no cache; the classic
 * cache_flush_cpu_non_first_arg, for the `preproc` of a measurement */
SLW_API int slw_packed_cache_flush(void *handle, const TVMFFIAny *args, int32_t num_args,
                                   TVMFFIAny *result);

/** () -> text: what this machine is, a line of a name, a blank and a value for each thing it knows:
 * clock (seconds since 1970), system, machine, host, board, memory_bytes, memory_free_bytes,
 * disk_bytes, disk_free_bytes, architecture (of this program), cores, features, temperature_c (of
 * the warmest zone), clock_mhz (of the fastest core now) and clock_limit_mhz (the most it can). */
SLW_API int slw_packed_about(void *handle, const TVMFFIAny *args, int32_t num_args,
                             TVMFFIAny *result);

/** (host, port, ...): connect this session's client to the server there, from the reply on;
 * (name of an uploaded program): to that program, which serves its standard input and output. */
SLW_API int slw_packed_rpc_connect(void *handle, const TVMFFIAny *args, int32_t num_args,
                                   TVMFFIAny *result);
SLW_API int slw_packed_rpc_popen(void *handle, const TVMFFIAny *args, int32_t num_args,
                                 TVMFFIAny *result);

/** Devices: what each takes stands in posix/devices/device_code.c, where the first three are for compiled
 * code. */
SLW_API int slw_packed_device_launch(void *handle, const TVMFFIAny *args, int32_t num_args,
                                     TVMFFIAny *result);
SLW_API int slw_packed_device_alloc(void *handle, const TVMFFIAny *args, int32_t num_args,
                                    TVMFFIAny *result);
SLW_API int slw_packed_device_alloc_image(void *handle, const TVMFFIAny *args, int32_t num_args,
                                          TVMFFIAny *result);
SLW_API int slw_packed_device_free(void *handle, const TVMFFIAny *args, int32_t num_args,
                                   TVMFFIAny *result);
SLW_API int slw_packed_device_add_code(void *handle, const TVMFFIAny *args, int32_t num_args,
                                       TVMFFIAny *result);
SLW_API int slw_packed_device_drop_code(void *handle, const TVMFFIAny *args, int32_t num_args,
                                        TVMFFIAny *result);
SLW_API int slw_packed_device_code(void *handle, const TVMFFIAny *args, int32_t num_args,
                                   TVMFFIAny *result);
SLW_API int slw_packed_device_drop(void *handle, const TVMFFIAny *args, int32_t num_args,
                                   TVMFFIAny *result);
SLW_API int slw_packed_device_empty(void *handle, const TVMFFIAny *args, int32_t num_args,
                                    TVMFFIAny *result);
SLW_API int slw_packed_device_attribute(void *handle, const TVMFFIAny *args, int32_t num_args,
                                        TVMFFIAny *result);
SLW_API int slw_packed_device_sync(void *handle, const TVMFFIAny *args, int32_t num_args,
                                   TVMFFIAny *result);
SLW_API int slw_packed_device_trim(void *handle, const TVMFFIAny *args, int32_t num_args,
                                   TVMFFIAny *result);
SLW_API int slw_packed_device_stream(void *handle, const TVMFFIAny *args, int32_t num_args,
                                     TVMFFIAny *result);
SLW_API int slw_packed_device_pinned(void *handle, const TVMFFIAny *args, int32_t num_args,
                                     TVMFFIAny *result);
SLW_API int slw_packed_device_copy_later(void *handle, const TVMFFIAny *args, int32_t num_args,
                                         TVMFFIAny *result);
SLW_API int slw_packed_tensor_copy(void *handle, const TVMFFIAny *args, int32_t num_args,
                                   TVMFFIAny *result);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_PACKED_H_ */
