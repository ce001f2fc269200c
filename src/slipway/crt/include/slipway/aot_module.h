/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * A model compiled ahead of time as a module (type key "aot"), with the functions of a graph
 * module that such a model can have:
 *
 *   set_input(name | index, tensor)    get_input(name | index)
 *   run()                              get_output(index [, tensor])
 *   get_num_inputs() get_num_outputs() get_input_index(name) get_input_name(index)
 *   get_input_info() get_output_info() as text, see graph_module.h
 */
#ifndef SLIPWAY_AOT_MODULE_H_
#define SLIPWAY_AOT_MODULE_H_

#include "slipway/module.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct slw_aot_tensor {
  const char *name;
  DLTensor tensor;
  int32_t is_state; /**< not 0 for an input that a run writes, and that is kept between runs */
} slw_aot_tensor;

/** A model of the firmware. Inputs and outputs have memory of their own. */
typedef struct slw_aot_model {
  slw_aot_tensor *inputs;
  uint32_t num_inputs;
  slw_aot_tensor *outputs;
  uint32_t num_outputs;
  int32_t (*run)(void); /**< returns 0 on success */
  void (*reset)(void);  /**< gives the states their first values; NULL where there are none */
} slw_aot_model;

/** Make a module; `model` must outlive it.  `owner` (may be NULL), what the model's code belongs
 * to, is retained. */
SLW_API slw_status slw_aot_module_create(const slw_aot_model *model, slw_module *owner,
                                         slw_module **out);

#ifdef __cplusplus
}
#endif
#endif /* SLIPWAY_AOT_MODULE_H_ */
