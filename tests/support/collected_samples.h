// A sink that keeps what a format finds, for the tests of formats.
#pragma once

#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/source/format/blob_reader.h"
#include "pipeline/source/format/sample_sink.h"
#include "tests/support/thrown.h"

namespace stoker {

struct CollectedSamples final : SampleSink {
  struct Sample {
    FoundSample found;  // its views are empty; what they showed is below
    std::string name;
    std::string label;  // "7", "text cat", "none"
    std::vector<FoundTarget> targets;
    FoundObjects objects;  // if some were asked for

    FoundSample found_with_targets() const {
      FoundSample sample = found;
      sample.targets = targets;
      return sample;
    }
  };
  std::vector<Sample> samples;
  std::vector<std::string> left_out;  // "REASON: NAME"
  std::vector<std::string> class_names, object_names;

  void add(const FoundSample& sample) override {
    Sample kept{sample, std::string(sample.name), "none", {}, {}};
    if (sample.objects != nullptr) kept.objects = *sample.objects;
    kept.found.objects = nullptr;
    kept.targets.assign(sample.targets.begin(), sample.targets.end());
    kept.found.targets = {};
    if (const auto* number = std::get_if<int64_t>(&sample.label)) {
      kept.label = std::to_string(*number);
    } else if (const auto* text = std::get_if<std::string_view>(&sample.label)) {
      kept.label = "text " + std::string(*text);
    }
    kept.found.name = {};
    kept.found.label = {};
    samples.push_back(std::move(kept));
  }
  void leave_out(std::string_view reason, std::string_view name) override {
    left_out.push_back(std::string(reason) + ": " + std::string(name));
  }
  void set_class_names(const std::vector<std::string>& names) override { class_names = names; }
  void set_object_names(const std::vector<std::string>& names) override { object_names = names; }
};

inline std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A format's scan of files that lie in memory.
struct MemoryScan {
  void (*scan)(BlobReader&, const FieldChoice&, SampleSink&);
  const char* name;  // of the file

  CollectedSamples operator()(std::string_view file, const FieldChoice& fields = {}) const {
    BlobReader blob(name, bytes_of(file));
    CollectedSamples found;
    scan(blob, fields, found);
    return found;
  }
  std::string error(std::string_view file, const FieldChoice& fields = {}) const {
    return thrown_by<BlobError>([&] { (*this)(file, fields); });
  }
  // The same without the name: "BYTE: REASON".
  std::string refusal(std::string_view file, const FieldChoice& fields = {}) const {
    const std::string text = error(file, fields), start = name + std::string(": at byte ");
    return text.starts_with(start) ? text.substr(start.size()) : text;
  }
};

inline std::vector<std::string> labels_of(const CollectedSamples& found) {
  std::vector<std::string> labels;
  for (const CollectedSamples::Sample& sample : found.samples) labels.push_back(sample.label);
  return labels;
}

// Bytes without a pattern, the same for each seed.
inline std::string patternless(size_t length, uint32_t seed = 1) {
  std::string text(length, '\0');
  for (char& byte : text) byte = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return text;
}

inline std::string image_of(const std::string& file, const CollectedSamples::Sample& sample) {
  return file.substr(static_cast<size_t>(sample.found.offset),
                     static_cast<size_t>(sample.found.length));
}

// "uint8 (2): 1 0", "float32 (): 0.5".
inline std::string text_of(const FoundTarget& target) {
  std::ostringstream text;
  text << name_of(target.type) << " (";
  for (size_t i = 0; i < target.shape.size(); ++i) text << (i == 0 ? "" : ", ") << target.shape[i];
  text << "):";
  for (const int64_t value : target.integers) text << ' ' << value;
  for (const double value : target.reals) text << ' ' << value;
  return text.str();
}

}  // namespace stoker
