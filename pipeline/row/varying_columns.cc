#include "pipeline/row/varying_columns.h"

#include <algorithm>
#include <cstring>

#include "pipeline/augment/dropped_text.h"
#include "pipeline/files/digest.h"
#include "pipeline/files/invalid_field.h"
#include "pipeline/files/printable_name.h"
#include "pipeline/files/utf8.h"
#include "pipeline/row/packed_values.h"

namespace stoker {
namespace {

// The number of the draw that chooses among the texts of the first column, far from those of
// augmentation.
constexpr uint32_t kTextDraw = 0x54455800;
constexpr int kMostVaryingBytes = 1 << 24;

std::string_view as_characters(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Takes the first of texts that are each ended by a NUL.
std::string_view take_text(std::string_view& texts) {
  const size_t end = std::min(texts.find('\0'), texts.size());
  const std::string_view text = texts.substr(0, end);
  texts.remove_prefix(std::min(end + 1, texts.size()));
  return text;
}

void require_varying(bool good, const char* field, const std::string& problem) {
  if (!good) throw InvalidField("LoaderOptions", field, problem);
}

}  // namespace

std::vector<TargetColumn> row_columns(std::span<const TargetColumn> columns,
                                      const VaryingOptions& options) {
  std::vector<TargetColumn> all(columns.begin(), columns.end()), offsets;
  for (TargetColumn& column : all) {
    if (!column.varies) continue;
    column.shape = {options.max_bytes / bytes_of(column.type)};
    offsets.push_back({offsets_name(column), TargetType::int32, {2}, true});
  }
  all.insert(all.end(), offsets.begin(), offsets.end());
  return all;
}

void check_varying(const Source& source, const AugmentSpec& augment, const VaryingOptions& options,
                   int rows) {
  const auto columns = source.targets();
  const bool drops = has_drop_text(augment.stages);
  const auto is_text = [](const TargetColumn& column) { return column.type == TargetType::text; };
  bool hides = hides_drop_text(augment.stages);
  for (const AugmentView& view : augment.more_views) {
    hides = hides || has_drop_text(view.stages) || hides_drop_text(view.stages);
  }
  require_varying(!hides, "augment",
                  ": drop_text stands inside of another stage or in a view after the first: it "
                  "stands in the list itself");
  require_varying(!drops || std::ranges::any_of(columns, is_text), "augment",
                  ": drop_text, but the samples have no texts (`targets_from`)");
  if (std::ranges::none_of(columns, &TargetColumn::varies)) return;
  require_varying(options.max_bytes >= 8 && options.max_bytes <= kMostVaryingBytes,
                  "varying.max_bytes",
                  " is " + std::to_string(options.max_bytes) + ", must be 8 to " +
                      std::to_string(kMostVaryingBytes));
  const int64_t bytes = int64_t{rows} * options.max_bytes;
  require_varying(bytes < int64_t{1} << 31, "varying.max_bytes",
                  " is " + std::to_string(options.max_bytes) + ": a batch of " +
                      std::to_string(rows) + " rows has 2^31 bytes or more");
}

VaryingColumns::VaryingColumns(const Source& source, const AugmentSpec& augment,
                               const LoaderOptions& options)
    : options_(options.varying), stages_(augment.stages) {
  const auto columns = source.targets();
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i].varies) continue;
    const auto value_bytes = static_cast<size_t>(bytes_of(columns[i].type));
    const auto most = static_cast<size_t>(options_.max_bytes);
    columns_.push_back({columns[i], i, columns.size() + columns_.size(),
                        most / value_bytes * value_bytes, value_bytes});
  }
}

// The count lies where the row's first number of the column of offsets is.
VaryingColumns::Place VaryingColumns::place_of(const Column& column, const Slab& slab, int row) {
  const auto place = static_cast<size_t>(row);
  return {slab.targets[column.values] + column.row_bytes * place,
          reinterpret_cast<int32_t*>(slab.targets[column.offsets])[2 * place]};
}

std::string VaryingColumns::too_long(const Column& column, size_t bytes) const {
  return "has " + std::to_string(bytes) +
         " bytes, a row has max_bytes=" + std::to_string(column.row_bytes) + " of them";
}

