#include "pipeline/source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "pipeline/source/folder_source.h"
#include "pipeline/source/source_digests.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/support/fake_source.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

std::vector<uint8_t> pixels_in(const Source& source, SampleId id) {
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  EXPECT_TRUE(source.read(id, buffer, bytes).ok);
  return {bytes.begin(), bytes.end()};
}

TEST(SyntheticSource, IsAPureFunctionOfSeedAndId) {
  const auto source = make_synthetic_source(100, {24, 16}, 10, 1);
  const auto same = make_synthetic_source(100, {24, 16}, 10, 1);
  const auto other = make_synthetic_source(100, {24, 16}, 10, 2);
  EXPECT_EQ(source->size(), 100);
  EXPECT_EQ(source->encoding(), SampleEncoding::raw_rgb);
  EXPECT_EQ(source->raw_size(), (Size{24, 16}));
  EXPECT_EQ(source->class_names().size(), 10u);
  for (SampleId id : {0, 1, 10, 99}) {
    EXPECT_EQ(pixels_in(*source, id).size(), 3u * 24 * 16);
    EXPECT_EQ(pixels_in(*source, id), pixels_in(*same, id));
    EXPECT_NE(pixels_in(*source, id), pixels_in(*other, id));
    EXPECT_EQ(source->label(id), id % 10);
  }
  EXPECT_NE(pixels_in(*source, 0), pixels_in(*source, 10));  // of one class, but different
  EXPECT_EQ(source->fingerprint(), same->fingerprint());
  EXPECT_NE(source->fingerprint(), other->fingerprint());
}

// The nearest class mean must separate unseen samples, or a test that trains on them proves
// nothing.
TEST(SyntheticSource, ClassesCanBeLearnt) {
  constexpr int kClasses = 10, kTrain = 200;
  const auto source = make_synthetic_source(2 * kTrain, {16, 16}, kClasses, 3);
  std::vector<std::vector<double>> means(kClasses, std::vector<double>(3 * 16 * 16));
  for (SampleId id = 0; id < kTrain; ++id) {
    const auto pixels = pixels_in(*source, id);
    auto& mean = means[static_cast<size_t>(source->label(id))];
    for (size_t i = 0; i < pixels.size(); ++i) mean[i] += pixels[i] * kClasses / 1.0 / kTrain;
  }
  int right = 0;
  for (SampleId id = kTrain; id < 2 * kTrain; ++id) {
    const auto pixels = pixels_in(*source, id);
    int best = -1;
    double least = 1e30;
    for (int c = 0; c < kClasses; ++c) {
      double distance = 0;
      for (size_t i = 0; i < pixels.size(); ++i) {
        distance += std::pow(pixels[i] - means[static_cast<size_t>(c)][i], 2);
      }
      if (distance < least) least = distance, best = c;
    }
    right += best == source->label(id);
  }
  EXPECT_GT(right, kTrain * 9 / 10);
}

TEST(SyntheticSource, RefusesNonsense) {
  EXPECT_THROW(make_synthetic_source(0, {1, 1}, 1, 0), std::invalid_argument);
  EXPECT_THROW(make_synthetic_source(1, {0, 1}, 1, 0), std::invalid_argument);
  EXPECT_THROW(make_synthetic_source(1, {1, 1}, 0, 0), std::invalid_argument);
}

TEST(FakeSource, DoesAsItIsTold) {
  FakeSource source({{1, 2, 3}, {4, 5}}, 10, 2);
  source.fail(3);
  source.replace(4, {9});
  EXPECT_EQ(pixels_in(source, 0), (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(pixels_in(source, 1), (std::vector<uint8_t>{4, 5}));
  EXPECT_EQ(pixels_in(source, 4), (std::vector<uint8_t>{9}));
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  EXPECT_FALSE(source.read(3, buffer, bytes).ok);
  EXPECT_EQ(source.reads(), 4);
}

TEST(OpenSource, TellsFoldersApart) {
  const TempFolder folder;
  folder.write("train/cat/1.jpg");
  folder.write("val/cat/2.jpg");
  EXPECT_EQ(open_source(folder.path(), Split::test)->name(0), "val/cat/2.jpg");
  folder.write("test_batch.bin", std::string(3073, '\1'));
  EXPECT_EQ(open_source(folder.path(), Split::test)->encoding(), SampleEncoding::raw_planar);
}

TEST(LabelDigest, IsOfEveryLabelInItsOrder) {
  constexpr int64_t kLabels = 5000;
  const auto digest_of = [](int64_t changed) {
    LabelDigest digest;
    for (int64_t i = 0; i < kLabels; ++i) digest.add(i == changed ? 9 : i < 2000 ? 1 : 2);
    return digest.value();
  };
  const uint64_t expected = digest_of(-1);
  for (const int64_t changed : {int64_t{0}, int64_t{1023}, int64_t{1024}, kLabels - 1}) {
    EXPECT_NE(digest_of(changed), expected) << changed;
  }
  LabelDigest runs, shorter;
  runs.add(1, 2000);
  runs.add(2, 3000);
  EXPECT_EQ(runs.value(), expected);
  shorter.add(1, 2000);
  shorter.add(2, 2999);
  EXPECT_NE(shorter.value(), expected);
}

}  // namespace
}  // namespace stoker
