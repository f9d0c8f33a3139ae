// Takes the samples of one blob from its format, checks them, and hands them on in large pieces.
// Owner: one scan. Threads: one at a time. Errors: BlobError with the sample's offset.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pipeline/source/annotated/record_code.h"
#include "pipeline/source/blob/blob_index.h"
#include "pipeline/source/format/blob_reader.h"
#include "pipeline/source/format/sample_sink.h"

namespace stoker {

enum class LabelKind : uint8_t { unknown, none, number, text };

// Files that are left out of a blob for one reason.
struct LeftOut {
  int64_t entries = 0;
  std::string first;
};

// Samples of compressed pages, and what reading each of them once unpacks.
struct PackedTotals {
  int64_t samples = 0, image_bytes = 0, unpacked_bytes = 0;
};

struct SamplePiece {
  int64_t first_row = 0;
  std::vector<BlobEntry> entries;  // labels that are text are places in `texts`
  std::string names;
  LabelKind labels = LabelKind::unknown;
  std::vector<std::string> texts;  // of all pieces so far
  std::vector<std::byte> values;   // of the targets: those of all columns for each entry
  std::string objects;             // of each entry, and where they end
  std::vector<uint64_t> object_ends;
  std::string varying;  // of each entry and column that varies, and where they end
  std::vector<uint64_t> varying_ends;
};

// How many samples have values in each column that varies, and why the first others have none.
struct VaryingCount {
  int64_t samples = 0;
  std::string problem{};
};

// How the scans of several blobs come to have the same columns of targets.
struct TargetAgreement {
  std::vector<TargetField> fields{};
  // Takes the columns that a blob's first sample suggests, and returns those that hold for all.
  std::function<std::vector<TargetColumn>(std::vector<TargetColumn>)> agree{};
};

class SampleCollector final : public SampleSink {
 public:
  static constexpr size_t kPieceSamples = 1'000'000;
  // Bytes of targets' values, or of objects, in a piece, apart from the last sample's.
  static constexpr size_t kPieceValues = 16 << 20;
  static constexpr int64_t kMaxLabel = (1 << 24) - 1;

  SampleCollector(const BlobReader& blob, std::function<void(SamplePiece&)> take,
                  TargetAgreement targets = {}, BoxFormat boxes = BoxFormat::xywh)
      : blob_(blob), take_(std::move(take)), targets_(std::move(targets)), encoder_(boxes) {}

  void add(const FoundSample& sample) override;
  void leave_out(std::string_view reason, std::string_view name) override;
  void set_class_names(const std::vector<std::string>& names) override { class_names_ = names; }
  void set_object_names(const std::vector<std::string>& names) override { object_names_ = names; }
  // Hands on the rest.
  void finish();

  int64_t samples() const { return samples_; }
  const std::map<std::string, LeftOut>& left_out() const { return left_out_; }
  const std::vector<std::string>& class_names() const { return class_names_; }
  // The largest label that is a number, and the number of the first sample with it.
  int64_t largest_label() const { return largest_label_; }
  int64_t largest_label_row() const { return largest_label_row_; }
  const PackedTotals& packed() const { return packed_; }
  // One for each column; it is empty for those that do not vary.
  const std::vector<VaryingCount>& varying_counts() const { return varying_counts_; }
  const RecordKinds& object_kinds() const { return encoder_.kinds(); }
  const std::vector<std::string>& object_names() const { return object_names_; }

 private:
  int32_t label_of(const FoundSample& sample);
  void set_kind(LabelKind kind, const FoundSample& sample);
  void agree_on_columns(const FoundSample& sample);
  void add_targets(const FoundSample& sample);
  void add_varying(const FoundSample& sample, size_t target);
  std::string name_of_sample(const FoundSample& sample) const;

  const BlobReader& blob_;
  const std::function<void(SamplePiece&)> take_;
  const TargetAgreement targets_;
  RecordEncoder encoder_;
  std::vector<TargetColumn> columns_;
  std::vector<VaryingCount> varying_counts_;
  std::vector<std::byte> values_;  // of one sample and column that varies
  SamplePiece piece_;
  int64_t samples_ = 0;
  bool has_names_ = false;
  std::unordered_map<std::string, int32_t> places_;  // of texts
  std::map<std::string, LeftOut> left_out_;
  std::vector<std::string> class_names_, object_names_;
  int64_t largest_label_ = -1, largest_label_row_ = -1;
  PackedTotals packed_;
};

}  // namespace stoker
