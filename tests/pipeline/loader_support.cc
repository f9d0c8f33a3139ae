#include "tests/pipeline/loader_support.h"

#include <ostream>

#include "pipeline/exchange/remote_filler.h"
#include "pipeline/files/digest.h"
#include "pipeline/random/random_key.h"
#include "tests/support/fake_device.h"
#include "tools/data/jpeg_writer.h"

namespace stoker::testing {

std::vector<uint8_t> jpeg_file(int width, int height, uint64_t seed) {
  const RandomKey key(seed, 0, 0);
  const int64_t base[] = {key.below(0, 128), key.below(1, 128), key.below(2, 128)};
  std::vector<uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (uint32_t c = 0; c < 3; ++c) {
        pixels.push_back(static_cast<uint8_t>(base[c] + x * (c + 1) % 64 + y % 64));
      }
    }
  }
  return encode_jpeg({pixels.data(), width, height, ptrdiff_t{3} * width}, 90);
}

std::vector<uint8_t> random_bytes(size_t count) {
  std::vector<uint8_t> bytes(count);
  const RandomKey key(5, 0, 0);
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<uint8_t>(key.below(static_cast<uint32_t>(i), 256));
  }
  return bytes;
}

std::vector<uint8_t> text_bytes(const std::string& text) { return {text.begin(), text.end()}; }

std::vector<uint8_t> truncated(std::vector<uint8_t> file, size_t cut) {
  file.resize(file.size() - cut);
  return file;
}

std::unique_ptr<FakeSource> jpeg_source(int64_t samples) {
  std::vector<std::vector<uint8_t>> files;
  for (int64_t i = 0; i < samples; ++i) {
    files.push_back(jpeg_file(30 + static_cast<int>(i * 7 % 41), 28 + static_cast<int>(i * 5 % 37),
                              static_cast<uint64_t>(i)));
  }
  return std::make_unique<FakeSource>(std::move(files), samples, 10);
}

std::unique_ptr<FakeSource> half_cached_source(int64_t samples) {
  auto source = jpeg_source(samples);
  for (SampleId id = 0; id < samples; id += 3) source->cache(id);
  return source;
}

std::unique_ptr<FakeSource> faulty_source(int64_t samples) {
  auto source = half_cached_source(samples);
  source->fail(7);
  source->replace(9, text_bytes("no picture"));
  source->replace(20, truncated(jpeg_file(40, 40, 3), 300));
  return source;
}

LoaderOptions exchange_options(int workers, int batch) {
  return {.batch_size = batch,
          .seed = 9,
          .epochs = 3,
          .feed = {.workers = workers, .seek_index = "off", .max_bad = 0.5},
          .digests = true};
}

AugmentSpec crop_spec(int side) {
  return AugmentSpec("random_resized_crop | flip | color_jitter(0.2)", {side, side});
}

AugmentSpec pad_spec(int side) {
  return AugmentSpec("resize | random_crop(padding=2, mode='reflect') | flip(alternating=True)",
                     {side, side});
}

std::ostream& operator<<(std::ostream& out, const Delivered& batch) {
  out << "step " << batch.step << " epoch " << batch.epoch << " valid " << batch.valid << ":";
  for (const DeliveredRow& row : batch.rows) {
    out << " " << row.id << (row.weight > 0 ? "" : "*") << "/" << std::hex << row.pixels % 65536
        << std::dec;
  }
  return out;
}

int64_t rows_in(const std::vector<Delivered>& batches) {
  int64_t rows = 0;
  for (const Delivered& batch : batches) rows += static_cast<int64_t>(batch.rows.size());
  return rows;
}

Feed::Feed(const Source& source, const AugmentSpec& augment, const LoaderOptions& options,
           int devices, DeviceKind kind) {
  std::vector<Device*> pointers;
  for (int i = 0; i < devices; ++i) {
    if (kind == DeviceKind::host) {
      devices_.push_back(make_host_device(i));
    } else {
      FakeDeviceOptions nasty;
      nasty.seed = static_cast<uint64_t>(i) + 7;
      nasty.host_accessible = kind == DeviceKind::nasty && i % 2 == 0;
      devices_.push_back(std::make_unique<FakeDevice>(nasty));
    }
    streams_.push_back(devices_.back()->make_stream());
    pointers.push_back(devices_.back().get());
  }
  loader_ = std::make_unique<Loader>(source, augment, pointers, options);
}

