/* Layers with 16 bits in their data or their results, or that round once: sums of four channels of one
 * pixel at a time (slw_half_dot, of the core), which are then scaled by the rule of the layer.
 *
 * Every sum with its bias is below 2^31, which whoever chose these kernels has checked.  Where data has
 * 16 bits, struct slw_layer counts bytes as channels.
 */
struct slw_halfwords {
  uint16_t data_bytes, result_bytes; /* of an element */
  uint16_t unit;                     /* windows are padded to a multiple of it */
  uint16_t rule;
};

enum { SLW_TWICE, SLW_ONCE, SLW_SHORT };

/* sum * multiplier * 2^(shift - 31), as TFLite rounds it: of 64 bits once, by a multiplier of 16 bits
 * (SLW_SHORT, its result shifted by 15 instead of 31), or of 32 bits once or twice. */
static SLW_SHARED int32_t slw_half_scaled(int32_t sum, int32_t multiplier, int32_t shift,
                                          uint32_t rule) {
  if (rule != (uint32_t)SLW_TWICE) {
    const int32_t total = (rule == (uint32_t)SLW_SHORT ? 15 : 31) - shift;
    const int64_t product = (int64_t)sum * multiplier;
    return (int32_t)((product + ((int64_t)1 << (total - 1))) >> total);
  }
  if (shift > 0) {
    return (int32_t)(((int64_t)sum * ((int64_t)1 << shift) * multiplier + 1073741824) >> 31);
  }
  sum = (int32_t)(((int64_t)sum * multiplier + 1073741824) >> 31);
  if (shift < 0) {
    sum += (int32_t)((1u << (-shift - 1)) - (sum < 0 ? 1u : 0u));
    sum >>= -shift;
  }
  return sum;
}

/* Write the channels from c on, at most four. Returns where the next ones go. */
static SLW_SHARED uint8_t *slw_half_store(const struct slw_layer *layer, const struct slw_halfwords *how,
                                          const struct slw_scales *scales, uint32_t c,
                                          const int32_t *sums, uint8_t *out) {
  const uint32_t left = layer->out_channels - c;
  const int32_t *end = sums + (left < 4u ? left : 4u);
  const int32_t *multiplier = scales->multiplier + c * layer->per_channel;
  const int32_t *shift = scales->shift + c * layer->per_channel;
  for (; sums != end; ++sums) {
    int32_t value =
        slw_half_scaled(*sums, *multiplier, *shift, how->rule) + layer->out_zero;
    value = value < layer->out_min ? layer->out_min : value;
    value = value > layer->out_max ? layer->out_max : value;
    if (how->result_bytes == 2u) {
      *(int16_t *)(void *)out = (int16_t)value;
    } else {
      *(int8_t *)out = (int8_t)value;
    }
    out += how->result_bytes;
    multiplier += layer->per_channel;
    shift += layer->per_channel;
  }
  return out;
}

/* weights: for each four channels of the results as slw_half_dot takes them.  workspace: a window of
 * 16-bit elements, padded to a multiple of `unit`, and one of bytes where data is of bytes; none where
 * every window is read where it lies. */
static SLW_SHARED void slw_conv_halfwords(const struct slw_layer *layer, const struct slw_halfwords *how,
                                       const void *data, const int8_t *weights,
                                       const struct slw_scales *scales, void *results,
                                       uint8_t *workspace) {
  const uint32_t bytes =
      (uint32_t)(layer->kernel_height * layer->kernel_width) * layer->in_channels;
  const uint32_t size = bytes / how->data_bytes;
  const uint32_t padded = (size + how->unit - 1u) / how->unit * how->unit;
  int16_t *row = (int16_t *)(void *)workspace;
  int8_t *gathered = (int8_t *)workspace;
  uint8_t *out = (uint8_t *)results;
  if (how->data_bytes == 1u) {
    gathered += 2u * padded;
  }
  if (padded != size) {
    slw_fill((int8_t *)(row + size), 0, 2u * (padded - size));
  }
  for (int32_t y = 0; y < layer->out_height; ++y) {
    for (int32_t x = 0; x < layer->out_width; ++x) {
      const int8_t *from = slw_gather(layer, (const int8_t *)data, y, x, gathered,
                                      (uint32_t)how->unit * how->data_bytes);
      const int16_t *window = (const int16_t *)(const void *)from;
      const int8_t *w = weights;
      if (how->data_bytes == 1u) {
        for (uint32_t i = 0; i < size; ++i) {
          row[i] = from[i];
        }
        window = row;
      }
      for (uint32_t c = 0; c < layer->out_channels; c += 4u) {
        int32_t sums[4] = {scales->bias[c], scales->bias[c + 1u], scales->bias[c + 2u],
                           scales->bias[c + 3u]};
        w = slw_half_dot(w, window, padded, sums);
        out = slw_half_store(layer, how, scales, c, sums, out);
      }
    }
  }
}

/* weights: for each four channels those of each element of the window in turn.  workspace: a pointer for
 * each element of the window, and one pixel of padding. */
static SLW_SHARED void slw_depthwise_halfwords(const struct slw_layer *layer,
                                            const struct slw_halfwords *how, const void *data,
                                            const int8_t *weights,
                                            const struct slw_scales *scales, void *results,
                                            uint8_t *workspace) {
  const uint32_t taps = (uint32_t)(layer->kernel_height * layer->kernel_width);
  const uint32_t channels = layer->out_channels;
  const int8_t **window = (const int8_t **)(void *)workspace;
  int8_t *padding = (int8_t *)(void *)(window + taps);
  uint8_t *out = (uint8_t *)results;
  slw_fill(padding, layer->pad_value, layer->in_channels);
  for (int32_t y = 0; y < layer->out_height; ++y) {
    for (int32_t x = 0; x < layer->out_width; ++x) {
      const int8_t **end = slw_window(layer, (const int8_t *)data, y * layer->stride_y - layer->pad_top,
                                      x * layer->stride_x - layer->pad_left, padding, window);
      const int8_t *w = weights;
      for (uint32_t c = 0; c < channels; c += 4u, w += 4u * taps) {
        int32_t sums[4] = {scales->bias[c], scales->bias[c + 1u], scales->bias[c + 2u],
                           scales->bias[c + 3u]};
        if (how->data_bytes == 2u && channels - c >= 4u) {
          slw_half_taps(w, window, end, c, sums);
        } else {
          const uint32_t count = channels - c < 4u ? channels - c : 4u;
          const int8_t *at = w;
          for (const int8_t **tap = window; tap != end; ++tap, at += 4) {
            for (uint32_t i = 0; i < count; ++i) {
              sums[i] += at[i] * (how->data_bytes == 2u
                                      ? ((const int16_t *)(const void *)*tap)[c + i]
                                      : (*tap)[c + i]);
            }
          }
        }
        out = slw_half_store(layer, how, scales, c, sums, out);
      }
    }
  }
}
