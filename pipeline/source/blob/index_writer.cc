#include "pipeline/source/blob/index_writer.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "pipeline/files/digest.h"
#include "pipeline/source/source_digests.h"

namespace stoker {
namespace {

constexpr size_t kIndexCopyBytes = 1 << 20;

// The list of samples in one number: where they are, their labels and names.
uint64_t fingerprint_of(const BlobTable& table) {
  std::string text = "blobs";
  const auto add = [&text](uint64_t value) { text.append(" ").append(hex64(value)); };
  for (size_t i = 0; i < table.blobs.size(); ++i) {
    text.append("\n").append(table.blobs[i]);
    add(static_cast<uint64_t>(table.stamps[i].bytes));
  }
  for (const BlobSegment& segment : table.segments) add(segment.seal);
  for (const std::string& name : table.class_names) text.append("\n").append(name);
  for (const TargetColumn& column : table.targets) text.append("\n").append(column.describe());
  if (table.annotations.objects) add(table.annotations.digest);
  return text_digest(text);
}

// Takes the targets of one sample after the other apart into columns.
class TargetColumns {
 public:
  explicit TargetColumns(const BlobTable& table)
      : columns_(table.targets),
        stride_(table.target_bytes()),
        varying_(table.varying_columns()),
        digest_(table.targets) {}

  // Adds the values of so many samples. `pieces`: those of the columns that vary.
  void add(const char* values, const char* pieces, int64_t samples) {
    int64_t number = 0;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].varies) {
        add_pieces(i, pieces, number++, samples);
        continue;
      }
      const int64_t bytes = columns_[i].bytes();
      column_.clear();
      for (int64_t k = 0; k < samples; ++k) {
        column_.insert(column_.end(), values + k * stride_, values + k * stride_ + bytes);
      }
      digest_.add(i, std::as_bytes(std::span(column_)));
      values += bytes;
    }
  }
  uint64_t digest() const { return digest_.value(); }

 private:
  void add_pieces(size_t column, const char* pieces, int64_t number, int64_t samples) {
    const auto end_of = [&](int64_t piece) {
      uint32_t end = 0;
      if (piece >= 0) std::memcpy(&end, pieces + 4 * piece, sizeof end);
      return end;
    };
    const char* const bytes = pieces + 4 * samples * varying_;
    for (int64_t k = 0; k < samples; ++k) {
      const int64_t piece = k * varying_ + number;
      const uint32_t begin = end_of(piece - 1) & ~kNoValues, end = end_of(piece);
      const std::span own(bytes + begin, (end & ~kNoValues) - begin);
      digest_.add_piece(column, std::as_bytes(own), (end & kNoValues) != 0);
    }
  }

  const std::vector<TargetColumn>& columns_;
  const int64_t stride_;
  const int64_t varying_;
  TargetDigest digest_;
  std::vector<char> column_;
};

uint64_t place_of_end(uint64_t end) { return end & ~kVaryingProblem; }

// Returns where the pieces of sample `sample` begin, of `each` pieces of every sample.
uint64_t begin_of(const IndexedPieces& all, size_t sample, size_t each) {
  return sample == 0 ? 0 : place_of_end(all.ends[sample * each - 1]);
}

// Makes `end` smaller where the samples from `begin` on have many bytes.
void shorten(const IndexedPieces& all, size_t each, size_t begin, size_t& end) {
  if (all.ends.empty()) return;
  const uint64_t from = begin_of(all, begin, each);
  while (end > begin + 1 && begin_of(all, end, each) - from > uint64_t{BlobSegment::kMaxValues}) {
    --end;
  }
}

// Returns the pieces of samples from `begin` to `end`.
IndexedPieces taken(const IndexedPieces& all, size_t each, size_t begin, size_t end) {
  if (all.ends.empty()) return {};
  const uint64_t from = begin_of(all, begin, each);
  return {all.bytes.substr(from, begin_of(all, end, each) - from),
          all.ends.subspan(begin * each, (end - begin) * each)};
}

}  // namespace

void BlobIndexWriter::add(int64_t blob, int64_t first_row, std::span<const BlobEntry> entries,
                          std::string_view names, std::span<const std::byte> targets,
                          IndexedPieces objects, IndexedPieces varying) {
  const size_t columns = entries.empty() ? 0 : varying.ends.size() / entries.size();
  const size_t target_bytes = entries.empty() ? 0 : targets.size() / entries.size();
  const size_t most =
      std::clamp<size_t>(size_t{BlobSegment::kMaxValues} / std::max<size_t>(target_bytes, 1), 1,
                         BlobSegment::kMaxSamples);
  for (size_t begin = 0, end = 0; begin < entries.size(); begin = end) {
    end = std::min(entries.size(), begin + most);
    shorten(objects, 1, begin, end);
    shorten(varying, columns, begin, end);
    std::string_view part;
    if (!names.empty()) {
      const size_t from = entries[begin].first;
      const size_t to = end < entries.size() ? entries[end].first : names.size();
      part = names.substr(from, to - from);
    }
    add_segment(blob, first_row + static_cast<int64_t>(begin), entries.subspan(begin, end - begin),
                part, targets.subspan(begin * target_bytes, (end - begin) * target_bytes),
                taken(objects, 1, begin, end), taken(varying, columns, begin, end));
  }
}

