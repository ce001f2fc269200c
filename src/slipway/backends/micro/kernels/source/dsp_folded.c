/* Integer layers with two weights folded into 16 bits: a halfword of a word of four is
 * 256 * -w[even] + w[odd], for the even and the odd element of a pair.  Data is widened to
 *
 *   first  = -even - 1               (all bits of the byte flipped, then its sign extended)
 *   second = 256 * odd + even + 128  (the two bytes as they lie, the top bit of one flipped)
 *
 * so that with the word itself and with its low bytes, which one sxtb16 gives,
 *
 *   (256 * -w[even] + w[odd]) * first + w[odd] * second
 *       = 256 * (w[even] * even + w[odd] * odd) + 256 * w[even] + 127 * w[odd]:
 *
 * four products take three instructions instead of four.  The last two terms are in the bias, and
 * sums are 256 times as large, hence below 2^23: whoever chose these kernels has checked that, and
 * that no even weight is -128.  Sums on the way may wrap.
 *
 * The stream (dsp_stream.c) goes by two channels, or by four for a product, whose scales lie behind all
 * groups but for `line`; all of it is padded with zeros to whole groups.  Weights are, for each four elements, a word of each channel.  The elements
 * of a window are one after the other, or each of its rows is padded to a multiple of 4.
 */
#define SLW_FLIPPED 0x00FF00FFu
#define SLW_RAISED 0x00800080u

#if defined(__ARM_FEATURE_SIMD32) && defined(__OPTIMIZE__)
#define SLW_PRODUCTS          \
  "smlad r0, r9, r11, r0\n"   \
  "smlad r1, r10, r11, r1\n"  \
  "smlad r2, r9, r12, r2\n"   \
  "smlad r3, r10, r12, r3\n"  \
  "smlad r4, r9, lr, r4\n"    \
  "smlad r5, r10, lr, r5\n"
#define SLW_STEP                 \
  "ldmia r6!, {r9, r10}\n"       \
  "ldmia r8!, {r11, r12, lr}\n"  \
  SLW_PRODUCTS                   \
  "sxtb16 r9, r9\n"              \
  "sxtb16 r10, r10\n"            \
  "ldmia r8!, {r11, r12, lr}\n"  \
  SLW_PRODUCTS
/* Two channels at a time of three pixels, whose windows lie in `columns`.  The third pixel is written
 * first, the first one last.
 *
 * This takes every register.  What does not change lies on the stack: the bytes of a group's weights,
 * the columns, where the loop is entered, r7, which gcc does not give away where it keeps a frame
 * pointer there, where the three pixels are written, and the stream's end. */
