#include "pipeline/order/sampler.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "pipeline/files/invalid_field.h"
#include "pipeline/order/bucket_steps.h"
#include "pipeline/order/order_parts.h"
#include "pipeline/random/random_key.h"
#include "pipeline/sample_order.h"

namespace stoker {
namespace {

constexpr int64_t kMaxSamplerSamples = int64_t{1} << 40;

std::string numbers_of(const SamplerOptions& options) {
  return "samples = " + std::to_string(options.samples) +
         ", rows = " + std::to_string(options.rows) +
         ", replicas = " + std::to_string(options.replicas);
}

// Returns the options' order, or the one that the buckets or `shuffle` say.
SharedOrder order_for(const SamplerOptions& options) {
  if (options.buckets) {
    if (options.order || options.shapes) {
      throw InvalidField("Sampler", "buckets",
                         std::string(": they say already ") +
                             (options.order ? "which samples come in which order: no `order` goes "
                                              "with them"
                                            : "which size a step has: no schedule of sizes goes "
                                              "with them"));
    }
    if (options.buckets->pictures() != options.samples) {
      throw InvalidField("Sampler", "buckets",
                         " are of " + std::to_string(options.buckets->pictures()) +
                             " pictures, and the source has " + std::to_string(options.samples) +
                             " samples");
    }
    return bucket_order(options.buckets, options.shuffle);
  }
  if (options.last_batch == LastBatch::merge) {
    throw InvalidField("Sampler", "last_batch",
                       " merge is for the last steps of aspect buckets, and there are none");
  }
  if (!options.order) {
    return options.shuffle ? shuffled_order(options.samples) : sequential_order(options.samples);
  }
  if (!options.shuffle) {
    throw InvalidField("Sampler", "shuffle",
                       " is off, but `order` says already in which order samples come: leave "
                       "`shuffle` as it is by default");
  }
  if (options.order->samples() != options.samples) {
    throw InvalidField("Sampler", "order",
                       " (" + options.order->describe() + ") is for a source of " +
                           std::to_string(options.order->samples()) + " samples, this one has " +
                           std::to_string(options.samples));
  }
  return options.order;
}

}  // namespace

const char* to_string(LastBatch policy) {
  switch (policy) {
    case LastBatch::pad:
      return "pad";
    case LastBatch::drop:
      return "drop";
    case LastBatch::wrap:
      return "wrap";
    case LastBatch::merge:
      return "merge";
  }
  return "?";
}

Sampler::Sampler(const SamplerOptions& options)
    : options_(options), global_batch_(int64_t{options.rows} * options.replicas) {
  if (options.samples < 1) {
    throw std::invalid_argument("Sampler: no samples (" + numbers_of(options) + ")");
  }
  if (options.samples > kMaxSamplerSamples) {
    throw std::invalid_argument("Sampler: more than 2^40 samples (" + numbers_of(options) + ")");
  }
  if (options.rows < 1 || options.replicas < 1) {
    throw std::invalid_argument("Sampler: rows and replicas must be at least 1 (" +
                                numbers_of(options) + ")");
  }
  order_ = order_for(options);
  if (options.shapes) sizes_ = options.shapes->sizes();
  int64_t length = order_->length();
  if (options.buckets) {
    sizes_ = options.buckets->sizes();
    bucket_steps_ = std::make_shared<BucketSteps>(options.buckets, global_batch_,
                                                  options.last_batch, options.shuffle);
    length = 0;
    for (const auto& bucket : options.buckets->buckets()) length = std::max(length, bucket.samples);
  }
  if (options.last_batch == LastBatch::drop && length < global_batch_) {
    const std::string samples =
        std::to_string(length) + " samples" + (options.buckets ? " of the largest bucket" : "");
    throw InvalidField("Sampler", "batch_size",
                       ": a global batch of " + std::to_string(global_batch_) +
                           " samples is more than the " + samples +
                           (options.order ? " of an epoch" : "") +
                           ", and `last_batch` drop leaves out what does not fill one: take at "
                           "most " +
                           samples + ", or `last_batch` pad");
  }
  check_grid();
}

void Sampler::check_grid() {
  const EpochGrid& grid = options_.grid;
  if (grid.epoch < 0) return;
  const bool inside = grid.position >= 0 && grid.position < order_->length();
  std::vector<int64_t> taken = {grid.position};
  if (options_.buckets) taken = grid.taken;
  if (inside && is_taken(taken) &&
      continue_at(*this, 0, taken).grid == EpochGrid{0, grid.step, grid.position, grid.taken}) {
    if (!options_.buckets) return;
    grid_steps_ = std::make_shared<BucketSteps>(options_.buckets, global_batch_,
                                                options_.last_batch, options_.shuffle, taken);
    return;
  }
  throw InvalidField("Sampler", "grid",
                     ": step " + std::to_string(grid.step) + " of an epoch of " +
                         std::to_string(steps_per_epoch()) + " cannot begin at position " +
                         std::to_string(grid.position) + " of " + std::to_string(order_->length()));
}

// Whether so much can have come of each bucket.
bool Sampler::is_taken(const std::vector<int64_t>& taken) const {
  if (!options_.buckets) return true;
  const auto& buckets = options_.buckets->buckets();
  if (taken.size() != buckets.size()) return false;
  for (size_t i = 0; i < taken.size(); ++i) {
    if (taken[i] < 0 || taken[i] > buckets[i].samples) return false;
  }
  return std::accumulate(taken.begin(), taken.end(), int64_t{0}) == options_.grid.position;
}

int64_t Sampler::steps_per_epoch() const {
  if (bucket_steps_) return bucket_steps_->steps();
  const int64_t whole = order_->length() / global_batch_;
  const bool remainder = order_->length() % global_batch_ != 0;
  return options_.last_batch == LastBatch::drop ? whole : whole + (remainder ? 1 : 0);
}

EpochKey Sampler::key(int64_t epoch) const {
  EpochKey key(options_.seed, epoch);
  if (bucket_steps_) key.steps = bucket_steps_of(epoch).table(options_.seed, epoch);
  return key;
}

const BucketSteps& Sampler::bucket_steps_of(int64_t epoch) const {
  return grid_steps_ && epoch == options_.grid.epoch ? *grid_steps_ : *bucket_steps_;
}

Sampler::Place Sampler::place(const EpochKey& epoch, int64_t step_in_epoch, int replica,
                              int row) const {
  const int64_t global_row = int64_t{replica} * options_.rows + row;
  if (bucket_steps_) {
    const int64_t step = step_in_epoch - first_step(epoch.epoch);
    const auto [position, weight] =
        bucket_steps_of(epoch.epoch).place(*epoch.steps, step, global_row);
    return {position, weight};
  }
  const int64_t first = first_position(epoch.epoch, step_in_epoch);
  const int64_t remaining = order_->length() - first;  // real rows of this global batch
  int64_t position = first + global_row;
  float weight = 1.0f;
  if (global_row >= remaining && options_.last_batch == LastBatch::wrap) {
    position %= order_->length();
  } else if (global_row >= remaining) {
    // Round robin over the batch's real rows: each is repeated as often as any other.
    position = first + global_row % remaining;
    weight = 0.0f;
  }
  return {position, weight};
}

SampledRow Sampler::row(const EpochKey& epoch, int64_t step_in_epoch, int replica, int row) const {
  const Place place = this->place(epoch, step_in_epoch, replica, row);
  const OrderedSample sample = order_->at(epoch, place.position);
  return {sample.id, place.weight, sample.repeat_index};
}

bool Sampler::paired(const EpochKey& epoch, int64_t step_in_epoch, int replica, int row) const {
  const int64_t global_row = int64_t{replica} * options_.rows + row;
  if (bucket_steps_) {
    const int64_t step = step_in_epoch - first_step(epoch.epoch);
    return (global_row | 1) < bucket_steps_of(epoch.epoch).own_rows(*epoch.steps, step);
  }
  const int64_t position = first_position(epoch.epoch, step_in_epoch) + global_row;
  return (position | 1) < order_->length();
}

int Sampler::shape(const EpochKey& epoch, int64_t step_in_epoch) const {
  if (options_.shapes) return options_.shapes->shape(epoch, step_in_epoch);
  if (!bucket_steps_) return 0;
  return bucket_steps_of(epoch.epoch).shape(*epoch.steps, step_in_epoch - first_step(epoch.epoch));
}

std::vector<int64_t> Sampler::taken(int64_t epoch, int64_t step_in_epoch) const {
  if (!bucket_steps_) return {first_position(epoch, step_in_epoch)};
  const EpochKey key = this->key(epoch);
  return bucket_steps_of(epoch).taken_before(*key.steps, step_in_epoch - first_step(epoch));
}

int64_t Sampler::first_position(int64_t epoch, int64_t step_in_epoch) const {
  const EpochGrid& grid = options_.grid;
  if (epoch != grid.epoch) return step_in_epoch * global_batch_;
  return grid.position + (step_in_epoch - grid.step) * global_batch_;
}

int64_t steps_of(double epochs, int64_t steps_per_epoch) {
  // A fraction below a millionth of a step is the rounding error of `epochs`.
  const double steps = std::ceil(epochs * static_cast<double>(steps_per_epoch) - 1e-6);
  if (epochs < 0 || steps > 9e18) return std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(steps);
}

Continuation continue_at(const Sampler& sampler, int64_t epoch, const std::vector<int64_t>& taken) {
  const SamplerOptions& options = sampler.options();
  const int64_t batch = int64_t{options.rows} * options.replicas;
  const int64_t position = std::accumulate(taken.begin(), taken.end(), int64_t{0});
  const int64_t left = sampler.order().length() - position;
  const bool drops = options.last_batch == LastBatch::drop;
  const int64_t steps_left =
      options.buckets
          ? BucketSteps(options.buckets, batch, options.last_batch, options.shuffle, taken).steps()
      : drops ? left / batch
              : (left + batch - 1) / batch;
  const int64_t step = sampler.steps_per_epoch() - steps_left;
  Continuation result{epoch * sampler.steps_per_epoch() + step, {}};
  if (steps_left == 0) return result;
  if (options.buckets) {
    if (position > 0) result.grid = {epoch, step, position, taken};
  } else if (position != step * batch) {
    result.grid = {epoch, step, position, {}};
  }
  return result;
}

namespace {

constexpr int64_t kMaxPositions = int64_t{1} << 40;

int64_t checked_count(const char* kind, const char* what, int64_t value) {
  if (value >= 1 && value <= kMaxPositions) return value;
  throw std::invalid_argument(std::string(kind) + " order: " + what + " is " +
                              std::to_string(value) + ", must be 1 to 2^40");
}

PermutationKey shuffle_key(uint64_t seed, int64_t epoch) {
  const RandomKey random(seed, epoch, -1);
  return {random.bits(0), random.bits(1) | 1};
}

}  // namespace

EpochKey::EpochKey(uint64_t seed_in, int64_t epoch_in)
    : seed(seed_in), epoch(epoch_in), shuffle(shuffle_key(seed_in, epoch_in)) {}

SampleOrder::SampleOrder(const char* kind, int64_t samples, int64_t length)
    : samples_(checked_count(kind, "samples", samples)),
      length_(checked_count(kind, "length", length)) {}

uint64_t repeat_seed(uint64_t seed, uint64_t repeat_index) {
  if (repeat_index == 0) return seed;
  return RandomKey(seed, static_cast<int64_t>(repeat_index), 0).bits(kRepeatSeed);
}

}  // namespace stoker
