// Checks a sample: decodes all of it, and reports what is wrong with a bad one, also as JSON. For
// tools that check every file, and for a run's quarantine file.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "decode/image_decoder.h"
#include "decode/label_image.h"
#include "pipeline/annotation/annotations.h"
#include "pipeline/source.h"

namespace stoker {

// A bad sample.
struct Finding {
  SampleId id = 0;
  std::string reason;        // DecodeCode's name, "unreadable" or "annotation"
  int64_t byte_offset = -1;  // in the file; -1: unknown
  std::string message;
};

// Keeps its buffers. Owner: one per thread. Threads: one at a time.
class SampleChecker {
 public:
  SampleChecker(const Source& source, const DecodeOptions& options)
      : source_(source), max_pixels_(options.max_pixels), decoder_(options) {}

  // Reads the sample and decodes it, all of its pictures, and looks at what lies on its own. Fills
  // `finding` and returns true if it is bad.
  bool is_bad(SampleId id, Finding& finding);

  // The two halves of is_bad(). `bytes` is valid until the next call.
  bool is_unreadable(SampleId id, std::span<const uint8_t>& bytes, Finding& finding);
  bool is_damaged(SampleId id, std::span<const uint8_t> bytes, Finding& finding);
  bool is_misannotated(SampleId id, std::span<const uint8_t> bytes, Finding& finding);

 private:
  bool is_unpaired(SampleId id, Finding& finding);
  DecodeStatus decode_whole(std::span<const uint8_t> bytes);
  std::string annotation_oddity(Size picture);

  const Source& source_;
  const int64_t max_pixels_;
  ImageDecoder decoder_;
  std::vector<uint8_t> buffer_, pixels_;
  Annotations annotations_;
  LabelImage labels_;
};

// Users see these fields.
// The fields: sample_id, name, path, label, reason, byte_offset, message.
nlohmann::ordered_json to_json(const Source& source, const Finding& finding);
// The fields: reason, files, name, path, message.
nlohmann::ordered_json to_json(const Source& source, const SourceNote& note);
// Returns one line, with its newline.
std::string to_jsonl(const nlohmann::ordered_json& row);
std::string to_jsonl(const Source& source, const std::vector<Finding>& findings);

}  // namespace stoker