std::string VaryingColumns::write_numbers(const Column& column, std::string_view values,
                                          Place out) const {
  if (values.size() > column.row_bytes && options_.too_long == TooLong::fail) {
    return too_long(column, values.size());
  }
  const size_t bytes = std::min(values.size(), column.row_bytes);
  if (bytes > 0) std::memcpy(out.values, values.data(), bytes);
  out.count = static_cast<int32_t>(bytes / column.value_bytes);
  return "";
}

std::string VaryingColumns::write_texts(std::string_view texts, const RandomKey& key,
                                        uint32_t number, const Column& column, Place out) const {
  if (const size_t bad = find_invalid_utf8(texts); bad < texts.size()) {
    return "is no UTF-8 at byte " + std::to_string(bad) + " of " + std::to_string(texts.size());
  }
  if (options_.texts == TextChoice::all) return write_all(texts, column, out);
  const auto count = std::ranges::count(texts, '\0');
  if (count == 0) return "has no text";
  int64_t chosen = options_.texts == TextChoice::random ? key.below(kTextDraw + number, count) : 0;
  std::string_view text = take_text(texts);
  for (; chosen > 0; --chosen) text = take_text(texts);
  if (text.size() > column.row_bytes && options_.too_long == TooLong::fail) {
    return too_long(column, text.size());
  }
  text = utf8_prefix(text, column.row_bytes);
  std::ranges::copy(text, reinterpret_cast<char*>(out.values));
  out.count = static_cast<int32_t>(text.size());
  return "";
}

std::string VaryingColumns::write_all(std::string_view texts, const Column& column,
                                      Place out) const {
  if (texts.size() > column.row_bytes && options_.too_long == TooLong::fail) {
    return too_long(column, texts.size());
  }
  char* to = reinterpret_cast<char*>(out.values);
  const char* const end = to + column.row_bytes;
  while (!texts.empty() && to < end) {
    const std::string_view text = take_text(texts);
    to = std::ranges::copy(utf8_prefix(text, static_cast<size_t>(end - to) - 1), to).out;
    *to++ = '\0';
  }
  out.count = static_cast<int32_t>(to - reinterpret_cast<char*>(out.values));
  return "";
}

std::string VaryingColumns::write(const SampleTargets& targets, uint64_t seed, int64_t epoch,
                                  SampleId id, Slab& slab, int row) const {
  write_nothing(slab, row);
  if (!targets.problem.empty()) return targets.problem;
  const bool no_text = drops_text(stages_, seed, epoch, id);
  const RandomKey key(seed, epoch, id);
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    const std::string_view values = as_characters(targets.varying[column.values]);
    const Place out = place_of(column, slab, row);
    const bool is_text = column.target.type == TargetType::text;
    const std::string problem =
        is_text ? write_texts(values, key, static_cast<uint32_t>(i), column, out)
                : write_numbers(column, values, out);
    if (!problem.empty()) {
      return "target '" + printable_name(column.target.name) + "' " + problem;
    }
    // Texts that are dropped in this epoch are damaged in all.
    if (is_text && no_text) out.count = 0;
  }
  return "";
}

void VaryingColumns::write_nothing(Slab& slab, int row) const {
  for (const Column& column : columns_) place_of(column, slab, row).count = 0;
}

// In place: no row begins behind its place, nor does an offset stand behind the count that it
// takes.
void VaryingColumns::pack(Slab& slab, int rows) const {
  for (const Column& column : columns_) {
    auto* const offsets = reinterpret_cast<int32_t*>(slab.targets[column.offsets]);
    std::byte* const values = slab.targets[column.values];
    size_t packed = 0;
    for (int row = 0; row < rows; ++row) {
      const Place from = place_of(column, slab, row);
      const auto count = static_cast<size_t>(from.count);
      std::memmove(values + packed * column.value_bytes, from.values, count * column.value_bytes);
      offsets[row] = static_cast<int32_t>(packed);
      packed += count;
    }
    offsets[rows] = static_cast<int32_t>(packed);
  }
}

uint64_t VaryingColumns::digest(const Slab& slab, int row) const {
  std::vector<uint64_t> digests;
  for (const Column& column : columns_) {
    const Place place = place_of(column, slab, row);
    const size_t bytes = static_cast<size_t>(place.count) * column.value_bytes;
    digests.push_back(pixel_digest({reinterpret_cast<const uint8_t*>(place.values), bytes}));
  }
  return pixel_digest(
      {reinterpret_cast<const uint8_t*>(digests.data()), digests.size() * sizeof(uint64_t)});
}

}  // namespace stoker
