#include "bench/suite/guard_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>

#include "bench/suite/feed_parts.h"
#include "decode/jpeg/libjpeg_decoder.h"
#include "decode/jpeg/seek_index.h"
#include "pipeline/augment.h"
#include "pipeline/source/synthetic_source.h"
#include "tools/machine/load.h"
#include "train/collective/collective.h"
#include "train/engine/engine.h"
#include "train/model/initialise.h"
#include "train/model/models.h"

namespace stoker {
namespace {

constexpr int64_t kGuardPhotos = 64;

struct GuardPhoto {
  std::vector<uint8_t> bytes, index;  // `index`: a seek index of 8 MCUs
};

std::vector<GuardPhoto> read_photos(const Source& source) {
  std::vector<GuardPhoto> photos;
  std::vector<uint8_t> buffer;
  SeekIndexBuilder builder;
  for (SampleId id = 0; id < std::min(source.size(), kGuardPhotos); ++id) {
    std::span<const uint8_t> bytes;
    if (const ReadStatus read = source.read(id, buffer, bytes); !read.ok) {
      throw std::invalid_argument("bench guard: " + source.name(id) + " cannot be read");
    }
    GuardPhoto& photo = photos.emplace_back();
    photo.bytes.assign(bytes.begin(), bytes.end());
    if (!builder.build(bytes, SeekStep::eight, photo.index)) {
      throw std::invalid_argument("bench guard: " + source.name(id) + " is no baseline JPEG");
    }
  }
  return photos;
}

// A work that is measured: does the same each time, and returns how many images or rows that were.
using GuardWork = std::function<int64_t()>;

class NoRows final : public RowSink {
 public:
  void rows(const uint8_t*, ptrdiff_t, int) override {}
};

// libjpeg-turbo decodes every picture as a whole.
GuardWork reference(const std::vector<GuardPhoto>& photos, int64_t max_pixels) {
  return [&photos, decoder = std::make_shared<JpegDecoder>(max_pixels)] {
    NoRows nothing;
    for (const GuardPhoto& photo : photos) {
      Size size;
      if (!decoder->open(photo.bytes, size).ok() ||
          !decoder->read({0, 0, size.width, size.height}, nothing).ok()) {
        throw std::runtime_error("bench guard: libjpeg-turbo does not decode a picture");
      }
    }
    return std::ssize(photos);
  };
}

// The rows of a list of stages, of pictures in memory.
class GuardRows {
 public:
  GuardRows(const char* stages, PixelPolicy pixels, bool is_indexed)
      : spec_(stages), augmenter_(spec_, {.pixels = pixels}), is_indexed_(is_indexed) {
    for (int view = 0; view < spec_.views(); ++view) {
      const Size size = spec_.view(view).output;
      pixels_.emplace_back(size_t{3} * size.width * size.height);
      outs_.push_back({pixels_.back().data(), size.width, size.height, ptrdiff_t{3} * size.width});
    }
  }

  int64_t run(const std::vector<GuardPhoto>& photos) {
    for (size_t i = 0; i < photos.size(); ++i) {
      const DecodeStatus status = row(photos[i], static_cast<int64_t>(i));
      if (!status.ok()) throw std::runtime_error("bench guard: " + status.message);
    }
    return std::ssize(photos);
  }

 private:
  DecodeStatus row(const GuardPhoto& photo, int64_t sample) {
    Size size;
    if (outs_.size() > 1) return augmenter_.file_views(photo.bytes, 0, 0, sample, outs_, size);
    std::span<const uint8_t> index;
    if (is_indexed_) index = photo.index;
    return augmenter_.file_row(photo.bytes, 0, 0, sample, outs_[0], size, index);
  }

