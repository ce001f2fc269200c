/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * What is linked into this firmware; the generated program.c defines it.
 */
#ifndef SLIPWAY_PROGRAM_H_
#define SLIPWAY_PROGRAM_H_

#include "slipway/image.h"

extern const slw_image slw_program;

#endif /* SLIPWAY_PROGRAM_H_ */
