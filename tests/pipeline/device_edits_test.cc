// Erasing and mixing on the device: when, and that every byte is as if the workers had done it.
#include "pipeline/row/device_edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/source/synthetic_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/fake_device.h"

namespace stoker::testing {
namespace {

constexpr const char* kCrop = "random_resized_crop | flip | ";
constexpr const char* kNoise = "random_erasing(p=0.7, noise=True)";
constexpr const char* kColour = "random_erasing(p=0.7, scale=(0.1, 0.6), value=(1, 200, 3))";
constexpr const char* kMixes = "mix(mixup=0.6, cutmix=1, p=0.9)";

AugmentSpec spec_of(const std::string& stages, int side = 24) {
  return AugmentSpec(stages, {side, side});
}

std::string with_edits(const char* erasing, const char* mix) {
  return std::string(kCrop) + erasing + " | " + mix;
}

DeviceEdits edits_of(const AugmentSpec& spec, std::vector<bool> accessible,
                     const LoaderOptions& options = {}) {
  std::vector<std::unique_ptr<FakeDevice>> devices;
  std::vector<Device*> pointers;
  for (const bool each : accessible) {
    devices.push_back(std::make_unique<FakeDevice>(FakeDeviceOptions{.host_accessible = each}));
    pointers.push_back(devices.back().get());
  }
  return device_edits(spec, pointers, options);
}

TEST(DeviceEdits, TheLastStagesAreTheDevices) {
  const auto far = [](const std::string& stages) { return edits_of(spec_of(stages), {false}); };
  const DeviceEdits none, erases{.erases = true}, mixes{.mixes = true}, both{true, true};
  EXPECT_EQ(far("random_resized_crop | flip"), none);
  EXPECT_EQ(far(with_edits(kNoise, kMixes)), both);
  EXPECT_EQ(far(kColour), erases);
  EXPECT_EQ(far(std::string(kCrop) + kMixes), mixes);
  EXPECT_EQ(far(std::string(kColour) + " | flip | " + kMixes), mixes) << "a stage is behind it";
  EXPECT_EQ(far(std::string("random_apply(") + kColour + ")"), none) << "it is in a list";
  EXPECT_EQ(far(std::string(kColour) + " | " + kNoise), erases) << "the last one";
  AugmentSpec own = spec_of(with_edits(kNoise, kMixes));
  own.add({.name = "own", .apply = [](MutableImageView, const RandomKey&) {}});
  EXPECT_EQ(edits_of(own, {false}), mixes) << "an operation is behind it";
}

TEST(DeviceEdits, OnlyWhereTheHostNeedNotSeeThePixels) {
  const AugmentSpec spec = spec_of(with_edits(kNoise, kMixes));
  const DeviceEdits none, both{true, true};
  EXPECT_EQ(edits_of(spec, {false, false}), both);
  EXPECT_EQ(edits_of(spec, {true}), none);
  EXPECT_EQ(edits_of(spec, {false, true}), none) << "the workers fill rows for both";
  LoaderOptions options{.digests = true};
  EXPECT_EQ(edits_of(spec, {false}, options), none);
  options.digests = false;
  options.format = RowFormat{};
  EXPECT_EQ(edits_of(spec, {false}, options), none);
  EXPECT_EQ(edits_of(AugmentSpec("views(flip | random_erasing, flip)", {24, 24}), {false}), none);
}

TEST(DeviceEdits, TheWorkersDoTheRest) {
  const AugmentSpec spec = spec_of(with_edits(kNoise, kMixes));
  EXPECT_EQ(without(spec, {}).describe(), spec.describe());
  EXPECT_EQ(without(spec, {.mixes = true}).stages_text(), std::string(kCrop) + kNoise);
  EXPECT_EQ(without(spec, {true, true}).stages_text(), "random_resized_crop | flip");
  EXPECT_EQ(without(spec, {true, true}).output, spec.output);
  EXPECT_EQ(without(spec_of(kColour), {.erases = true}).stages_text(), "");
}

TEST(DeviceEdits, TheNoiseIsThatOfTheStage) {
  const auto noise = [](const char* text) { return erasing_noise(*last_erasing(StageList(text))); };
  EXPECT_EQ(noise("random_erasing"), nullptr);
  const auto grey = noise("random_erasing(noise=True, mean=0.5, std=0.1)");
  ASSERT_NE(grey, nullptr);
  EXPECT_EQ((*grey)[0], (*grey)[2]);
  EXPECT_NEAR((*grey)[1][2048], 127.5, 1);
  EXPECT_NEAR((*grey)[1][3446], 127.5 + 25.5, 1) << "a deviation above the mean";
  EXPECT_NE(*grey, *noise("random_erasing(noise=True)"));
}

TEST(DeviceEdits, AreExplained) {
  using ::testing::ElementsAre, ::testing::EndsWith, ::testing::Not;
  const auto on_gpu = EndsWith("; by a GPU behind the copy, unless a receipt is written");
  EXPECT_THAT(explain_augmentation(spec_of(with_edits(kNoise, kMixes))),
              ElementsAre(Not(on_gpu), Not(on_gpu), on_gpu, on_gpu));
  EXPECT_THAT(explain_augmentation(spec_of(std::string(kNoise) + " | flip")),
              ElementsAre(Not(on_gpu), Not(on_gpu)));
  EXPECT_THAT(explain_augmentation(AugmentSpec("views(random_erasing, flip)", {24, 24})),
              ::testing::Each(Not(on_gpu)));
}

// One row, as a consumer sees it.
struct SeenRow {
  SampleId id = 0, pixels_of = 0, partner = 0;
  int32_t label = 0, mix_label = 0;
  float weight = 0, mix_weight = 0;
  bool bad = false;
  std::vector<uint8_t> pixels{};
  bool operator==(const SeenRow&) const = default;
};

std::vector<SeenRow> seen_rows(const DeviceBatch& batch, bool mixes) {
  batch.synchronize();  // a fake device's memory can be read
  const BatchShape shape = batch.shape();
  const size_t bytes = size_t{3} * shape.width * shape.height;
  std::vector<SeenRow> rows;
  for (int row = 0; row < shape.rows; ++row) {
    const RowNote& note = row_notes(batch)[row];
    SeenRow seen{.id = batch.ids()[row],
                 .pixels_of = note.pixels_of,
                 .partner = note.mix.partner,
                 .label = batch.labels()[row],
                 .weight = batch.weights()[row],
                 .bad = note.bad};
    if (mixes) {
      seen.mix_label = reinterpret_cast<const int32_t*>(batch.target(0))[row];
      seen.mix_weight = reinterpret_cast<const float*>(batch.target(1))[row];
    }
    seen.pixels.assign(batch.images() + bytes * row, batch.images() + bytes * (row + 1));
    rows.push_back(std::move(seen));
  }
  return rows;
}

struct Fed {
  std::vector<std::vector<SeenRow>> batches{};
  MemoryPlan plan{};
};

Fed feed_of(const Source& source, const AugmentSpec& spec, const LoaderOptions& options,
            int devices, DeviceKind kind) {
  Feed feed(source, spec, options, devices, kind);
  Fed fed{.plan = feed.loader().memory_plan()};
  Delivered delivered;
  for (;;) {
    for (int device = 0; device < devices; ++device) {
      const auto look = [&](const DeviceBatch& batch) {
        fed.batches.push_back(seen_rows(batch, spec.mix.on()));
      };
      if (!feed.next(device, delivered, look)) return fed;
    }
  }
}

LoaderOptions edited_options(int batch, int workers) {
  return {
      .batch_size = batch, .seed = 11, .epochs = 2, .feed = {.workers = workers, .max_bad = 100}};
}

void expect_same(const Source& source, const AugmentSpec& spec, LoaderOptions options,
                 int devices) {
  options.slots = 0;
  const Fed host = feed_of(source, spec, options, devices, DeviceKind::host);
  for (int slots = 0; slots <= 3; ++slots) {
    options.slots = slots;
    const Fed far = feed_of(source, spec, options, devices, DeviceKind::far);
    ASSERT_EQ(far.batches.size(), host.batches.size());
    for (size_t batch = 0; batch < host.batches.size(); ++batch) {
      for (size_t row = 0; row < host.batches[batch].size(); ++row) {
        ASSERT_EQ(far.batches[batch][row], host.batches[batch][row])
            << spec.describe() << ", batch " << batch << ", row " << row << ", " << slots
            << " slots";
      }
    }
    // The edits of rows travel beside their pixels: so it was the device.
    EXPECT_GT(far.plan.ring_bytes, host.plan.ring_bytes);
  }
}

TEST(DeviceEdits, EveryByteIsAsTheWorkersMakeIt) {
  const auto source = half_cached_source(37);
  const std::string lists[] = {with_edits(kNoise, kMixes), with_edits(kColour, "mix(cutmix=1)"),
                               std::string(kCrop) + "mix(mixup=0.2)", std::string(kCrop) + kNoise,
                               std::string(kColour) + " | " + kNoise + " | " + kMixes};
  for (const std::string& list : lists) {
    const bool crops = list.starts_with(kCrop);
    const AugmentSpec spec = spec_of(crops ? list : kCrop + list);
    for (const int workers : {0, 2}) {
      for (const int devices : {1, 2}) {
        expect_same(*source, spec, edited_options(6, workers), devices);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(DeviceEdits, RawSamplesAndOddBatches) {
  const auto source = make_synthetic_source(31, {17, 17}, 10, 3);
  expect_same(*source, spec_of(kNoise, 17), edited_options(5, 2), 1);
  expect_same(*source, spec_of(with_edits(kNoise, kMixes), 17), edited_options(4, 2), 2);
}

TEST(DeviceEdits, BadSamplesAndTheirPartners) {
  const auto source = half_cached_source(37);
  source->fail(4);
  source->replace(11, text_bytes("no picture"));
  source->replace(30, {});
  expect_same(*source, spec_of(with_edits(kNoise, kMixes)), edited_options(8, 2), 1);
}

// A row without any picture is grey, and is not erased.
TEST(DeviceEdits, RowsWithoutAPicture) {
  const auto source = half_cached_source(6);
  for (SampleId id = 0; id < 6; ++id) source->fail(id);
  expect_same(*source, spec_of(with_edits("random_erasing(p=1, value=9)", kMixes)),
              edited_options(2, 0), 1);
}

TEST(DeviceEdits, PaddingDrawsPerBatchAndRepeatedSamples) {
  const auto source = half_cached_source(37);
  LoaderOptions options = edited_options(8, 2);
  options.last_batch = LastBatch::wrap;
  expect_same(*source, spec_of(with_edits(kNoise, kMixes)), options, 1);
  expect_same(*source, spec_of(with_edits(kColour, "mix(mixup=1, cutmix=1, per_batch=True)")),
              edited_options(8, 2), 2);
  options = edited_options(8, 2);
  options.order = repeated_order({.samples = 37});
  expect_same(*source, spec_of(with_edits(kNoise, kMixes)), options, 1);
}

// A feed that continues elsewhere, on another kind of device, is the same feed.
TEST(DeviceEdits, TheFingerprintIsTheSame) {
  const auto source = half_cached_source(37);
  const AugmentSpec spec = spec_of(with_edits(kNoise, kMixes));
  Feed host(*source, spec, edited_options(6, 0));
  Feed far(*source, spec, edited_options(6, 0), 1, DeviceKind::far);
  EXPECT_EQ(host.loader().fingerprint(), far.loader().fingerprint());
  EXPECT_EQ(Loader::resume_step(host.loader().state(), far.loader()), 0);
}

TEST(DeviceEdits, TheMemoryPlanHasTheNoise) {
  const auto source = half_cached_source(37);
  const auto slots = [&](const char* erasing) {
    Feed feed(*source, spec_of(kCrop + std::string(erasing)), edited_options(6, 0), 2,
              DeviceKind::far);
    return feed.loader().memory_plan().slot_bytes;
  };
  EXPECT_EQ(slots(kNoise) - slots(kColour), 2 * 3 * 4096);
}

TEST(DeviceEdits, TheWorkersNeedNoMemoryForThem) {
  const auto source = half_cached_source(37);
  const auto scratch = [&](DeviceKind kind) {
    Feed feed(*source, spec_of(std::string(kCrop) + kMixes), edited_options(6, 1), 1, kind);
    return feed.loader().memory_plan().scratch_bytes;
  };
  EXPECT_EQ(scratch(DeviceKind::host) - scratch(DeviceKind::far), mix_scratch_bytes({24, 24}));
}

}  // namespace
}  // namespace stoker::testing
