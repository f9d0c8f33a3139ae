// Which bucket a picture belongs to.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/step_shapes.h"

namespace stoker {
namespace {

__extension__ using BigProduct = unsigned __int128;

constexpr int kMaxBucketSide = 1 << 15;

[[noreturn]] void refuse_buckets(const std::string& problem) {
  throw std::invalid_argument("buckets: " + problem);
}

std::string size_words(Size size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height) + " pixels";
}

int64_t pixels_in(Size size) { return int64_t{size.width} * size.height; }

// The share of a picture that is seen when it is resized to cover a size: shorter / longer.
struct SeenShare {
  uint64_t shorter, longer;
  bool operator==(const SeenShare& other) const {
    return BigProduct{shorter} * other.longer == BigProduct{other.shorter} * longer;
  }
  bool operator>(const SeenShare& other) const {
    return BigProduct{shorter} * other.longer > BigProduct{other.shorter} * longer;
  }
};

SeenShare seen_of(Size picture, Size bucket) {
  const auto a = static_cast<uint64_t>(picture.width) * static_cast<uint64_t>(bucket.height);
  const auto b = static_cast<uint64_t>(picture.height) * static_cast<uint64_t>(bucket.width);
  return {std::min(a, b), std::max(a, b)};
}

bool covers(Size picture, Size bucket) {
  return picture.width >= bucket.width && picture.height >= bucket.height;
}

void check_sizes(const BucketOptions& options) {
  if (options.sizes.empty()) refuse_buckets("there are no sizes");
  if (options.multiple_of < 1) {
    refuse_buckets("multiple_of is " + std::to_string(options.multiple_of) +
                   ", must be at least 1");
  }
  std::set<std::array<int, 2>> known;
  for (const Size size : options.sizes) {
    if (std::min(size.width, size.height) < 1 ||
        std::max(size.width, size.height) > kMaxBucketSide) {
      refuse_buckets("a size is " + size_words(size) + "; sides must be 1.." +
                     std::to_string(kMaxBucketSide));
    }
    if (size.width % options.multiple_of != 0 || size.height % options.multiple_of != 0) {
      refuse_buckets("a size is " + size_words(size) + ", and both sides must be multiples of " +
                     std::to_string(options.multiple_of));
    }
    if (!known.insert({size.width, size.height}).second) {
      refuse_buckets(size_words(size) + " is there twice");
    }
  }
}

// Pictures of one size have one bucket: few sizes are looked up again and again.
class KnownSizes {
 public:
  template <class Find>
  int operator()(Size size, const Find& find) {
    const auto key = static_cast<uint64_t>(static_cast<uint32_t>(size.width)) << 32 |
                     static_cast<uint32_t>(size.height);
    Entry& entry = entries_[(key * 0x9E3779B97F4A7C15ULL) >> 52];
    if (entry.key != key) entry = {key, find(size)};
    return entry.bucket;
  }

 private:
  struct Entry {
    uint64_t key = 0;  // no picture has no pixels
    int bucket = -1;
  };
  std::vector<Entry> entries_ = std::vector<Entry>(4096);
};

}  // namespace

std::vector<Size> aspect_sizes(int64_t area, int step, double max_ratio) {
  if (step < 1 || area < int64_t{step} * step || !(max_ratio >= 1) ||
      area > int64_t{kMaxBucketSide} * kMaxBucketSide) {
    refuse_buckets("an area of " + std::to_string(area) + " pixels in steps of " +
                   std::to_string(step) +
                   " with sides of at most 1 : " + std::to_string(max_ratio) +
                   "; the area must have a square of one step, and the ratio be at least 1");
  }
  std::vector<Size> sizes;
  for (int64_t width = step; width <= kMaxBucketSide; width += step) {
    const int64_t height = area / width / step * step;
    const auto [shorter, longer] = std::minmax(width, height);
    if (shorter < 1 || longer > kMaxBucketSide) continue;
    if (static_cast<double>(longer) > max_ratio * static_cast<double>(shorter)) continue;
    const Size size{static_cast<int>(width), static_cast<int>(height)};
    // Where two widths have one height, the wider has more pixels.
    if (!sizes.empty() && sizes.back().height == size.height) sizes.pop_back();
    sizes.push_back(size);
  }
  if (sizes.empty()) {
    refuse_buckets("no sides in steps of " + std::to_string(step) + " are within 1 : " +
                   std::to_string(max_ratio) + " at an area of " + std::to_string(area));
  }
  return sizes;
}

