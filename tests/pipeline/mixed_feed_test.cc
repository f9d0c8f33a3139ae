// Mixup and CutMix in a feed: who meets whom, what their rows become, and what is left alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "decode/pixel_ops.h"
#include "pipeline/files/digest.h"
#include "pipeline/source/synthetic_source.h"
#include "pipeline/source/target_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/pipeline/mixed_pixels.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using Pixels = std::vector<uint8_t>;

struct MixedRow {
  SampleId id = 0;
  float weight = 0;
  Pixels pixels;
  int32_t label = 0, mix_label = 0;
  float mix_weight = 0;
  RowMix mix;
  uint64_t digest = 0, repeat_index = 0;
  bool bad = false;
};

// The bytes of every row of a feed, in the order of the global batches.
std::vector<std::vector<MixedRow>> mixed_rows(Feed& feed, int devices = 1) {
  std::vector<std::vector<MixedRow>> epochs;
  for (;;) {
    for (int device = 0; device < devices; ++device) {
      Delivered batch;
      const auto look = [&](const DeviceBatch& leased) {
        epochs.resize(std::max(epochs.size(), static_cast<size_t>(leased.header().epoch) + 1));
        const BatchShape shape = leased.shape();
        const size_t bytes = size_t{3} * shape.width * shape.height;
        const bool mixes = !feed.loader().targets().empty();
        for (int row = 0; row < shape.rows; ++row) {
          const RowNote& note = row_notes(leased)[row];
          MixedRow& out = epochs.back().emplace_back();
          out.id = leased.ids()[row];
          out.weight = leased.weights()[row];
          out.label = leased.labels()[row];
          out.pixels.assign(leased.images() + bytes * row, leased.images() + bytes * (row + 1));
          out.mix = note.mix;
          out.digest = note.digest;
          out.repeat_index = note.repeat_index;
          out.bad = note.bad;
          if (!mixes) continue;
          out.mix_label = reinterpret_cast<const int32_t*>(leased.target(0))[row];
          out.mix_weight = reinterpret_cast<const float*>(leased.target(1))[row];
        }
      };
      if (!feed.next(device, batch, look)) return epochs;
    }
  }
}

// The plain twin, from rows of a feed that does not mix.
MixedRow mixed_row(const MixDraw& draw, const MixedRow& own, const MixedRow& partner, Size size) {
  MixedRow out = own;
  out.mix_label = draw.kind == MixKind::none ? own.label : partner.label;
  out.mix_weight = draw.own_share;
  out.mix = {draw, draw.kind == MixKind::none ? -1 : partner.id};
  out.pixels = mixed_pixels(draw, size, own.pixels, partner.pixels);
  return out;
}

void expect_mixed_row(const MixedRow& row, const MixedRow& expected) {
  EXPECT_EQ(row.id, expected.id);
  EXPECT_EQ(row.label, expected.label);
  EXPECT_EQ(row.mix_label, expected.mix_label);
  EXPECT_EQ(row.mix_weight, expected.mix_weight);
  EXPECT_EQ(row.mix.partner, expected.mix.partner);
  EXPECT_EQ(row.mix.draw.kind, expected.mix.draw.kind);
  EXPECT_EQ(row.mix.draw.own_share, expected.mix.draw.own_share);
  EXPECT_EQ(row.mix.draw.box, expected.mix.draw.box);
  EXPECT_EQ(row.pixels, expected.pixels) << "sample " << row.id;
  EXPECT_EQ(row.digest, pixel_digest(row.pixels));
}

constexpr uint64_t kMixSeed = 9;
const MixSpec kBoth{.mixup_alpha = 0.6, .cutmix_alpha = 1, .probability = 0.9};

LoaderOptions mixed_options(int batch, int workers) {
  return {.batch_size = batch,
          .seed = kMixSeed,
          .epochs = 2,
          .feed = {.workers = workers, .max_bad = 100},
          .digests = true};
}

AugmentSpec with_mix(AugmentSpec spec, const MixSpec& mix = kBoth) {
  spec.mix = mix;
  return spec;
}

// Per epoch and position, what a feed that mixes has: each pair of positions of the plain feed.
std::vector<std::vector<MixedRow>> expected_rows(const Source& source, const AugmentSpec& spec,
                                                 LoaderOptions options) {
  AugmentSpec plain = spec;
  plain.mix = {};
  options.batch_size = 1;
  options.last_batch = LastBatch::pad;
  Feed feed(source, plain, options);
  std::vector<std::vector<MixedRow>> epochs = mixed_rows(feed);
  for (size_t epoch = 0; epoch < epochs.size(); ++epoch) {
    const std::vector<MixedRow> own = epochs[epoch];
    for (size_t position = 0; position < own.size(); ++position) {
      const size_t other = position ^ 1;
      MixedRow& row = epochs[epoch][position];
      const bool paired = other < own.size() && !row.bad && !own[other].bad;
      const MixDraw draw =
          paired ? draw_mix(spec.mix, spec.output, repeat_seed(kMixSeed, row.repeat_index),
                            static_cast<int64_t>(epoch), row.id)
                 : MixDraw{};
      row = mixed_row(draw, row, paired ? own[other] : row, spec.output);
    }
  }
  return epochs;
}

