/* The model linked into the program, as firmware has it.
 *
 *     python build_model.py bundle
 *     cc -Ibundle bundle_static.c bundle/digits_lib0.c -o digits && ./digits < image
 *
 * Reads an 8 by 8 image as 64 float32 on standard input, prints the digit.
 */
#include <stdio.h>

#include "tvmgen_digits.h"

static float image[TVMGEN_DIGITS_IMAGE_SIZE / 4];
static float scores[TVMGEN_DIGITS_OUTPUT_SIZE / 4];

int main(void) {
  struct tvmgen_digits_inputs inputs = {image};
  struct tvmgen_digits_outputs outputs = {scores};
  int best = 0;
  if (fread(image, 1, sizeof image, stdin) != sizeof image) {
    fprintf(stderr, "the image needs %u bytes\n", (unsigned)sizeof image);
    return 1;
  }
  if (tvmgen_digits_run(&inputs, &outputs) != TVMGEN_DIGITS_STATUS_OK) {
    return 1;
  }
  for (int i = 1; i < (int)(sizeof scores / sizeof scores[0]); ++i) {
    best = scores[i] > scores[best] ? i : best;
  }
  printf("%d\n", best);
  return 0;
}
