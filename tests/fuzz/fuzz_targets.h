// Shared by the fuzz targets of formats of blobs: the targets that they ask for, and checks of a
// sample's.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pipeline/source/format/blob_reader.h"
#include "pipeline/source/format/sample_sink.h"

namespace stoker {

// "x:text", "x:int32[]": a target that varies.
inline TargetField fuzz_target(const std::string& field) {
  const auto without = [&](std::string_view suffix) {
    return field.substr(0, field.size() - suffix.size());
  };
  constexpr std::string_view kText = ":text", kList = ":int32[]";
  if (field.ends_with(kText)) return {without(kText), without(kText), TargetType::text, true};
  if (field.ends_with(kList)) return {without(kList), without(kList), TargetType::int32, true};
  return {field, field, {}};
}

// "LABEL,x,y": the label's field, then those of targets.
inline FieldChoice fuzz_choice(std::string_view image, std::string_view label_and_targets) {
  FieldChoice choice{std::string(image), "", {}};
  for (size_t at = 0, count = 0; at <= label_and_targets.size(); ++count) {
    const size_t end = std::min(label_and_targets.find(',', at), label_and_targets.size());
    const std::string field(label_and_targets.substr(at, end - at));
    if (count == 0) {
      choice.label = field;
    } else if (!field.empty()) {
      choice.targets.push_back(fuzz_target(field));
    }
    at = end + 1;
  }
  return choice;
}

// One for each that was asked for, each with as many numbers as its shape has.
inline void check_fuzz_targets(const FoundSample& sample, const FieldChoice& choice) {
  if (sample.targets.size() != choice.targets.size()) std::abort();
  for (size_t i = 0; i < sample.targets.size(); ++i) {
    const FoundTarget& target = sample.targets[i];
    if (choice.targets[i].is_text() && target.size() > 0) std::abort();
    if (!target.texts.empty() && (!choice.targets[i].is_text() || target.texts.back() != '\0')) {
      std::abort();
    }
    if (choice.targets[i].varies) continue;
    size_t numbers = 1;
    for (const int64_t extent : target.shape) {
      if (extent < 0) std::abort();
      numbers *= static_cast<size_t>(extent);
    }
    if (numbers != target.size()) std::abort();
    if (!target.integers.empty() && !target.reals.empty()) std::abort();
    if (target.type == TargetType::int32) std::abort();
  }
}

// Takes samples that are bytes of the file, one after the other and without names. Each image has
// `before` bytes of its own ahead of it and `after` behind it.
class FuzzSampleChecker final : public SampleSink {
 public:
  FuzzSampleChecker(std::span<const uint8_t> file, const FieldChoice& fields, int64_t before,
                    int64_t after)
      : file_(file), fields_(fields), before_(before), after_(after) {}

  int64_t samples() const { return samples_; }

  void add(const FoundSample& sample) override {
    const int64_t end = std::ssize(file_) - after_;
    if (sample.offset < end_ + before_ || sample.length < 0) std::abort();
    if (sample.offset > end || sample.length > end - sample.offset) std::abort();
    if (sample.storage != BlobStorage::bytes || !sample.name.empty()) std::abort();
    if (const auto* text = std::get_if<std::string_view>(&sample.label)) {
      const auto* const begin = reinterpret_cast<const char*>(file_.data());
      if (text->data() < begin || text->data() + text->size() > begin + file_.size()) std::abort();
    }
    const bool has_label = !std::holds_alternative<std::monostate>(sample.label);
    if (has_label == (fields_.label == "none")) std::abort();
    check_fuzz_targets(sample, fields_);
    end_ = sample.offset + sample.length;
    ++samples_;
  }
  void leave_out(std::string_view, std::string_view) override { std::abort(); }
  void set_class_names(const std::vector<std::string>&) override { std::abort(); }
  void set_object_names(const std::vector<std::string>&) override { std::abort(); }

 private:
  const std::span<const uint8_t> file_;
  const FieldChoice& fields_;
  const int64_t before_, after_;
  int64_t end_ = 0, samples_ = 0;
};

// BlobError, or such samples.
inline void check_fuzz_scan(void (*scan)(BlobReader&, const FieldChoice&, SampleSink&),
                            std::span<const uint8_t> file, const FieldChoice& fields,
                            int64_t before = 0, int64_t after = 0) {
  BlobReader blob("blob", file);
  FuzzSampleChecker checker(file, fields, before, after);
  try {
    scan(blob, fields, checker);
  } catch (const BlobError&) {
    return;
  }
  if (checker.samples() == 0) std::abort();
}

}  // namespace stoker