AspectBuckets::AspectBuckets(std::span<const Size> pictures, const BucketOptions& options)
    : enlarge_(options.enlarge), pictures_(static_cast<int64_t>(pictures.size())) {
  check_sizes(options);
  for (const Size size : options.sizes) buckets_.push_back({.size = size});
  KnownSizes known;
  std::vector<int16_t> bucket_numbers(pictures.size());
  if (buckets_.size() > 1 << 14) refuse_buckets("more than 16384 sizes");
  for (size_t id = 0; id < pictures.size(); ++id) {
    const Size picture = pictures[id];
    const bool is_unknown = picture.width < 1 || picture.height < 1;
    const int number =
        is_unknown ? 0 : known(picture, [this](Size size) { return bucket_of(size); });
    bucket_numbers[id] = static_cast<int16_t>(number);
    if (number < 0) {
      if (first_left_out_ < 0) first_left_out_ = static_cast<SampleId>(id);
      continue;
    }
    Bucket& bucket = buckets_[static_cast<size_t>(number)];
    ++bucket.samples;
    unknown_ += is_unknown;
    if (is_unknown) continue;
    const SeenShare seen = seen_of(picture, bucket.size);
    bucket.cropped += 1 - static_cast<double>(seen.shorter) / static_cast<double>(seen.longer);
  }
  int64_t places = 0;
  std::vector<int64_t> next;
  for (Bucket& bucket : buckets_) {
    bucket.begin = places;
    next.push_back(places);
    places += bucket.samples;
    if (bucket.samples > 0) bucket.cropped /= static_cast<double>(bucket.samples);
  }
  if (places == 0) {
    refuse_buckets("all of the " + std::to_string(pictures_) + " pictures are left out" +
                   (pictures.empty() ? ""
                                     : ": they are smaller than the buckets (the first has " +
                                           size_words(pictures[0]) + "), and none is enlarged"));
  }
  std::vector<SampleId> members(static_cast<size_t>(places));
  for (size_t id = 0; id < pictures.size(); ++id) {
    if (bucket_numbers[id] < 0) continue;
    const int64_t place = next[static_cast<size_t>(bucket_numbers[id])]++;
    members[static_cast<size_t>(place)] = static_cast<SampleId>(id);
  }
  members_ = IdList(members);
  describe_ = "buckets";
  for (const Bucket& bucket : buckets_) {
    describe_.append(" ").append(std::to_string(bucket.size.width)).append("x");
    describe_.append(std::to_string(bucket.size.height)).append(":");
    describe_.append(std::to_string(bucket.samples));
  }
  describe_ += " digest " + hex64(members_.digest());
}

std::vector<Size> AspectBuckets::sizes() const {
  std::vector<Size> all;
  for (const Bucket& bucket : buckets_) all.push_back(bucket.size);
  return all;
}

int AspectBuckets::bucket_of(Size picture) const {
  int best = -1;
  SeenShare most{0, 1};
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const Size size = buckets_[i].size;
    if (!enlarge_ && !covers(picture, size)) continue;
    const SeenShare seen = seen_of(picture, size);
    bool is_better = best < 0 || seen > most;
    if (!is_better && seen == most) {
      const Size before = buckets_[static_cast<size_t>(best)].size;
      const bool is_covered = covers(picture, size), was_covered = covers(picture, before);
      is_better = is_covered != was_covered ? is_covered
                                            : (pixels_in(size) > pixels_in(before)) == is_covered;
    }
    if (!is_better) continue;
    best = static_cast<int>(i);
    most = seen;
  }
  return best;
}

}  // namespace stoker
