/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The parts of a graph module. Private to graph_module*.c.
 */
#ifndef SLW_GRAPH_MODULE_PARTS_H_
#define SLW_GRAPH_MODULE_PARTS_H_

#include "slipway/graph_module.h"

/** A parameter whose memory several instances read. `keep` NULL: the input has its own. */
typedef struct {
  TVMFFIObject *keep; /* holds the memory; retained */
  void *own_data;     /* this instance's place for it, for when it is written */
  TVMFFIObject *initial_keep; /* of a state: what it holds at first; NULL for zeros */
  void *initial_data;
} slw_shared_param;

/** The model's memory on one device. */
typedef struct {
  void *memory;
  DLDevice device;
} slw_graph_memory;

typedef struct {
  slw_module head;
  slw_graph graph;
  slw_module *owner; /* what the functions belong to */
  void *blob;
  void *tables;
  slw_graph_memory *arenas; /* as many as the graph has, or one */
  uint32_t num_arenas;
  uint8_t *is_param;        /* for each input: set by load_params or share_param */
  slw_shared_param *shared; /* for each input */
  uint8_t *is_state;        /* for each input: kernels of the model write it */
  uint8_t *stale;           /* for each input: the model's sizes have changed since it was set */
  uint8_t placed;           /* an input or output was given memory since the last run */
} slw_graph_module;

extern const slw_module_class slw_graph_module_class;

/** One function of the module, in the calling convention with the module as `handle`. */
typedef struct {
  const char *name;
  TVMFFISafeCallType call;
} slw_graph_method;

/** The methods of graph_module_info.c, graph_module_zero_copy.c, graph_module_params.c and
 * graph_module_state.c; the last one's name is NULL. */
extern const slw_graph_method slw_graph_info_methods[];
extern const slw_graph_method slw_graph_zero_copy_methods[];
extern const slw_graph_method slw_graph_params_methods[];
extern const slw_graph_method slw_graph_state_methods[];

/** Read argument `index` as an input: a name or a number. Sets the thread's error.
 * @return 0 or -1 */
int slw_graph_arg_input(const slw_graph_module *self, const TVMFFIAny *args, int32_t num_args,
                        const char *function, uint32_t *input);

/** Read argument 0 as an output: a number, or a name where the model has them. @return 0 or -1 */
int slw_graph_arg_output(const slw_graph_module *self, const TVMFFIAny *args, const char *function,
                         uint32_t *output);

/** Check the number of arguments; sets the thread's error. @return 0 or -1 */
int slw_graph_arg_count(const char *function, int32_t num_args, int32_t minimum, int32_t maximum);

/** Read argument `index` as an integer in 0..limit-1; sets the thread's error. @return 0 or -1 */
int slw_graph_arg_index(const TVMFFIAny *args, int32_t index, uint32_t limit, const char *function,
                        const char *what, uint32_t *value);

/** Say what differs between the model's tensor and the one given. @return 0 if nothing, or -1 */
int slw_graph_check_tensor(const char *function, const char *name, const DLTensor *model,
                           const DLTensor *given);

/** Let an input with open dimensions have the shape of `given`, and the model the sizes for that.
 * Nothing happens for other inputs, and for another number of axes. @return 0 or -1 */
int slw_graph_fit_input(slw_graph_module *self, const char *function, uint32_t input,
                        const DLTensor *given);

/** Refuse to run while an input is of other sizes than the model has now. @return 0 or -1 */
int slw_graph_check_stale(const slw_graph_module *self);

/** Let a state hold `values` now and after each reset_states; `keep` has the memory, which is the
 * processor's, and is retained. */
slw_status slw_graph_share_initial(slw_graph_module *self, uint32_t input, const DLTensor *values,
                                   TVMFFIObject *keep);

/** The same, for values that are copied. */
slw_status slw_graph_copy_initial(slw_graph_module *self, uint32_t input, const DLTensor *values);

/** Give an input memory of its own before it may be written; with its values if `keep_values`. */
void slw_graph_own_input(slw_graph_module *self, uint32_t input, int keep_values);

/** Give `source` as a tensor over its memory, or copy it to args[index] if there is one. */
int slw_graph_give_tensor(slw_graph_module *self, const DLTensor *source, const char *name,
                          const TVMFFIAny *args, int32_t num_args, int32_t index,
                          TVMFFIAny *result);

/** Refuse to run where an output was given memory that an input or another output has.
 * Inputs and outputs may change places between two runs, so it is asked before a run.
 * @return 0 or -1 with the thread's error */
int slw_graph_check_zero_copy(slw_graph_module *self);

/** Set the thread's error for a node that failed, keeping the kernel's own words. @return -1 */
int slw_graph_node_failed(const slw_graph_module *self, uint32_t node);

#endif /* SLW_GRAPH_MODULE_PARTS_H_ */
