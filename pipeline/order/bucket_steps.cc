#include "pipeline/order/bucket_steps.h"

#include <algorithm>

#include "pipeline/order/order_parts.h"
#include "pipeline/order/sampler.h"
#include "pipeline/random/random_key.h"

namespace stoker {
namespace {

int64_t divide_up(int64_t count, int64_t by) { return (count + by - 1) / by; }

class BucketOrder final : public SampleOrder {
 public:
  BucketOrder(SharedBuckets buckets, bool shuffle)
      : SampleOrder("bucket", buckets->pictures(), buckets->samples()),
        buckets_(std::move(buckets)),
        shuffle_(shuffle) {}

  OrderedSample at(const EpochKey& epoch, int64_t position) const override {
    if (!shuffle_) return {buckets_->at(position), 0};
    const auto& all = buckets_->buckets();
    const auto after = std::upper_bound(
        all.begin(), all.end(), position,
        [](int64_t place, const AspectBuckets::Bucket& bucket) { return place < bucket.begin; });
    // Empty buckets begin where the next one does.
    const AspectBuckets::Bucket& bucket = *(after - 1);
    const RandomKey random(epoch.seed, epoch.epoch, after - 1 - all.begin());
    const PermutationKey key{random.bits(kBucketShuffle), random.bits(kBucketShuffleFactor) | 1};
    const int64_t place = Permutation(bucket.samples, key).at(position - bucket.begin);
    return {buckets_->at(bucket.begin + place), 0};
  }
  std::string describe() const override {
    return buckets_->describe() + (shuffle_ ? " shuffled" : " as they lie");
  }

 private:
  const SharedBuckets buckets_;
  const bool shuffle_;
};

}  // namespace

SharedOrder bucket_order(SharedBuckets buckets, bool shuffle) {
  return std::make_shared<BucketOrder>(std::move(buckets), shuffle);
}

BucketSteps::BucketSteps(SharedBuckets buckets, int64_t global_batch, LastBatch last_batch,
                         bool shuffle, std::vector<int64_t> taken)
    : buckets_(std::move(buckets)),
      batch_(global_batch),
      last_batch_(last_batch),
      shuffle_(shuffle) {
  const bool whole_only = last_batch == LastBatch::drop || last_batch == LastBatch::merge;
  taken.resize(buckets_->buckets().size());
  for (size_t i = 0; i < taken.size(); ++i) {
    const AspectBuckets::Bucket& bucket = buckets_->buckets()[i];
    const int64_t samples = bucket.samples - taken[i];
    const int64_t steps = whole_only ? samples / batch_ : divide_up(samples, batch_);
    parts_.push_back({bucket.begin + taken[i], samples, steps, taken[i]});
    turns_ += steps;
  }
  if (last_batch == LastBatch::merge) note_rests();
  merged_ = divide_up(rest_samples_, batch_);
}

// Neighbours in the list have nearly the same shape.
void BucketSteps::note_rests() {
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const int64_t whole = part.steps * batch_;
    if (part.samples == whole) continue;
    rests_.push_back({static_cast<int>(i), 0, part.samples - whole, part.begin + whole});
  }
  std::stable_sort(rests_.begin(), rests_.end(), [this](const Rest& a, const Rest& b) {
    const Size first = buckets_->buckets()[static_cast<size_t>(a.bucket)].size;
    const Size second = buckets_->buckets()[static_cast<size_t>(b.bucket)].size;
    return int64_t{first.width} * second.height < int64_t{second.width} * first.height;
  });
  for (Rest& rest : rests_) {
    rest.before = rest_samples_;
    rest_samples_ += rest.samples;
  }
}

std::shared_ptr<const BucketTurns> BucketSteps::table(uint64_t seed, int64_t epoch) const {
  const MutexLock lock(mutex_);
  for (size_t i = 0; i < made_.size(); ++i) {
    if (!made_[i].table || made_[i].epoch != epoch || made_[i].seed != seed) continue;
    last_made_ = i;
    return made_[i].table;
  }
  last_made_ = 1 - last_made_;
  made_[last_made_] = {seed, epoch,
                       std::make_shared<const BucketTurns>(shuffle_turns(seed, epoch))};
  return made_[last_made_].table;
}

