#include "pipeline/source/blob/indexed_source.h"

#include <cstring>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/annotated/record_code.h"
#include "pipeline/source/format/unpack.h"
#include "pipeline/source/sample_file.h"

namespace stoker {

IndexedSource::IndexedSource(const std::string& root, std::unique_ptr<BlobIndex> index)
    : index_(std::move(index)),
      table_(index_->table()),
      info_{.size = index_->size(),
            .root = root,
            .class_names = table_.class_names,
            .targets = table_.targets,
            .annotations = table_.annotations,
            .notes = table_.notes,
            .fingerprint = table_.fingerprint,
            .targets_digest = table_.targets_digest} {}

std::string IndexedSource::name(SampleId id) const {
  const BlobIndex::Found found = index_->find(id);
  if (found.segment == nullptr) return std::string("#").append(std::to_string(id));
  const std::string name(index_->name(found));
  if (found.entry.storage() == BlobStorage::file) return printable_name(name);
  const std::string& blob = table_.blobs[static_cast<size_t>(found.segment->blob)];
  if (!name.empty()) return printable_name(blob + "/" + name);
  const int64_t row = found.segment->first_row + id - found.segment->first_id;
  return printable_name(blob) + "#" + std::to_string(row);
}

void IndexedSource::read_targets(SampleId id, std::span<const uint8_t>, SampleTargets& out) const {
  const BlobIndex::Found found = index_->find(id);
  out.label = label_of(found);
  // read() reports a damaged index.
  const char* from = found.segment == nullptr ? nullptr : found.targets.data();
  // A view may have columns behind these.
  int64_t varying = 0;
  for (size_t i = 0; i < table_.targets.size(); ++i) {
    if (table_.targets[i].varies) {
      out.varying[i] = {};
      if (found.segment != nullptr) read_varying(found, varying++, out.varying[i], out.problem);
      continue;
    }
    const auto bytes = static_cast<size_t>(table_.targets[i].bytes());
    if (from == nullptr) {
      std::memset(out.columns[i], 0, bytes);
    } else {
      std::memcpy(out.columns[i], from, bytes);
      from += bytes;
    }
  }
}

void IndexedSource::read_varying(const BlobIndex::Found& found, int64_t column,
                                 std::span<const std::byte>& values, std::string& problem) const {
  const BlobIndex::Varying kept = index_->varying(found, column);
  if (!kept.is_problem) {
    values = std::as_bytes(std::span(kept.bytes));
  } else if (problem.empty()) {
    problem = kept.bytes;
  }
}

ReadStatus IndexedSource::read_annotations(SampleId id, std::span<const uint8_t>,
                                           Annotations& out) const {
  out.clear();
  if (!info_.annotations.objects) return {};
  const BlobIndex::Found found = index_->find(id);
  if (found.segment == nullptr) return damaged();
  const std::string problem = read_record(info_.annotations, found.objects, out);
  return {problem.empty(), problem};
}

int IndexedSource::label_of(const BlobIndex::Found& found) const {
  const int label = found.entry.label;
  // read() reports what a damaged index says.
  return label < 0 || label >= std::ssize(table_.class_names) ? 0 : label;
}

IndexedSource::Extent IndexedSource::extent_of(const BlobIndex::Found& found) const {
  const BlobEntry& entry = found.entry;
  const int64_t blob_bytes = table_.stamps[static_cast<size_t>(found.segment->blob)].bytes;
  const bool packed = entry.is_packed();
  const int64_t stored = packed ? entry.first : entry.length;
  const int64_t unpacked = packed ? int64_t{entry.second} + entry.length : 0;
  const bool known = packed || entry.storage() == BlobStorage::bytes;
  return {known && entry.offset() <= blob_bytes && stored <= blob_bytes - entry.offset() &&
              unpacked <= 2 * kMaxSampleBytes,
          static_cast<size_t>(stored), static_cast<size_t>(unpacked)};
}

ReadStatus IndexedSource::finish(const BlobEntry& entry, const Extent& extent,
                                 std::vector<uint8_t>& buffer, std::span<const uint8_t>& bytes) {
  bytes = {buffer.data(), extent.stored};
  if (!entry.is_packed()) return {};
  const std::span out(buffer.data() + extent.stored, extent.unpacked);
  const std::string problem = unpack(entry.storage(), bytes, out);
  bytes = out.subspan(entry.second);
  return {problem.empty(), problem};
}

ReadStatus IndexedSource::damaged() const {
  return {false, "the index of the samples is damaged; delete " + index_->path()};
}

}  // namespace stoker
