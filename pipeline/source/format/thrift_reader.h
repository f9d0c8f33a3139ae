// Reads Thrift's compact protocol, in which the metadata of Parquet are written (the Thrift
// project's doc/specs/thrift-compact-protocol.md): structs of numbered fields, lists, integers of
// variable length. Whoever reads a struct takes the fields that it knows; the others are skipped.
// Owner: one scan. Threads: one at a time. Errors: BlobError for bytes that are not Thrift, and for
// fields of a type that was not expected.
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/source/format/blob_reader.h"

namespace stoker {

// The protocol's numbers. A boolean field has its value in its type.
enum class ThriftType : uint8_t {
  stop = 0,
  true_value = 1,
  false_value = 2,
  int8 = 3,
  int16 = 4,
  int32 = 5,
  int64 = 6,
  real = 7,
  binary = 8,
  list = 9,
  set = 10,
  map = 11,
  structure = 12,
  uuid = 13,
};

class ThriftReader {
 public:
  // Reads what lies in [begin, end) of `blob`, which outlives this; `what` stands in errors ("the
  // footer").
  ThriftReader(BlobReader& blob, int64_t begin, int64_t end, const char* what)
      : blob_(blob), end_(end), at_(begin), what_(what) {}

  // The place in the blob that is read next.
  int64_t offset() const { return at_; }

  // Reads a struct: calls visit(id, type) for each of its fields. It reads the field, or returns
  // false without reading anything, and the field is skipped.
  template <class Visit>
  void read_struct(ThriftType type, Visit&& visit) {
    expect(type == ThriftType::structure, type, "a struct");
    int64_t id = 0;
    ThriftType field;
    while (next_field(id, field)) {
      if (!visit(id, field)) skip(field, 0);
    }
  }
  // Reads a list: calls visit(type) for each of its elements, which it must read.
  template <class Visit>
  void read_list(ThriftType type, Visit&& visit) {
    expect(type == ThriftType::list, type, "a list");
    ThriftType element;
    for (int64_t left = list_header(element); left > 0; --left) visit(element);
  }
  bool boolean(ThriftType type);
  int64_t integer(ThriftType type);
  // An integer that is not negative.
  int64_t natural(ThriftType type);
  std::string binary(ThriftType type);

 private:
  bool next_field(int64_t& id, ThriftType& type);
  int64_t list_header(ThriftType& element);
  uint8_t byte();
  uint64_t varint();
  int64_t zigzag();
  int64_t length(int64_t least_bytes_each);
  void pass(int64_t bytes);
  void skip(ThriftType type, int depth);
  void skip_elements(ThriftType type, int64_t count, int depth);
  void skip_map(int depth);
  void expect(bool fits, ThriftType type, const char* wanted) const;

  BlobReader& blob_;
  const int64_t end_;
  int64_t at_;
  const char* const what_;
};

}  // namespace stoker
