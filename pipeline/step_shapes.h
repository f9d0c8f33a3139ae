// Batches whose shape changes from step to step: a step's rows all have one size, the same on all
// ranks, which is a function of (seed, epoch, step).
//
//   ShapeSchedule   the size of a step is drawn from a list, or follows the epoch (multi-scale)
//   AspectBuckets   a step has the samples of one bucket: those whose pictures its size crops least
//
// Stages without a size of their own make images of the step's size. Values. Threads: reading from
// any. Errors: std::invalid_argument with the numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/image.h"
#include "pipeline/order/id_list.h"

namespace stoker {

struct EpochKey;

// The sizes of steps from an epoch on.
struct ShapePiece {
  int64_t first_epoch = 0;
  std::vector<Size> sizes{};  // one is drawn for each step, all with the same probability
};

class ShapeSchedule {
 public:
  // The first piece begins at epoch 0, and no piece before the one in front of it. `hold`: so many
  // steps, one behind the other, have one size.
  explicit ShapeSchedule(std::vector<ShapePiece> pieces, int64_t hold = 1);

  // All different sizes of the pieces, in the order in which they first come.
  const std::vector<Size>& sizes() const { return sizes_; }
  // The index in sizes() of a step, counted in its epoch.
  int shape(const EpochKey& epoch, int64_t step_in_epoch) const;
  std::string describe() const;  // one line: part of the fingerprint

 private:
  struct Piece {
    int64_t first_epoch;
    std::vector<int> shapes;
  };
  std::vector<Piece> pieces_;
  int64_t hold_;
  std::vector<Size> sizes_;
};

// Returns sizes of about the same area for aspect buckets: sides are multiples of `step`, the area
// is at most `area` and as large as that allows, and no side is more than `max_ratio` times the
// other. They go from the narrowest to the widest. The rule is that of NovelAI's bucketing (2022).
std::vector<Size> aspect_sizes(int64_t area, int step = 64, double max_ratio = 2);

struct BucketOptions {
  std::vector<Size> sizes{};
  // Whether a picture may be made larger. If not, it goes to a bucket that it covers as it is, and
  // is left out where there is none: AspectBuckets::left_out().
  bool enlarge = true;
  int multiple_of = 1;  // of the sides, as the net needs it; sizes that are none are refused
};

class AspectBuckets {
 public:
  struct Bucket {
    Size size;
    int64_t begin = 0, samples = 0;  // their places: those of a bucket are one behind the other
    double cropped = 0;              // the mean share of a picture's area that is cropped away
  };

  // `pictures` has the size of each sample's picture, as it is decoded (source/picture_sizes.h). A
  // picture goes to the bucket that shows most of it when it is resized to cover the bucket's size
  // and cropped; of several to the largest that it covers without being enlarged, else to the
  // smallest. One of unknown size ({}: a bad sample) goes to the first bucket, where its row says
  // what is wrong. Throws for no sizes, one that comes twice, sides that are no multiple, and if
  // all pictures are left out.
  AspectBuckets(std::span<const Size> pictures, const BucketOptions& options);

  const std::vector<Bucket>& buckets() const { return buckets_; }  // in the order of the sizes
  std::vector<Size> sizes() const;
  int64_t pictures() const { return pictures_; }       // given
  int64_t unknown() const { return unknown_; }         // of unknown size
  int64_t samples() const { return members_.size(); }  // of all buckets
  int64_t left_out() const { return pictures() - samples(); }
  SampleId first_left_out() const { return first_left_out_; }  // -1: none
  // The sample at a place in [0, samples()); in a bucket they come in the order of their numbers.
  SampleId at(int64_t place) const { return members_[place]; }
  // Returns the bucket of a picture; -1: it is left out.
  int bucket_of(Size picture) const;
  // One line that only the same buckets of the same samples have: part of the fingerprint.
  const std::string& describe() const { return describe_; }

 private:
  std::vector<Bucket> buckets_;
  bool enlarge_;
  int64_t pictures_, unknown_ = 0;
  IdList members_;
  SampleId first_left_out_ = -1;
  std::string describe_;
};

using SharedBuckets = std::shared_ptr<const AspectBuckets>;

}  // namespace stoker