void BlobIndexWriter::add_segment(int64_t blob, int64_t first_row,
                                  std::span<const BlobEntry> entries, std::string_view names,
                                  std::span<const std::byte> targets, IndexedPieces objects,
                                  IndexedPieces varying) {
  const auto bytes_of = [](const IndexedPieces& pieces) {
    return std::ssize(pieces.bytes) + 4 * std::ssize(pieces.ends);
  };
  segments_.push_back({.blob = blob,
                       .first_id = samples_,
                       .first_row = first_row,
                       .samples = std::ssize(entries),
                       .at = static_cast<int64_t>(file_.end()),
                       .name_bytes = std::ssize(names),
                       .varying_bytes = bytes_of(varying),
                       .object_bytes = bytes_of(objects),
                       .seal = 0});
  samples_ += std::ssize(entries);
  const uint32_t names_begin = names.empty() ? 0 : entries.front().first;
  for (BlobEntry entry : entries) {
    entry.first -= names_begin;
    file_.append(&entry, sizeof entry);
  }
  file_.append(names.data(), names.size());
  file_.append(targets.data(), targets.size());
  append(varying);
  append(objects);
}

void BlobIndexWriter::append(const IndexedPieces& pieces) {
  if (pieces.ends.empty()) return;
  const uint64_t before = place_of_end(pieces.ends.back()) - pieces.bytes.size();
  std::vector<uint32_t> ends;
  for (const uint64_t end : pieces.ends) {
    const auto place = static_cast<uint32_t>(place_of_end(end) - before);
    ends.push_back(place | ((end & kVaryingProblem) != 0 ? kNoValues : 0));
  }
  file_.append(ends.data(), ends.size() * sizeof ends[0]);
  file_.append(pieces.bytes.data(), pieces.bytes.size());
}

void BlobIndexWriter::seal_segments(BlobTable& table, std::span<const int32_t> new_labels) {
  LabelDigest labels;
  TargetColumns targets(table);
  uint64_t objects_digest = 0;
  const int64_t target_bytes = table.target_bytes();
  std::vector<char> bytes;
  for (BlobSegment& segment : table.segments) {
    const size_t entry_bytes = static_cast<size_t>(segment.samples) * sizeof(BlobEntry);
    const size_t targets_at = entry_bytes + static_cast<size_t>(segment.name_bytes);
    const size_t varying_at = targets_at + static_cast<size_t>(segment.samples * target_bytes);
    const size_t objects_at = varying_at + static_cast<size_t>(segment.varying_bytes);
    bytes.resize(objects_at + static_cast<size_t>(segment.object_bytes));
    file_.read_at(static_cast<uint64_t>(segment.at), bytes);
    auto* const entries = reinterpret_cast<BlobEntry*>(bytes.data());
    for (int64_t i = 0; i < segment.samples; ++i) {
      int32_t& label = entries[i].label;
      if (!new_labels.empty()) label = new_labels[static_cast<size_t>(label)];
      labels.add(label);
    }
    targets.add(bytes.data() + targets_at, bytes.data() + varying_at, segment.samples);
    if (table.annotations.objects) {
      const uint64_t own = XXH3_64bits(bytes.data() + objects_at, bytes.size() - objects_at);
      objects_digest = text_digest(hex64(objects_digest) + hex64(own));
    }
    if (!new_labels.empty()) {
      file_.write_at(static_cast<uint64_t>(segment.at), {bytes.data(), entry_bytes});
    }
    segment.seal = XXH3_64bits(bytes.data(), bytes.size());
  }
  table.labels_digest = labels.value();
  table.targets_digest = targets.digest();
  std::string objects = hex64(objects_digest);
  for (const std::string& name : table.annotations.class_names) objects.append("\n").append(name);
  if (table.annotations.objects) table.annotations.digest = text_digest(objects);
}

void BlobIndexWriter::write_part(const std::string& path, int64_t samples, BlobTable table) {
  BlobIndexWriter part(path);
  part.segments_ = segments_;
  std::erase_if(part.segments_, [&](const auto& each) { return each.first_id >= samples; });
  part.samples_ = samples;
  const bool is_all = part.segments_.size() == segments_.size();
  const uint64_t end =
      is_all ? file_.end() : static_cast<uint64_t>(segments_[part.segments_.size()].at);
  std::vector<char> piece;
  while (part.file_.end() < end) {
    piece.resize(std::min<size_t>(kIndexCopyBytes, end - part.file_.end()));
    file_.read_at(part.file_.end(), piece);
    part.file_.append(piece.data(), piece.size());
  }
  part.finish(std::move(table), {});
}

void BlobIndexWriter::finish(BlobTable table, std::span<const int32_t> new_labels) {
  table.segments = std::move(segments_);
  seal_segments(table, new_labels);
  table.fingerprint = fingerprint_of(table);
  const std::vector<char> bytes = to_bytes(table);
  file_.finish(static_cast<uint64_t>(samples_), {bytes.data(), bytes.size()});
}

}  // namespace stoker
