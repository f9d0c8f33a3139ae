// Batches whose shape changes from step to step, through a whole feed: aspect buckets and schedules
// of sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "pipeline/cache/decoded_cache.h"
#include "pipeline/receipt/receipt.h"
#include "pipeline/source/picture_sizes.h"
#include "tests/pipeline/painted_source.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using ::testing::HasSubstr;

constexpr Size kWide{40, 24}, kHigh{24, 40}, kSquare{32, 32};

Painting shaped_painting() {
  Painting painting;
  painting.is_noisy = true;
  painting.size = [](int64_t id) {
    const Size sizes[] = {{80, 50}, {50, 80}, {64, 66}, {90, 40}, {33, 32}};
    return sizes[id % 5];
  };
  painting.objects = [](int64_t) { return std::vector<PaintedObject>{}; };
  return painting;
}

SharedBuckets shaped_buckets(const Source& source) {
  return std::make_shared<const AspectBuckets>(
      picture_sizes(source, {.cache_dir = ""}),
      BucketOptions{.sizes = {kWide, kHigh, kSquare}, .multiple_of = 8});
}

LoaderOptions shaped_options(const Source& source, LastBatch last_batch = LastBatch::merge) {
  LoaderOptions options;
  options.batch_size = 4;
  options.seed = 5;
  options.epochs = 2;
  options.last_batch = last_batch;
  options.buckets = shaped_buckets(source);
  return options;
}

// No constant: stages are constants of other files.
AugmentSpec cover_spec() { return AugmentSpec("resize_cover | random_crop | flip", {1, 1}); }

// A row as an Augmenter of its size makes it.
std::vector<uint8_t> lone_row(const Source& source, const AugmentSpec& augment, Size size,
                              uint64_t seed, int64_t epoch, SampleId id) {
  Augmenter augmenter(augment.with_output(size), {});
  std::vector<uint8_t> buffer, pixels(size_t{3} * size.width * size.height);
  std::span<const uint8_t> bytes;
  EXPECT_TRUE(source.read(id, buffer, bytes).ok);
  Size picture;
  const MutableImageView out{pixels.data(), size.width, size.height, ptrdiff_t{3} * size.width};
  EXPECT_TRUE(augmenter.file_row(bytes, seed, epoch, id, out, picture).ok());
  return pixels;
}

struct ShapedRow {
  SampleId id;
  Size size;
  float weight;
  std::vector<uint8_t> pixels;
  bool operator==(const ShapedRow&) const = default;
};

// The rows of a feed, batch by batch; pixels are read behind the copy.
std::vector<std::vector<ShapedRow>> shaped_rows(const Source& source, const AugmentSpec& augment,
                                                const LoaderOptions& options, int devices = 1,
                                                DeviceKind kind = DeviceKind::host) {
  Feed feed(source, augment, options, devices, kind);
  std::vector<std::vector<ShapedRow>> batches;
  Delivered batch;
  for (bool more = true; more;) {
    std::vector<ShapedRow> rows;
    for (int device = 0; device < devices && more; ++device) {
      more = feed.next(device, batch, [&](const DeviceBatch& leased) {
        const BatchShape shape = leased.shape();
        EXPECT_EQ(shape.height, leased.header().height);
        const size_t bytes = size_t{3} * shape.width * shape.height;
        const size_t begin = rows.size();
        for (int row = 0; row < shape.rows; ++row) {
          rows.push_back({leased.ids()[row], {shape.width, shape.height}, 0, {}});
          rows.back().pixels.resize(bytes);
          EXPECT_EQ(row_notes(leased)[row].size, rows.back().size);
        }
        feed.stream(device).call([&rows, begin, bytes, count = shape.rows, images = leased.images(),
                                  weights = leased.weights()] {
          for (int row = 0; row < count; ++row) {
            ShapedRow& to = rows[begin + static_cast<size_t>(row)];
            std::memcpy(to.pixels.data(), images + static_cast<size_t>(row) * bytes, bytes);
            to.weight = weights[row];
          }
        });
        feed.stream(device).synchronize();
      });
    }
    if (more) batches.push_back(std::move(rows));
  }
  return batches;
}

