// Writes messages in the wire format of Protocol Buffers: fields of varints, fixed 32 bits and
// bytes (protobuf.dev, "Encoding"). Enough for ONNX, without a library. A value; one thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace stoker {

class ProtobufWriter {
 public:
  void integer(int field, int64_t value) {
    varint(tag(field, 0));
    varint(static_cast<uint64_t>(value));
  }
  void number(int field, float value) {
    varint(tag(field, 5));
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
  }
  void text(int field, std::string_view value) {
    varint(tag(field, 2));
    varint(value.size());
    bytes_.append(value);
  }
  void message(int field, const ProtobufWriter& value) { text(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  static uint64_t tag(int field, int kind) { return static_cast<uint64_t>(field) << 3 | kind; }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

}  // namespace stoker
