#include "tools/data/dump_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "pipeline/files/printable_name.h"
#include "tools/data/output_file.h"

namespace stoker {
namespace {

template <typename Value>
void write_array(const std::string& folder, const char* name, const DeviceBatch& batch,
                 const char* descr, std::span<const int64_t> shape, const Value* values) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  write_npy(fmt::format("{}/{}_{:05}.npy", folder, name, batch.header().step), descr, shape,
            std::as_bytes(std::span(values, static_cast<size_t>(count))));
}

const char* descr_of(TargetType type) {
  switch (type) {
    case TargetType::uint8:
    case TargetType::text:
      return "|u1";
    case TargetType::float16:
      return "<f2";
    case TargetType::bfloat16:  // which NumPy has no name for
      return "|V2";
    case TargetType::int32:
      return "<i4";
    case TargetType::int64:
      return "<i8";
    case TargetType::float32:
      break;
  }
  return "<f4";
}

// A target may be named by anything that a file has, such as a path.
std::string file_name_of(const std::string& target) {
  std::string name = printable_name(target);
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

// Writes 12 rather than 12.0 if the value is whole.
nlohmann::ordered_json number(double value) {
  if (value == std::floor(value)) return static_cast<int64_t>(value);
  return value;
}

std::string_view row_bytes(const PackedValues& texts, int row) {
  const int32_t* const offset = &texts.offsets[static_cast<size_t>(row)];
  return {reinterpret_cast<const char*>(texts.values) + offset[0],
          static_cast<size_t>(offset[1] - offset[0])};
}

nlohmann::ordered_json mix_json(const RowMix& mix) {
  nlohmann::ordered_json json = {{"partner", mix.partner}, {"own_share", mix.draw.own_share}};
  const Box& box = mix.draw.box;
  if (mix.draw.kind == MixKind::cutmix) json["box"] = {box.x, box.y, box.width, box.height};
  return json;
}

// Writes the offsets and the values of a column that varies.
void write_varying(const std::string& folder, std::span<const TargetColumn> columns, size_t column,
                   const DeviceBatch& batch) {
  const PackedValues packed = packed_values(batch, columns, column);
  const TargetType type = columns[column].type;
  const auto path = [&](const char* what) {
    return fmt::format("{}/target_{}{}_{:05}.npy", folder, file_name_of(columns[column].name), what,
                       batch.header().step);
  };
  const std::array<int64_t, 1> count = {packed.offsets.back()}, ends = {std::ssize(packed.offsets)};
  const auto bytes = static_cast<size_t>(count[0]) * static_cast<size_t>(bytes_of(type));
  write_npy(path(""), descr_of(type), count, {packed.values, bytes});
  write_npy(path("_offsets"), "<i4", ends, std::as_bytes(packed.offsets));
}

nlohmann::ordered_json texts_json(std::span<const TargetColumn> columns, const DeviceBatch& batch,
                                  int row) {
  nlohmann::ordered_json json;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].type != TargetType::text) continue;
    const PackedValues packed = packed_values(batch, columns, i);
    nlohmann::ordered_json& texts = json[columns[i].name];
    std::string_view rest = row_bytes(packed, row);
    if (rest.find('\0') == std::string_view::npos) texts = rest;
    for (size_t end; (end = rest.find('\0')) != std::string_view::npos;
         rest.remove_prefix(end + 1)) {
      texts.push_back(rest.substr(0, end));
    }
  }
  return json;
}

}  // namespace

std::string_view row_text(const PackedValues& texts, int row) {
  const std::string_view bytes = row_bytes(texts, row);
  return bytes.substr(0, bytes.find('\0'));
}

void write_batch_files(const std::string& folder, std::span<const TargetColumn> targets,
                       const DeviceBatch& batch) {
  const BatchShape shape = batch.shape();
  const std::array<int64_t, 4> images = {shape.rows, shape.height, shape.width,
                                         BatchShape::kChannels};
  const std::array<int64_t, 1> rows = {shape.rows};
  write_array(folder, "images", batch, "|u1", images, batch.images());
  write_array(folder, "labels", batch, "<i4", rows, batch.labels());
  write_array(folder, "weights", batch, "<f4", rows, batch.weights());
  for (size_t i = 0; i < targets.size(); ++i) {
    const TargetColumn& column = targets[i];
    if (column.varies) {
      if (!is_offsets(targets, i)) write_varying(folder, targets, i, batch);
      continue;
    }
    std::vector<int64_t> extents = {shape.rows};
    extents.insert(extents.end(), column.shape.begin(), column.shape.end());
    const auto bytes = static_cast<size_t>(shape.rows) * static_cast<size_t>(column.bytes());
    write_npy(fmt::format("{}/target_{}_{:05}.npy", folder, file_name_of(column.name),
                          batch.header().step),
              descr_of(column.type), extents, {batch.target(i), bytes});
  }
}

std::string rows_jsonl(const Source& source, const AugmentSpec& augment, uint64_t seed,
                       const DeviceBatch& batch, const DecodeOptions& decode,
                       std::span<const TargetColumn> columns) {
  std::string text;
  Draws draws;
  Annotations annotations;
  const RowNote* notes = row_notes(batch);
  for (int row = 0; row < batch.shape().rows; ++row) {
    const RowNote& note = notes[row];
    if (source.annotations().objects) {
      read_row_annotations(source, note, annotations);
      draws.carry(&annotations, 0);
    }
    draw_row(augment, seed, batch.header().epoch, note, draws);
    // A row without a picture shows nothing.
    const auto [x, y, width, height] =
        note.pixels_of < 0 ? std::array<double, 4>{} : shown_box(draws);
    nlohmann::ordered_json line = {
        {"step", batch.header().step},
        {"row", row},
        {"sample_id", batch.ids()[row]},
        {"name", source.name(batch.ids()[row])},
        {"label", batch.labels()[row]},
        {"weight", batch.weights()[row]},
        {"source_width", note.source.width},
        {"source_height", note.source.height},
        {"crop", {number(x), number(y), number(width), number(height)}},
        {"flip", is_mirrored(draws)},
        {"draws", row_steps_text(augment, seed, batch.header().epoch, note, &source, decode)}};
    for (const SampleId partner : note.partners) {
      if (partner >= 0) line["partners"].push_back(partner);
    }
    if (note.mix.partner >= 0) line["mix"] = mix_json(note.mix);
    if (const auto texts = texts_json(columns, batch, row); !texts.is_null()) line["texts"] = texts;
    text += line.dump() + "\n";
  }
  return text;
}

}  // namespace stoker
