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
      return "|u1";
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

nlohmann::ordered_json mix_json(const RowMix& mix) {
  nlohmann::ordered_json json = {{"partner", mix.partner}, {"own_share", mix.draw.own_share}};
  const Box& box = mix.draw.box;
  if (mix.draw.kind == MixKind::cutmix) json["box"] = {box.x, box.y, box.width, box.height};
  return json;
}

}  // namespace

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
    std::vector<int64_t> extents = {shape.rows};
    extents.insert(extents.end(), column.shape.begin(), column.shape.end());
    const auto bytes = static_cast<size_t>(shape.rows) * static_cast<size_t>(column.bytes());
    write_npy(fmt::format("{}/target_{}_{:05}.npy", folder, file_name_of(column.name),
                          batch.header().step),
              descr_of(column.type), extents, {batch.target(i), bytes});
  }
}

std::string rows_jsonl(const Source& source, const AugmentSpec& augment, uint64_t seed,
                       const DeviceBatch& batch, const DecodeOptions& decode) {
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
    text += line.dump() + "\n";
  }
  return text;
}

}  // namespace stoker
