#include "tests/tools/profile/score/fault_scenarios.h"

#include <algorithm>

#include "pipeline/random/random_key.h"
#include "tools/data/jpeg_writer.h"

namespace stoker {
namespace {

// The batch size.
constexpr int kRows = 32;
constexpr int kPictures = 24;
constexpr int kTimedRows = 400;
constexpr int kStoredPictures = 8000;
constexpr double kRareLength = 3;

std::vector<uint8_t> picture(uint64_t seed, int width, int height) {
  const RandomKey key(seed, 0, 0);
  std::vector<uint8_t> pixels(size_t{3} * width * height);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t x = i / 3 % width, y = i / 3 / width;
    pixels[i] = static_cast<uint8_t>((x * (seed % 5 + 1) / 4 + y / 2 + i % 3 * 40) % 200 +
                                     key.bits(static_cast<uint32_t>(i)) % 24);
  }
  return encode_jpeg({pixels.data(), width, height, ptrdiff_t{3} * width}, 90);
}

std::vector<std::vector<uint8_t>> pictures(int count, int width, int height) {
  std::vector<std::vector<uint8_t>> files;
  for (int i = 0; i < count; ++i) files.push_back(picture(static_cast<uint64_t>(i), width, height));
  return files;
}

}  // namespace

ScenarioData::ScenarioData()
    : augment_("resize_center_crop | flip", {160, 160}),
      colours_("resize_center_crop | flip | color_jitter(0.4, 0.4, 0.4, 0.1)", {160, 160}) {
  const auto usual = pictures(kPictures, 320, 240);
  pictures_ = std::make_unique<MixedSource>(usual, std::vector<std::vector<uint8_t>>{}, 1);
  small_ = std::make_unique<MixedSource>(pictures(kPictures, 96, 96),
                                         std::vector<std::vector<uint8_t>>{}, 1);
  mixed_ = std::make_unique<MixedSource>(usual, pictures(3, 2400, 1800), 100);
  tenth_ = std::make_unique<MixedSource>(usual, pictures(6, 1280, 960), 10);
  half_ = std::make_unique<MixedSource>(usual, pictures(6, 640, 480), 2);
  auto sizes = usual;
  for (const int height : {60, 120, 480, 720, 1200})
    sizes.push_back(picture(7, height * 4 / 3, height));
  all_sizes_ = std::make_unique<MixedSource>(sizes, std::vector<std::vector<uint8_t>>{}, 1);
  stored_ = std::make_unique<StoredPictures>(usual, kStoredPictures);
  row_s_ = cost_of(*pictures_, augment_);
  coloured_s_ = cost_of(*small_, colours_);
  mixed_s_ = cost_of(*mixed_, augment_);
  tenth_s_ = cost_of(*tenth_, augment_);
  half_s_ = cost_of(*half_, augment_);
  all_sizes_s_ = cost_of(*all_sizes_, augment_);
}

// Returns the mean CPU time of a sample.
double ScenarioData::cost_of(const Source& source, const AugmentSpec& augment) const {
  Augmenter augmenter(augment, plain().loader.feed.decode);
  std::vector<uint8_t> pixels(size_t{3} * augment.output.width * augment.output.height), buffer;
  int64_t begin_ns = 0;
  for (int row = -kTimedRows / 10; row < kTimedRows; ++row) {
    if (row == 0) begin_ns = thread_cpu_ns();
    std::span<const uint8_t> bytes;
    source.read(std::max(row, 0), buffer, bytes);
    Size size;
    augmenter.file_row(bytes, 0, 0, row,
                       {pixels.data(), augment.output.width, augment.output.height,
                        ptrdiff_t{3} * augment.output.width},
                       size);
  }
  return static_cast<double>(thread_cpu_ns() - begin_ns) * 1e-9 / kTimedRows;
}

// Returns a feed without a fault; one of its two workers would be enough.
FaultyFeed ScenarioData::plain() const {
  FaultyFeed feed;
  feed.source = pictures_.get();
  feed.augment = augment_;
  feed.loader.batch_size = kRows;
  feed.loader.epochs = -1;
  feed.loader.feed.workers = 2;
  feed.loader.feed.io_threads = 2;
  feed.loader.ring_depth = 4;
  feed.loader.feed.decode.pixels = PixelPolicy::fast;
  feed.demand = row_s_ > 0 ? 0.2 / row_s_ : 1;
  return feed;
}

