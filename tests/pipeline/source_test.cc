#include "pipeline/source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/source/folder_source.h"
#include "pipeline/source/listed_source.h"
#include "pipeline/source/source_digests.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/support/collected_samples.h"
#include "tests/support/fake_source.h"
#include "tests/support/source_contents.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

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

std::string listed_error(ListedSamples samples) {
  return thrown_by<std::invalid_argument>([&] { make_listed_source(std::move(samples)); });
}

TEST(ListedSource, HasFilesAndBytesInTheirOrder) {
  const TempFolder folder;
  const std::string absolute = folder.write("x/one.jpg", "one");
  folder.write("two.jpg", "two");
  const auto text = std::make_shared<const std::string>("three");
  const auto source = make_listed_source({.bytes = {{}, {}, bytes_of(*text), {}},
                                          .paths = {absolute, "two.jpg", "", "none.jpg"},
                                          .owner = text,
                                          .labels = {1, 0, 1, 0},
                                          .class_names = {"cat", "dog"},
                                          .root = folder.path()});
  ASSERT_EQ(source->size(), 4);
  EXPECT_EQ(text_of(*source, 0), "one");
  EXPECT_EQ(text_of(*source, 1), "two");
  EXPECT_EQ(text_of(*source, 2), "three");
  EXPECT_EQ(text_of(*source, 3), "error: open: No such file or directory");
  EXPECT_EQ(source->name(0), absolute);
  EXPECT_EQ(source->name(2), "#2");
  EXPECT_EQ(source->label(2), 1);
  EXPECT_EQ(source->labels_digest(), source->Source::labels_digest());
  // The bytes belong to the source, and are not copied.
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  EXPECT_TRUE(source->storage().read_cached(2, buffer, bytes));
  EXPECT_EQ(static_cast<const void*>(bytes.data()), text->data());
  EXPECT_EQ(text.use_count(), 2);
}

TEST(ListedSource, StaysInTheFolderItWasMadeIn) {
  const TempFolder folder;
  folder.write("a.jpg", "a");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const auto source = make_listed_source({.paths = {"a.jpg"}, .labels = {0}});
  std::filesystem::current_path(before);
  EXPECT_EQ(text_of(*source, 0), "a");
}

TEST(ListedSource, TheFingerprintFollowsTheList) {
  const auto fingerprint = [](const std::vector<std::string>& paths, int32_t label) {
    return make_listed_source({.paths = paths, .labels = {label, 0}})->fingerprint();
  };
  const uint64_t before = fingerprint({"a", "b"}, 0);
  EXPECT_EQ(fingerprint({"a", "b"}, 0), before);
  EXPECT_NE(fingerprint({"a", "b"}, 1), before);
  EXPECT_NE(fingerprint({"a", "c"}, 0), before);
}

TEST(ListedSource, RefusesListsThatDoNotFit) {
  EXPECT_EQ(listed_error({}), "no samples are listed");
  EXPECT_EQ(listed_error({.paths = {"a"}, .labels = {0, 1}}), "1 paths for 2 labels");
  EXPECT_EQ(listed_error({.bytes = {bytes_of("a")}, .labels = {0, 1}}), "1 images for 2 labels");
  EXPECT_EQ(listed_error({.labels = {0}}), "sample 0 has neither bytes nor a path");
  EXPECT_EQ(listed_error({.paths = {"a", ""}, .labels = {0, 0}}),
            "sample 1 has neither bytes nor a path");
  EXPECT_EQ(listed_error({.paths = {std::string("a\0b", 3)}, .labels = {0}}),
            "sample 0 has a path with a NUL byte: a\\x00b");
  EXPECT_EQ(listed_error({.paths = {"a"}, .labels = {-1}}),
            "sample 0 has label -1, must be 0 or more");
  EXPECT_EQ(listed_error({.paths = {"a"}, .labels = {2}, .class_names = {"cat", "dog"}}),
            "sample 0 has label 2, must be 0 or more and less than the number of class names, 2");
  EXPECT_THROW(make_listed_source({.paths = {"a"}, .labels = {0}, .root = "/no/such/folder"}),
               std::runtime_error);
}

}  // namespace
}  // namespace stoker
