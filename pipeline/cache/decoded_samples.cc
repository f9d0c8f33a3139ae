#include "pipeline/cache/decoded_samples.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace stoker {
namespace {

// All belong to the form of the places: another key is another order.
constexpr PermutationKey kDecodedOrder{0x452821E638D01377, 0xBE5466CF34E90C6D};
constexpr size_t kHeadWords = 16;
constexpr int64_t kSampleHeadBytes = kHeadWords * sizeof(int64_t);

using SampleHead = std::array<int64_t, kHeadWords>;

SampleHead head_of(const FileStamp& stamp, const DecodedPicture& picture) {
  const auto& [crop, resized, window, flip, filter] = picture.crop;
  return {stamp.bytes,
          stamp.modified_ns,
          picture.source.width,
          picture.source.height,
          crop.x,
          crop.y,
          crop.width,
          crop.height,
          resized.width,
          resized.height,
          window.x,
          window.y,
          window.width,
          window.height,
          int64_t(filter),
          DecodedSamples::kForm};
}

DecodedPicture picture_of(const SampleHead& head) {
  const auto at = [&](size_t i) { return static_cast<int>(head[i]); };
  return {{at(2), at(3)},
          {{at(4), at(5), at(6), at(7)},
           {at(8), at(9)},
           {at(10), at(11), at(12), at(13)},
           false,
           static_cast<Filter>(at(14))},
          {}};
}

}  // namespace

DecodedSamples::DecodedSamples(const DecodedForm& form, int64_t samples, int64_t count,
                               std::unique_ptr<DecodedSlots> places)
    : form_(form),
      samples_(samples),
      count_(count),
      places_(std::move(places)),
      order_(order_of(samples)) {}

Permutation DecodedSamples::order_of(int64_t samples) { return {samples, kDecodedOrder}; }

int64_t DecodedSamples::place_bytes(const DecodedForm& form) {
  return kSampleHeadBytes + form.bytes();
}

bool DecodedSamples::holds(SampleId id) const {
  const int64_t position = order_.position_of(id);
  return position < count_ && places_->holds(position);
}

bool DecodedSamples::wants(SampleId id) const {
  const int64_t position = order_.position_of(id);
  return position < count_ && places_->wants(position);
}

DecodedPicture DecodedSamples::read(SampleId id, const FileStamp& stamp, MayWait may_wait,
                                    std::vector<uint8_t>& buffer) const {
  const int64_t position = order_.position_of(id);
  if (position >= count_ || !stamp.is_known()) return {};
  const std::span<const uint8_t> bytes = places_->read(position, may_wait, buffer);
  if (bytes.empty()) return {};
  SampleHead head;
  std::memcpy(head.data(), bytes.data(), kSampleHeadBytes);
  DecodedPicture picture = picture_of(head);
  const Box& window = picture.crop.window;
  const bool is_right = head == head_of(stamp, picture) &&
                        Size{window.width, window.height} == form_.size &&
                        picture.source.width > 0 && picture.source.height > 0;
  if (is_right) picture.pixels = bytes.subspan(kSampleHeadBytes);
  return picture;
}

void DecodedSamples::keep(SampleId id, const FileStamp& stamp, const DecodedPicture& picture) {
  const int64_t position = order_.position_of(id);
  if (position >= count_ || !stamp.is_known()) return;
  std::vector<uint8_t> bytes(static_cast<size_t>(place_bytes(form_)));
  // Another process or thread may have kept it meanwhile.
  if (!read(id, stamp, MayWait::yes, bytes).pixels.empty()) return;
  const SampleHead head = head_of(stamp, picture);
  std::memcpy(bytes.data(), head.data(), kSampleHeadBytes);
  std::ranges::copy(picture.pixels, bytes.begin() + kSampleHeadBytes);
  if (places_->keep(position, bytes)) ++kept_;
}

DecodedCacheStats DecodedSamples::stats() const {
  DecodedCacheStats stats;
  stats.samples = samples_;
  stats.places = count_;
  stats.place_bytes = place_bytes(form_);
  stats.found = places_->found();
  stats.kept = kept_;
  stats.kept_bytes = stats.kept * stats.place_bytes;
  stats.folder = places_->folder();
  stats.problem = places_->problem();
  return stats;
}

std::string describe(const DecodedCacheStats& stats) {
  const int64_t rows = stats.hits + stats.misses;
  std::array<char, 256> text;
  std::snprintf(
      text.data(), text.size(),
      "%lld of %lld rows came from it (%.2f%%); %lld decoded pictures, %.3g GB, were "
      "written to it",
      static_cast<long long>(stats.hits), static_cast<long long>(rows),
      rows > 0 ? 100.0 * static_cast<double>(stats.hits) / static_cast<double>(rows) : 0.0,
      static_cast<long long>(stats.kept), static_cast<double>(stats.kept_bytes) / 1e9);
  std::string line = text.data();
  if (!stats.problem.empty()) line += "; no more, because of " + stats.problem;
  return line;
}

}  // namespace stoker