  AugmentSpec spec_;
  Augmenter augmenter_;
  const bool is_indexed_;
  std::vector<std::vector<uint8_t>> pixels_;
  std::vector<MutableImageView> outs_;
};

struct GuardRecipe {
  const char* name;
  const char* stages;
  PixelPolicy pixels = PixelPolicy::exact;
  bool is_indexed = false;
};

constexpr const char* kCrop = "random_resized_crop(224) | flip";
constexpr GuardRecipe kGuardRecipes[] = {
    {"decode, fast", kCrop, PixelPolicy::fast},
    {"decode, exact", kCrop},
    {"decode, fast, seek index of 8 MCUs", kCrop, PixelPolicy::fast, true},
    {"RandAugment", "random_resized_crop(224) | flip | random_augment(2, 9)"},
    {"SimCLR, two views",
     "views(random_resized_crop(224) | flip | color_jitter(0.8, 0.8, 0.8, 0.2, p=0.8) | "
     "grayscale(p=0.2) | gaussian_blur(23, p=0.5), counts=2)"},
    {"crops of DINO",
     "views(random_resized_crop(224, scale=(0.4, 1), filter='bicubic') | flip, "
     "random_resized_crop(96, scale=(0.05, 0.4), filter='bicubic') | flip, counts=(2, 8))"},
};

// The whole feed with one worker; its rows go nowhere.
GuardWork feed(const Source& source, const char* stages, Size size, int rows, int steps) {
  LoaderOptions options;
  options.batch_size = rows;
  options.epochs = -1;
  options.feed.workers = 1;
  options.feed.seek_index = "off";
  options.feed.decode.pixels = PixelPolicy::fast;
  const FeedWork work{source, AugmentSpec(stages, size), options};
  return [loader = std::make_shared<StillLoader>(work), rows, steps] {
    loader->take(steps);
    return int64_t{steps} * rows;
  };
}

// The training step of airnet for CIFAR on one thread, with one batch again and again.
class GuardStep {
 public:
  static constexpr int kRows = 8, kPixels = 32, kClasses = 10;

  explicit GuardStep(Precision precision) {
    const NetSpec net = make_net("airnet", {kPixels, kPixels}, kClasses);
    EngineOptions options;
    options.rows = options.micro_batch_size = options.nominal_rows = kRows;
    options.workers = 1;
    options.precision = precision;
    options.mean = {0.485f, 0.456f, 0.406f};
    options.stddev = {0.229f, 0.224f, 0.225f};
    engine_ = make_cpu_engine(net, options);
    engine_->write(StateKind::parameters, initial_parameters(net, {1}));
    engine_->write(StateKind::statistics, initial_statistics(net));
    tensors_.assign(parameter_table(net).size(), {.learning_rate = 0.01f});
    for (size_t i = 0; i < images_.size(); ++i) {
      images_[i] = static_cast<uint8_t>(i * 2654435761u >> 24);
    }
    for (int i = 0; i < kRows; ++i) labels_.push_back(i % kClasses);
  }

  int64_t run() {
    engine_->forward_backward({images_.data(), labels_.data(), weights_.data()});
    collective_->all_reduce(0, engine_->gradient_buffers(), engine_->reduced_gradients());
    engine_->update({.tensors = tensors_, .momentum = 0.9f});
    return kRows;
  }

