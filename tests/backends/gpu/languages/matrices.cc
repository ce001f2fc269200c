/* A model of matrices that a subgroup holds: which thread has which element, nobody is told.
 *
 * Thread t of n has elements t, t + n, and so on, counted down the columns of the transposed matrix,
 * which no schedule takes them for.  Every access of memory is told to what watches for races.
 */
#include <string.h>

#include <cmath>

#include "fibres.h"

namespace slw {

static uint32_t held[1024][64];

struct Shape {
  int32_t rows, columns, depth, lanes;
};

static size_t threads_of(const Shape &shape) { return (size_t)shape.lanes; }

/* The sum (row, column) of the subgroup that begins with thread `first`. */
static uint32_t &sum(const Shape &shape, size_t first, int32_t row, int32_t column) {
  const size_t number = (size_t)(column * shape.rows + row);
  return held[first + number % threads_of(shape)][number / threads_of(shape)];
}

static float half_value(uint16_t bits) {
  const int size = bits & 0x7fff; /* a finite number */
  const float value = size < 0x400 ? std::ldexp((float)size, -24)
                                   : std::ldexp((float)(size % 1024 + 1024), (size >> 10) - 25);
  return (bits & 0x8000) != 0 ? -value : value;
}

static void touched(const void *at, int64_t size, int32_t writes) {
  if (on_access != nullptr) {
    on_access((void *)at, size, writes, 0);
  }
}

static size_t begin(const Shape &shape, uint32_t *c) {
  const size_t self = fibres.at;
  memcpy(held[self], c, 4 * (size_t)(shape.rows * shape.columns / shape.lanes));
  meet();
  return self - self % threads_of(shape);
}

static void end(const Shape &shape, uint32_t *c) {
  meet();
  memcpy(c, held[fibres.at], 4 * (size_t)(shape.rows * shape.columns / shape.lanes));
}

template <class T, class Sum>
static void multiply(const Shape &shape, const T *a, const T *b, int32_t i, int32_t j, uint32_t *c,
                     Sum (*value)(T)) {
  const size_t first = begin(shape, c);
  if (fibres.at == first) {
    for (int32_t row = 0; row < shape.rows; ++row) {
      touched(a + row * i, shape.depth * (int64_t)sizeof(T), 0);
      for (int32_t column = 0; column < shape.columns; ++column) {
        uint32_t &at = sum(shape, first, row, column);
        Sum total;
        memcpy(&total, &at, 4);
        for (int32_t k = 0; k < shape.depth; ++k) {
          total += value(a[row * i + k]) * value(b[column * j + k]);
        }
        memcpy(&at, &total, 4);
      }
    }
    for (int32_t column = 0; column < shape.columns; ++column) {
      touched(b + column * j, shape.depth * (int64_t)sizeof(T), 0);
    }
  }
  end(shape, c);
}

} // namespace slw

using slw::Shape;

extern "C" {
void slw_matrix_zero(int32_t rows, int32_t columns, int32_t depth, int32_t lanes, uint32_t *c) {
  (void)depth;
  memset(c, 0, 4 * (size_t)(rows * columns / lanes));
}
#define SLW_MATRIX(name, type, sum, value)                                                       \
  void slw_matrix_product_##name(int32_t rows, int32_t columns, int32_t depth, int32_t lanes,    \
                                 const type *a, const type *b, int32_t i, int32_t j,             \
                                 uint32_t *c) {                                                  \
    slw::multiply<type, sum>({rows, columns, depth, lanes}, a, b, i, j, c,                       \
                             [](type x) { return (sum)(value); });                               \
  }
SLW_MATRIX(f16, uint16_t, float, slw::half_value(x))
SLW_MATRIX(s8, int8_t, int32_t, x)
SLW_MATRIX(u8, uint8_t, uint32_t, x)
void slw_matrix_store(int32_t rows, int32_t columns, int32_t depth, int32_t lanes, uint32_t *to,
                      uint32_t *c) {
  const Shape shape{rows, columns, depth, lanes};
  const size_t first = slw::begin(shape, c);
  for (int32_t n = 0; n < rows * columns; ++n) {
    if (n % lanes == (int32_t)(slw::fibres.at - first)) {
      slw::touched(to + n, 4, 1);
      to[n] = slw::sum(shape, first, n / columns, n % columns);
    }
  }
  slw::end(shape, c);
}
}