BucketTurns BucketSteps::shuffle_turns(uint64_t seed, int64_t epoch) const {
  std::vector<int64_t> ends;  // of the buckets' steps, if they came bucket by bucket
  int64_t end = 0;
  for (const Part& part : parts_) ends.push_back(end += part.steps);
  std::vector<BucketTurns::Turn> turns;
  turns.reserve(static_cast<size_t>(turns_));
  std::vector<int32_t> numbers(parts_.size(), 0);
  const RandomKey random(seed, epoch, -1);
  const PermutationKey key{random.bits(kStepShuffle), random.bits(kStepShuffleFactor) | 1};
  for (int64_t step = 0; step < turns_; ++step) {
    const int64_t drawn = shuffle_ ? Permutation(turns_, key).at(step) : step;
    const auto bucket = std::upper_bound(ends.begin(), ends.end(), drawn) - ends.begin();
    turns.push_back({static_cast<int32_t>(bucket), numbers[static_cast<size_t>(bucket)]++});
  }
  return BucketTurns(std::move(turns));
}

int BucketSteps::shape(const BucketTurns& table, int64_t step) const {
  return step < turns_ ? table[step].bucket : merged_shape(step - turns_);
}

// The bucket that most of its samples are of; of several the first.
int BucketSteps::merged_shape(int64_t number) const {
  const int64_t begin = number * batch_, end = begin + batch_;
  int bucket = -1;
  int64_t most = 0;
  for (const Rest& rest : rests_) {
    const int64_t samples =
        std::min(end, rest.before + rest.samples) - std::max(begin, rest.before);
    if (samples <= most) continue;
    most = samples;
    bucket = rest.bucket;
  }
  return bucket;
}

int64_t BucketSteps::own_rows(const BucketTurns& table, int64_t step) const {
  if (step >= turns_) return std::min(batch_, rest_samples_ - (step - turns_) * batch_);
  const BucketTurns::Turn& turn = table[step];
  const int64_t left = parts_[static_cast<size_t>(turn.bucket)].samples - turn.number * batch_;
  return std::min(batch_, left);
}

BucketSteps::Place BucketSteps::place(const BucketTurns& table, int64_t step,
                                      int64_t global_row) const {
  const int64_t held = last_batch_ == LastBatch::wrap ? batch_ : own_rows(table, step);
  // Round robin over the rows that hold a position of their own, but for `wrap`.
  const int64_t row = global_row % held;
  const float weight = global_row < held ? 1.0f : 0.0f;
  if (step >= turns_) {
    const int64_t index = (step - turns_) * batch_ + row;
    const auto after =
        std::upper_bound(rests_.begin(), rests_.end(), index,
                         [](int64_t number, const Rest& rest) { return number < rest.before; });
    const Rest& rest = *(after - 1);
    return {rest.begin + index - rest.before, weight};
  }
  const BucketTurns::Turn& turn = table[step];
  const Part& part = parts_[static_cast<size_t>(turn.bucket)];
  const int64_t index = turn.number * batch_ + row;
  if (index < part.samples) return {part.begin + index, weight};
  const int64_t whole = part.taken + part.samples;  // the bucket's samples: wrapped around
  return {part.begin - part.taken + (part.taken + index) % whole, weight};
}

std::vector<int64_t> BucketSteps::taken_before(const BucketTurns& table, int64_t step) const {
  std::vector<int64_t> taken;
  for (const Part& part : parts_) taken.push_back(part.taken);
  for (int64_t i = 0; i < std::min(step, turns_); ++i) {
    const BucketTurns::Turn& turn = table[i];
    const Part& part = parts_[static_cast<size_t>(turn.bucket)];
    taken[static_cast<size_t>(turn.bucket)] =
        part.taken + std::min(part.samples, (turn.number + int64_t{1}) * batch_);
  }
  const int64_t merged = std::max<int64_t>(step - turns_, 0) * batch_;
  for (const Rest& rest : rests_) {
    const int64_t samples = std::clamp<int64_t>(merged - rest.before, 0, rest.samples);
    taken[static_cast<size_t>(rest.bucket)] += samples;
  }
  return taken;
}

}  // namespace stoker
