/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * What compiled code and functions written for it ask of the classic runtime.
 */
#ifndef TVM_RUNTIME_C_BACKEND_API_H_
#define TVM_RUNTIME_C_BACKEND_API_H_

#include "tvm/runtime/c_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A function as classic compiled code has it; TVMFuncCreateFromBackendFunc makes it callable. */
typedef int (*TVMBackendPackedCFunc)(TVMValue *args, int *type_codes, int num_args,
                                     TVMValue *out_ret_value, int *out_ret_tcode,
                                     void *resource_handle);

typedef struct {
  void *sync_handle; /* of no meaning here */
  int32_t num_task;
} TVMParallelGroupEnv;

typedef int (*FTVMParallelLambda)(int task_id, TVMParallelGroupEnv *penv, void *cdata);

/** Find a global function. `*out` stays valid while it is registered.
 * @return 0, or -1 with the thread's error when there is none */
TVM_DLL int TVMBackendGetFuncFromEnv(void *mod_node, const char *func_name, TVMFunctionHandle *out);

/** Add a function to the module that the global function "runtime.SystemLib" returns. */
TVM_DLL int TVMBackendRegisterSystemLibSymbol(const char *name, void *ptr);

/** Memory aligned to 64 bytes, given back last in, first out on each thread; NULL when there is none. */
TVM_DLL void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes,
                                       int dtype_code_hint, int dtype_bits_hint);
TVM_DLL int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr);

/** Run the tasks on the runtime's threads; num_task 0: as many as there are threads. */
TVM_DLL int TVMBackendParallelLaunch(FTVMParallelLambda flambda, void *cdata, int num_task);

/** Run f once for *handle, which starts as NULL, with a copy of the data. */
TVM_DLL int TVMBackendRunOnce(void **handle, int (*f)(void *), void *cdata, int nbytes);

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_C_BACKEND_API_H_ */
