// The user's own operations on pixels: in the row, in the draws, and in the feed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "pipeline/augment/operation_plugin.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using ::testing::HasSubstr;
using Pixels = std::vector<uint8_t>;

void add_noise(MutableImageView row, const RandomKey& random) {
  for (int y = 0; y < row.height; ++y) {
    uint8_t* line = row.data + y * row.stride_bytes;
    for (int x = 0; x < 3 * row.width; ++x) {
      line[x] ^= static_cast<uint8_t>(random.bits(static_cast<uint32_t>(x)));
    }
  }
}

Pixels row_of(const AugmentSpec& spec, uint64_t seed = 1, int64_t epoch = 0, int64_t sample = 0) {
  const Pixels image(size_t{3} * 16 * 16, 200);
  Pixels out(image.size());
  const DecodeStatus status = Augmenter(spec, {}).raw_row(image, false, {16, 16}, seed, epoch,
                                                          sample, {out.data(), 16, 16, 48});
  EXPECT_TRUE(status.ok()) << status.message;
  return out;
}

TEST(Operation, SeesTheFinishedRowAndRunsInOrder) {
  AugmentSpec spec("cutout(16, value=7)", {16, 16});
  std::vector<int> seen;
  const auto add_one = [&](MutableImageView row, const RandomKey&) { seen.push_back(++*row.data); };
  spec.add({"first", add_one});
  spec.add({"second", add_one});
  EXPECT_EQ(row_of(spec).front(), 9);
  EXPECT_EQ(seen, (std::vector<int>{8, 9}));
}

TEST(Operation, DrawsDependOnNameSeedEpochAndSampleOnly) {
  const AugmentSpec plain("resize", {16, 16});
  const auto with = [&](const std::vector<PixelOperation>& operations) {
    AugmentSpec spec = plain;
    for (const PixelOperation& operation : operations) spec.add(operation);
    return spec;
  };
  const AugmentSpec noise = with({{"noise", add_noise}});
  const Pixels row = row_of(noise);
  EXPECT_NE(row, row_of(plain));
  EXPECT_EQ(row, row_of(noise));
  EXPECT_NE(row, row_of(noise, 2));
  EXPECT_NE(row, row_of(noise, 1, 1));
  EXPECT_NE(row, row_of(noise, 1, 0, 1));
  EXPECT_NE(row, row_of(with({{"other", add_noise}})));
  const auto nothing = [](MutableImageView, const RandomKey&) {};
  EXPECT_EQ(row, row_of(with({{"before", nothing}, {"noise", add_noise}})));
}

TEST(Operation, FeedIsTheSameForAnyWorkersAndHasAFingerprintOfItsOwn) {
  const auto source = jpeg_source(20);
  AugmentSpec spec = crop_spec();
  const LoaderOptions options{.batch_size = 8, .feed = {.workers = 0}, .digests = true};
  Feed without(*source, spec, options);
  spec.add({"noise", add_noise});
  Feed inline_feed(*source, spec, options);
  EXPECT_NE(inline_feed.loader().fingerprint(), without.loader().fingerprint());
  const std::vector<Delivered> expected = inline_feed.all();
  EXPECT_NE(expected, without.all());
  LoaderOptions threads = options;
  threads.feed.workers = 4;
  EXPECT_EQ(Feed(*source, spec, threads).all(), expected);
}

TEST(Operation, WhatItThrowsMakesABadRow) {
  const auto source = jpeg_source(20);
  AugmentSpec spec = crop_spec();
  spec.add({"picky", [](MutableImageView, const RandomKey& random) {
              if (random.uniform(0) < 0.3) throw std::runtime_error("not that one");
            }});
  const TempFolder folder;
  LoaderOptions options{.batch_size = 10, .seed = 3, .feed = {.workers = 2, .max_bad = 100}};
  options.quarantine_file = folder.path() + "/bad.jsonl";
  int bad = 0;
  for (const Delivered& batch : Feed(*source, spec, options).all()) {
    for (const DeliveredRow& row : batch.rows) {
      bad += row.bad;
      EXPECT_EQ(row.weight, row.bad ? 0 : 1);
    }
  }
  EXPECT_GT(bad, 0);
  EXPECT_LT(bad, 20);
  std::ifstream file(options.quarantine_file);
  std::string line;
  std::getline(file, line);
  EXPECT_THAT(line, HasSubstr("operation picky: not that one"));
}

std::string operation_refusal(const std::string& path) {
  return thrown_by<std::runtime_error>([&] { open_operation(path); });
}

TEST(Operation, PluginsThatAreNoneAreRefusedWithTheirPath) {
  const TempFolder folder;
  const std::string path = folder.path() + "/libmine.so";
  EXPECT_EQ(operation_refusal(path), "operation " + path + ": there is no such file");
  EXPECT_THAT(operation_refusal(""), HasSubstr("no such file"));
  std::ofstream(path) << "no library";
  EXPECT_THAT(operation_refusal(path), HasSubstr("operation " + path + ": cannot be opened: "));
  EXPECT_THAT(operation_refusal(STOKER_OLD_OPERATION),
              HasSubstr("was built for stoker 0.0.1, this is "));
  EXPECT_THAT(operation_refusal(STOKER_NO_OPERATION), HasSubstr("has no stoker_pixel_operation()"));
}

}  // namespace
}  // namespace stoker::testing
