// Targets besides the label: tables beside a source, their views, and their way into a batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "pipeline/augment/unmoved_targets.h"
#include "pipeline/files/digest.h"
#include "pipeline/receipt/receipt.h"
#include "pipeline/source/concat_source.h"
#include "pipeline/source/subset_source.h"
#include "pipeline/source/synthetic_source.h"
#include "pipeline/source/target_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

constexpr int64_t kTargetSamples = 21;
constexpr int64_t kBoxNumbers = 4;

// Two columns whose values follow from the sample's number.
struct Tables {
  explicit Tables(int64_t samples = kTargetSamples) {
    for (int64_t id = 0; id < samples; ++id) {
      for (int64_t k = 0; k < kBoxNumbers; ++k) boxes.push_back(box(id, k));
      scores.push_back(score(id));
    }
  }
  static float box(int64_t id, int64_t k) {
    return static_cast<float>(id) + 0.1F * static_cast<float>(k);
  }
  static int64_t score(int64_t id) { return id * id - 7; }
  std::vector<TargetTable> tables() const {
    return {{.column = {"boxes", TargetType::float32, {2, 2}},
             .values = std::as_bytes(std::span(boxes))},
            {.column = {"score", TargetType::int64}, .values = std::as_bytes(std::span(scores))}};
  }
  std::vector<float> boxes;
  std::vector<int64_t> scores;
};

int64_t score_of(const Source& source, SampleId id) {
  float boxes[kBoxNumbers];
  int64_t score = 0;
  SampleTargets targets;
  targets.columns = {reinterpret_cast<std::byte*>(boxes), reinterpret_cast<std::byte*>(&score)};
  source.read_targets(id, {}, targets);
  EXPECT_EQ(targets.label, source.label(id));
  return score;
}

class TargetsTest : public ::testing::Test {
 protected:
  const Tables tables_;
  const std::unique_ptr<FakeSource> pictures_ = jpeg_source(kTargetSamples);
  const TargetSource source_{*pictures_, tables_.tables()};
};

LoaderOptions targets_options(int workers) {
  return {.batch_size = 4, .seed = 3, .epochs = 2, .feed = {.workers = workers}};
}

// Every row of a feed has the targets of its own sample, whatever fills the rows, also in padding.
void expect_targets_of_all_rows(Feed& feed, Stream& stream) {
  Delivered batch;
  int64_t rows = 0;
  while (feed.next(0, batch, [&](const DeviceBatch& leased) {
    std::vector<float> boxes(4 * kBoxNumbers);
    std::vector<int64_t> scores(4);
    stream.copy(boxes.data(), leased.target(0), boxes.size() * sizeof(float),
                CopyKind::device_to_host);
    stream.copy(scores.data(), leased.target(1), scores.size() * sizeof(int64_t),
                CopyKind::device_to_host);
    stream.synchronize();
    for (size_t row = 0; row < 4; ++row, ++rows) {
      const SampleId id = leased.ids()[row];
      EXPECT_EQ(scores[row], Tables::score(id));
      for (size_t k = 0; k < kBoxNumbers; ++k) {
        EXPECT_EQ(boxes[row * kBoxNumbers + k], Tables::box(id, static_cast<int64_t>(k)));
      }
    }
  })) {
  }
  EXPECT_EQ(rows, 2 * 24);  // 21 samples in batches of 4: 3 rows of padding
}

TEST_F(TargetsTest, EveryRowHasThoseOfItsSample) {
  for (const DeviceKind kind : {DeviceKind::host, DeviceKind::nasty}) {
    for (const int workers : {0, 2}) {
      Feed feed(source_, crop_spec(), targets_options(workers), 1, kind);
      expect_targets_of_all_rows(feed, feed.stream(0));
    }
  }
}

TEST_F(TargetsTest, RawSamplesHaveThemToo) {
  const auto raw = make_synthetic_source(kTargetSamples, {16, 16}, 3, 1);
  const TargetSource source(*raw, tables_.tables());
  Feed feed(source, pad_spec(), targets_options(2));
  expect_targets_of_all_rows(feed, feed.stream(0));
}

