// stoker's own decoder: both pixel policies, with and without a seek index per file.
#include <stdexcept>

#include "bench/peers/native/method.h"
#include "decode/image_decoder.h"
#include "decode/jpeg/seek_index.h"

namespace stoker::peers {
namespace {

class StokerMethod final : public Method {
 public:
  explicit StokerMethod(PixelPolicy pixels) : decoder_({.pixels = pixels}) {}
  void decode(int, std::span<const uint8_t> bytes, const CropSpec& spec,
              MutableImageView out) override {
    const DecodeStatus status = decoder_.decode(bytes, spec, out);
    if (!status.ok()) throw std::runtime_error("stoker: " + status.message);
  }

 private:
  ImageDecoder decoder_;
};

class IndexedMethod final : public Method {
 public:
  IndexedMethod(PixelPolicy pixels, SeekStep step) : step_(step), decoder_({.pixels = pixels}) {}
  void prepare(int, std::span<const uint8_t> bytes) override {
    if (!builder_.build(bytes, step_, indexes_.emplace_back())) indexes_.back().clear();
  }
  void decode(int file, std::span<const uint8_t> bytes, const CropSpec& spec,
              MutableImageView out) override {
    const std::vector<uint8_t>& index = indexes_[static_cast<size_t>(file)];
    const DecodeStatus status = decoder_.decode(bytes, spec, out, index);
    if (!status.ok()) throw std::runtime_error("stoker: " + status.message);
  }

 private:
  const SeekStep step_;
  SeekIndexBuilder builder_;
  std::vector<std::vector<uint8_t>> indexes_;  // per file
  ImageDecoder decoder_;
};

}  // namespace

std::unique_ptr<Method> make_stoker_fast() {
  return std::make_unique<StokerMethod>(PixelPolicy::fast);
}
std::unique_ptr<Method> make_stoker_exact() {
  return std::make_unique<StokerMethod>(PixelPolicy::exact);
}

std::unique_ptr<Method> make_stoker_row_index() {
  return std::make_unique<IndexedMethod>(PixelPolicy::fast, SeekStep::row);
}
std::unique_ptr<Method> make_stoker_index_8() {
  return std::make_unique<IndexedMethod>(PixelPolicy::fast, SeekStep::eight);
}
std::unique_ptr<Method> make_stoker_exact_row_index() {
  return std::make_unique<IndexedMethod>(PixelPolicy::exact, SeekStep::row);
}
std::unique_ptr<Method> make_stoker_exact_index_8() {
  return std::make_unique<IndexedMethod>(PixelPolicy::exact, SeekStep::eight);
}

}  // namespace stoker::peers
