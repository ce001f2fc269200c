/* Layers whose results are computed part by part (grouped.py): one row of results at a time, from
 * the rows of data that its windows have.
 */

/* Describe the rows behind row `y` of the results: returns where the first of them begins.  Those
 * outside of the image are left away, but for the padding in front. */
static SLW_SHARED const int8_t *slw_band(struct slw_layer *band, const struct slw_layer *layer,
                                         int32_t y, const int8_t *data, uint32_t channels) {
  const int32_t top = y * layer->stride_y - layer->pad_top;
  const int32_t end = top + (layer->kernel_height - 1) * layer->dilation_y + 1;
  const int32_t last = end < layer->in_height ? end : layer->in_height;
  const int32_t first = top > 0 ? top : 0;
  band->in_height = (int16_t)(last > first ? last - first : 0);
  band->out_height = 1;
  band->pad_top = (int16_t)(first - top);
  return data + (uint32_t)first * (uint32_t)layer->in_width * channels;
}

/* Take `count` channels out of each pixel of a band. */
static SLW_SHARED void slw_take(const struct slw_layer *band, const int8_t *from, uint32_t count,
                                uint32_t channels, int8_t *to) {
  uint32_t pixels = (uint32_t)band->in_height * (uint32_t)band->in_width;
  for (; pixels > 0u; --pixels, from += channels, to += count) {
    slw_copy(to, from, count);
  }
}

/* Put `count` channels of each pixel of a row to where they are, `step` apart. */
static SLW_SHARED void slw_put(const int8_t *from, uint32_t pixels, uint32_t count, uint32_t step,
                               uint32_t channels, int8_t *to) {
  for (; pixels > 0u; --pixels, to += channels) {
    if (step == 1u) {
      slw_copy(to, from, count);
      from += count;
    } else {
      int8_t *at = to;
      for (const int8_t *end = from + count; from != end; ++from, at += step) {
        *at = *from;
      }
    }
  }
}
