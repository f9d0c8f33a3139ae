// How a set of annotations lies in memory and in a file: one row of bytes, and a table that says
// what is in it. The file is a sealed one (pipeline/files/sealed_file.h), whose body the row is.
//
//   pieces    of each picture: its problem, size, label file and objects (annotation_code.h)
//   pictures  a PictureEntry for each
//   names     of the pictures
//   slots     a hash table of the names: numbers of pictures, + 1; 0: empty
//
// A piece is compared with its seal when it is read, the rest when the file is opened.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/annotation/annotations.h"
#include "pipeline/files/record_bytes.h"
#include "pipeline/files/sealed_file.h"
#include "pipeline/source/annotated/annotation_set.h"

namespace stoker {

inline constexpr SealedKind kAnnotationSetKind{"stokeran", 1, uint64_t{1} << 32};
inline constexpr uint64_t kMostPictures = uint64_t{1} << 31;

struct PictureEntry {
  uint64_t piece_at = 0;
  uint64_t piece_seal = 0;
  uint64_t name_at = 0;
  uint32_t piece_bytes = 0;
  uint32_t name_bytes = 0;
};
static_assert(sizeof(PictureEntry) == 32);

struct AnnotationTable {
  std::string key;
  std::string label_root;
  AnnotationInfo info;
  uint64_t pictures = 0;
  uint64_t piece_bytes = 0, name_bytes = 0, slots = 0;
  uint64_t index_seal = 0;  // of pictures, names and slots

  uint64_t index_bytes() const {
    return pictures * sizeof(PictureEntry) + name_bytes + slots * sizeof(uint32_t);
  }
  // The bytes are as many as the table says. Its numbers may be anything.
  bool fits(uint64_t bytes) const {
    return pictures < kMostPictures && piece_bytes <= bytes && name_bytes <= bytes && slots > 0 &&
           slots <= 4 * kMostPictures && (slots & (slots - 1)) == 0 &&
           index_bytes() == bytes - piece_bytes;
  }
};

std::vector<char> bytes_of_table(const AnnotationTable& table);
// Returns false if the bytes are no table.
bool read_table(std::string_view bytes, AnnotationTable& table);

// The kinds of annotations without their digest, for other files' tables.
void put_kinds(const AnnotationInfo& info, RecordWriter& out);
// Returns false if there are none.
bool get_kinds(RecordReader& in, AnnotationInfo& info);

// Makes the set that the bytes are. REQUIRES: the table fits them.
SharedAnnotations make_annotation_set(AnnotationTable table, std::string_view bytes,
                                      std::shared_ptr<const void> owner);

}  // namespace stoker
