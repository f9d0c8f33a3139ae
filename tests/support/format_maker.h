// The same samples as a file of each format: tar, Parquet (as it is, packed, with dictionaries, in
// pages of version 2), TFRecord and MDS. What is asked of all of them:
// tests/pipeline/format_contract_test.cc. Values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "pipeline/source/format/sample_sink.h"

namespace stoker {

class BlobReader;

struct MadeSample {
  std::string key;  // of a tar; its image is KEY.ENDING
  std::string image;
  std::variant<std::monostate, int64_t, std::string> label{};  // all of a file have one kind
  // Targets: one number, and as many as every other sample has. Empty: there are none.
  int64_t age = 0;
  std::vector<float> soft{};
};

struct MadeFormat {
  const char* name;
  const char* ending;  // of its files
  void (*scan)(BlobReader&, const FieldChoice&, SampleSink&);
  std::string (*make)(const std::vector<MadeSample>&);
  // The fields of `age` and `soft`.
  std::vector<std::string> targets{"age", "soft"};
  bool has_names = false;      // of its samples
  bool is_parquet = false;     // its footer says where everything is
  bool is_packed = false;      // its images are
  bool ends_anywhere = false;  // a file that ends where a sample does is whole
  // Makes checksums of a damaged file right, so that what they seal is parsed.
  void (*repair)(std::string& file) = [](std::string&) {};
  // Messages about a file of no bytes, and about one without samples (that of `make` for none).
  std::string empty, no_samples = "";

  std::string file_name(const std::string& stem) const { return stem + "." + ending; }
};
const std::vector<MadeFormat>& made_formats();
const MadeFormat& made_format(const std::string& name);

// The bytes of a sample's image that was found in `file`.
std::string image_in(const std::string& file, const FoundSample& found);

}  // namespace stoker
