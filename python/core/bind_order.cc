#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <unordered_map>

#include "pipeline/files/digest.h"
#include "pipeline/loader_types.h"
#include "pipeline/order/id_list.h"
#include "pipeline/source/picture_sizes.h"
#include "python/core/bind.h"
#include "python/core/python_lock.h"
#include "python/core/source_sample.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

IdList checked_id_list(int64_t samples, const std::vector<SampleId>& ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < samples) continue;
    throw std::invalid_argument("id " + std::to_string(ids[i]) + " at place " + std::to_string(i) +
                                " of " + std::to_string(ids.size()) +
                                ": the source has the samples 0 to " + std::to_string(samples - 1));
  }
  return IdList(ids);
}

// Returns how often each id was listed before its place.
IdList count_repeats(const std::vector<SampleId>& ids) {
  std::unordered_map<SampleId, int64_t> listed;
  std::vector<int64_t> repeat_indexes;
  repeat_indexes.reserve(ids.size());
  for (const SampleId id : ids) repeat_indexes.push_back(listed[id]++);
  return IdList(repeat_indexes);
}

class ListedOrder final : public SampleOrder {
 public:
  ListedOrder(int64_t samples, const std::vector<SampleId>& ids)
      : SampleOrder("listed", samples, static_cast<int64_t>(ids.size())),
        ids_(checked_id_list(samples, ids)),
        repeats_(count_repeats(ids)) {}
  OrderedSample at(const EpochKey&, int64_t position) const override {
    return {ids_[position], static_cast<uint64_t>(repeats_[position])};
  }
  std::string describe() const override {
    return "listed, length " + std::to_string(length()) + ", ids " + hex64(ids_.digest());
  }

 private:
  const IdList ids_, repeats_;
};

// The samples of a list in its order, the same in every epoch; a sample that is listed again gets
// other crops. Throws std::invalid_argument with the numbers: an empty list, an id that is not in
// [0, samples).
BoundOrder listed(int64_t samples, const std::vector<SampleId>& ids) {
  return {std::make_shared<ListedOrder>(samples, ids)};
}

BoundOrder weigh(const std::vector<double>& weights, int64_t length, bool replacement) {
  return {weighted_order(weights, {.length = length, .replacement = replacement})};
}

BoundOrder repeat(int64_t samples, int repeats, int64_t length) {
  return {repeated_order({.samples = samples, .repeats = repeats, .length = length})};
}

BoundOrder shuffle_blocks(int64_t samples, int64_t block, int64_t mixed) {
  return {block_shuffled_order({.samples = samples, .block = block, .mixed = mixed})};
}

// Piece i begins at the position first_positions[i]. REQUIRES: lists of one length.
BoundOrder blend(std::vector<int64_t> sizes, const std::vector<int64_t>& first_positions,
                 std::vector<std::vector<double>> weights, int64_t length) {
  BlendOptions options{.sizes = std::move(sizes), .length = length};
  for (size_t i = 0; i < first_positions.size(); ++i) {
    options.schedule.push_back({first_positions[i], std::move(weights.at(i))});
  }
  return {blend_order(options)};
}

std::vector<SizeTuple> bucket_sizes(int64_t area, int step, double max_ratio) {
  std::vector<SizeTuple> sizes;
  for (const Size size : aspect_sizes(area, step, max_ratio)) {
    sizes.emplace_back(size.height, size.width);
  }
  return sizes;
}

// Reads the sizes of the source's pictures.
BoundBuckets make_buckets(const SharedSource& source, const std::vector<SizeTuple>& sizes,
                          bool enlarge, int multiple_of, const LoaderOptions& loader) {
  BucketOptions options{.enlarge = enlarge, .multiple_of = multiple_of};
  for (const auto& [height, width] : sizes) options.sizes.push_back({width, height});
  const std::vector<Size> pictures = run_interruptible([&](const std::atomic<bool>& stop) {
    return picture_sizes(*source, {.decode = loader.feed.decode,
                                   .workers = loader.feed.workers,
                                   .go_on = [&](int64_t, int64_t) { return !stop; }});
  });
  const Unlocked unlocked;
  return {std::make_shared<const AspectBuckets>(pictures, options)};
}

// For each bucket: its size, its samples, and the share that is cropped away.
std::vector<std::tuple<SizeTuple, int64_t, double>> list_buckets(const BoundBuckets& bound) {
  std::vector<std::tuple<SizeTuple, int64_t, double>> all;
  for (const AspectBuckets::Bucket& bucket : bound.buckets->buckets()) {
    all.emplace_back(SizeTuple{bucket.size.height, bucket.size.width}, bucket.samples,
                     bucket.cropped);
  }
  return all;
}

}  // namespace

void bind_order(nb::module_& module) {
  nb::class_<BoundOrder>(module, "SampleOrder")
      .def_prop_ro("samples", [](const BoundOrder& bound) { return bound.order->samples(); })
      .def_prop_ro("length", [](const BoundOrder& bound) { return bound.order->length(); })
      .def("describe", [](const BoundOrder& bound) { return bound.order->describe(); });
  nb::class_<BoundBuckets>(module, "AspectBuckets")
      .def("buckets", list_buckets)
      .def_prop_ro("samples", [](const BoundBuckets& bound) { return bound.buckets->samples(); })
      .def_prop_ro("left_out", [](const BoundBuckets& bound) { return bound.buckets->left_out(); })
      .def_prop_ro("first_left_out",
                   [](const BoundBuckets& bound) { return bound.buckets->first_left_out(); });
  module.def("aspect_sizes", bucket_sizes, "area"_a, "step"_a, "max_ratio"_a);
  module.def("aspect_buckets", make_buckets, "source"_a, "sizes"_a, "enlarge"_a, "multiple_of"_a,
             "options"_a);
  module.def("weighted_order", weigh, "weights"_a, "length"_a, "replacement"_a);
  module.def(
      "class_balanced_order",
      [](const SharedSource& source, int64_t length) {
        return BoundOrder{class_balanced_order(known_labels(*source), length)};
      },
      "source"_a, "length"_a);
  module.def("block_shuffled_order", shuffle_blocks, "samples"_a, "block"_a, "mixed"_a);
  module.def("repeated_order", repeat, "samples"_a, "repeats"_a, "length"_a);
  module.def("blend_order", blend, "sizes"_a, "first_positions"_a, "weights"_a, "length"_a);
  module.def("listed_order", listed, "samples"_a, "ids"_a);
}

}  // namespace stoker::python
