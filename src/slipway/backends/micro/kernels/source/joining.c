/* Tensors beside each other: block after block of each. */
static SLW_SHARED void slw_copy_blocks(int8_t *to, uint32_t step, const int8_t *from,
                                       uint32_t bytes, uint32_t count) {
  for (; count > 0u; --count) {
    slw_copy(to, from, bytes);
    to += step;
    from += bytes;
  }
}
