#include "python/core/source_sample.h"

#include <cstring>

#include "decode/pixel_ops.h"
#include "python/core/target_array.h"

namespace stoker::python {
namespace {

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

}  // namespace

std::span<const uint8_t> read_sample(const SourceSample& sample, std::vector<uint8_t>& buffer) {
  std::span<const uint8_t> bytes;
  const ReadStatus status = sample.source->read(sample.id, buffer, bytes);
  if (!status.ok) throw UnreadableSample(sample.source->name(sample.id) + ": " + status.message);
  return bytes;
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
  sample.source->read_targets(sample.id, bytes, targets);
  return arrays;
}

}  // namespace stoker::python
