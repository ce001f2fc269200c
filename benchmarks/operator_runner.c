/* Runs exported models and counts the instructions of each of their kernels.
 *
 *   operator_runner [-s] [-H] FOLDER (NAME INPUTS OUTPUTS)...
 *
 * For each NAME it opens FOLDER/NAME.tar, fills the inputs from FOLDER/NAME.in (raw, one after the
 * other), runs the model, then each of its kernels once more between two marks, and writes the
 * outputs, raw, to FOLDER/NAME.out.  It prints a line for each kernel.  The marks are calls of close() on numbers that are no files: under QEMU the
 * plugin instruction_count.c counts between them.  With -s (x86 without an emulator) the process
 * counts itself, by single steps, and prints the count behind the name; -H writes the code that was stepped
 * through most to FOLDER/NAME.hot, as "COUNT ADDRESS BYTES" lines.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slipway/error.h"
#include "slipway/module.h"
#include "slipway/tensor.h"
#include "slipway/threadpool.h"

#define MARK_BEGIN (-7001)
#define MARK_END (-7002)
#define MAX_IO 8
#define TABLE 65536 /* addresses that are told apart */

static int stepping;
static int hot;

#if defined(__x86_64__)
#include <ucontext.h>
#define TRAP_FLAG 0x100

static volatile unsigned long long steps;
static volatile int stop;
static struct {
  unsigned long long at, count;
} seen[TABLE];

static void on_step(int signal, siginfo_t *info, void *context) {
  ucontext_t *where = context;
  unsigned long long at = (unsigned long long)where->uc_mcontext.gregs[REG_RIP];
  (void)signal;
  (void)info;
  if (stop) {
    where->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    return;
  }
  ++steps;
  for (unsigned long long slot = at % TABLE; hot; slot = (slot + 1) % TABLE) {
    if (seen[slot].at == at || seen[slot].at == 0) {
      seen[slot].at = at;
      ++seen[slot].count;
      break;
    }
  }
}

static void begin_steps(void) {
  struct sigaction action = {0};
  action.sa_sigaction = on_step;
  action.sa_flags = SA_SIGINFO;
  (void)sigaction(SIGTRAP, &action, NULL);
  memset(seen, 0, sizeof seen);
  steps = 0;
  stop = 0;
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP_FLAG);
}

static int by_address(const void *a, const void *b) {
  unsigned long long x = *(const unsigned long long *)a;
  unsigned long long y = *(const unsigned long long *)b;
  return (x > y) - (x < y);
}

static void end_steps(const char *folder, const char *name) {
  char path[4096];
  FILE *file;
  stop = 1;
  if (!hot) {
    return;
  }
  (void)snprintf(path, sizeof path, "%s/%s.hot", folder, name);
  file = fopen(path, "w");
  qsort(seen, TABLE, sizeof seen[0], by_address);
  for (size_t i = 0; i < TABLE && file != NULL; ++i) {
    if (seen[i].count * 100 > steps / 4) {
      fprintf(file, "%llu %llx ", seen[i].count, seen[i].at);
      for (int k = 0; k < 15; ++k) {
        fprintf(file, "%02x", ((const unsigned char *)seen[i].at)[k]);
      }
      fprintf(file, "\n");
    }
  }
  if (file != NULL) {
    (void)fclose(file);
  }
}
#else
static unsigned long long steps;
static void begin_steps(void) {}
static void end_steps(const char *folder, const char *name) {
  (void)folder;
  (void)name;
}
#endif

static void fail(const char *name, const char *what) {
  fprintf(stderr, "%s: %s: %s: %s\n", name, what, slw_error_kind(), slw_error_message());
  exit(1);
}

static TVMFFIAny call(slw_module *module, const char *function, TVMFFIAny *argument) {
  TVMFFIAny result = {0};
  slw_function f;
  if (slw_module_get_function(module, function, &f) != SLW_OK ||
      f.call(f.self, argument, argument != NULL, &result) != 0) {
    fail(function, "call");
  }
  return result;
}

