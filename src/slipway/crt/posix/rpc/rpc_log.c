/* SPDX-License-Identifier: Apache-2.0
 * A server's log: lines for people, or JSON lines for programs. One write for each line, so that
 * the lines of several processes do not mix.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rpc_server_internal.h"
#include "slipway/sha256.h"

void slw_rpc_name_session(char name[SLW_RPC_SESSION_NAME_BYTES + 1u], const void *seed,
                          size_t size) {
  static const char digits[] = "0123456789abcdef";
  uint8_t digest[SLW_SHA256_BYTES];
  slw_sha256 hash;
  size_t i;
  slw_sha256_init(&hash);
  slw_sha256_update(&hash, seed, size);
  slw_sha256_final(&hash, digest);
  for (i = 0; i < SLW_RPC_SESSION_NAME_BYTES; ++i) {
    name[i] = digits[i % 2u == 0u ? digest[i / 2u] >> 4 : digest[i / 2u] & 15u];
  }
  name[i] = '\0';
}

/* Copy text into a JSON string; what JSON wants escaped, and what is not ASCII, becomes '?'. */
static void put_escaped(char *out, size_t size, const char *text) {
  size_t at = 0;
  for (; *text != '\0' && at + 3u < size; ++text) {
    if (*text == '"' || *text == '\\') {
      out[at++] = '\\';
      out[at++] = *text;
    } else {
      out[at++] = *text < ' ' || *text > '~' ? '?' : *text;
    }
  }
  out[at] = '\0';
}

/* Copy text so that it stays on its line and does nothing to a terminal: all but printable ASCII
 * becomes \xNN.  What it says may come from anywhere. */
static void put_plain(char *out, size_t size, const char *text) {
  static const char digits[] = "0123456789abcdef";
  size_t at = 0;
  for (; *text != '\0' && at + 5u < size; ++text) {
    unsigned char letter = (unsigned char)*text;
    if (letter >= ' ' && letter <= '~') {
      out[at++] = *text;
    } else {
      out[at++] = '\\';
      out[at++] = 'x';
      out[at++] = digits[letter >> 4];
      out[at++] = digits[letter & 15u];
    }
  }
  out[at] = '\0';
}

static size_t json_line(char *line, size_t size, const char *event, const char *session,
                        const char *peer, const char *text) {
  char words[700];
  char who[160];
  char at[32] = "";
  struct timespec now;
  struct tm parts;
  int used;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  if (gmtime_r(&now.tv_sec, &parts) != NULL) {
    (void)strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%S", &parts);
  }
  put_escaped(words, sizeof words, text);
  put_escaped(who, sizeof who, peer);
  used = snprintf(line, size,
                  "{\"time\": \"%s.%03u+00:00\", \"level\": \"info\", \"program\": \"RPCServer\", "
                  "\"event\": \"%s\", \"message\": \"%s\"",
                  at, (unsigned)(now.tv_nsec / 1000000) % 1000u, event, words);
  if (session[0] != '\0') {
    used += snprintf(line + used, size - (size_t)used, ", \"session\": \"%s\"", session);
  }
  if (peer[0] != '\0') {
    used += snprintf(line + used, size - (size_t)used, ", \"peer\": \"%s\"", who);
  }
  used += snprintf(line + used, size - (size_t)used, "}\n");
  return (size_t)used;
}

void slw_rpc_log(const slw_rpc_server_config *config, const char *event, const char *session,
                 const char *peer, const char *text) {
  char line[1200];
  size_t used;
  if (config->is_quiet != 0u) {
    return;
  }
  if (config->log_json != 0u) {
    used = json_line(line, sizeof line, event, session, peer, text);
  } else {
    const char *of = session[0] != '\0' ? "session " : "";
    const char *with = peer[0] != '\0' ? (session[0] != '\0' ? " with " : "") : "";
    const char *colon = session[0] != '\0' || peer[0] != '\0' ? ": " : "";
    char words[900];
    char who[160];
    int size;
    put_plain(words, sizeof words, text);
    put_plain(who, sizeof who, peer);
    size = snprintf(line, sizeof line, "INFO:root:RPCServer: %s%s%s%s%s%s\n", of, session, with, who,
                    colon, words);
    used = size > 0 ? (size_t)size : 0u;
  }
  (void)!write(STDERR_FILENO, line, used);
}