void expect_feed(const Source& source, const AugmentSpec& spec, const LoaderOptions& options,
                 int devices, const std::vector<std::vector<MixedRow>>& expected) {
  Feed feed(source, spec, options, devices);
  const std::vector<std::vector<MixedRow>> epochs = mixed_rows(feed, devices);
  ASSERT_EQ(epochs.size(), expected.size());
  for (size_t epoch = 0; epoch < epochs.size(); ++epoch) {
    ASSERT_GE(epochs[epoch].size(), expected[epoch].size());
    for (size_t position = 0; position < epochs[epoch].size(); ++position) {
      SCOPED_TRACE(position);
      const MixedRow& row = epochs[epoch][position];
      if (position < expected[epoch].size()) {
        expect_mixed_row(row, expected[epoch][position]);
        continue;
      }
      // A row of padding.
      EXPECT_EQ(row.weight, 0);
      EXPECT_EQ(row.mix.partner, -1);
      EXPECT_EQ(row.mix_label, row.label);
      EXPECT_EQ(row.mix_weight, 1);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(MixedFeed, PairsAreOfPositionsForAnyBatchThreadsAndDevices) {
  const auto pictures = half_cached_source(37);
  const auto raw = make_synthetic_source(101, {16, 16}, 10, 3);
  for (const bool is_file : {true, false}) {
    const Source& source = is_file ? *static_cast<Source*>(pictures.get()) : *raw;
    const AugmentSpec spec = with_mix(is_file ? crop_spec() : pad_spec());
    const auto expected = expected_rows(source, spec, mixed_options(1, 0));
    int mixups = 0, cuts = 0, alone = 0;
    for (const MixedRow& row : expected[0]) {
      mixups += row.mix.draw.kind == MixKind::mixup;
      cuts += row.mix.draw.kind == MixKind::cutmix;
      alone += row.mix.draw.kind == MixKind::none;
    }
    EXPECT_TRUE(mixups > 5 && cuts > 5 && alone > 0) << mixups << ", " << cuts << ", " << alone;
    for (const int batch : {2, 6, 16, 64}) {
      for (const int devices : {1, 2, 4}) {
        for (const int workers : {0, 1, 3}) {
          for (const int io_threads : {0, 2}) {
            SCOPED_TRACE(::testing::Message() << batch << " rows, " << devices << " devices, "
                                              << workers << " workers, " << io_threads << " I/O");
            LoaderOptions options = mixed_options(batch, workers);
            options.feed.io_threads = io_threads;
            expect_feed(source, spec, options, devices, expected);
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

TEST(MixedFeed, RanksShareTheSamePairs) {
  const auto source = half_cached_source(37);
  const AugmentSpec spec = with_mix(crop_spec());
  std::map<std::pair<size_t, SampleId>, MixedRow> expected;
  const auto whole = expected_rows(*source, spec, mixed_options(1, 0));
  for (size_t epoch = 0; epoch < whole.size(); ++epoch) {
    for (const MixedRow& row : whole[epoch]) expected[{epoch, row.id}] = row;
  }
  size_t seen = 0;
  for (int rank = 0; rank < 3; ++rank) {
    LoaderOptions options = mixed_options(4, 2);
    options.world = 3;
    options.rank = rank;
    Feed feed(*source, spec, options, 2);
    const auto epochs = mixed_rows(feed, 2);
    for (size_t epoch = 0; epoch < epochs.size(); ++epoch) {
      for (const MixedRow& row : epochs[epoch]) {
        if (row.weight == 0) continue;
        expect_mixed_row(row, expected.at({epoch, row.id}));
        ++seen;
      }
    }
  }
  EXPECT_EQ(seen, 2u * 37u);
}

TEST(MixedFeed, ResumingAnywhereIsTheSameAsNeverStopping) {
  const auto source = half_cached_source(37);
  const AugmentSpec spec = with_mix(crop_spec());
  LoaderOptions options = mixed_options(6, 2);
  const std::vector<Delivered> whole = Feed(*source, spec, options).all();
  for (size_t stop = 0; stop <= whole.size(); ++stop) {
    options.first_step = static_cast<Step>(stop);
    options.feed.workers = static_cast<int>(stop % 3);
    const std::vector<Delivered> rest = Feed(*source, spec, options).all();
    EXPECT_EQ(rest, std::vector<Delivered>(whole.begin() + static_cast<int64_t>(stop), whole.end()))
        << "stopped after " << stop;
  }
}

// The good partner of a bad sample stays as it is, and so does the substitute.
TEST(MixedFeed, BadSamplesAreMixedIntoNothing) {
  const auto source = half_cached_source(37);
  source->fail(4);
  source->replace(11, text_bytes("no picture"));
  source->replace(30, {});
  const AugmentSpec spec = with_mix(crop_spec(), {.mixup_alpha = 1});
  const auto expected = expected_rows(*source, spec, mixed_options(1, 0));
  int alone = 0;
  for (const MixedRow& row : expected[0]) alone += row.mix.partner == -1;
  EXPECT_GE(alone, 5);
  for (const int workers : {0, 2})
    expect_feed(*source, spec, mixed_options(8, workers), 1, expected);
}

// Both repeat indexes of a sample have draws of their own, also where they are each other's
// partners.
TEST(MixedFeed, AppearancesHaveTheirOwnDraws) {
  const auto source = half_cached_source(37);
  LoaderOptions options = mixed_options(1, 0);
  options.order = repeated_order({.samples = 37});
  const AugmentSpec spec = with_mix(crop_spec());
  const auto expected = expected_rows(*source, spec, options);
  for (const int workers : {0, 2}) {
    options.batch_size = 8;
    options.feed.workers = workers;
    expect_feed(*source, spec, options, 1, expected);
  }
}

TEST(MixedFeed, RowsThatOnlyFillTheLastBatchAreNotMixed) {
  for (const int64_t samples : {7, 8}) {
    const auto source = jpeg_source(samples);
    const AugmentSpec spec = with_mix(crop_spec(), {.mixup_alpha = 1});
    LoaderOptions options = mixed_options(6, 2);
    options.epochs = 1;
    options.last_batch = LastBatch::wrap;
    Feed feed(*source, spec, options);
    const auto rows = mixed_rows(feed)[0];
    ASSERT_EQ(rows.size(), 12u);
    for (size_t row = 0; row < 12; ++row) {
      const bool paired = static_cast<int64_t>(row | 1) < samples;
      EXPECT_EQ(rows[row].mix.partner, paired ? rows[row ^ 1].id : -1) << row;
      EXPECT_EQ(rows[row].weight, 1);
      EXPECT_EQ(rows[row].mix_weight, rows[row].mix.draw.own_share);
    }
  }
}

TEST(MixedFeed, PerBatchAllRowsHaveOneDraw) {
  const auto source = half_cached_source(37);
  MixSpec spec = kBoth;
  spec.probability = 1;
  spec.per_batch = true;
  const AugmentSpec augment = with_mix(crop_spec(), spec);
  std::vector<MixDraw> draws;
  for (const int workers : {0, 2}) {
    Feed feed(*source, augment, mixed_options(6, workers), 2);
    const auto epochs = mixed_rows(feed, 2);
    for (size_t epoch = 0; epoch < 2; ++epoch) {
      for (size_t row = 0; row < epochs[epoch].size(); ++row) {
        const auto step = static_cast<int64_t>(row / 12);
        const MixDraw draw =
            draw_mix(spec, augment.output, kMixSeed, static_cast<int64_t>(epoch), step);
        const bool paired = (row | 1) < 37;
        EXPECT_EQ(epochs[epoch][row].mix.draw.own_share, paired ? draw.own_share : 1);
        if (row % 12 == 0) draws.push_back(draw);
      }
    }
  }
  EXPECT_NE(draws[0].own_share, draws[1].own_share);
}

// A conversion has the mixed pixels, and digests are of what is fed before it.
TEST(MixedFeed, RowsAreConvertedAfterTheyAreMixed) {
  const auto source = half_cached_source(37);
  const AugmentSpec spec = with_mix(crop_spec());
  const auto expected = expected_rows(*source, spec, mixed_options(1, 0));
  LoaderOptions options = mixed_options(4, 2);
  options.format = RowFormat{};
  Feed feed(*source, spec, options);
  size_t position = 0;
  Delivered batch;
  while (feed.next(0, batch, [&](const DeviceBatch& leased) {
    if (leased.header().epoch > 0) return;
    const size_t count = size_t{3} * 24 * 24;
    const auto* values = reinterpret_cast<const float*>(leased.images());
    for (size_t row = 0; row < 4 && position < 37; ++row, ++position) {
      const Pixels& pixels = expected[0][position].pixels;
      EXPECT_EQ(row_notes(leased)[row].digest, pixel_digest(pixels));
      for (size_t i = 0; i < count; ++i) {
        ASSERT_NEAR(values[row * count + i], pixels[i] / 255.0, 1e-6) << position;
      }
    }
  })) {
  }
  EXPECT_EQ(position, 37u);
}

TEST(MixedFeed, ItsColumnsComeBehindThoseOfTheSource) {
  const auto pictures = half_cached_source(37);
  std::vector<int64_t> numbers(37);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(100 + i);
  const auto with = [&](const std::string& name) {
    return TargetSource(*pictures, {{.column = {name, TargetType::int64},
                                     .values = std::as_bytes(std::span(numbers))}});
  };
  const TargetSource source = with("number");
  Feed feed(source, with_mix(crop_spec()), mixed_options(4, 2), 1, DeviceKind::nasty);
  std::vector<std::string> names;
  for (const TargetColumn& column : feed.loader().targets()) names.push_back(column.describe());
  EXPECT_THAT(names, ::testing::ElementsAre("'number': int64 ()", "'mix_label': int32 ()",
                                            "'mix_weight': float32 ()"));
  Delivered batch;
  ASSERT_TRUE(feed.next(0, batch, [&](const DeviceBatch& leased) {
    int64_t number[4];
    int32_t labels[4];
    float shares[4];
    feed.stream(0).copy(number, leased.target(0), sizeof number, CopyKind::device_to_host);
    feed.stream(0).copy(labels, leased.target(1), sizeof labels, CopyKind::device_to_host);
    feed.stream(0).copy(shares, leased.target(2), sizeof shares, CopyKind::device_to_host);
    feed.stream(0).synchronize();
    for (int row = 0; row < 4; ++row) {
      const RowMix& mix = row_notes(leased)[row].mix;
      EXPECT_EQ(number[row], 100 + leased.ids()[row]);
      EXPECT_EQ(labels[row], source.label(mix.partner >= 0 ? mix.partner : leased.ids()[row]));
      EXPECT_EQ(shares[row], mix.draw.own_share);
    }
  }));
}

TEST(MixedFeed, RefusesWhatCannotBeMixed) {
  const auto pictures = half_cached_source(37);
  const auto refusal = [&](const Source& source, const AugmentSpec& spec, int batch) {
    return problem_of([&] { const Feed feed(source, spec, mixed_options(batch, 0)); });
  };
  EXPECT_EQ(refusal(*pictures, with_mix(crop_spec()), 7),
            "LoaderOptions: batch_size is 7 for each device, must be even where rows are mixed in "
            "pairs (`mix`)");
  EXPECT_EQ(refusal(*pictures, crop_spec(), 7), "nothing was thrown");
  EXPECT_EQ(refusal(*pictures, with_mix(crop_spec(), {.mixup_alpha = 2000}), 8),
            "MixSpec: mixup_alpha = 2000: must be 0 (off) or 0.001..1000");
  const std::vector<float> numbers(37);
  const TargetSource source(*pictures, {{.column = {"mix_weight", TargetType::float32},
                                         .values = std::as_bytes(std::span(numbers))}});
  EXPECT_THAT(
      refusal(source, with_mix(crop_spec()), 8),
      ::testing::HasSubstr("the samples have the target 'mix_weight': float32 (), which is a "
                           "name that mixing uses itself"));
  EXPECT_EQ(refusal(source, crop_spec(), 8), "nothing was thrown");
}

TEST(MixedFeed, TheFingerprintHasTheMix) {
  const auto source = half_cached_source(37);
  const auto fingerprint = [&](const MixSpec& mix, int batch) {
    return Feed(*source, with_mix(crop_spec(), mix), mixed_options(batch, 0))
        .loader()
        .fingerprint();
  };
  EXPECT_NE(fingerprint({}, 4), fingerprint({.mixup_alpha = 1}, 4));
  EXPECT_EQ(fingerprint({.mixup_alpha = 1}, 4), fingerprint({.mixup_alpha = 1}, 8));
  // Who has which draw depends on the batch.
  EXPECT_NE(fingerprint({.mixup_alpha = 1, .per_batch = true}, 4),
            fingerprint({.mixup_alpha = 1, .per_batch = true}, 8));
}

TEST(MixedFeed, TheMemoryPlanHasTheColumnsAndTheScratch) {
  const auto source = half_cached_source(37);
  const auto plan = [&](const MixSpec& mix, bool converts) {
    LoaderOptions options = mixed_options(128, 0);
    if (converts) options.format = RowFormat{};
    return Feed(*source, with_mix(crop_spec(), mix), options).loader().memory_plan();
  };
  for (const bool converts : {false, true}) {
    const MemoryPlan alone = plan({}, converts), mixed_row = plan(kBoth, converts);
    EXPECT_EQ(mixed_row.ring_bytes - alone.ring_bytes,
              4 * 2 * 128 * 4);  // slabs, columns, rows, bytes
    const int64_t row = int64_t{3} * 24 * 24;
    EXPECT_EQ(mixed_row.scratch_bytes - alone.scratch_bytes,
              int64_t{1 << 20} + mix_scratch_bytes({24, 24}) + (converts ? row : 0));
  }
}

}  // namespace
}  // namespace stoker::testing
