#include "bench/feed_bench_data.h"

#include <unistd.h>

#include <fstream>
#include <stdexcept>

#include "pipeline/random_key.h"
#include "tools/jpeg_writer.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr int kCifarRows = 50'000;
constexpr int kImages = 64;
constexpr size_t kMostFiles = 2000, kMostFileBytes = size_t{256} << 20;  // in memory

std::vector<uint8_t> make_image(uint64_t seed) {
  constexpr int kWidth = 500, kHeight = 375;
  const RandomKey key(seed, 0, 0);
  std::vector<uint8_t> pixels(size_t{3} * kWidth * kHeight);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t x = i / 3 % kWidth, y = i / 3 / kWidth;
    pixels[i] = static_cast<uint8_t>((x * (seed % 5 + 1) / 4 + y / 2 + i % 3 * 40) % 200 +
                                     key.bits(static_cast<uint32_t>(i)) % 24);
  }
  return encode_jpeg({pixels.data(), kWidth, kHeight, ptrdiff_t{3} * kWidth}, 90);
}

}  // namespace

MadeUpData::MadeUpData()
    : path_(fs::temp_directory_path() / ("stoker-feed-bench-" + std::to_string(getpid()))) {
  fs::create_directories(path_);
}

MadeUpData::~MadeUpData() { fs::remove_all(path_); }

std::string MadeUpData::cifar() const {
  std::vector<char> record(3073);
  std::ofstream file(path_ / "test_batch.bin", std::ios::binary);
  for (int64_t i = 0; i < kCifarRows; ++i) {
    record[0] = static_cast<char>(i % 10);
    record[static_cast<size_t>(1 + i % 3072)] = static_cast<char>(RandomKey(1, 0, i).bits(0));
    file.write(record.data(), static_cast<std::streamsize>(record.size()));
  }
  return path_;
}

std::string MadeUpData::pictures() const {
  for (int i = 0; i < kImages; ++i) {
    const std::vector<uint8_t> bytes = make_image(static_cast<uint64_t>(i));
    const fs::path folder = path_ / "images" / (i % 2 ? "a" : "b");
    fs::create_directories(folder);
    std::ofstream(folder / (std::to_string(i) + ".jpg"), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  }
  return path_ / "images";
}

MemorySource::MemorySource(const Source& files) {
  size_t total = 0;
  for (SampleId id = 0; id < files.size() && files_.size() < kMostFiles; ++id) {
    std::vector<uint8_t> buffer;
    std::span<const uint8_t> bytes;
    if (!files.read(id, buffer, bytes).ok) continue;
    files_.emplace_back(bytes.begin(), bytes.end());
    if ((total += bytes.size()) > kMostFileBytes) break;
  }
  if (files_.empty()) throw std::runtime_error(files.root() + ": no file could be read");
}

}  // namespace stoker
