#include "tests/support/tfrecord_maker.h"

#include <bit>

namespace stoker {
namespace {

std::string bytes_of_number(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

}  // namespace

uint32_t plain_crc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
  }
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(plain_crc32c(bytes), 15) + 0xa282ead8u;
}

std::string wire_varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}

std::string wire_number(uint32_t field, uint64_t value) {
  return wire_varint(uint64_t{field} << 3) + wire_varint(value);
}

std::string wire_bytes(uint32_t field, std::string_view bytes) {
  return wire_varint(uint64_t{field} << 3 | 2) + wire_varint(bytes.size()) + std::string(bytes);
}

std::string bytes_feature(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) list += wire_bytes(1, value);
  return wire_bytes(1, list);
}

std::string float_feature(const std::vector<float>& values) {
  std::string packed;
  for (const float value : values) packed += bytes_of_number(std::bit_cast<uint32_t>(value), 4);
  return wire_bytes(2, wire_bytes(1, packed));
}

std::string int64_feature(const std::vector<int64_t>& values, bool packed) {
  std::string list;
  for (const int64_t value : values) {
    const auto bits = static_cast<uint64_t>(value);
    list += packed ? wire_varint(bits) : wire_number(1, bits);
  }
  return wire_bytes(3, packed ? wire_bytes(1, list) : list);
}

std::string make_example(const std::vector<std::pair<std::string, std::string>>& features) {
  std::string map;
  for (const auto& [key, feature] : features) {
    map += wire_bytes(1, wire_bytes(1, key) + wire_bytes(2, feature));
  }
  return wire_bytes(1, map);
}

std::string make_record(std::string_view data) {
  const std::string length = bytes_of_number(data.size(), 8);
  return length + bytes_of_number(masked_crc32c(length), 4) + std::string(data) +
         bytes_of_number(masked_crc32c(data), 4);
}

void repair_checksums(std::string& file) {
  for (size_t at = 0; file.size() - at >= 16;) {
    uint64_t length = 0;
    for (size_t i = 0; i < 8; ++i) {
      length |= uint64_t{static_cast<uint8_t>(file[at + i])} << (8 * i);
    }
    if (length > file.size() - at - 16) return;
    file.replace(at, 16 + length, make_record(file.substr(at + 12, length)));
    at += 16 + length;
  }
}

}  // namespace stoker