TEST_F(TargetsTest, ABadSampleKeepsItsOwn) {
  pictures_->fail(5);
  Feed feed(source_, crop_spec(), targets_options(0));
  expect_targets_of_all_rows(feed, feed.stream(0));
}

TEST_F(TargetsTest, TheyAreNotInThePixels) {
  Feed with(source_, crop_spec(), targets_options(2)),
      without(*pictures_, crop_spec(), targets_options(2));
  EXPECT_EQ(with.all(), without.all());
}

TEST_F(TargetsTest, TheMemoryPlanHasThem) {
  Feed with(source_, crop_spec(), targets_options(0)),
      without(*pictures_, crop_spec(), targets_options(0));
  // Each column is aligned to 256 bytes; the ring has four slabs.
  EXPECT_EQ(with.loader().memory_plan().ring_bytes,
            without.loader().memory_plan().ring_bytes + 4 * 2 * 256);
}

TEST_F(TargetsTest, AStateBelongsToTheValues) {
  Feed feed(source_, crop_spec(), targets_options(0));
  Tables others;
  others.scores[7] += 1;
  const TargetSource changed(*pictures_, others.tables());
  Feed other(changed, crop_spec(), targets_options(0)),
      bare(*pictures_, crop_spec(), targets_options(0));
  EXPECT_NE(feed.loader().fingerprint(), other.loader().fingerprint());
  EXPECT_NE(feed.loader().fingerprint(), bare.loader().fingerprint());
  EXPECT_THROW(Loader::resume_step(feed.loader().state(), other.loader()), std::invalid_argument);
  EXPECT_NE(source_.fingerprint(), changed.fingerprint());
  EXPECT_NE(source_.fingerprint(), pictures_->fingerprint());
  EXPECT_EQ(source_.labels_digest(), pictures_->labels_digest());
}

// The digest is that of the columns and of all values, also of those below a view.
TEST_F(TargetsTest, TheDigestIsOfAllOfThem) {
  const auto digest_of = [](const Source& source) { return source.targets_digest(); };
  const std::vector<float> numbers(kTargetSamples * 4);
  const auto with = [&](const char* name, TargetType type, std::vector<int64_t> shape) {
    return digest_of(TargetSource(*pictures_, {{.column = {name, type, std::move(shape)},
                                                .values = std::as_bytes(std::span(numbers))}}));
  };
  EXPECT_EQ(with("a", TargetType::float32, {4}), with("a", TargetType::float32, {4}));
  EXPECT_NE(with("a", TargetType::float32, {4}), with("b", TargetType::float32, {4}));
  EXPECT_NE(with("a", TargetType::float32, {4}), with("a", TargetType::int32, {4}));
  EXPECT_NE(with("a", TargetType::float32, {4}), with("a", TargetType::float32, {2, 2}));

  Tables others;
  others.boxes[0] += 1;
  const TargetSource changed(*pictures_, others.tables());
  const std::vector<TargetTable> more = {
      {.column = {"more", TargetType::float32, {4}}, .values = std::as_bytes(std::span(numbers))}};
  EXPECT_NE(digest_of(TargetSource(source_, more)), digest_of(TargetSource(changed, more)));
  EXPECT_NE(digest_of(ConcatSource({&source_, &source_})),
            digest_of(ConcatSource({&source_, &changed})));
  const std::unique_ptr<FakeSource> larger = jpeg_source(kTargetSamples + 1);
  EXPECT_NE(TargetSource(SubsetSource(*larger, kTargetSamples), tables_.tables()).fingerprint(),
            source_.fingerprint());
}

TEST_F(TargetsTest, AReceiptSaysWhichTheyWere) {
  const auto policy_of = [](const Source& source) {
    Feed feed(source, crop_spec(), targets_options(0));
    const auto info = receipt_info(feed.loader(), source, crop_spec(), targets_options(0), 1);
    for (const auto& [name, value] : info.policies) {
      if (name == "targets") return value;
    }
    return std::string("none");
  };
  EXPECT_EQ(policy_of(source_), hex64(source_.targets_digest()));
  EXPECT_EQ(policy_of(*pictures_), "none");
}