 private:
  std::unique_ptr<Engine> engine_;
  const std::unique_ptr<Collective> collective_ = make_host_collective(1);
  std::vector<TensorUpdate> tensors_;
  std::vector<uint8_t> images_ = std::vector<uint8_t>(size_t{3} * kRows * kPixels * kPixels);
  std::vector<int32_t> labels_;
  std::vector<float> weights_ = std::vector<float>(kRows, 1.0f);
};

GuardWork step(Precision precision) {
  return [step = std::make_shared<GuardStep>(precision)] { return step->run(); };
}

struct GuardLane {
  std::string name;
  GuardWork work;
  std::vector<double> seconds = {};  // of CPU time for an image or row, per repeat
};

std::vector<GuardLane> guard_lanes(const std::vector<GuardPhoto>& photos, const Source& files,
                                   const Source& rows) {
  constexpr int64_t kMaxPixels = int64_t{1} << 28;
  std::vector<GuardLane> lanes;
  lanes.push_back({"libjpeg-turbo", reference(photos, kMaxPixels)});
  for (const GuardRecipe& recipe : kGuardRecipes) {
    const auto made = std::make_shared<GuardRows>(recipe.stages, recipe.pixels, recipe.is_indexed);
    lanes.push_back({recipe.name, [made, &photos] { return made->run(photos); }});
  }
  // Every pass of a feed has the same work, too.
  constexpr const char* kWhole = "resize_center_crop(256, 224)";
  lanes.push_back({"feed of photographs", feed(files, kWhole, {224, 224}, 64, 1)});
  lanes.push_back(
      {"feed of CIFAR's rows", feed(rows, "random_crop(32, padding=4) | flip", {32, 32}, 512, 16)});
  lanes.push_back({"training step, fp32", step(Precision::fp32)});
  if (cpu_supports(Precision::bf16)) {
    lanes.push_back({"training step, bf16", step(Precision::bf16)});
  }
  return lanes;
}

// Returns the CPU time of an image: the least of several passes, because what others do to caches
// and memory only adds to it.
double least_seconds(const GuardWork& work, int passes) {
  double least = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass < passes; ++pass) {
    const double begin = process_cpu_seconds();
    const auto images = static_cast<double>(work());
    least = std::min(least, (process_cpu_seconds() - begin) / images);
  }
  return least;
}

// Returns every lane with a value per repeat. All is made anew for each, because it matters where
// in memory things lie: the same program, started again, can be faster.
std::vector<GuardLane> measure_lanes(const Source& photos, const GuardBenchOptions& options) {
  const std::unique_ptr<Source> rows = make_synthetic_source(50'000, {32, 32}, 10, 1);
  std::vector<GuardLane> measured;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    const std::vector<GuardPhoto> files = read_photos(photos);
    const MemorySource in_memory(photos);
    std::vector<GuardLane> lanes = guard_lanes(files, in_memory, *rows);
    measured.resize(lanes.size());
    for (size_t i = 0; i < lanes.size(); ++i) {
      const size_t turn = (i + static_cast<size_t>(repeat)) % lanes.size();
      measured[turn].name = lanes[turn].name;
      measured[turn].seconds.push_back(least_seconds(lanes[turn].work, options.passes));
    }
  }
  return measured;
}

Report guard_report(const std::vector<GuardLane>& lanes, const GuardBenchOptions& options) {
  Report report;
  report.bench = "guard";
  report.settings = {{"repeats", options.repeats}, {"passes", options.passes}};
  Table table{"CPU time, beside libjpeg-turbo's for a whole picture",
              {"work", "us per image", "x libjpeg-turbo's time"},
              {}};
  Plot plot{"guard", "CPU time of an image", "", "x libjpeg-turbo's time", {}, {}};
  const GuardLane& turbo = lanes.front();
  for (const GuardLane& lane : lanes) {
    const double us = 1e6 * median(lane.seconds);
    report.results[lane.name] = us;
    if (&lane == &turbo) {
      table.rows.push_back({lane.name, significant(us), "1"});
      continue;
    }
    std::vector<double> ratios;
    for (size_t i = 0; i < lane.seconds.size(); ++i) {
      ratios.push_back(lane.seconds[i] / turbo.seconds[i]);
    }
    const Summary ratio =
        report.add({lane.name, "x libjpeg-turbo's time", Better::lower, std::move(ratios)});
    table.rows.push_back({lane.name, significant(us), with_interval(ratio, 4)});
    add_bar(plot, lane.name, "stoker", plot_point(ratio));
  }
  report.tables.push_back(std::move(table));
  report.plots.push_back(std::move(plot));
  return report;
}

}  // namespace

Report bench_guard(const Source& photos, const GuardBenchOptions& options) {
  if (options.repeats < 1 || options.passes < 1) {
    throw std::invalid_argument(
        fmt::format("bench guard: {} repeats of {} passes: at least 1 of each", options.repeats,
                    options.passes));
  }
  return guard_report(measure_lanes(photos, options), options);
}

}  // namespace stoker
