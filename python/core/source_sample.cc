#include "python/core/source_sample.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "decode/pixel_ops.h"

namespace stoker::python {
namespace {

thread_local bool unknown_label = false;

// REQUIRES: the bytes are those of a raw source, of its raw_size().
Array raw_image(std::span<const uint8_t> bytes, SampleEncoding encoding, Size size) {
  Array image = make_image(size.height, size.width);
  auto* const pixels = static_cast<uint8_t*>(image.data);
  if (encoding == SampleEncoding::raw_rgb) {
    std::memcpy(pixels, bytes.data(), static_cast<size_t>(image.bytes()));
  } else {
    shift_flip_planar(bytes.data(), size, 0, 0, false, PadMode::zero,
                      {pixels, size.width, size.height, ptrdiff_t{3} * size.width});
  }
  return image;
}

Array varying_array(TargetColumn column, std::span<const std::byte> values) {
  const auto memory = std::make_shared<HostBytes>(values.size());
  if (!values.empty()) std::memcpy(memory->data(), values.data(), values.size());
  column.shape = {std::ssize(values) / bytes_of(column.type)};
  Array array = target_array(column, memory->data(), {}, {});
  array.holder = memory;
  return array;
}

}  // namespace

std::span<const uint8_t> read_sample(const SourceSample& sample, std::vector<uint8_t>& buffer) {
  std::span<const uint8_t> bytes;
  const ReadStatus status = sample.source->read(sample.id, buffer, bytes);
  if (!status.ok) throw UnreadableSample(sample.source->name(sample.id) + ": " + status.message);
  return bytes;
}

std::span<const uint8_t> read_picture_of(const SourceSample& sample, size_t number,
                                         std::vector<uint8_t>& buffer) {
  const Source& source = *sample.source;
  std::span<const uint8_t> bytes;
  const ReadStatus status = source.read_picture(sample.id, number, MayWait::yes, buffer, bytes);
  if (status.ok) return bytes;
  throw UnreadableSample(source.name(sample.id) + ": picture '" + source.pictures()[number].name +
                         "': " + status.message);
}

Array decode_sample(const SourceSample& sample) {
  std::vector<uint8_t> buffer;
  const std::span<const uint8_t> bytes = read_sample(sample, buffer);
  const Source& source = *sample.source;
  if (source.encoding() != SampleEncoding::image_file) {
    return raw_image(bytes, source.encoding(), source.raw_size());
  }
  try {
    return decode_image(bytes, {}, {});
  } catch (const DecodeError& error) {
    throw DecodeError(source.name(sample.id) + ": " + error.what());
  }
}

std::vector<Array> read_sample_targets(const SourceSample& sample) {
  const auto columns = sample.source->targets();
  if (columns.empty()) return {};
  std::vector<uint8_t> buffer;
  const std::span<const uint8_t> bytes = read_sample(sample, buffer);
  std::vector<Array> arrays;
  SampleTargets targets;
  for (const TargetColumn& column : columns) {
    const auto memory = std::make_shared<HostBytes>(static_cast<size_t>(column.bytes()));
    targets.columns.push_back(reinterpret_cast<std::byte*>(memory->data()));
    arrays.push_back(target_array(column, memory->data(), {}, {}));
    arrays.back().holder = memory;
  }
  targets.varying.resize(columns.size());
  sample.source->read_targets(sample.id, bytes, targets);
  if (!targets.problem.empty()) {
    throw UnreadableSample(sample.source->name(sample.id) + ": " + targets.problem);
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].varies) arrays[i] = varying_array(columns[i], targets.varying[i]);
  }
  return arrays;
}

void note_unknown_label() { unknown_label = true; }

bool take_unknown_label() { return std::exchange(unknown_label, false); }

int read_label(const std::shared_ptr<const Source>& source, SampleId id) {
  take_unknown_label();
  const int label = source->label(id);
  if (!take_unknown_label()) return label;
  std::vector<uint8_t> buffer;
  read_sample({source, id}, buffer);
  return source->label(id);
}

std::vector<int32_t> known_labels(const Source& source) {
  take_unknown_label();
  std::vector<int32_t> labels(static_cast<size_t>(source.size()));
  for (size_t id = 0; id < labels.size(); ++id) {
    labels[id] = source.label(static_cast<SampleId>(id));
    if (!take_unknown_label()) continue;
    throw std::invalid_argument("the label of " + source.name(static_cast<SampleId>(id)) +
                                " is not known before the sample is read: give all labels to "
                                "stoker.dataset(labels=)");
  }
  return labels;
}

}  // namespace stoker::python
