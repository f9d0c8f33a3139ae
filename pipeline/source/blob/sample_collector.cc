#include "pipeline/source/blob/sample_collector.h"

#include <limits>
#include <stdexcept>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/blob/index_writer.h"
#include "pipeline/source/blob/target_values.h"
#include "pipeline/source/format/text_value.h"
#include "pipeline/source/sample_file.h"

namespace stoker {
namespace {

const char* to_string(LabelKind kind) {
  return kind == LabelKind::none ? "no label" : kind == LabelKind::number ? "a number" : "text";
}

LabelKind kind_of(const BlobLabel& label) {
  if (std::holds_alternative<int64_t>(label)) return LabelKind::number;
  return std::holds_alternative<std::string_view>(label) ? LabelKind::text : LabelKind::none;
}

}  // namespace

void SampleCollector::set_kind(LabelKind kind, const FoundSample& sample) {
  if (piece_.labels == LabelKind::unknown) piece_.labels = kind;
  if (piece_.labels == kind) return;
  blob_.fail(sample.offset, "sample " + std::to_string(samples_) + " has " + to_string(kind) +
                                " for its label, and the samples before it have " +
                                to_string(piece_.labels));
}

int32_t SampleCollector::label_of(const FoundSample& sample) {
  set_kind(kind_of(sample.label), sample);
  if (const auto* number = std::get_if<int64_t>(&sample.label)) {
    if (*number < 0 || *number > kMaxLabel) {
      blob_.fail(sample.offset,
                 "sample " + std::to_string(samples_) + " has label " + std::to_string(*number) +
                     ", which must be 0 to " + std::to_string(kMaxLabel) +
                     (*number < 0 ? "; for data without labels, `label_from` none" : ""));
    }
    if (*number > largest_label_) {
      largest_label_ = *number;
      largest_label_row_ = samples_;
    }
    return static_cast<int32_t>(*number);
  }
  const auto* text = std::get_if<std::string_view>(&sample.label);
  if (text == nullptr) return 0;
  const auto [place, is_new] =
      places_.try_emplace(std::string(*text), static_cast<int32_t>(piece_.texts.size()));
  if (!is_new) return place->second;
  if (std::ssize(piece_.texts) > kMaxLabel || text->find('\0') != std::string_view::npos) {
    blob_.fail(sample.offset, "sample " + std::to_string(samples_) +
                                  (std::ssize(piece_.texts) > kMaxLabel
                                       ? " has one more text than the " +
                                             std::to_string(kMaxLabel + 1) + " that labels may have"
                                       : " has a label with a NUL byte"));
  }
  piece_.texts.emplace_back(*text);
  return place->second;
}

void SampleCollector::add(const FoundSample& sample) {
  constexpr int64_t kMax32 = std::numeric_limits<uint32_t>::max();
  const bool is_file = sample.storage == BlobStorage::file;
  const int64_t stored = sample.packed_length > 0 ? sample.packed_length
                         : is_file                ? 0
                                                  : sample.length;
  if (sample.length > kMaxSampleBytes || sample.skip > kMax32 || stored > kMax32) {
    blob_.fail(sample.offset, "sample " + std::to_string(samples_) + " has " +
                                  std::to_string(std::max(sample.length, stored)) +
                                  " bytes, the limit is " + std::to_string(kMaxSampleBytes));
  }
  BlobEntry entry{
      .place = static_cast<uint64_t>(sample.offset) << 8 | static_cast<uint64_t>(sample.storage),
      .length = static_cast<uint32_t>(sample.length),
      .label = label_of(sample),
      .first = static_cast<uint32_t>(sample.packed_length),
      .second = static_cast<uint32_t>(sample.skip)};
  if (samples_ == 0) has_names_ = !sample.name.empty();
  if (has_names_) {
    entry.first = static_cast<uint32_t>(piece_.names.size());
    piece_.names.append(sample.name).push_back('\0');
  }
  if (entry.is_packed()) {
    ++packed_.samples;
    packed_.image_bytes += sample.length;
    packed_.unpacked_bytes += sample.skip + sample.length;
  }
  add_targets(sample);
  if (sample.objects != nullptr) {
    encoder_.append(*sample.objects, piece_.objects);
    piece_.object_ends.push_back(piece_.objects.size());
  }
  piece_.entries.push_back(entry);
  ++samples_;
  const bool is_full =
      piece_.entries.size() >= kPieceSamples || piece_.values.size() >= kPieceValues ||
      piece_.objects.size() >= kPieceValues || piece_.varying.size() >= kPieceValues ||
      std::ssize(piece_.names) > kMax32 / 4;
  if (is_full) finish();
}

void SampleCollector::finish() {
  if (piece_.entries.empty()) return;
  take_(piece_);
  piece_.first_row = samples_;
  piece_.entries.clear();
  piece_.names.clear();
  piece_.values.clear();
  piece_.objects.clear();
  piece_.object_ends.clear();
  piece_.varying.clear();
  piece_.varying_ends.clear();
}

void SampleCollector::agree_on_columns(const FoundSample& sample) {
  std::vector<TargetColumn> columns;
  for (size_t i = 0; i < sample.targets.size(); ++i) {
    columns.push_back(column_of(targets_.fields[i], sample.targets[i]));
  }
  try {
    check_targets(columns);
  } catch (const std::invalid_argument& error) {
    blob_.fail(sample.targets[0].offset, error.what());
  }
  columns_ = targets_.agree(std::move(columns));
  varying_counts_.resize(columns_.size());
}

std::string SampleCollector::name_of_sample(const FoundSample& sample) const {
  std::string name = sample.line > 0 ? "line " + std::to_string(sample.line)
                                     : "sample " + std::to_string(samples_);
  if (!sample.name.empty()) name += ", " + quoted_name(sample.name);
  return name;
}

// A sample without values is one bad sample, which the index keeps with the reason.
void SampleCollector::add_varying(const FoundSample& sample, size_t target) {
  values_.clear();
  std::string problem = sample.targets[target].problem;
  if (problem.empty()) problem = append_varying(columns_[target], sample.targets[target], values_);
  VaryingCount& count = varying_counts_[target];
  if (problem.empty()) {
    ++count.samples;
    piece_.varying.append(reinterpret_cast<const char*>(values_.data()), values_.size());
    piece_.varying_ends.push_back(piece_.varying.size());
    return;
  }
  problem = "target " + quoted_name(columns_[target].name) + " " + problem;
  if (count.problem.empty()) count.problem = name_of_sample(sample) + ": " + problem;
  piece_.varying.append(problem);
  piece_.varying_ends.push_back(piece_.varying.size() | kVaryingProblem);
}

void SampleCollector::add_targets(const FoundSample& sample) {
  if (sample.targets.empty()) return;
  if (columns_.empty()) agree_on_columns(sample);
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].varies) {
      add_varying(sample, i);
      continue;
    }
    const std::string problem = append_target(columns_[i], sample.targets[i], piece_.values);
    if (problem.empty()) continue;
    blob_.fail(sample.targets[i].offset, name_of_sample(sample) + ": target " +
                                             quoted_name(columns_[i].name) + " " + problem);
  }
}

void SampleCollector::leave_out(std::string_view reason, std::string_view name) {
  LeftOut& left_out = left_out_[std::string(reason)];
  if (++left_out.entries == 1) left_out.first = name;
}

}  // namespace stoker
