#include "pipeline/source/target_source.h"

#include <cstring>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/source/source_digests.h"

namespace stoker {
namespace {

void check_pieces(const TargetTable& table, int64_t samples) {
  int64_t begin = 0;
  bool good = std::ssize(table.ends) == samples;
  for (const int64_t end : table.ends) {
    good = good && end >= begin && end <= std::ssize(table.values) &&
           (end - begin) % bytes_of(table.column.type) == 0;
    const bool is_text = table.column.type == TargetType::text;
    good = good &&
           (!is_text || end == begin || table.values[static_cast<size_t>(end) - 1] == std::byte{0});
    begin = end;
  }
  if (good && begin == std::ssize(table.values)) return;
  throw std::invalid_argument("target " + table.column.describe() +
                              ": its values do not end where they should");
}

void check_size(const TargetTable& table, int64_t samples) {
  if (table.column.varies) return check_pieces(table, samples);
  const auto bytes = static_cast<size_t>(table.column.bytes());
  if (table.values.size() == bytes * static_cast<size_t>(samples)) return;
  throw std::invalid_argument("target " + table.column.describe() + " has " +
                              std::to_string(table.values.size()) + " bytes of values, must be " +
                              std::to_string(bytes) + " for each of " + std::to_string(samples) +
                              " samples");
}

}  // namespace

TargetSource::TargetSource(const Source& source, std::vector<TargetTable> tables)
    : ForwardingSource(source), tables_(std::move(tables)), info_(source.info()) {
  for (const TargetTable& table : tables_) info_.targets.push_back(table.column);
  check_targets(info_.targets);
  std::vector<TargetColumn> own;
  for (const TargetTable& table : tables_) own.push_back(table.column);
  TargetDigest digest(std::move(own), source.targets_digest());
  for (size_t i = 0; i < tables_.size(); ++i) {
    check_size(tables_[i], source.size());
    if (!tables_[i].column.varies) digest.add(i, tables_[i].values);
    for (int64_t id = 0; tables_[i].column.varies && id < source.size(); ++id) {
      digest.add_piece(i, piece_of(tables_[i], id));
    }
  }
  info_.targets_digest = digest.value();
  info_.fingerprint = text_digest("stoker targets; source " + hex64(source.fingerprint()) + "; " +
                                  hex64(info_.targets_digest));
}

std::span<const std::byte> TargetSource::piece_of(const TargetTable& table, int64_t sample) {
  const auto place = static_cast<size_t>(sample);
  const int64_t begin = sample == 0 ? 0 : table.ends[place - 1];
  return table.values.subspan(static_cast<size_t>(begin),
                              static_cast<size_t>(table.ends[place] - begin));
}

void TargetSource::read_targets(SampleId id, std::span<const uint8_t> bytes,
                                SampleTargets& out) const {
  source_.read_targets(id, bytes, out);
  const size_t inner = info_.targets.size() - tables_.size();
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (tables_[i].column.varies) {
      out.varying[inner + i] = piece_of(tables_[i], id);
      continue;
    }
    const auto size = static_cast<size_t>(info_.targets[inner + i].bytes());
    std::memcpy(out.columns[inner + i], tables_[i].values.data() + size * static_cast<size_t>(id),
                size);
  }
}

}  // namespace stoker
