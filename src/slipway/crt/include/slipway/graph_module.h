/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * A graph executor as a module (type key "graph"). All functions are in the calling convention,
 * so that Python, RPC and C call the same ones:
 *
 *   set_input(name | index, tensor)            copies; checks shape and dtype
 *   set_input_zero_copy(name | index, tensor)  keeps the pointer; the caller keeps the memory
 *   set_output_zero_copy(name | index, tensor)
 *   load_params(bytes | uint8 tensor)          classic save_param_dict bytes -> int, number set
 *   run(name, tensor, ...)           sets the inputs that are given first
 *   get_input(name | index [, tensor])         a tensor over the input's memory, or copied
 *   get_output(name | index [, tensor])        a tensor over the output's memory, or copied
 *   reset_states()                             inputs that the model itself writes hold again what
 *                                              load_params or share_param gave them, or zeros
 *   get_num_inputs() get_num_outputs() get_num_nodes()   -> int
 *   get_num_open_sizes()                       -> int, of sizes that set_input decides: an input
 *                                              with an open dimension takes every size in range
 *   get_input_index(name)                      -> int, -1 if there is none
 *   get_input_name(index)                      -> str
 *   get_input_info() get_output_info()         -> str, one line each: 
 *                                              "name\tdtype\td0,d1,...\trole\n", of an input the
 *                                              role is input, param or state
 *   get_node_info()                            -> str, one line each: "name\tfunction\n"
 *   run_node(node)
 *   debug_get_output(node | name [, tensor])   output 0 of a node as it is now
 *   profile(number, repeat)                    -> bytes: float64 seconds[repeat][num_nodes]
 *   share_param(name | index, tensor)          keeps tensor and pointer: a parameter that several
 *                                              instances read; one that sets it gets a copy.
 *                                              Not a tensor of get_input: the two would hold
 *                                              each other
 *   share_params(other graph module)           takes the other instance's parameters: shared ones
 *                                              are shared, others copied
 */
#ifndef SLIPWAY_GRAPH_MODULE_H_
#define SLIPWAY_GRAPH_MODULE_H_

#include "slipway/graph.h"
#include "slipway/module.h"
#include "slipway/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Make a graph module.
 * @param blob    graph.bin; copied
 * @param lookup  finds the compiled functions, during this call only
 * @param owner   what those functions belong to; retained; may be NULL
 * On failure the thread's error says what is wrong. */
SLW_API slw_status slw_graph_module_create(const void *blob, size_t size_bytes,
                                           slw_graph_lookup lookup, void *lookup_context,
                                           slw_module *owner, slw_module **out);

/** Same, with the model's tensors on a device, which the functions must be for. */
SLW_API slw_status slw_graph_module_create_on(DLDevice device, const void *blob, size_t size_bytes,
                                              slw_graph_lookup lookup, void *lookup_context,
                                              slw_module *owner, slw_module **out);

/** Same, of a model that runs on several kinds of device: one of `devices` for each of them. A model
 * for one kind takes the first that is of it; cpu(0) need not be given. */
SLW_API slw_status slw_graph_module_create_over(const DLDevice *devices, size_t num_devices,
                                                const void *blob, size_t size_bytes,
                                                slw_graph_lookup lookup, void *lookup_context,
                                                slw_module *owner, slw_module **out);

/** Same, with the functions already found: names[i] is calls[i]. For hosts that load libraries
 * themselves; they keep the code alive. */
SLW_API slw_status slw_graph_module_create_from_table(const DLDevice *devices,
                                                      size_t num_devices, const void *blob,
                                                      size_t size_bytes, const char *const *names,
                                                      const slw_function *functions,
                                                      size_t num_functions, slw_module **out);

/** Let an input read memory that others read too, and that `keep` holds: it is retained. The
 * input is a parameter from then on; an instance that writes it gets memory of its own. */
SLW_API slw_status slw_graph_module_share_param(slw_module *module, uint32_t input,
                                                const DLTensor *values, TVMFFIObject *keep);

/** Make one tensor that holds the values of classic save_param_dict bytes, each 64-byte aligned,
 * for slw_graph_module_share_params. */
SLW_API slw_status slw_params_unpack(const void *data, size_t size_bytes, slw_tensor **out);

/** The same, out of memory that nobody reads values from again: `taken` is told of the values of
 * each parameter when they have been copied. What it does not change is names and shapes. */
SLW_API slw_status slw_params_move(const void *data, size_t size_bytes,
                                   void (*taken)(void *context, const void *values,
                                                 size_t size_bytes),
                                   void *context, slw_tensor **out);

/** Share all parameters in `data`, whose values slw_params_unpack has put into `block`. */
SLW_API slw_status slw_graph_module_share_params(slw_module *module, const void *data,
                                                 size_t size_bytes, slw_tensor *block);

/** Set inputs from classic save_param_dict bytes; *num_set counts them. */
SLW_API slw_status slw_graph_module_load_params(slw_module *module, const void *data,
                                                size_t size_bytes, int64_t *num_set);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_GRAPH_MODULE_H_ */
