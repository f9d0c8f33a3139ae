#include "pipeline/feed/picture_look.h"

#include <algorithm>
#include <vector>

#include "pipeline/random/permutation.h"

namespace stoker {
namespace {

constexpr int64_t kMostSeen = 256;           // headers
constexpr int64_t kMostFetched = 16;         // files that are not in memory
constexpr size_t kMostMade = 4;              // rows
constexpr int64_t kEnoughMade = 16'000'000;  // pixels of them, after which no other is begun
constexpr int64_t kEpochsDrawn = 16;         // of which that is made that shows the most
constexpr uint64_t kLookSeed = 0x6c6f6f6b;   // any

struct SeenPicture {
  SampleId id = 0;
  Size size;
  int64_t file_bytes = 0;
  // A decoder keeps lines of the picture, and the data of its file.
  int64_t weight() const { return file_bytes + int64_t{size.width} * size.height; }
};

// Makes rows under the lease of the thread, as a worker does.
class LookedAtRows {
 public:
  LookedAtRows(const Source& source, const AugmentSpec& augment, const DecodeOptions& decode)
      : source_(source), augment_(augment), decoder_(decode), augmenter_(augment, decode) {
    if (source.annotations().any()) {
      augmenter_.carry(&annotations_, source.annotations().keypoints);
      draws_.carry(&annotations_, source.annotations().keypoints);
    }
    for (int view = 0; view < augment.own_views(); ++view) {
      const Size size = augment.view(view).output;
      pixels_.emplace_back(size_t{3} * size.width * size.height);
      outs_.push_back({pixels_.back().data(), size.width, size.height, ptrdiff_t{3} * size.width});
    }
  }

  // Reads headers. `is_cached`: whether most files were in memory.
  std::vector<SeenPicture> see(bool& is_cached) {
    const Permutation order(source_.size(), {kLookSeed, kLookSeed | 1});
    const int64_t most = std::min(kMostSeen, source_.size());
    std::vector<SeenPicture> seen;
    int64_t fetched = 0;
    for (int64_t i = 0; i < most && fetched < kMostFetched; ++i) {
      const SampleId id = order.at(i);
      bool is_here = false;
      ImageInfo info;
      if (!read(id, is_here) || !decoder_.info(bytes_, info).ok()) continue;
      seen.push_back({id, info.size, std::ssize(bytes_)});
      fetched += !is_here;
    }
    is_cached = 2 * fetched <= std::ssize(seen);
    return seen;
  }

  // Tables are kept, too, but no lease is charged for them.
  int64_t uncharged_bytes(const MemoryLease& lease) const {
    const auto file = static_cast<int64_t>(file_.capacity());
    return std::max(augmenter_.scratch_bytes() + file - lease.used(), int64_t{0});
  }

  void make(const SeenPicture& picture) {
    bool is_here = false;
    if (!read(picture.id, is_here)) return;
    if (source_.annotations().any() &&
        !source_.read_annotations(picture.id, bytes_, annotations_).ok) {
      return;
    }
    Size size;
    augmenter_.file_views(bytes_, kLookSeed, largest_epoch(picture), picture.id, outs_, size);
  }

 private:
  // `is_here`: the file was in memory. One that is not is read if it is a file: what code of users
  // gives has no stamp.
  bool read(SampleId id, bool& is_here) {
    const SampleStorage& storage = source_.storage();
    is_here = storage.read_cached(id, file_, bytes_);
    return is_here || (storage.stamp(id).is_known() && source_.read(id, file_, bytes_).ok);
  }

  // Draws differ in what they show. A worker meets the largest of them some time.
  int64_t largest_epoch(const SeenPicture& picture) {
    int64_t largest = 0, most = -1;
    for (int64_t epoch = 0; epoch < kEpochsDrawn; ++epoch) {
      const Box box = needed_box(augment_, picture.size, kLookSeed, epoch, picture.id, draws_);
      const int64_t pixels = int64_t{box.width} * box.height;
      if (pixels <= most) continue;
      most = pixels;
      largest = epoch;
    }
    return largest;
  }

  const Source& source_;
  const AugmentSpec& augment_;
  ImageDecoder decoder_;
  Augmenter augmenter_;
  Annotations annotations_;
  Draws draws_;
  std::vector<std::vector<uint8_t>> pixels_;  // of each view
  std::vector<MutableImageView> outs_;
  std::vector<uint8_t> file_;
  std::span<const uint8_t> bytes_;
};

}  // namespace

std::optional<PictureLook> look_at_pictures(const Source& source, const AugmentSpec& augment,
                                            const DecodeOptions& decode, MemoryBudget& memory) {
  const bool is_file = source.encoding() == SampleEncoding::image_file;
  if (!is_file || augment.combines() || source.storage().store_stats()) return {};
  MemoryLease lease(&memory, 0);
  const LeaseScope scope(lease);
  PictureLook look;
  try {
    LookedAtRows rows(source, augment, decode);
    std::vector<SeenPicture> seen = rows.see(look.is_cached);
    if (seen.empty()) return {};
    std::ranges::sort(seen, std::greater{}, &SeenPicture::weight);
    look.file_bytes = std::ranges::max(seen, {}, &SeenPicture::file_bytes).file_bytes;
    int64_t made = 0;
    for (size_t i = 0; i < std::min(seen.size(), kMostMade) && made < kEnoughMade; ++i) {
      rows.make(seen[i]);
      made += int64_t{seen[i].size.width} * seen[i].size.height;
    }
    look.row_bytes = lease.taken() + rows.uncharged_bytes(lease);
  } catch (const OverBudget& over) {
    look.row_bytes = over.needed();
  }
  return look;
}

}  // namespace stoker