#define SLW_FOLD_PIXELS(name, scales)                                                           \
  static SLW_SHARED void name(const uint32_t *stream, const uint32_t *end,                      \
                              const uint32_t *columns, uint32_t words, int8_t *first,           \
                              int8_t *second, int8_t *third) {                                  \
    register const uint32_t *r6 __asm__("r6") = stream;                                         \
    register const uint32_t *r8 __asm__("r8") = columns;                                        \
    register uint32_t r9 __asm__("r9") = words;                                                 \
    register int8_t *r10 __asm__("r10") = first;                                                \
    register int8_t *r11 __asm__("r11") = second;                                               \
    register int8_t *r12 __asm__("r12") = third;                                                \
    register const uint32_t *lr __asm__("lr") = end;                                            \
    __asm__ volatile(                                                                           \
        "push {r7, r10, r11, r12, lr}\n"                                                        \
        "lsl r7, r9, #3\n"                                                                      \
        "adr.w r10, 1f\n"                                                                       \
        "lsls r9, r9, #31\n"                                                                    \
        "bpl 5f\n"                                                                              \
        "adr.w r10, 4f\n"                                                                       \
        "bcc 6f\n"                                                                              \
        "adr.w r10, 2f\n"                                                                       \
        "b 6f\n"                                                                                \
        "5: bcc 6f\n"                                                                           \
        "adr.w r10, 3f\n"                                                                       \
        "6: orr r10, r10, #1\n"                                                                 \
        "push {r7, r8, r10}\n"                                                                  \
        "7: ldrd r7, r8, [sp]\n"                                                                \
        "ldmia r6!, {r0, r1}\n"                                                                 \
        "add r7, r7, r6\n"                                                                      \
        "mov r2, r0\n mov r3, r1\n mov r4, r0\n mov r5, r1\n"                                   \
        "ldr pc, [sp, #8]\n"                                                                    \
        "1:\n" SLW_STEP "2:\n" SLW_STEP "3:\n" SLW_STEP "4:\n" SLW_STEP                         \
        "cmp r6, r7\n"                                                                          \
        "bne 1b\n"                                                                              \
        "add r8, sp, #16\n"                                                                     \
        "ldmia r8, {r11, r12, lr}\n"                                                            \
        scales                                                                                  \
        "stmia r8, {r11, r12, lr}\n"                                                            \
        "ldr r9, [sp, #28]\n"                                                                   \
        "cmp r6, r9\n"                                                                          \
        "bne 7b\n"                                                                              \
        "add sp, sp, #12\n"                                                                     \
        "pop {r7, r10, r11, r12, lr}\n"                                                         \
        : "+r"(r6), "+r"(r8), "+r"(r9), "+r"(r10), "+r"(r11), "+r"(r12), "+r"(lr)               \
        :                                                                                       \
        : "cc", "memory", "r0", "r1", "r2", "r3", "r4", "r5");                                  \
  }
#define SLW_EXACT(sum, to) "asr " sum ", " sum ", #7\n" SLW_SCALE(sum, "r7", "r9", "r10", to)
#define SLW_EXACTLY                                                                              \
  "ldmia r6!, {r7, r9, r10}\n" SLW_EXACT("r4", "lr") SLW_EXACT("r2", "r12") SLW_EXACT("r0", "r11") \
  "ldmia r6!, {r7, r9, r10}\n" SLW_EXACT("r5", "lr") SLW_EXACT("r3", "r12") SLW_EXACT("r1", "r11")
#define SLW_BY_LINE                                                                              \
  "ldmia r6!, {r7, r9, r10}\n"                                                                   \
  SLW_LINE("r4", "r9", "r7", "lr") SLW_LINE("r2", "r9", "r7", "r12") SLW_LINE("r0", "r9", "r7", "r11") \
  SLW_LINE("r5", "r10", "r7", "lr") SLW_LINE("r3", "r10", "r7", "r12")                           \
  SLW_LINE("r1", "r10", "r7", "r11")
SLW_FOLD_PIXELS(slw_fold_pixels, SLW_EXACTLY)
SLW_FOLD_PIXELS(slw_line_pixels, SLW_BY_LINE)
#undef SLW_EXACT
#undef SLW_EXACTLY
#undef SLW_BY_LINE
#undef SLW_STEP

/* Four channels of a row of `words` words, whose scales are at `scale`. */
#define SLW_STEP                                       \
  "ldr r12, [r5], #4\n"                                \
  "ldmia r4!, {r8, r9, r10, r11}\n"                    \
  "eor lr, r12, #0x00FF00FF\n"                         \
  "eor r12, r12, #0x00800080\n"                        \
  "sxtb16 lr, lr\n"                                    \
  "smlad r0, r8, lr, r0\n smlad r1, r9, lr, r1\n"      \
  "smlad r2, r10, lr, r2\n smlad r3, r11, lr, r3\n"    \
  "sxtb16 r8, r8\n sxtb16 r9, r9\n"                    \
  "sxtb16 r10, r10\n sxtb16 r11, r11\n"                \
  "smlad r0, r8, r12, r0\n smlad r1, r9, r12, r1\n"    \
  "smlad r2, r10, r12, r2\n smlad r3, r11, r12, r3\n"
