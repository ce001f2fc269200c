/* SPDX-License-Identifier: Apache-2.0 */
#include "slipway/model_call.h"

#include <string.h>

#include "slipway/error.h"
#include "slipway/object.h"

int slw_model_is_called(const TVMFFIAny *args, int32_t num_args) {
  return num_args > 0 && slw_any_get_tensor(&args[0]) != NULL;
}

static int call(slw_module *executor, const char *name, const TVMFFIAny *args, int32_t num_args,
                TVMFFIAny *result) {
  slw_function function = {NULL, NULL};
  memset(result, 0, sizeof *result);
  if (slw_module_get_function(executor, name, &function) != SLW_OK) {
    return -1;
  }
  return function.call(function.self, args, num_args, result);
}

static TVMFFIAny integer(int64_t value) {
  TVMFFIAny any = {.type_index = kTVMFFIInt, .v_int64 = value};
  return any;
}

static int32_t count_lines(const char *text, size_t size_bytes) {
  int32_t lines = 0;
  for (size_t i = 0; i < size_bytes; ++i) {
    lines += (text[i] == '\n') ? 1 : 0;
  }
  return lines;
}

static int ends_with(const char *text, size_t size_bytes, const char *end) {
  const size_t length = strlen(end);
  return size_bytes >= length && memcmp(text + size_bytes - length, end, length) == 0;
}

/* Inputs are described a line each, which ends with what the input is (graph_module.h). */
static int set_inputs(slw_module *executor, const char *info, size_t size_bytes,
                      const TVMFFIAny *args, int32_t num_args, int32_t *used) {
  int32_t input = 0;
  size_t begin = 0;
  *used = 0;
  for (size_t i = 0; i < size_bytes; ++i) {
    if (info[i] != '\n') {
      continue;
    }
    if (!ends_with(info + begin, i - begin, "\tparam") &&
        !ends_with(info + begin, i - begin, "\tstate")) {
      TVMFFIAny pair[2];
      TVMFFIAny nothing;
      if (*used == num_args) {
        return slw_error_setf("TypeError", "the model takes more inputs than the %d tensors given",
                              (int)num_args);
      }
      pair[0] = integer(input);
      pair[1] = args[*used];
      if (call(executor, "set_input", pair, 2, &nothing) != 0) {
        return -1;
      }
      ++*used;
    }
    ++input;
    begin = i + 1u;
  }
  return 0;
}

static int give_outputs(slw_module *executor, const TVMFFIAny *args, int32_t num_args,
                        TVMFFIAny *result) {
  TVMFFIAny index = integer(0);
  if (num_args == 0) {
    return call(executor, "get_output", &index, 1, result);
  }
  for (int32_t i = 0; i < num_args; ++i) {
    TVMFFIAny pair[2];
    pair[0] = integer(i);
    pair[1] = args[i];
    if (call(executor, "get_output", pair, 2, result) != 0) {
      return -1;
    }
  }
  return 0;
}

int slw_model_call(slw_module *executor, const TVMFFIAny *args, int32_t num_args,
                   TVMFFIAny *result) {
  TVMFFIAny info;
  TVMFFIAny outputs;
  TVMFFIAny nothing;
  const char *text = NULL;
  size_t size = 0;
  int32_t used = 0;
  int32_t num_outputs = 0;
  int failed = call(executor, "get_output_info", NULL, 0, &outputs);
  if (failed == 0) {
    (void)slw_any_get_bytes(&outputs, &text, &size);
    num_outputs = count_lines(text, size);
    slw_any_clear(&outputs);
    failed = call(executor, "get_input_info", NULL, 0, &info);
  }
  if (failed == 0) {
    (void)slw_any_get_bytes(&info, &text, &size);
    failed = set_inputs(executor, text, size, args, num_args, &used);
    slw_any_clear(&info);
  }
  if (failed == 0 && num_args != used && num_args != used + num_outputs) {
    failed = slw_error_setf("TypeError", "the model takes %d tensors, or %d with those for its "
                                         "outputs, and got %d",
                            (int)used, (int)(used + num_outputs), (int)num_args);
  }
  if (failed == 0) {
    failed = call(executor, "run", NULL, 0, &nothing);
  }
  return (failed == 0) ? give_outputs(executor, args + used, num_args - used, result) : -1;
}
