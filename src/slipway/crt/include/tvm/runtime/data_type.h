/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Types of elements, and their names ("float32", "int8x4", "bool").
 */
#ifndef TVM_RUNTIME_DATA_TYPE_H_
#define TVM_RUNTIME_DATA_TYPE_H_

#include <iosfwd>
#include <string>

#include "slipway/tensor.h"
#include "tvm/runtime/logging.h"

namespace tvm {
namespace runtime {

inline std::string DLDataType2String(DLDataType type) {
  char text[32];
  slw_dtype_text(type, text, sizeof text);
  return text;
}

namespace detail {

/** Read digits at `at`; 0 if there is none, or a number that is too large. */
inline unsigned ReadNumber(const std::string &text, std::size_t *at) {
  unsigned number = 0;
  while (*at < text.size() && text[*at] >= '0' && text[*at] <= '9' && number < 65536) {
    number = number * 10 + static_cast<unsigned>(text[(*at)++] - '0');
  }
  return (number < 65536) ? number : 0;
}

}  // namespace detail

inline DLDataType String2DLDataType(const std::string &text) {
  static const struct {
    const char *name;
    uint8_t code;
    unsigned bits; /* where the name has no number */
  } kKinds[] = {{"int", kDLInt, 32},       {"uint", kDLUInt, 32},    {"float", kDLFloat, 32},
                {"handle", kDLOpaqueHandle, 64}, {"bfloat", kDLBfloat, 16},
                {"complex", kDLComplex, 64}, {"bool", kDLBool, 8}};
  std::size_t letters = 0;
  while (letters < text.size() && text[letters] >= 'a' && text[letters] <= 'z') {
    ++letters;
  }
  for (const auto &kind : kKinds) {
    if (text.compare(0, letters, kind.name) == 0) {
      std::size_t at = letters;
      unsigned bits = detail::ReadNumber(text, &at);
      unsigned lanes = 1;
      if (at == letters) {
        bits = kind.bits;
      }
      if (at < text.size() && text[at] == 'x') {
        lanes = detail::ReadNumber(text, &++at);
      }
      if (at == text.size() && bits > 0 && bits < 256 && lanes > 0) {
        DLDataType type;
        type.code = kind.code;
        type.bits = static_cast<uint8_t>(bits);
        type.lanes = static_cast<uint16_t>(lanes);
        return type;
      }
    }
  }
  detail::Fail("ValueError", "'" + text + "' is not a data type; write float32, int8, bool, ...");
  return DLDataType();
}

inline bool TypeEqual(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

/** Return whether elements are of a kind and size: TypeMatch(tensor.dtype, kDLFloat, 32). */
inline bool TypeMatch(DLDataType type, int code, int bits, int lanes = 1) {
  return type.code == code && type.bits == bits && type.lanes == lanes;
}

/** A DLDataType with names for its parts. */
class DataType {
 public:
  DataType() = default;
  DataType(DLDataType type) : type_(type) {}  // NOLINT(*)
  explicit DataType(const std::string &name) : type_(String2DLDataType(name)) {}
  DataType(int code, int bits, int lanes) {
    type_.code = static_cast<uint8_t>(code);
    type_.bits = static_cast<uint8_t>(bits);
    type_.lanes = static_cast<uint16_t>(lanes);
  }

  static DataType Int(int bits, int lanes = 1) { return DataType(kDLInt, bits, lanes); }
  static DataType UInt(int bits, int lanes = 1) { return DataType(kDLUInt, bits, lanes); }
  static DataType Float(int bits, int lanes = 1) { return DataType(kDLFloat, bits, lanes); }
  static DataType BFloat(int bits, int lanes = 1) { return DataType(kDLBfloat, bits, lanes); }
  static DataType Bool(int lanes = 1) { return DataType(kDLBool, 8, lanes); }
  static DataType Handle(int bits = 64, int lanes = 1) {
    return DataType(kDLOpaqueHandle, bits, lanes);
  }

  operator DLDataType() const { return type_; }  // NOLINT(*)
  int code() const { return type_.code; }
  int bits() const { return type_.bits; }
  int bytes() const { return (bits() + 7) / 8; }
  int lanes() const { return type_.lanes; }
  bool is_float() const { return code() == kDLFloat; }
  bool is_int() const { return code() == kDLInt; }
  bool is_uint() const { return code() == kDLUInt; }
  bool is_bool() const { return code() == kDLBool; }
  bool is_handle() const { return code() == kDLOpaqueHandle; }
  bool is_float16() const { return is_float() && bits() == 16; }
  bool is_bfloat16() const { return code() == kDLBfloat && bits() == 16; }
  bool is_scalar() const { return lanes() == 1; }
  bool is_vector() const { return lanes() > 1; }
  DataType with_lanes(int lanes) const { return DataType(code(), bits(), lanes); }
  DataType with_bits(int bits) const { return DataType(code(), bits, lanes()); }
  DataType element_of() const { return with_lanes(1); }
  bool operator==(const DataType &other) const { return TypeEqual(type_, other.type_); }
  bool operator!=(const DataType &other) const { return !(*this == other); }

 private:
  DLDataType type_ = DLDataType();
};

/* A template, so that only a program that prints needs <ostream>. */
template <typename Traits>
std::basic_ostream<char, Traits> &operator<<(std::basic_ostream<char, Traits> &out,
                                             DLDataType type) {
  return out << DLDataType2String(type);
}

}  // namespace runtime
using runtime::DataType;
}  // namespace tvm

#endif  // TVM_RUNTIME_DATA_TYPE_H_