#define SLW_FOLD_ROW(name, scales)                                                              \
  static SLW_SHARED void name(const uint32_t *stream, const int8_t *row, uint32_t words,        \
                              const uint32_t *scale, int8_t *out) {                             \
    register const uint32_t *r4 __asm__("r4") = stream;                                         \
    register const int8_t *r5 __asm__("r5") = row;                                              \
    register uint32_t r6 __asm__("r6") = words;                                                 \
    register const uint32_t *r8 __asm__("r8") = scale;                                          \
    register int8_t *r12 __asm__("r12") = out;                                                  \
    __asm__ volatile(                                                                           \
        "push {r8, r12}\n"                                                                      \
        "ldmia r4!, {r0, r1, r2, r3}\n"                                                         \
        "lsls lr, r6, #31\n"                                                                    \
        "add r6, r5, r6, lsl #2\n"                                                              \
        "bpl 5f\n"                                                                              \
        "bcs 2f\n"                                                                              \
        "b 4f\n"                                                                                \
        "5: bcs 3f\n"                                                                           \
        "1:\n" SLW_STEP "2:\n" SLW_STEP "3:\n" SLW_STEP "4:\n" SLW_STEP                         \
        "cmp r5, r6\n"                                                                          \
        "bne 1b\n"                                                                              \
        "pop {r4, r12}\n"                                                                       \
        scales                                                                                  \
        : "+r"(r4), "+r"(r5), "+r"(r6), "+r"(r8), "+r"(r12)                                     \
        :                                                                                       \
        : "cc", "memory", "r0", "r1", "r2", "r3", "r9", "r10", "r11", "lr");                    \
  }
#define SLW_EXACT(sum)         \
  "ldmia r4!, {r8, r9, lr}\n"  \
  "asr " sum ", " sum ", #7\n" SLW_SCALE(sum, "r8", "r9", "lr", "r12")
#define SLW_EXACTLY SLW_EXACT("r0") SLW_EXACT("r1") SLW_EXACT("r2") SLW_EXACT("r3")
#define SLW_BY_LINE                      \
  "ldmia r4!, {r8, r9, r10, r11, lr}\n"  \
  SLW_LINE("r0", "r9", "r8", "r12") SLW_LINE("r1", "r10", "r8", "r12") \
  SLW_LINE("r2", "r11", "r8", "r12") SLW_LINE("r3", "lr", "r8", "r12")
SLW_FOLD_ROW(slw_fold_row, SLW_EXACTLY)
SLW_FOLD_ROW(slw_line_row, SLW_BY_LINE)
#undef SLW_EXACT
#undef SLW_EXACTLY
#undef SLW_BY_LINE
#undef SLW_STEP

/* Widen `rows` rows of `count` bytes, a multiple of 4, that lie `step` apart: of six words of three
 * pixels the first and the fourth.  Words go in pairs, after the odd one of a row. */
static inline uint32_t *slw_widen_rows(uint32_t *to, const int8_t *from, uint32_t count,
                                       uint32_t step, uint32_t rows) {
  const int8_t *end = from + count;
  uint32_t x;
  uint32_t y;
  __asm__ volatile(
#define SLW_STEP                       \
  "ldr %[x], [%[f]], #4\n"             \
  "eor %[y], %[x], #0x00FF00FF\n"      \
  "eor %[x], %[x], #0x00800080\n"      \
  "sxtb16 %[y], %[y]\n"                \
  "str %[x], [%[t], #12]\n"            \
  "str %[y], [%[t]], #24\n"
      "1: lsls %[x], %[c], #29\n"
      "bpl 2f\n" SLW_STEP
      "cmp %[f], %[e]\n"
      "beq 3f\n"
      "2:\n" SLW_STEP SLW_STEP
      "cmp %[f], %[e]\n"
      "bne 2b\n"
      "3: add %[e], %[e], %[s]\n"
      "sub %[f], %[e], %[c]\n"
      "subs %[r], %[r], #1\n"
      "bne 1b\n"
#undef SLW_STEP
      : [f] "+r"(from), [t] "+r"(to), [e] "+r"(end), [r] "+r"(rows), [x] "=&r"(x), [y] "=&r"(y)
      : [c] "r"(count), [s] "r"(step)
      : "cc", "memory");
  return to;
}

