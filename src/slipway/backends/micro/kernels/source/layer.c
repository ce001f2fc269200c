#include <stddef.h>
#if defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__clang__)
#include <arm_mve.h>
#endif

/* clang takes assembly for short and repeats it: not in the loop that follows. */
#if defined(__clang__)
#define SLW_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define SLW_ROLLED
#endif

/* What every integer kernel knows of its layer.  Zero points are folded into the biases; the padding
 * holds the data's zero point.
 */
struct slw_layer {
  int16_t in_height, in_width;
  int16_t out_height, out_width;
  int16_t kernel_height, kernel_width;
  int16_t stride_y, stride_x;
  int16_t dilation_y, dilation_x;
  int16_t pad_top, pad_left;
  int16_t pad_value, out_zero, out_min, out_max;
  uint16_t in_channels, out_channels;
  uint16_t per_channel; /* step in multipliers and shifts: 1, or 0 for one of each */
  uint16_t clips;       /* 0: out_min and out_max are those of int8 */
  uint16_t direct;      /* a window is one pixel, and always inside the data */
};

struct slw_scales {
  const int32_t *bias, *multiplier, *shift;
};

/* Point at each element of a window; those outside point at `padding`. Returns the end. */
static SLW_SHARED const int8_t **slw_window(const struct slw_layer *layer, const int8_t *data,
                                            int32_t top, int32_t left, const int8_t *padding,
                                            const int8_t **window) {
  const uint32_t width = (uint32_t)layer->in_width;
  const uint32_t channels = layer->in_channels;
  for (int32_t ky = 0; ky < layer->kernel_height; ++ky, top += layer->dilation_y) {
    const uint32_t columns = top >= 0 && top < layer->in_height ? width : 0u;
    const uint32_t line = (uint32_t)top * width;
    uint32_t column = (uint32_t)left; /* one before the data is a very large number */
    for (int32_t kx = layer->kernel_width; kx > 0; --kx, column += (uint32_t)layer->dilation_x) {
      *window++ = column < columns ? data + (line + column) * channels : padding;
    }
  }
  return window;
}

/* The window of output pixel (y, x), from that of the pixel before. Returns its end. */
static inline const int8_t **slw_next_window(const struct slw_layer *layer, const int8_t *data,
                                             int32_t y, int32_t x, const int8_t *padding,
                                             const int8_t **window) {
  const int32_t left = x * layer->stride_x - layer->pad_left;
  const int32_t top = y * layer->stride_y - layer->pad_top;
  const int32_t right = layer->in_width - (layer->kernel_width - 1) * layer->dilation_x;
  const int32_t bottom = layer->in_height - (layer->kernel_height - 1) * layer->dilation_y;
  const int by_rows = layer->out_width == 1;
  const int32_t before_x = by_rows ? left : left - layer->stride_x;
  const int32_t before_y = by_rows ? top - layer->stride_y : top;
  if (before_x >= 0 && left < right && before_y >= 0 && top < bottom) {
    /* As the pixel before, all inside: every pointer moves by one stride. */
    const int32_t pixels = by_rows ? layer->stride_y * layer->in_width : layer->stride_x;
    const uint32_t stride = (uint32_t)pixels * layer->in_channels;
    const int8_t **end = window + (uint32_t)(layer->kernel_height * layer->kernel_width);
    const int8_t **at;
    for (at = window; at != end; ++at) {
      *at += stride;
    }
    return end;
  }
  return slw_window(layer, data, top, left, padding, window);
}

/* What is clipped to less than int8 is so behind the layer. */
static inline void slw_clip(const struct slw_layer *layer, int8_t *out) {
  const uint32_t pixels = (uint32_t)layer->out_height * (uint32_t)layer->out_width;
  if (layer->clips != 0u) {
    for (const int8_t *end = out + pixels * layer->out_channels; out != end; ++out) {
      const int16_t value = *out < layer->out_min ? layer->out_min : *out;
      *out = (int8_t)(value > layer->out_max ? layer->out_max : value);
    }
  }
}