TEST_F(TargetsTest, ViewsShowThem) {
  const SubsetSource subset(source_, std::vector<SampleId>{4, 20, 0});
  EXPECT_EQ(subset.targets().size(), 2U);
  EXPECT_EQ(score_of(subset, 1), Tables::score(20));
  EXPECT_NE(subset.targets_digest(), source_.targets_digest());
  EXPECT_NE(subset.targets_digest(),
            SubsetSource(source_, std::vector<SampleId>{4, 20, 1}).targets_digest());
  EXPECT_EQ(SubsetSource(source_, 0).targets_digest(), source_.targets_digest());
  EXPECT_NE(SubsetSource(source_, 5).targets_digest(), source_.targets_digest());
  EXPECT_EQ(SubsetSource(*pictures_, 5).targets_digest(), 0U);

  const ConcatSource both({&source_, &source_});
  EXPECT_EQ(score_of(both, kTargetSamples + 6), Tables::score(6));
  EXPECT_NE(both.targets_digest(), source_.targets_digest());
  EXPECT_EQ(ConcatSource({pictures_.get(), pictures_.get()}).targets_digest(), 0U);
}

TEST_F(TargetsTest, TablesAreAddedToThoseOfTheSource) {
  std::vector<uint8_t> bits(3 * kTargetSamples);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint8_t>(i);
  const TargetSource more(source_, {{.column = {"bits", TargetType::uint8, {3}},
                                     .values = std::as_bytes(std::span(bits))}});
  ASSERT_EQ(more.targets().size(), 3U);
  EXPECT_EQ(more.targets()[2].describe(), "'bits': uint8 (3)");
  float boxes[kBoxNumbers];
  int64_t score = 0;
  uint8_t own[3];
  SampleTargets targets;
  targets.columns = {reinterpret_cast<std::byte*>(boxes), reinterpret_cast<std::byte*>(&score),
                     reinterpret_cast<std::byte*>(own)};
  more.read_targets(9, {}, targets);
  EXPECT_EQ(boxes[3], Tables::box(9, 3));
  EXPECT_EQ(score, Tables::score(9));
  EXPECT_THAT(own, ::testing::ElementsAre(27, 28, 29));
}

TEST_F(TargetsTest, WhatDoesNotFitIsRefusedWithTheNumbers) {
  const auto made = [&](std::vector<TargetTable> tables) {
    return problem_of([&] { TargetSource(*pictures_, std::move(tables)); });
  };
  const auto shaped = [&](std::vector<int64_t> shape) {
    return made({{.column = {"a", TargetType::uint8, std::move(shape)}, .values = {}}});
  };
  std::vector<TargetTable> tables = tables_.tables();
  tables[0].values = tables[0].values.subspan(4);
  EXPECT_EQ(made(tables),
            "target 'boxes': float32 (2, 2) has 332 bytes of values, must be 16 for each of 21 "
            "samples");
  EXPECT_EQ(made({tables_.tables()[1], tables_.tables()[1]}),
            "there are two targets with the name 'score'");
  EXPECT_EQ(problem_of([&] { TargetSource(source_, tables_.tables()); }),
            "there are two targets with the name 'boxes'");
  EXPECT_EQ(made({{.column = {""}, .values = {}}}), "a target has no name");
  EXPECT_EQ(shaped({3, 0}),
            "target 'a' has the shape (3, 0): every extent must be 1 or more, and a sample may "
            "have 256 MiB");
  EXPECT_THAT(shaped({1 << 28, 2}), ::testing::HasSubstr("256 MiB"));
  EXPECT_THAT(shaped({int64_t{1} << 62, int64_t{1} << 62}), ::testing::HasSubstr("256 MiB"));
  EXPECT_THAT(shaped({1 << 28}), ::testing::HasSubstr("has 0 bytes of values, must be 268435456"));

  const TargetSource one(*pictures_, {tables_.tables()[0]});
  EXPECT_EQ(problem_of([&] {
              ConcatSource({&source_, &one});
            }),
            "ConcatSource: source 1 has the targets 'boxes': float32 (2, 2), not the targets "
            "'boxes': float32 (2, 2), 'score': int64 () as source 0");
  EXPECT_EQ(problem_of([&] {
              ConcatSource({&source_, pictures_.get()});
            }),
            "ConcatSource: source 1 has no targets, not the targets 'boxes': float32 (2, 2), "
            "'score': int64 () as source 0");
}

