#include "bench/peers/crops/crop_work.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <stdexcept>

#include "decode/image_decoder.h"
#include "decode/jpeg/libjpeg_session.h"
#include "decode/jpeg/seek_index.h"

namespace stoker {
namespace {

constexpr int kOutput = 224;

CropSpec train_crop(Size size, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(0, 1);
  CropSpec spec{{0, 0, size.width, size.height}, {kOutput, kOutput}, {0, 0, kOutput, kOutput}};
  for (int i = 0; i < 10; ++i) {
    const double area = double(size.width) * size.height * (0.08 + 0.92 * uniform(random));
    const double ratio = std::exp(std::log(0.75) + uniform(random) * std::log(16.0 / 9));
    const int w = static_cast<int>(std::lround(std::sqrt(area * ratio)));
    const int h = static_cast<int>(std::lround(std::sqrt(area / ratio)));
    if (w < 1 || h < 1 || w > size.width || h > size.height) continue;
    spec.crop = {static_cast<int>(uniform(random) * (size.width - w + 1)),
                 static_cast<int>(uniform(random) * (size.height - h + 1)), w, h};
    break;
  }
  spec.flip = uniform(random) < 0.5;
  return spec;
}

CropSpec eval_crop(Size size) {
  CropSpec spec{{0, 0, size.width, size.height}, {}, {0, 0, kOutput, kOutput}};
  const int shorter = std::min(size.width, size.height);
  spec.resized = {256 * size.width / shorter, 256 * size.height / shorter};
  spec.window.x = (spec.resized.width - kOutput) / 2;
  spec.window.y = (spec.resized.height - kOutput) / 2;
  return spec;
}

CropSpec whole(Size size) {
  return {{0, 0, size.width, size.height}, size, {0, 0, size.width, size.height}};
}

// Returns the same coefficients as a progressive file: the scans that libjpeg, and so Pillow,
// writes by default, with Huffman tables of their own. Throws std::runtime_error for a file that
// libjpeg does not read.
std::vector<uint8_t> progressive_copy(std::span<const uint8_t> jpeg) {
  JpegSession session(jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  const bool is_read = session.read_header() && session.guarded([&](jpeg_decompress_struct& in) {
    jvirt_barray_ptr* coefficients = jpeg_read_coefficients(&in);
    jpeg_compress_struct out;
    jpeg_error_mgr errors;  // libjpeg ends the program if it cannot write
    out.err = jpeg_std_error(&errors);
    jpeg_create_compress(&out);
    jpeg_mem_dest(&out, &memory, &size);
    jpeg_copy_critical_parameters(&in, &out);
    jpeg_simple_progression(&out);
    jpeg_write_coefficients(&out, coefficients);
    jpeg_finish_compress(&out);
    jpeg_destroy_compress(&out);
  });
  const std::unique_ptr<unsigned char, decltype(&std::free)> owner(memory, &std::free);
  if (!is_read) throw std::runtime_error("a progressive copy: " + session.failure().message);
  return {memory, memory + size};
}

}  // namespace

std::vector<JpegSample> load_jpegs(const char* folder, size_t limit) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<JpegSample> samples;
  SeekIndexBuilder builder;
  const size_t step = std::max<size_t>(1, paths.size() / limit);
  for (size_t i = 0; i < paths.size() && samples.size() < limit; i += step) {
    std::ifstream file(paths[i], std::ios::binary);
    JpegSample sample{{std::istreambuf_iterator<char>(file), {}}, {}, {}, {}};
    ImageDecoder decoder;
    ImageInfo info;
    if (!decoder.info(sample.bytes, info).ok() || info.format != ImageFormat::jpeg) continue;
    sample.size = info.size;
    builder.build(sample.bytes, SeekStep::row, sample.row_index);
    builder.build(sample.bytes, SeekStep::eight, sample.fine_index);
    samples.push_back(std::move(sample));
  }
  return samples;
}

void make_progressive(std::vector<JpegSample>& samples) {
  for (JpegSample& sample : samples) {
    sample.bytes = progressive_copy(sample.bytes);
    sample.row_index.clear();
    sample.fine_index.clear();
  }
}

std::vector<CropWork> plan_crops(const std::vector<JpegSample>& samples, const std::string& mode,
                                 int round) {
  std::mt19937_64 random(static_cast<uint64_t>(round) + 1);
  std::vector<CropWork> work;
  for (const JpegSample& s : samples) {
    const CropSpec spec = mode == "eval"    ? eval_crop(s.size)
                          : mode == "whole" ? whole(s.size)
                                            : train_crop(s.size, random);
    work.push_back({&s, spec});
  }
  return work;
}

MutableImageView output_of(const CropSpec& spec, std::vector<uint8_t>& pixels) {
  pixels.resize(static_cast<size_t>(spec.window.width) * spec.window.height * 3);
  return {pixels.data(), spec.window.width, spec.window.height, 3 * spec.window.width};
}

}  // namespace stoker
