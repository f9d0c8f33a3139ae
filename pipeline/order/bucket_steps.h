// The steps of epochs whose samples lie in aspect buckets: which bucket each has, and which of its
// positions. Positions are counted bucket by bucket (AspectBuckets::at() in another order); within
// a bucket the steps take them one after the other, so that how far an epoch has come is a number
// for each bucket. Which bucket's turn it is is shuffled. Merged steps are the last of an epoch.
// Owner: Sampler. Threads: any.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pipeline/sample_order.h"
#include "pipeline/step_shapes.h"
#include "staging/mutex.h"

namespace stoker {

enum class LastBatch : uint8_t;

// Every sample of the buckets once: position p is of bucket b if p is one of its places, in a
// shuffled order of the bucket in each epoch or, without `shuffle`, in that of the places.
SharedOrder bucket_order(SharedBuckets buckets, bool shuffle);

// The turns of one epoch.
class BucketTurns {
 public:
  struct Turn {
    int32_t bucket;
    int32_t number;  // of the bucket's steps before it
  };
  explicit BucketTurns(std::vector<Turn> turns) : turns_(std::move(turns)) {}
  const Turn& operator[](int64_t step) const { return turns_[static_cast<size_t>(step)]; }
  int64_t size() const { return std::ssize(turns_); }

 private:
  std::vector<Turn> turns_;
};

class BucketSteps {
 public:
  struct Place {
    int64_t position;
    float weight;
  };

  // `taken`: how many positions of each bucket came before; empty: none.
  BucketSteps(SharedBuckets buckets, int64_t global_batch, LastBatch last_batch, bool shuffle,
              std::vector<int64_t> taken = {});

  int64_t steps() const { return turns_ + merged_; }  // that are left of an epoch
  // The turns of an epoch; made once for the last two epochs that were asked for.
  std::shared_ptr<const BucketTurns> table(uint64_t seed, int64_t epoch) const;
  // `step` counts from 0 behind what was taken.
  int shape(const BucketTurns& table, int64_t step) const;
  // How many rows hold a position of their own; the others fill the step up.
  int64_t own_rows(const BucketTurns& table, int64_t step) const;
  Place place(const BucketTurns& table, int64_t step, int64_t global_row) const;
  // How many positions of each bucket came before a step.
  std::vector<int64_t> taken_before(const BucketTurns& table, int64_t step) const;

 private:
  struct Part {
    int64_t begin, samples;  // the positions that are left
    int64_t steps;           // of this bucket alone
    int64_t taken;
  };
  // The samples of a bucket that are left for merged steps.
  struct Rest {
    int bucket;
    int64_t before;  // samples of the rests in front of it
    int64_t samples;
    int64_t begin;  // its first position
  };
  struct Made {
    uint64_t seed = 0;
    int64_t epoch = -1;
    std::shared_ptr<const BucketTurns> table;
  };
  void note_rests();
  int merged_shape(int64_t number) const;
  BucketTurns shuffle_turns(uint64_t seed, int64_t epoch) const;

  const SharedBuckets buckets_;
  const int64_t batch_;
  const LastBatch last_batch_;
  const bool shuffle_;
  std::vector<Part> parts_;
  std::vector<Rest> rests_;
  int64_t turns_ = 0, merged_ = 0, rest_samples_ = 0;
  mutable Mutex mutex_;
  mutable std::array<Made, 2> made_ GUARDED_BY(mutex_);
  mutable size_t last_made_ GUARDED_BY(mutex_) = 0;
};

}  // namespace stoker
