/* SPDX-License-Identifier: Apache-2.0
 * How sessions end that do not end well, in words for the client and for the log.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "rpc_server_internal.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* SIGPIPE is ignored */
#endif

static const char *signal_text(int number) {
  switch (number) {
    case SIGSEGV:
      return "SIGSEGV: it accessed memory that is not its own";
    case SIGBUS:
      return "SIGBUS: it accessed memory that is misaligned or not there";
    case SIGFPE:
      return "SIGFPE: an integer division by zero or overflow";
    case SIGILL:
      return "SIGILL: an instruction that this processor does not have";
    case SIGABRT:
      return "SIGABRT: it aborted";
    case SIGKILL:
      return "SIGKILL: most likely the device ran out of memory";
    case SIGXCPU:
      return "SIGXCPU: it used up its limit of processor time";
    case SIGTRAP:
      return "SIGTRAP: it executed a trap";
    default:
      return "ended by a signal";
  }
}

uint32_t slw_rpc_explain(const slw_rpc_watch *watch, int status, char *text, size_t size) {
  uint64_t now = slw_time_ns();
  char where[160] = "";
  bool late = slw_rpc_deadline(watch) != 0u && slw_rpc_deadline(watch) <= now;
  if (watch->calling != 0u) {
    (void)snprintf(where, sizeof where, " while it ran '%s'",
                   watch->function[0] != '\0' ? watch->function : "a function");
  }
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGALRM || (WTERMSIG(status) == SIGKILL && late))) {
    bool of_call = watch->call_deadline_ns != 0u && watch->call_deadline_ns <= now;
    (void)snprintf(text, size, "the %s exceeded its time limit of %u.%03u s%s; the device ended it",
                   of_call ? "call" : "session",
                   (of_call ? watch->call_timeout_ms : watch->session_timeout_ms) / 1000u,
                   (of_call ? watch->call_timeout_ms : watch->session_timeout_ms) % 1000u, where);
    return SLW_RPC_FAIL_TIMEOUT;
  }
  if (WIFSIGNALED(status)) {
    (void)snprintf(text, size, "the session's process on the device died of signal %d (%s)%s",
                   WTERMSIG(status), signal_text(WTERMSIG(status)), where);
  } else {
    (void)snprintf(text, size, "the session's process on the device exited with status %d%s",
                   WEXITSTATUS(status), where);
  }
  return SLW_RPC_FAIL_CRASHED;
}

uint64_t slw_rpc_deadline(const slw_rpc_watch *watch) {
  uint64_t call = watch->call_deadline_ns;
  uint64_t session = watch->session_deadline_ns;
  return call != 0u && (session == 0u || call < session) ? call : session;
}

void slw_rpc_write_error(int fd, uint32_t id, uint32_t code, const char *message) {
  static const char kind[] = "RPCError";
  uint8_t frame[SLW_RPC_HEADER_BYTES + SLW_RPC_HELLO_MAX_BYTES];
  slw_rpc_header header;
  slw_rpc_writer writer =
      slw_rpc_writer_on(frame + SLW_RPC_HEADER_BYTES, sizeof frame - SLW_RPC_HEADER_BYTES);
  size_t size = strlen(message) < 900u ? strlen(message) : 900u;
  slw_rpc_put_u32(&writer, code);
  slw_rpc_put_u32(&writer, sizeof kind - 1u);
  slw_rpc_put_u32(&writer, (uint32_t)size);
  slw_rpc_put_u32(&writer, 0);
  slw_rpc_put_bytes(&writer, kind, sizeof kind);
  slw_rpc_put_bytes(&writer, message, size);
  slw_rpc_put_bytes(&writer, "", 1);
  slw_rpc_put_padding(&writer);
  header.size = (uint32_t)writer.at;
  header.code = SLW_RPC_ERROR;
  header.flags = 0;
  header.id = id;
  header.channel = 0;
  slw_rpc_header_put(frame, &header);
  (void)send(fd, frame, SLW_RPC_HEADER_BYTES + writer.at, MSG_NOSIGNAL | MSG_DONTWAIT);
}