// ---- Targets that say where something is, and pixels that move

struct TargetPlace {
  const char* name;
  std::vector<int64_t> shape;
  const char* stages;
  bool warns;
};

TEST(UnmovedTargets, PlacesAreFoundByNameAndStagesByWhatTheyDraw) {
  const TargetPlace rows[] = {
      {"boxes", {4}, "random_resized_crop | flip", true},
      {"boxes", {5, 4}, "resize | flip(p=1)", true},
      {"annotations.faceBox_2", {4}, "resize | rotate(10)", true},
      {"keypoints", {17, 3}, "resize | vertical_flip", true},
      {"points", {6, 2}, "resize | affine(10)", true},
      {"mask", {8, 8}, "resize | random_augment", true},
      {"xmin", {}, "resize_center_crop", true},
      {"bbox", {4}, "views(resize | invert, resize | perspective, counts=(1, 1))", true},
      {"bbox", {4}, "resize | timm_auto_augment('rand-m9')", true},
      // The shape alone says nothing, nor a part of a word, nor a word without the numbers.
      {"scores", {4}, "random_resized_crop | flip", false},
      {"inbox", {4}, "random_resized_crop | flip", false},
      {"box", {}, "random_resized_crop | flip", false},
      {"points", {4}, "random_resized_crop | flip", false},
      {"mask", {40}, "random_resized_crop | flip", false},
      // Colours move nothing.
      {"boxes", {4}, "resize | color_jitter(0.4, 0.4, 0.4) | grayscale | pillow_blur", false},
  };
  for (const TargetPlace& row : rows) {
    SCOPED_TRACE(std::string(row.name) + ": " + row.stages);
    const auto pictures = jpeg_source(3);
    TargetColumn column{row.name, TargetType::float32, row.shape};
    const std::vector<float> values(3 * static_cast<size_t>(column.numbers()), 0.5F);
    const TargetSource source(*pictures,
                              {{.column = column, .values = std::as_bytes(std::span(values))}});
    const std::string text = unmoved_targets(source, AugmentSpec(row.stages, {24, 24}));
    EXPECT_EQ(!text.empty(), row.warns) << text;
    EXPECT_EQ(text.find(column.describe()) != std::string::npos, row.warns) << text;
  }
}

// Places that are relative to the whole image stay right where it is only resized.
TEST(UnmovedTargets, AResizeAloneMovesPlacesInPixels) {
  const auto pictures = jpeg_source(3);
  std::vector<float> values(3 * 4, 1);
  const std::vector<TargetTable> tables = {
      {.column = {"bbox", TargetType::float32, {4}}, .values = std::as_bytes(std::span(values))}};
  EXPECT_EQ(unmoved_targets(TargetSource(*pictures, tables), AugmentSpec("resize", {24, 24})), "");
  values[9] = 30;
  EXPECT_EQ(unmoved_targets(TargetSource(*pictures, tables), AugmentSpec("resize", {24, 24})),
            "the target 'bbox': float32 (4) seems to say where something is in the picture, and "
            "resize moves the pixels: targets stay as they are in the data, and are wrong for such "
            "rows");
  // Raw pixels of the rows' own size.
  const auto raw = make_synthetic_source(3, {16, 16}, 3, 1);
  EXPECT_EQ(unmoved_targets(TargetSource(*raw, tables), AugmentSpec("resize", {16, 16})), "");
}

}  // namespace
}  // namespace stoker::testing
