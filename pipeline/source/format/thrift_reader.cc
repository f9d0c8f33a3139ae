#include "pipeline/source/format/thrift_reader.h"

namespace stoker {
namespace {

// Parquet's own structs are a few levels deep.
constexpr int kMaxLevels = 64;

}  // namespace

void ThriftReader::expect(bool fits, ThriftType type, const char* wanted) const {
  if (fits) return;
  blob_.fail(at_, std::string(what_) + " has a field of Thrift's type " +
                      std::to_string(static_cast<int>(type)) + " here, and " + wanted +
                      " is expected");
}

uint8_t ThriftReader::byte() {
  if (at_ >= end_) blob_.fail(at_, std::string(what_) + " ends inside a field");
  return blob_.read(at_++, 1, what_)[0];
}

uint64_t ThriftReader::varint() {
  const int64_t begin = at_;
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t next = byte();
    value |= uint64_t{next & 0x7fu} << shift;
    if (next < 0x80) return value;
  }
  blob_.fail(begin, std::string(what_) + " has a number of more than 64 bits here");
}

int64_t ThriftReader::zigzag() {
  const uint64_t value = varint();
  return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

// Reads how many things follow, each of which takes at least so many bytes.
int64_t ThriftReader::length(int64_t least_bytes_each) {
  const int64_t begin = at_;
  const uint64_t count = varint();
  const int64_t most = (end_ - at_) / least_bytes_each;
  if (count > static_cast<uint64_t>(most)) {
    blob_.fail(begin, std::string(what_) + " ends inside a field of length " +
                          std::to_string(count) + ", " + std::to_string(end_ - at_) +
                          " bytes are left");
  }
  return static_cast<int64_t>(count);
}

void ThriftReader::pass(int64_t bytes) {
  if (bytes > end_ - at_) blob_.fail(at_, std::string(what_) + " ends inside a field");
  at_ += bytes;
}

bool ThriftReader::next_field(int64_t& id, ThriftType& type) {
  const int64_t begin = at_;
  const uint8_t head = byte();
  type = static_cast<ThriftType>(head & 0x0f);
  if (type == ThriftType::stop) return false;
  // The upper four bits are the distance to the last field's number; 0: the number follows.
  id = head >> 4 != 0 ? id + (head >> 4) : zigzag();
  if (id < INT16_MIN || id > INT16_MAX || type > ThriftType::uuid) {
    blob_.fail(begin, std::string(what_) + " is not Thrift: field " + std::to_string(id) +
                          " of type " + std::to_string(static_cast<int>(type)));
  }
  return true;
}

int64_t ThriftReader::list_header(ThriftType& element) {
  const uint8_t head = byte();
  element = static_cast<ThriftType>(head & 0x0f);
  if (head >> 4 == 15) return length(1);
  return head >> 4;
}

bool ThriftReader::boolean(ThriftType type) {
  expect(type == ThriftType::true_value || type == ThriftType::false_value, type, "a boolean");
  return type == ThriftType::true_value;
}

int64_t ThriftReader::integer(ThriftType type) {
  if (type == ThriftType::int8) return static_cast<int8_t>(byte());
  expect(type == ThriftType::int16 || type == ThriftType::int32 || type == ThriftType::int64, type,
         "an integer");
  return zigzag();
}

int64_t ThriftReader::natural(ThriftType type) {
  const int64_t begin = at_;
  const int64_t value = integer(type);
  if (value < 0) {
    blob_.fail(begin, std::string(what_) + " has " + std::to_string(value) +
                          " where a size or a count is expected");
  }
  return value;
}

std::string ThriftReader::binary(ThriftType type) {
  expect(type == ThriftType::binary, type, "a string");
  const int64_t bytes = length(1);
  const std::span<const uint8_t> text = blob_.read(at_, bytes, what_);
  at_ += bytes;
  return {text.begin(), text.end()};
}

void ThriftReader::skip(ThriftType type, int depth) {
  if (depth > kMaxLevels) {
    blob_.fail(at_, std::string(what_) + " has structs or lists inside each other, more than " +
                        std::to_string(kMaxLevels) + " levels");
  }
  switch (type) {
    case ThriftType::true_value:
    case ThriftType::false_value:
      return;
    case ThriftType::int8:
      return pass(1);
    case ThriftType::int16:
    case ThriftType::int32:
    case ThriftType::int64:
      varint();
      return;
    case ThriftType::real:
      return pass(8);
    case ThriftType::binary:
      return pass(length(1));
    case ThriftType::uuid:
      return pass(16);
    case ThriftType::list:
    case ThriftType::set: {
      ThriftType element;
      const int64_t count = list_header(element);
      return skip_elements(element, count, depth + 1);
    }
    case ThriftType::map:
      return skip_map(depth + 1);
    case ThriftType::structure: {
      int64_t id = 0;
      ThriftType field;
      while (next_field(id, field)) skip(field, depth + 1);
      return;
    }
    case ThriftType::stop:
      break;
  }
  expect(false, type, "a known type");
}

void ThriftReader::skip_elements(ThriftType type, int64_t count, int depth) {
  for (int64_t i = 0; i < count; ++i) {
    // In a list, a boolean takes a byte.
    if (type == ThriftType::true_value || type == ThriftType::false_value) {
      pass(1);
    } else {
      skip(type, depth);
    }
  }
}

void ThriftReader::skip_map(int depth) {
  const int64_t count = length(2);
  if (count == 0) return;
  const uint8_t types = byte();
  for (int64_t i = 0; i < count; ++i) {
    skip_elements(static_cast<ThriftType>(types >> 4), 1, depth);
    skip_elements(static_cast<ThriftType>(types & 0x0f), 1, depth);
  }
}

}  // namespace stoker
