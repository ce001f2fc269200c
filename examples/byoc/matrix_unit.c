/* A matrix unit in plain C: what the driver of an accelerator would be.
 *
 * It holds a tile of 8 output channels by 16 pixels in accumulators of its own, as such units do,
 * adds a bias, and limits the result to [low, high] on its way out.  Tensors are NCHW with N = 1,
 * weights (out_channels, in_channels). */
#ifndef MATRIX_UNIT
#define MATRIX_UNIT

#include <stdint.h>

enum { MATRIX_UNIT_ROWS = 8, MATRIX_UNIT_COLUMNS = 16 };

static int32_t matrix_unit_conv1x1(const float *data, const float *weight, const float *bias,
                                   float low, float high, int32_t pixels, int32_t in_channels,
                                   int32_t out_channels, float *out) {
  if (pixels < 1 || in_channels < 1 || out_channels < 1) {
    return -1;
  }
  for (int32_t row = 0; row < out_channels; row += MATRIX_UNIT_ROWS) {
    int32_t rows = out_channels - row;
    rows = rows < MATRIX_UNIT_ROWS ? rows : MATRIX_UNIT_ROWS;
    for (int32_t column = 0; column < pixels; column += MATRIX_UNIT_COLUMNS) {
      int32_t columns = pixels - column;
      columns = columns < MATRIX_UNIT_COLUMNS ? columns : MATRIX_UNIT_COLUMNS;
      float sums[MATRIX_UNIT_ROWS][MATRIX_UNIT_COLUMNS];
      for (int32_t r = 0; r < rows; ++r) {
        for (int32_t c = 0; c < columns; ++c) {
          sums[r][c] = bias ? bias[row + r] : 0.0f;
        }
      }
      for (int32_t k = 0; k < in_channels; ++k) {
        const float *line = data + k * pixels + column;
        for (int32_t r = 0; r < rows; ++r) {
          float factor = weight[(row + r) * in_channels + k];
          for (int32_t c = 0; c < columns; ++c) {
            sums[r][c] += factor * line[c];
          }
        }
      }
      for (int32_t r = 0; r < rows; ++r) {
        float *line = out + (row + r) * pixels + column;
        for (int32_t c = 0; c < columns; ++c) {
          float value = sums[r][c];
          value = value < low ? low : value;
          line[c] = value > high ? high : value;
        }
      }
    }
  }
  return 0;
}

#endif