std::vector<FaultScenario> ScenarioData::faults() const {
  std::vector<FaultScenario> list;
  const auto add = [&](const char* name, Limit expected, auto change) {
    list.push_back({name, expected, plain()});
    change(list.back().feed);
    return &list.back();
  };
  const double core = 1 / row_s_;  // samples per second of a core
  add("nothing", Limit::device, [](FaultyFeed&) {});
  add("slow device", Limit::device, [&](FaultyFeed& feed) { feed.demand = 0.05 * core; });
  add("slow storage, any number may ask", Limit::io_threads,
      [&](FaultyFeed& feed) { feed.reads.latency_s = 2 / (0.6 * feed.demand); });
  add("slow storage, a limited rate", Limit::storage,
      [&](FaultyFeed& feed) { feed.reads.images_per_second = 0.6 * feed.demand; });
  add("one read in 100 takes 50 times longer", Limit::io_threads, [&](FaultyFeed& feed) {
    feed.loader.feed.io_threads = 1;
    feed.reads = {.latency_s = 1 / (1.1 * feed.demand), .slow_share = 0.01};
    feed.reads.slow_latency_s = 50 * feed.reads.latency_s;
  })->length = kRareLength;
  add("too few workers", Limit::decode, [&](FaultyFeed& feed) {
    feed.loader.feed.workers = 1;
    feed.demand = 1.5 * core;
  });
  add("one file in 100 is 56 times larger", Limit::decode, [&](FaultyFeed& feed) {
    feed.source = mixed_.get();
    feed.loader.feed.workers = 1;
    feed.demand = 1.5 / mixed_s_;
  })->length = kRareLength;
  add("one core for two workers", Limit::decode, [&](FaultyFeed& feed) {
    feed.cores = 1;
    feed.demand = 1.5 * core;
  });
  add("slow augmentation", Limit::pixels, [&](FaultyFeed& feed) {
    feed.source = small_.get();
    feed.augment = colours_;
    feed.loader.feed.workers = 1;
    feed.demand = 1.5 / coloured_s_;
  });
  add("slow copy", Limit::copy, [&](FaultyFeed& feed) {
    feed.loader.slots = 2;
    feed.copy_s = 1.5 * kRows / feed.demand;
  });
  add("slow copy, one slot", Limit::copy, [&](FaultyFeed& feed) {
    feed.loader.slots = 1;
    feed.copy_s = 0.7 * kRows / feed.demand;
  });
  add("four noisy neighbours", Limit::stolen_cpu, [&](FaultyFeed& feed) {
    feed.neighbours = 4;
    feed.demand = 1.2 * core;
  });
  add("a ring of one batch", Limit::ring_depth, [&](FaultyFeed& feed) {
    feed.loader.ring_depth = 1;
    feed.loader.feed.workers = 1;
    feed.demand = 0.6 * core;
  });
  return list;
}

// One worker is asked for more than it can give.
FaultyFeed ScenarioData::on_one_worker(const Source& source, double row_s) const {
  FaultyFeed feed = plain();
  feed.source = &source;
  feed.loader.feed.workers = 1;
  feed.demand = 1.5 / row_s;
  return feed;
}