TEST(BucketFeed, EveryRowIsItsPictureInTheSizeOfTheStep) {
  const FakeSource source = pictures(shaped_painting());
  for (const LastBatch policy : {LastBatch::merge, LastBatch::pad}) {
    const LoaderOptions options = shaped_options(source, policy);
    std::map<std::pair<size_t, SampleId>, int> counts;
    std::set<std::pair<int, int>> sizes;
    const auto batches = shaped_rows(source, cover_spec(), options);
    const size_t steps = batches.size() / 2;
    for (size_t step = 0; step < batches.size(); ++step) {
      const auto epoch = static_cast<int64_t>(step / steps);
      for (const ShapedRow& row : batches[step]) {
        EXPECT_EQ(row.size, batches[step][0].size);
        EXPECT_EQ(row.pixels, lone_row(source, cover_spec(), row.size, 5, epoch, row.id)) << row.id;
        if (row.weight > 0) ++counts[{step / steps, row.id}];
        sizes.insert({row.size.width, row.size.height});
      }
    }
    EXPECT_EQ(sizes.size(), 3u);
    EXPECT_EQ(counts.size(), 2u * kPictures);
  }
}

TEST(BucketFeed, ThreadsRanksDevicesAndResumingDoNotMatter) {
  const FakeSource source = pictures(shaped_painting());
  LoaderOptions options = shaped_options(source);
  options.feed.workers = 0;
  const auto expected = shaped_rows(source, cover_spec(), options);
  options.feed.workers = 3;
  EXPECT_EQ(shaped_rows(source, cover_spec(), options), expected);
  EXPECT_EQ(shaped_rows(source, cover_spec(), options, 1, DeviceKind::far), expected);
  LoaderOptions halves = options;
  halves.batch_size = 2;
  EXPECT_EQ(shaped_rows(source, cover_spec(), halves, 2), expected);
  halves.world = 2;
  std::vector<std::vector<ShapedRow>> joined;
  for (halves.rank = 0; halves.rank < 2; ++halves.rank) {
    const auto rows = shaped_rows(source, cover_spec(), halves);
    joined.resize(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      joined[i].insert(joined[i].end(), rows[i].begin(), rows[i].end());
    }
  }
  EXPECT_EQ(joined, expected);
  for (size_t step = 0; step < expected.size(); ++step) {
    LoaderOptions rest = options;
    rest.first_step = static_cast<Step>(step);
    const auto got = shaped_rows(source, cover_spec(), rest);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin() + static_cast<int64_t>(step),
                           expected.end()))
        << "from step " << step;
  }
}

TEST(BucketFeed, ProcessesShareRowsAndOthersFillThem) {
  const FakeSource source = pictures(shaped_painting());
  const LoaderOptions alone = shaped_options(source);
  const auto expected = shaped_rows(source, cover_spec(), alone);
  LoaderOptions sharing = alone;
  sharing.share = {"shaped-" + std::to_string(getpid()), 64};
  std::vector<std::vector<ShapedRow>> second;
  std::thread other([&] { second = shaped_rows(source, cover_spec(), sharing); });
  EXPECT_EQ(shaped_rows(source, cover_spec(), sharing), expected);
  other.join();
  EXPECT_EQ(second, expected);

  LoaderOptions remote = alone;
  remote.remote_rows = true;
  remote.feed.workers = 0;
  Feed feed(source, cover_spec(), remote);
  const auto rows = feed.loader().remote_rows();
  std::thread carrier([&] { fill_remotely(*rows, source, cover_spec(), remote); });
  const std::vector<Delivered> filled = feed.all();
  feed.destroy();
  carrier.join();
  Feed plain(source, cover_spec(), alone);
  EXPECT_EQ(filled, plain.all());
}

