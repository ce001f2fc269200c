/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Errors, checks and log lines of the classic C++ interface.
 *
 * With exceptions a failure is thrown as tvm::Error. Without (-fno-exceptions, or with
 * SLIPWAY_NO_EXCEPTIONS defined) whatever failed returns an empty value, and the thread's error is
 * set: `LastError()` tells it, `ClearError()` forgets it. A function that leaves its error set has
 * failed for its caller too.
 */
#ifndef TVM_RUNTIME_LOGGING_H_
#define TVM_RUNTIME_LOGGING_H_

#include <cstdlib>
#include <string>

#include "slipway/classic.h"
#include "slipway/error.h"
#include "tvm/runtime/c_runtime_api.h"

#if !defined(SLIPWAY_NO_EXCEPTIONS) && (defined(__cpp_exceptions) || defined(__EXCEPTIONS))
#define SLIPWAY_EXCEPTIONS 1
#include <new>
#include <stdexcept>
#else
#define SLIPWAY_EXCEPTIONS 0
#endif

namespace tvm {
namespace runtime {

#if SLIPWAY_EXCEPTIONS
/** What failed, as "ValueError: message"; the class is the one it has in Python. */
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string &text) : std::runtime_error(text) {
    char kind[SLW_ERROR_KIND_BYTES];
    message_ = slw_error_split(text.c_str(), kind);
    kind_ = kind;
  }
  Error(const std::string &kind, const std::string &message)
      : std::runtime_error(kind + ": " + message), kind_(kind), message_(message) {}

  const std::string &kind() const { return kind_; }
  const std::string &message() const { return message_; }

 private:
  std::string kind_;
  std::string message_;
};
using InternalError = Error;
#endif

/** The thread's error, "" when there is none. */
inline std::string LastError() { return TVMGetLastError(); }
inline bool HasError() { return slw_error_kind()[0] != '\0'; }
inline void ClearError() { slw_error_clear(); }

namespace detail {

/** Throw the thread's error; without exceptions it stays set. */
inline void Raise() {
#if SLIPWAY_EXCEPTIONS
  throw Error(slw_error_kind(), slw_error_message());
#endif
}

inline void Fail(const char *kind, const std::string &message) {
  slw_error_set(kind, message.c_str());
  Raise();
}

/** Return whether a function of the C interface succeeded; throw if not. */
inline bool Succeeded(int returned) {
  if (returned != 0) {
    Raise();
  }
  return returned == 0;
}

}  // namespace detail
}  // namespace runtime

#if SLIPWAY_EXCEPTIONS
using runtime::Error;
using runtime::InternalError;
#endif
}  // namespace tvm

/* CHECK and LOG come from another library where one has defined them. They need iostreams, so they
 * are for hosts: define SLIPWAY_NO_LOG to leave them out. */
#if SLIPWAY_EXCEPTIONS && !defined(SLIPWAY_NO_LOG)
#include <iostream>
#include <sstream>

namespace tvm {
namespace runtime {
namespace detail {

/** A line to stderr when it is complete. */
class LogLine {
 public:
  LogLine(const char *level, const char *file, int line) {
    text_ << '[' << level << ' ' << file << ':' << line << "] ";
  }
  LogLine(const LogLine &) = delete;
  LogLine &operator=(const LogLine &) = delete;
  ~LogLine() { std::cerr << text_.str() + "\n"; }
  std::ostream &stream() { return text_; }

 private:
  std::ostringstream text_;
};

/** An error that is thrown when its message is complete. */
class LogError {
 public:
  LogError(const char *file, int line) : file_(file), line_(line) {}
  LogError(const LogError &) = delete;
  LogError &operator=(const LogError &) = delete;
  ~LogError() noexcept(false) {
    std::ostringstream location;
    location << " (" << file_ << ':' << line_ << ')';
    throw Error(text_.str() + location.str());
  }
  std::ostringstream &stream() { return text_; }

 private:
  std::ostringstream text_;
  const char *file_;
  int line_;
};

}  // namespace detail
}  // namespace runtime
}  // namespace tvm

#ifndef LOG
#define LOG(level) SLIPWAY_LOG_##level
#define SLIPWAY_LOG_INFO ::tvm::runtime::detail::LogLine("INFO", __FILE__, __LINE__).stream()
#define SLIPWAY_LOG_WARNING \
  ::tvm::runtime::detail::LogLine("WARNING", __FILE__, __LINE__).stream()
#define SLIPWAY_LOG_ERROR ::tvm::runtime::detail::LogLine("ERROR", __FILE__, __LINE__).stream()
#define SLIPWAY_LOG_FATAL ::tvm::runtime::detail::LogError(__FILE__, __LINE__).stream()
#endif

#ifndef DLOG
#define DLOG(level) LOG(level)
#endif
#ifndef VLOG /* lines for those who look for a defect in the program: not printed */
#define VLOG(level) \
  if (true) {       \
  } else /* NOLINT(*) */ LOG(INFO)
#endif

#define ICHECK(condition)                                         \
  if (condition) {                                                \
  } else /* NOLINT(*) */                                          \
    ::tvm::runtime::detail::LogError(__FILE__, __LINE__).stream() \
        << "Check failed: (" #condition ") is false: "
#define SLIPWAY_ICHECK_BINARY(x, op, y)                           \
  if ((x)op(y)) {                                                 \
  } else /* NOLINT(*) */                                          \
    ::tvm::runtime::detail::LogError(__FILE__, __LINE__).stream() \
        << "Check failed: " #x " " #op " " #y " (" << (x) << " vs. " << (y) << "): "
#define ICHECK_EQ(x, y) SLIPWAY_ICHECK_BINARY(x, ==, y)
#define ICHECK_NE(x, y) SLIPWAY_ICHECK_BINARY(x, !=, y)
#define ICHECK_LT(x, y) SLIPWAY_ICHECK_BINARY(x, <, y)
#define ICHECK_LE(x, y) SLIPWAY_ICHECK_BINARY(x, <=, y)
#define ICHECK_GT(x, y) SLIPWAY_ICHECK_BINARY(x, >, y)
#define ICHECK_GE(x, y) SLIPWAY_ICHECK_BINARY(x, >=, y)
#ifndef CHECK
#define CHECK(condition) ICHECK(condition)
#define CHECK_EQ(x, y) ICHECK_EQ(x, y)
#define CHECK_NE(x, y) ICHECK_NE(x, y)
#define CHECK_LT(x, y) ICHECK_LT(x, y)
#define CHECK_LE(x, y) ICHECK_LE(x, y)
#define CHECK_GT(x, y) ICHECK_GT(x, y)
#define CHECK_GE(x, y) ICHECK_GE(x, y)
#endif
#ifndef DCHECK
#define DCHECK(condition) ICHECK(condition)
#endif
#endif

#endif  // TVM_RUNTIME_LOGGING_H_
