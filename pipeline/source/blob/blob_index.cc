#include "pipeline/source/blob/blob_index.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "pipeline/files/record_bytes.h"
#include "pipeline/source/annotated/annotation_table.h"

namespace stoker {
namespace {

constexpr int64_t kMaxIndexSamples = int64_t{1} << 40;

void put_notes(const std::vector<SourceNote>& notes, RecordWriter& out) {
  std::vector<std::string> words;
  std::vector<int64_t> counts;
  for (const SourceNote& note : notes) {
    words.insert(words.end(), {note.reason, note.name, note.message});
    counts.push_back(note.files);
  }
  out.put(words);
  out.put(counts);
}

bool get_notes(RecordReader& in, std::vector<SourceNote>& notes) {
  std::vector<std::string> words;
  std::vector<int64_t> counts;
  if (!in.get(words) || !in.get(counts) || words.size() != 3 * counts.size()) return false;
  for (size_t i = 0; i < counts.size(); ++i) {
    notes.push_back({words[3 * i], counts[i], words[3 * i + 1], words[3 * i + 2]});
  }
  return true;
}

void put_columns(const std::vector<TargetColumn>& columns, RecordWriter& out) {
  std::vector<std::string> names;
  std::vector<uint8_t> types, vary;
  std::vector<int64_t> ranks, extents;
  for (const TargetColumn& column : columns) {
    names.push_back(column.name);
    types.push_back(static_cast<uint8_t>(column.type));
    vary.push_back(column.varies);
    ranks.push_back(std::ssize(column.shape));
    extents.insert(extents.end(), column.shape.begin(), column.shape.end());
  }
  out.put(names);
  out.put(types);
  out.put(vary);
  out.put(ranks);
  out.put(extents);
}

bool get_columns(RecordReader& in, std::vector<TargetColumn>& columns) {
  std::vector<std::string> names;
  std::vector<uint8_t> types, vary;
  std::vector<int64_t> ranks, extents;
  const bool read = in.get(names) && in.get(types) && in.get(vary) && in.get(ranks);
  if (!read || !in.get(extents)) return false;
  if (types.size() != names.size() || vary.size() != names.size() || ranks.size() != names.size()) {
    return false;
  }
  auto extent = extents.begin();
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_type = types[i] <= static_cast<uint8_t>(TargetType::text);
    if (!is_type || ranks[i] < 0 || ranks[i] > extents.end() - extent) return false;
    if (vary[i] > 1 || (vary[i] == 1 && ranks[i] > 0)) return false;
    columns.push_back(
        {names[i], static_cast<TargetType>(types[i]), {extent, extent + ranks[i]}, vary[i] == 1});
    extent += ranks[i];
  }
  try {
    check_targets(columns);
  } catch (const std::invalid_argument&) {
    return false;
  }
  return extent == extents.end();
}

bool from_bytes(std::string_view bytes, BlobTable& table) {
  RecordReader in(bytes);
  std::vector<uint64_t> digests;
  const bool read =
      in.get(table.key) && in.get(table.blobs) && in.get(table.stamps) && in.get(table.segments) &&
      in.get(table.class_names) && get_notes(in, table.notes) && get_columns(in, table.targets) &&
      get_kinds(in, table.annotations) && in.get(digests) && in.at_end() && digests.size() == 4;
  if (!read) return false;
  table.fingerprint = digests[0];
  table.labels_digest = digests[1];
  table.targets_digest = digests[2];
  table.annotations.digest = digests[3];
  return true;
}

int64_t entry_bytes(const BlobSegment& segment) {
  return segment.samples * static_cast<int64_t>(sizeof(BlobEntry));
}

}  // namespace

int64_t BlobTable::target_bytes() const {
  int64_t bytes = 0;
  for (const TargetColumn& column : targets) bytes += column.bytes();
  return bytes;
}

int64_t BlobTable::varying_columns() const {
  return std::ranges::count_if(targets, [](const TargetColumn& column) { return column.varies; });
}

std::vector<char> to_bytes(const BlobTable& table) {
  RecordWriter out;
  out.put(table.key);
  out.put(table.blobs);
  out.put(table.stamps);
  out.put(table.segments);
  out.put(table.class_names);
  put_notes(table.notes, out);
  put_columns(table.targets, out);
  put_kinds(table.annotations, out);
  out.put(std::vector<uint64_t>{table.fingerprint, table.labels_digest, table.targets_digest,
                                table.annotations.digest});
  return out.bytes();
}

std::unique_ptr<BlobIndex> BlobIndex::open(const std::string& path) {
  std::string problem;
  auto file = SealedFile::open(path, kBlobIndexKind, problem);
  if (!file) return nullptr;
  std::unique_ptr<BlobIndex> index(new BlobIndex(path, std::move(file)));
  return index->load() ? std::move(index) : nullptr;
}

bool BlobIndex::load() {
  if (file_.empty() || !from_bytes(sealed_->table(), table_)) return false;
  target_bytes_ = table_.target_bytes();
  varying_columns_ = table_.varying_columns();
  if (!is_sound()) return false;
  for (const BlobSegment& segment : table_.segments) {
    first_ids_.push_back(segment.first_id);
    size_ += segment.samples;
  }
  seals_ = std::vector<std::atomic<Seal>>(table_.segments.size());
  return true;
}