static size_t size_of(const DLTensor *tensor) {
  size_t bytes = (size_t)tensor->dtype.bits * tensor->dtype.lanes / 8;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    bytes *= (size_t)tensor->shape[i];
  }
  return bytes;
}

/* Read or write the tensors that get_input or get_output give, until there is none. */
static void transfer(slw_module *model, const char *getter, int count, FILE *file, int writes) {
  for (int i = 0; i < count; ++i) {
    TVMFFIAny index = {0};
    TVMFFIAny got;
    DLTensor *tensor;
    index.type_index = kTVMFFIInt;
    index.v_int64 = i;
    got = call(model, getter, &index);
    tensor = slw_any_get_tensor(&got);
    if (writes) {
      (void)fwrite(tensor->data, 1, size_of(tensor), file);
    } else if (fread(tensor->data, 1, size_of(tensor), file) != size_of(tensor)) {
      fail(getter, "the file of inputs is too short");
    }
    slw_any_clear(&got);
  }
}

/* Run the kernels one by one between marks, and print their names. */
static void count_nodes(slw_module *model, const char *folder, const char *name) {
  TVMFFIAny info = call(model, "get_node_info", NULL);
  const char *text = NULL;
  size_t size = 0;
  slw_function f;
  TVMFFIAny node = {0};
  TVMFFIAny none = {0};
  if (slw_any_get_blob(&info, &text, &size) != SLW_OK ||
      slw_module_get_function(model, "run_node", &f) != SLW_OK) {
    fail(name, "nodes");
  }
  node.type_index = kTVMFFIInt;
  for (const char *line = text; line < text + size; ++node.v_int64) {
    const char *end = memchr(line, '\n', (size_t)(text + size - line));
    const char *kernel = memchr(line, '\t', (size_t)(end - line));
    int length = (kernel == NULL) ? 0 : (int)(end - kernel - 1);
    if (length > 0 && strncmp(kernel + 1, "__nop", 5) != 0) {
      if (stepping) {
        begin_steps();
        (void)f.call(f.self, &node, 1, &none);
        end_steps(folder, name);
        printf("%.*s %llu\n", length, kernel + 1, steps);
      } else {
        (void)close(MARK_BEGIN);
        (void)f.call(f.self, &node, 1, &none);
        (void)close(MARK_END);
        printf("%.*s 0\n", length, kernel + 1);
      }
    }
    line = end + 1;
  }
  slw_any_clear(&info);
}

static void run(const char *folder, const char *name, int inputs, int outputs) {
  char path[4096];
  slw_module *library = NULL;
  slw_module *model;
  FILE *file;
  TVMFFIAny device = {0};
  TVMFFIAny made;
  (void)snprintf(path, sizeof path, "%s/%s.tar", folder, name);
  if (slw_module_open(path, &library) != SLW_OK) {
    fail(name, "open");
  }
  device.type_index = kTVMFFIDevice;
  device.v_device.device_type = kDLCPU;
  made = call(library, "default", &device);
  model = slw_any_get_module(&made);
  (void)snprintf(path, sizeof path, "%s/%s.in", folder, name);
  file = fopen(path, "rb");
  transfer(model, "get_input", inputs, file, 0);
  (void)fclose(file);
  (void)call(model, "run", NULL);
  (void)snprintf(path, sizeof path, "%s/%s.out", folder, name);
  file = fopen(path, "wb");
  transfer(model, "get_output", outputs, file, 1);
  (void)fclose(file);
  count_nodes(model, folder, name);
  slw_any_clear(&made);
  slw_module_release(library);
}

int main(int argc, char **argv) {
  int at = 1;
  for (; at < argc && argv[at][0] == '-'; ++at) {
    stepping |= argv[at][1] == 's';
    hot |= argv[at][1] == 'H';
  }
  (void)slw_set_num_threads(1);
  for (const char *folder = argv[at++]; at + 2 < argc; at += 3) {
    run(folder, argv[at], atoi(argv[at + 1]), atoi(argv[at + 2]));
    (void)fflush(stdout);
  }
  return 0;
}