#else
static inline int32_t slw_fold(uint32_t pair, uint32_t data, int32_t sum) {
  return (int32_t)((uint32_t)sum + (uint32_t)slw_low(pair, data, 0) +
                   (uint32_t)slw_high(pair, data, 0));
}
static inline int32_t slw_fold4(uint32_t word, uint32_t first, uint32_t second, int32_t sum) {
  return slw_fold(slw_even(word), second, slw_fold(word, first, sum));
}
static inline uint32_t *slw_widen_rows(uint32_t *to, const int8_t *from, uint32_t count,
                                       uint32_t step, uint32_t rows) {
  for (; rows > 0u; --rows, from += step) {
    for (uint32_t i = 0; i < count; i += 4u, to += 6) {
      const uint32_t bytes = slw_load4(from + i);
      to[0] = slw_even(bytes ^ SLW_FLIPPED);
      to[3] = bytes ^ SLW_RAISED;
    }
  }
  return to;
}
static inline int32_t slw_folded_sum(const uint32_t *stream, uint32_t block, uint32_t c,
                                     uint32_t words, const uint32_t *columns) {
  int32_t sum = (int32_t)stream[c];
  for (uint32_t i = 0; i < words; ++i) {
    sum = slw_fold4(stream[block + block * i + c], columns[6u * i], columns[6u * i + 3u], sum);
  }
  return sum;
}
static inline int32_t slw_folded_row_sum(const uint32_t *stream, uint32_t c, uint32_t words,
                                         const int8_t *row) {
  int32_t sum = (int32_t)stream[c];
  for (uint32_t i = 0; i < words; ++i) {
    const uint32_t bytes = slw_load4(row + 4u * i);
    sum = slw_fold4(stream[4u + 4u * i + c], slw_even(bytes ^ SLW_FLIPPED), bytes ^ SLW_RAISED,
                    sum);
  }
  return sum;
}
#define SLW_FOLD_PIXELS(name, scale_words, output)                                                \
  static inline void name(const uint32_t *stream, const uint32_t *end, const uint32_t *columns,    \
                          uint32_t words, int8_t *first, int8_t *second, int8_t *third) {          \
    for (; stream != end; stream += 2u + 2u * words + scale_words, first += 2, second += 2, third += 2) { \
      const uint32_t *scales = stream + 2u + 2u * words;                                           \
      int8_t *const pixels[3] = {first, second, third};                                            \
      for (uint32_t pixel = 3u; pixel-- > 0u;) {                                                   \
        for (uint32_t c = 0; c < 2u; ++c) {                                                        \
          const int32_t sum = slw_folded_sum(stream, 2u, c, words, columns + pixel);               \
          pixels[pixel][c] = output;                                                               \
        }                                                                                          \
      }                                                                                            \
    }                                                                                              \
  }
#define SLW_FOLD_ROW(name, output)                                                                 \
  static inline void name(const uint32_t *stream, const int8_t *row, uint32_t words,               \
                          const uint32_t *scales, int8_t *out) {                                   \
    for (uint32_t c = 0; c < 4u; ++c) {                                                            \
      const int32_t sum = slw_folded_row_sum(stream, c, words, row);                               \
      out[c] = output;                                                                             \
    }                                                                                              \
  }
SLW_FOLD_PIXELS(slw_fold_pixels, 6u, slw_output_at(sum >> 8, scales + 3u * c))
SLW_FOLD_PIXELS(slw_line_pixels, 3u, slw_line_at(sum, scales, c))
SLW_FOLD_ROW(slw_fold_row, slw_output_at(sum >> 8, scales + 3u * c))
SLW_FOLD_ROW(slw_line_row, slw_line_at(sum, scales, c))
#endif