TEST(BucketFeed, BadPicturesHaveTheirRowsAndAreReported) {
  FakeSource source = pictures(shaped_painting());
  source.replace(7, text_bytes("no picture"));
  source.fail(11);
  LoaderOptions options = shaped_options(source);
  options.feed.max_bad = 10;
  EXPECT_EQ(options.buckets->unknown(), 2);
  Feed feed(source, cover_spec(), options);
  std::set<SampleId> bad;
  for (const Delivered& batch : feed.all()) {
    for (const DeliveredRow& row : batch.rows) {
      if (row.bad) bad.insert(row.id);
    }
  }
  EXPECT_EQ(bad, (std::set<SampleId>{7, 11}));
}

TEST(BucketFeed, TheMemoryIsThatOfTheLargestShape) {
  const FakeSource source = pictures(shaped_painting());
  LoaderOptions options = shaped_options(source);
  Feed feed(source, cover_spec(), options);
  const BatchShape shape{
      .rows = 4, .height = 32, .width = 32, .note_bytes_per_row = sizeof(RowNote)};
  EXPECT_EQ(feed.loader().memory_plan().ring_bytes,
            options.ring_depth * static_cast<int64_t>(BatchLayout(shape).slab_bytes()));
}

TEST(BucketFeed, ReceiptsAndFingerprintsKnowTheBuckets) {
  const FakeSource source = pictures(shaped_painting());
  const LoaderOptions options = shaped_options(source);
  const auto fingerprint_of = [&](const LoaderOptions& with, const AugmentSpec& augment) {
    return Feed(source, augment, with).loader().fingerprint();
  };
  const uint64_t own = fingerprint_of(options, cover_spec());
  EXPECT_EQ(fingerprint_of(options, cover_spec().with_output({9, 9})), own);
  LoaderOptions other = options;
  other.buckets = std::make_shared<const AspectBuckets>(picture_sizes(source, {.cache_dir = ""}),
                                                        BucketOptions{.sizes = {kWide, kHigh}});
  EXPECT_NE(fingerprint_of(other, cover_spec()), own);
  Feed feed(source, cover_spec(), options);
  const ReceiptInfo info = receipt_info(feed.loader(), source, cover_spec(), options, 1);
  const auto entry = std::find_if(info.policies.begin(), info.policies.end(),
                                  [](const auto& each) { return each.first == "buckets"; });
  ASSERT_NE(entry, info.policies.end());
  EXPECT_THAT(entry->second, HasSubstr("40x24:"));
}

