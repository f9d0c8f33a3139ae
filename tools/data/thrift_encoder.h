// Encodes structs in Thrift's compact protocol, in which Parquet has its headers. The caller gives
// the fields of each struct in the order of their ids, which are at most 15 apart: the protocol's
// long form of a field is not here. A value; one thread at a time.
// Format: apache/thrift, doc/specs/thrift-compact-protocol.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

class ThriftEncoder {
 public:
  enum class Kind : uint8_t { i32 = 5, i64 = 6, binary = 8, list = 9, structure = 12 };

  // A struct that is no field: the outermost one, or an element of a list.
  void begin_struct() { last_fields_.push_back(0); }
  void end_struct() {
    bytes_ += '\0';
    last_fields_.pop_back();
  }
  void begin_struct(int field) {
    begin_field(field, Kind::structure);
    begin_struct();
  }
  // `count` elements follow. At most 14 of them take one byte, as the protocol says.
  void begin_list(int field, Kind elements, size_t count) {
    begin_field(field, Kind::list);
    const auto kind = static_cast<uint8_t>(elements);
    if (count < 15) {
      put(static_cast<uint8_t>(count << 4 | kind));
    } else {
      put(static_cast<uint8_t>(0xF0 | kind));
      put_varint(count);
    }
  }
  void add_i32(int field, int32_t value) { add_integer(field, Kind::i32, value); }
  void add_i64(int field, int64_t value) { add_integer(field, Kind::i64, value); }
  void add_binary(int field, std::string_view value) {
    begin_field(field, Kind::binary);
    add_element(value);
  }
  void add_element(int32_t value) { put_zigzag(value); }
  void add_element(std::string_view value) {
    put_varint(value.size());
    bytes_ += value;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void begin_field(int field, Kind kind) {
    const int step = field - last_fields_.back();
    last_fields_.back() = field;
    put(static_cast<uint8_t>(step << 4 | static_cast<int>(kind)));
  }
  void add_integer(int field, Kind kind, int64_t value) {
    begin_field(field, kind);
    put_zigzag(value);
  }
  void put(uint8_t byte) { bytes_ += static_cast<char>(byte); }
  void put_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) put(static_cast<uint8_t>(value | 0x80));
    put(static_cast<uint8_t>(value));
  }
  void put_zigzag(int64_t value) {
    put_varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
  }

  std::string bytes_;
  std::vector<int> last_fields_;  // of the structs that are open
};

}  // namespace stoker
