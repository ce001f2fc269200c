/* The model as a shared library, loaded when the program runs.
 *
 *     python build_model.py bundle
 *     cc -shared -fPIC bundle/digits_lib0.c -o digits.so
 *     cc -Ibundle bundle_dynamic.c -ldl -o digits && ./digits ./digits.so < image
 */
#include <dlfcn.h>
#include <stdio.h>

#include "tvmgen_digits.h"

static float image[TVMGEN_DIGITS_IMAGE_SIZE / 4];
static float scores[TVMGEN_DIGITS_OUTPUT_SIZE / 4];

int main(int argc, char **argv) {
  struct tvmgen_digits_inputs inputs = {image};
  struct tvmgen_digits_outputs outputs = {scores};
  int32_t (*run)(const struct tvmgen_digits_inputs *, const struct tvmgen_digits_outputs *);
  int best = 0;
  void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (library == NULL) {
    fprintf(stderr, "usage: %s LIBRARY < IMAGE (%s)\n", argv[0], dlerror());
    return 1;
  }
  *(void **)&run = dlsym(library, "tvmgen_digits_run");
  if (run == NULL || fread(image, 1, sizeof image, stdin) != sizeof image ||
      run(&inputs, &outputs) != TVMGEN_DIGITS_STATUS_OK) {
    return 1;
  }
  for (int i = 1; i < (int)(sizeof scores / sizeof scores[0]); ++i) {
    best = scores[i] > scores[best] ? i : best;
  }
  printf("%d\n", best);
  return dlclose(library);
}
