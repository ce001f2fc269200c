/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * What differs where a page's memory is shared by workers (SLW_WEB_THREADS).
 */
#ifndef SLW_WEB_THREADS_H_
#define SLW_WEB_THREADS_H_

#include "slipway/threadpool.h"
#include "web.h"

#ifdef SLW_WEB_THREADS
/** Keep other threads from allocating; not to be taken twice. */
void slw_web_lock(void);
void slw_web_unlock(void);
#else
static inline void slw_web_lock(void) {}
static inline void slw_web_unlock(void) {}
#endif

#endif /* SLW_WEB_THREADS_H_ */
