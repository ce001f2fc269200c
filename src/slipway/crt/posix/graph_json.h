/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * graph.bin of the classic graph JSON, for programs that keep library, graph and parameters apart.
 */
#ifndef SLW_GRAPH_JSON_H_
#define SLW_GRAPH_JSON_H_

#include <stddef.h>
#include <stdint.h>

#include "slipway/status.h"

/** Make the tables that slw_graph_module_create takes; free() them. Every storage gets a place of
 * its own. On failure the thread's error says what is wrong. */
slw_status slw_graph_from_json(const char *json, size_t size_bytes, uint8_t **blob,
                               size_t *blob_bytes);

#endif /* SLW_GRAPH_JSON_H_ */