Feed::~Feed() {
  loader_.reset();
  streams_.clear();
}

bool Feed::next(Delivered& result) {
  result = {};
  for (size_t device = 0; device < devices_.size(); ++device) {
    Delivered part;
    if (!next(static_cast<int>(device), part)) return false;
    const int valid = result.valid + part.valid;
    std::vector<DeliveredRow> rows = std::move(result.rows);
    rows.insert(rows.end(), part.rows.begin(), part.rows.end());
    result = {part.step, part.epoch, part.step_in_epoch, valid, std::move(rows)};
  }
  return true;
}

bool Feed::next(int device, Delivered& result,
                const std::function<void(const DeviceBatch&)>& look) {
  DeviceBatch batch = loader_->next(device, *streams_[device]);
  if (!batch) return false;
  if (look) look(batch);
  const BatchHeader& header = batch.header();
  result = {header.step, header.epoch, header.step_in_epoch, header.valid, {}};
  const int rows = batch.shape().rows;
  const BatchShape shape = batch.shape();
  const size_t bytes = size_t{3} * shape.height * shape.width;
  for (int row = 0; row < rows; ++row) {
    const RowNote& note = row_notes(batch)[row];
    result.rows.push_back({.id = batch.ids()[row],
                           .noted = note.digest,
                           .pixels_of = note.pixels_of,
                           .code = note.code,
                           .bad = note.bad,
                           .repeat_index = note.repeat_index});
  }
  streams_[device]->call([to = result.rows.data(), rows, bytes, images = batch.images(),
                          labels = batch.labels(), weights = batch.weights()] {
    for (int row = 0; row < rows; ++row) {
      to[row].pixels = pixel_digest({images + row * bytes, bytes});
      to[row].label = labels[row];
      to[row].weight = weights[row];
    }
  });
  batch = {};
  streams_[device]->synchronize();
  return true;
}

void fill_remotely(RemoteRows& rows, const Source& source, const AugmentSpec& augment,
                   const LoaderOptions& options) {
  RemoteFiller filler(source, augment, options, {});
  while (!rows.ended()) {
    const auto claim = rows.claim(1, 4);
    if (!claim) continue;
    std::vector<std::byte> message(filler.message_bytes(claim->range.rows));
    const std::vector<uint8_t> bad = filler.fill(claim->range, message);
    rows.deliver(*claim, message, bad);
  }
}

std::vector<Delivered> Feed::take(int64_t steps) {
  std::vector<Delivered> batches;
  Delivered batch;
  while (static_cast<int64_t>(batches.size()) < steps && next(batch)) batches.push_back(batch);
  return batches;
}

namespace {

std::vector<std::byte> batch_bytes(const DeviceBatch& batch, size_t columns) {
  std::vector<std::byte> bytes;
  const auto add = [&](const void* from, size_t count) {
    const auto* first = static_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), first, first + count);
  };
  const BatchShape shape = batch.shape();
  const auto rows = static_cast<size_t>(shape.rows);
  add(batch.images(), rows * BatchLayout(shape).image_bytes());
  add(batch.labels(), rows * sizeof(int32_t));
  add(batch.weights(), rows * sizeof(float));
  for (size_t i = 0; i < columns; ++i) {
    add(batch.target(i), rows * static_cast<size_t>(shape.target_bytes[i]));
  }
  add(batch.ids(), rows * sizeof(SampleId));
  for (size_t row = 0; row < rows; ++row) {
    const RowNote& note = row_notes(batch)[row];
    const int64_t values[] = {note.pixels_of,
                              static_cast<int64_t>(note.digest),
                              static_cast<int64_t>(note.repeat_index),
                              note.mix.partner,
                              static_cast<int64_t>(note.mix.draw.kind),
                              note.source.width,
                              note.bad,
                              note.counts};
    add(values, sizeof(values));
  }
  return bytes;
}

}  // namespace

std::vector<std::byte> all_bytes(Feed& feed) {
  std::vector<std::byte> all;
  Delivered batch;
  const size_t columns = feed.loader().targets().size();
  while (feed.next(0, batch, [&](const DeviceBatch& leased) {
    const auto bytes = batch_bytes(leased, columns);
    all.insert(all.end(), bytes.begin(), bytes.end());
  })) {
  }
  return all;
}

}  // namespace stoker::testing