// The seal finds accidents; a forged index must be safe to use, too.
bool BlobIndex::is_sound() const {
  if (table_.stamps.size() != table_.blobs.size()) return false;
  const auto file_bytes = static_cast<int64_t>(file_.size());
  int64_t samples = 0;
  for (const BlobSegment& segment : table_.segments) {
    if (segment.blob < 0 || segment.blob >= std::ssize(table_.blobs) ||
        segment.first_id != samples || segment.first_row < 0 ||
        segment.first_row > kMaxIndexSamples || segment.samples < 1 ||
        segment.samples > BlobSegment::kMaxSamples || segment.at < 0 || segment.name_bytes < 0 ||
        entry_bytes(segment) > file_bytes - segment.at ||
        segment.name_bytes > file_bytes - segment.at - entry_bytes(segment) ||
        target_bytes_ > (file_bytes - segment.at - entry_bytes(segment) - segment.name_bytes) /
                            segment.samples) {
      return false;
    }
    // Their ends stand before them.
    const int64_t ends = segment.samples * int64_t{4};
    if (segment.varying_bytes < ends * varying_columns_ ||
        segment.varying_bytes > file_bytes - varying_at(segment)) {
      return false;
    }
    const Pieces objects = objects_of(segment);
    if (objects.bytes < ends * objects.count / segment.samples ||
        objects.bytes > file_bytes - objects.at) {
      return false;
    }
    if (const auto names = names_of(segment); !names.empty() && names.back() != '\0') return false;
    samples += segment.samples;
    if (samples > kMaxIndexSamples) return false;
  }
  return samples > 0;
}

std::span<const char> BlobIndex::names_of(const BlobSegment& segment) const {
  return file_.subspan(static_cast<size_t>(segment.at + entry_bytes(segment)),
                       static_cast<size_t>(segment.name_bytes));
}

int64_t BlobIndex::varying_at(const BlobSegment& segment) const {
  return segment.at + entry_bytes(segment) + segment.name_bytes + segment.samples * target_bytes_;
}

BlobIndex::Pieces BlobIndex::objects_of(const BlobSegment& segment) const {
  return {varying_at(segment) + segment.varying_bytes, segment.object_bytes,
          table_.annotations.objects ? segment.samples : 0};
}

int64_t BlobIndex::bytes_of(const BlobSegment& segment) const {
  return varying_at(segment) - segment.at + segment.varying_bytes + segment.object_bytes;
}

uint32_t BlobIndex::end_of(const Pieces& pieces, int64_t number) const {
  uint32_t end = 0;
  if (number >= 0) std::memcpy(&end, file_.data() + pieces.at + 4 * number, sizeof end);
  return end;
}

// A piece; nothing where the ends are forged.
std::string_view BlobIndex::piece_of(const Pieces& pieces, int64_t number) const {
  const int64_t most = pieces.bytes - 4 * pieces.count;
  const uint32_t begin = end_of(pieces, number - 1) & ~kNoValues;
  const uint32_t end = end_of(pieces, number) & ~kNoValues;
  if (begin > end || end > most) return {};
  return {file_.data() + pieces.at + 4 * pieces.count + begin, end - begin};
}

BlobIndex::Varying BlobIndex::varying(const Found& found, int64_t column) const {
  const BlobSegment& segment = *found.segment;
  const Pieces pieces{varying_at(segment), segment.varying_bytes,
                      segment.samples * varying_columns_};
  const int64_t number = found.place * varying_columns_ + column;
  return {piece_of(pieces, number), (end_of(pieces, number) & kNoValues) != 0};
}

bool BlobIndex::is_sealed(size_t segment) const {
  Seal seal = seals_[segment].load(std::memory_order_relaxed);
  if (seal == Seal::unknown) {
    // Threads that come here at once do the same work.
    const BlobSegment& wanted = table_.segments[segment];
    const auto bytes =
        file_.subspan(static_cast<size_t>(wanted.at), static_cast<size_t>(bytes_of(wanted)));
    seal = XXH3_64bits(bytes.data(), bytes.size()) == wanted.seal ? Seal::holds : Seal::broken;
    seals_[segment].store(seal, std::memory_order_relaxed);
  }
  return seal == Seal::holds;
}

BlobIndex::Found BlobIndex::find(SampleId id) const {
  const auto next = std::upper_bound(first_ids_.begin(), first_ids_.end(), id);
  const auto place = static_cast<size_t>(next - first_ids_.begin()) - 1;
  if (!is_sealed(place)) return {};
  const BlobSegment& segment = table_.segments[place];
  Found found{&segment, {}, {}};
  const int64_t in_segment = id - segment.first_id;
  const int64_t at = segment.at + in_segment * static_cast<int64_t>(sizeof(BlobEntry));
  std::memcpy(&found.entry, file_.data() + at, sizeof(BlobEntry));
  const int64_t targets_at =
      segment.at + entry_bytes(segment) + segment.name_bytes + in_segment * target_bytes_;
  found.targets =
      file_.subspan(static_cast<size_t>(targets_at), static_cast<size_t>(target_bytes_));
  found.place = in_segment;
  if (table_.annotations.objects) found.objects = piece_of(objects_of(segment), in_segment);
  return found;
}

std::string_view BlobIndex::name(const Found& found) const {
  const auto names = names_of(*found.segment);
  if (found.entry.is_packed() || found.entry.first >= names.size()) return "";
  return names.data() + found.entry.first;
}

}  // namespace stoker
