/* Passes over the banks of shared memory, as NVIDIA's GPUs have them: 32 of four bytes each.
 *
 * The k-th time since a barrier that the threads of a warp come to an instruction is one request. Words of one bank
 * take a pass each; threads that want the same word share it. Eight bytes of each thread are
 * requests of half a warp, sixteen of a quarter. */
#pragma once
#include <stdint.h>

namespace slw {

/* Note an access of the thread that runs, by instruction `site`, after so many barriers. */
void use_banks(uintptr_t at, int64_t size, bool writes, int32_t site, long barriers);
/* Count what a block has noted. */
void end_block_of_banks();

extern bool counts_banks;

} // namespace slw