std::vector<FaultScenario> ScenarioData::conditions() const {
  std::vector<FaultScenario> list;
  const auto add = [&](const char* name, Limit expected, FaultyFeed feed, auto change) {
    change(feed);
    list.push_back({name, expected, feed});
    return &list.back();
  };
  const double core = 1 / row_s_;  // samples per second of a core
  const auto beside = [&](const char* name, int neighbours) {
    add(name, Limit::stolen_cpu, plain(), [&](FaultyFeed& feed) {
      feed.neighbours = neighbours;
      feed.demand = 2.5 * core;
    });
  };
  beside("one neighbour", 1);
  beside("two neighbours", 2);
  beside("four neighbours, full speed", 4);
  add("three neighbours beside one worker", Limit::stolen_cpu, on_one_worker(*pictures_, row_s_),
      [&](FaultyFeed& feed) {
        feed.neighbours = 3;
        feed.demand = 0.8 * core;
      });
  add("two neighbours beside slow augmentation", Limit::stolen_cpu, plain(), [&](FaultyFeed& feed) {
    feed.source = small_.get();
    feed.augment = colours_;
    feed.neighbours = 2;
    feed.demand = 1.6 / coloured_s_;
  });
  add("one neighbour beside slow storage", Limit::storage, plain(), [&](FaultyFeed& feed) {
    feed.neighbours = 1;
    feed.reads.images_per_second = 0.6 * feed.demand;
  });
  const auto within = [&](const char* name, double quota, int workers) {
    add(name, Limit::decode, plain(), [&](FaultyFeed& feed) {
      feed.quota = quota;
      feed.loader.feed.workers = workers;
      feed.demand = 1.3 * quota * core;
    });
  };
  within("a quota of half a core", 0.5, 1);
  within("a quota of one core", 1, 2);
  within("a quota of 1.5 cores", 1.5, 2);
  const auto in_store = [&](const char* name, const SlowStore& store) {
    add(name, Limit::storage, plain(), [&](FaultyFeed& feed) {
      feed.stored = stored_.get();
      feed.in_store = true;
      feed.store = store;
    });
  };
  const double demand = plain().demand;
  const double sample_bytes = static_cast<double>(stored_->bytes()) / kStoredPictures;
  in_store("a store, two requests at a time", {.answer_s = 2 / (0.6 * demand), .requests = 2});
  in_store("a store of a limited rate", {.bytes_per_second = 0.6 * demand * sample_bytes});
  in_store("a store that tells to slow down",
           {.bytes_per_second = demand * sample_bytes, .throttled_of = 4});
  in_store("a cache of a store that fills",
           {.bytes_per_second = 0.6 * demand * sample_bytes, .cached_share = 2});
  in_store("a cache of a third of a store", {.bytes_per_second = 0.4 * demand * sample_bytes,
                                             .cached_share = 0.33,
                                             .cache_is_filled = true});
  add("a cache of a third of the decoded pictures", Limit::decode,
      on_one_worker(*pictures_, row_s_), [&](FaultyFeed& feed) {
        feed.stored = stored_.get();
        feed.decoded_share = 0.33;
        feed.demand = 2 * core;
      });
  const auto nothing = [](FaultyFeed&) {};
  add("one file in ten is 16 times larger", Limit::decode, on_one_worker(*tenth_, tenth_s_),
      nothing);
  add("half of the files are 4 times larger", Limit::decode, on_one_worker(*half_, half_s_),
      nothing);
  add("files of all sizes from slow storage", Limit::io_threads, plain(), [&](FaultyFeed& feed) {
    feed.source = all_sizes_.get();
    feed.demand = 0.5 / all_sizes_s_;
    feed.reads.latency_s = 2 / (0.6 * feed.demand);
  });
  add("files of all sizes on one core", Limit::decode, plain(), [&](FaultyFeed& feed) {
    feed.source = all_sizes_.get();
    feed.cores = 1;
    feed.demand = 1.4 / all_sizes_s_;
  });
  return list;
}

bool apply_change(const FeedChange& change, FaultyFeed& feed) {
  if (change.fill_free || change.step_free) return false;
  feed.loader.feed.workers += change.workers;
  feed.loader.feed.io_threads += change.io_threads;
  feed.loader.ring_depth += change.ring_depth;
  feed.loader.slots = std::max(feed.loader.slots, 0) + change.slots;
  if (change.cores > 0) {
    // Otherwise the feed has all cores already.
    if (feed.cores == 0 && feed.quota == 0) return false;
    if (feed.cores > 0) feed.cores += static_cast<int>(change.cores);
    if (feed.quota > 0) feed.quota += change.cores;
  }
  if (change.storage_free) {
    feed.reads = {};
    feed.in_store = false;
  }
  if (change.copy_free) feed.copy_s = 1e-9;
  if (change.undisturbed) feed.neighbours = 0;
  return true;
}

}  // namespace stoker
