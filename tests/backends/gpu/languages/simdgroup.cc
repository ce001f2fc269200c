/* The product of metal_simdgroup_matrix.
 *
 * Apple says nothing of which elements a thread has; MLX (mlx/backend/metal/kernels/steel/gemm/mma.h,
 * get_coord) takes it for this on all of its GPUs.
 */
#include "fibres.h"
#include "metal_simdgroup_matrix"

namespace slw {

static float held[3][1024][2]; /* a, b and c of each thread */

static size_t row_of(size_t lane) { return ((lane / 4) & 4) + (lane / 2) % 4; }
static size_t column_of(size_t lane) { return ((lane / 4) & 2) * 2 + (lane % 2) * 2; }

void simdgroup_product(const float *a, const float *b, float *c) {
  const size_t self = fibres.at, first = self & ~size_t{31};
  memcpy(held[0][self], a, 8);
  memcpy(held[1][self], b, 8);
  memcpy(held[2][self], c, 8);
  meet();
  float left[8][8], right[8][8];
  for (size_t lane = 0; lane < 32; ++lane) {
    for (size_t i = 0; i < 2; ++i) {
      left[row_of(lane)][column_of(lane) + i] = held[0][first + lane][i];
      right[row_of(lane)][column_of(lane) + i] = held[1][first + lane][i];
    }
  }
  const size_t row = row_of(self - first), column = column_of(self - first);
  for (size_t i = 0; i < 2; ++i) {
    for (size_t k = 0; k < 8; ++k) {
      c[i] = std::fma(left[row][k], right[k][column + i], c[i]);
    }
  }
  meet();
}

} // namespace slw