// Boxes are where the pixels are, whatever the size of the step.
TEST(ShapedFeed, WhatLiesOnPicturesComesAlong) {
  const FakeSource files = pictures();
  const PaintedSource source(files);
  LoaderOptions options;
  options.batch_size = 4;
  options.epochs = 4;
  options.annotations = {.max_objects = 8, .masks = RowMasks::bytes};
  options.shapes = std::make_shared<const ShapeSchedule>(
      std::vector<ShapePiece>{{0, {{60, 60}, {40, 48}, {72, 56}}}});
  const AugmentSpec augment("flip | letterbox", {1, 1});
  Feed feed(source, augment, options);
  std::set<int> shapes;
  Delivered batch;
  while (feed.next(0, batch, [&](const DeviceBatch& leased) {
    const int number = leased.header().shape;
    shapes.insert(number);
    const std::vector<TargetColumn>& columns = feed.loader().targets(number);
    const auto column = [&](const char* name) {
      const auto at = std::find_if(columns.begin(), columns.end(),
                                   [&](const TargetColumn& each) { return each.name == name; });
      return static_cast<size_t>(at - columns.begin());
    };
    const BatchShape shape = leased.shape();
    const size_t masks = column("masks"), counts = column("object_count");
    EXPECT_EQ(columns[masks].shape, (std::vector<int64_t>{8, shape.height, shape.width}));
    const auto row_bytes = static_cast<size_t>(columns[masks].bytes());
    for (int row = 0; row < shape.rows; ++row) {
      int32_t count = 0;
      std::memcpy(&count, leased.target(counts) + sizeof(count) * static_cast<size_t>(row),
                  sizeof(count));
      const auto* mask = reinterpret_cast<const uint8_t*>(leased.target(masks)) +
                         static_cast<size_t>(row) * row_bytes;
      const uint8_t* pixels =
          leased.images() + static_cast<size_t>(row) * size_t{3} * shape.height * shape.width;
      const int area = shape.height * shape.width;
      for (int object = 0; object < count; ++object) {
        int inside = 0, alike = 0;
        for (int i = 0; i < area; ++i) {
          if (mask[object * area + i] == 0) continue;
          ++inside;
          // The background is 7 and the padding 114; pixels at a side are blends.
          const int colour = pixels[3 * i];
          alike += std::abs(colour - 50 * (object + 1)) < 40;
        }
        EXPECT_GT(inside, 0);
        EXPECT_GT(alike * 10, inside * 7) << "object " << object << " of " << leased.ids()[row];
      }
    }
  })) {
  }
  EXPECT_EQ(shapes.size(), 3u);
}

// Only the images that there are go to a device, where the rest of the slab is large.
TEST(ShapedFeed, SmallStepsAreSmallCopies) {
  const FakeSource source = pictures(shaped_painting());
  LoaderOptions options;
  options.batch_size = 16;
  options.last_batch = LastBatch::wrap;
  options.epochs = 4;
  options.shapes = std::make_shared<const ShapeSchedule>(
      std::vector<ShapePiece>{{0, {{96, 96}}}, {2, {{32, 32}}}});
  Tracer tracer;
  options.tracer = &tracer;
  const AugmentSpec augment("resize", kSquare);
  const auto batches = shaped_rows(source, augment, options, 1, DeviceKind::far);
  ASSERT_EQ(batches.size(), 8u);
  for (size_t step = 0; step < batches.size(); ++step) {
    const auto epoch = static_cast<int64_t>(step / 2);
    for (const ShapedRow& row : batches[step]) {
      EXPECT_EQ(row.pixels, lone_row(source, augment, row.size, 0, epoch, row.id));
    }
  }
  std::map<Step, int64_t> copied;
  std::vector<TrackedSpan> spans;
  tracer.drain(spans);
  for (const TrackedSpan& span : spans) {
    if (span.kind == SpanKind::copy) copied[span.step] = span.bytes;
  }
  ASSERT_EQ(copied.size(), 8u);
  EXPECT_EQ(copied[0] - copied[4], 16 * 3 * (96 * 96 - 32 * 32));
}

TEST(ShapedFeed, RefusesWhatCannotChangeItsSize) {
  const FakeSource source = pictures(shaped_painting());
  const auto message = [&](const char* stages, const auto& change) {
    LoaderOptions options = shaped_options(source);
    change(options);
    return thrown_by<std::invalid_argument>(
        [&] { Feed feed(source, AugmentSpec(stages, kSquare), options); });
  };
  const auto nothing = [](LoaderOptions&) {};
  EXPECT_THAT(message("resize_cover | center_crop(32)", nothing), HasSubstr("40x24"));
  EXPECT_THAT(message("resize_cover | center_crop",
                      [](LoaderOptions& options) {
                        options.feed.cache =
                            std::make_shared<DecodedCache>(DecodedCacheOptions{.bytes = 1 << 20});
                      }),
              HasSubstr("pictures that are kept"));
  EXPECT_THAT(message("resize_cover | center_crop",
                      [](LoaderOptions& options) { options.order = shuffled_order(kPictures); }),
              HasSubstr("buckets"));
}

}  // namespace
}  // namespace stoker::testing
