/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Functions by name, which JavaScript and compiled code share. Private to crt/web.
 */
#ifndef SLW_WEB_REGISTRY_H_
#define SLW_WEB_REGISTRY_H_

#include "slipway/abi.h"

/** The function registered under a name; NULL if there is none. */
const slw_function *slw_web_find(const char *name, size_t name_bytes);

#endif /* SLW_WEB_REGISTRY_H_ */
