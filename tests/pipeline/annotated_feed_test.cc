// Annotations through a whole feed: they are where the pixels are, for any batch, devices
// and threads; bad annotations are bad samples; there is room for some objects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "pipeline/files/durable_file.h"
#include "pipeline/source/concat_source.h"
#include "pipeline/source/subset_source.h"
#include "tests/pipeline/painted_source.h"
#include "tests/support/tar_maker.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

constexpr Size kPaintedRow{40, 32};

LoaderOptions annotated_options() {
  LoaderOptions options;
  options.batch_size = 4;
  options.seed = 5;
  options.annotations = {.max_objects = 6, .masks = RowMasks::bytes};
  return options;
}

const char* const kPaintedMoves = "random_crop((30, 38)) | flip | vertical_flip | pad((1, 1))";

// Where a colour is in a row: x0, y0, x1, y1; empty: nowhere.
std::vector<float> painted_box(const AnnotatedRow& row, int64_t colour) {
  float x0 = 1e9f, y0 = 1e9f, x1 = -1, y1 = -1;
  for (int y = 0; y < kPaintedRow.height; ++y) {
    for (int x = 0; x < kPaintedRow.width; ++x) {
      if (row.pixels[static_cast<size_t>(3 * (y * kPaintedRow.width + x))] != colour) continue;
      x0 = std::min(x0, static_cast<float>(x)), x1 = std::max(x1, static_cast<float>(x + 1));
      y0 = std::min(y0, static_cast<float>(y)), y1 = std::max(y1, static_cast<float>(y + 1));
    }
  }
  if (x1 < 0) return {};
  return {x0, y0, x1, y1};
}

TEST(AnnotatedFeed, OnlyTheLastPaddingIsNotThePicture) {
  const FakeSource files = pictures();
  const PaintedSource source(files);
  const char* const twice = "random_crop((28, 37)) | pad((1, 2, 0, 0)) | pad((1, 1))";
  Feed feed(source, AugmentSpec(twice, kPaintedRow), annotated_options());
  for (const auto& [id, row] : rows_of(feed)) {
    EXPECT_THAT(row.picture_box, ::testing::ElementsAre(1, 1, 39, 31)) << id;
  }
}

TEST(AnnotatedFeed, BoxesAndMasksAreWhereThePixelsAre) {
  const FakeSource files = pictures();
  const PaintedSource source(files);
  Feed feed(source, AugmentSpec(kPaintedMoves, kPaintedRow), annotated_options());
  const Rows rows = rows_of(feed);
  ASSERT_EQ(rows.size(), size_t{kPictures});
  int seen = 0;
  for (const auto& [id, row] : rows) {
    const auto objects = objects_of(id);
    ASSERT_EQ(row.count, std::ssize(objects)) << id;
    EXPECT_EQ(row.note.objects, row.count);
    EXPECT_THAT(row.picture_box, ::testing::ElementsAre(1, 1, 39, 31));
    for (size_t i = 0; i < objects.size(); ++i) {
      EXPECT_EQ(row.labels[i], objects[i].colour);
      EXPECT_EQ(row.ids[i], 1000 * id + static_cast<int64_t>(i));
      EXPECT_EQ(row.crowd[i], i == 2);
      EXPECT_EQ(row.area[i], static_cast<float>(objects[i].box.width * objects[i].box.height));
      const std::vector<float> painted = painted_box(row, objects[i].colour);
      const std::vector<float> box(row.boxes.begin() + 4 * i, row.boxes.begin() + 4 * i + 4);
      if (!painted.empty()) {
        EXPECT_EQ(box, painted) << id << " " << i;
      }
      for (size_t p = 0; p < size_t{kPaintedRow.width} * kPaintedRow.height; ++p) {
        const uint8_t mask = row.masks[i * size_t{kPaintedRow.width} * kPaintedRow.height + p];
        ASSERT_EQ(mask, row.pixels[3 * p] == objects[i].colour) << id << " " << i << " " << p;
        seen += mask;
      }
    }
    for (size_t i = objects.size(); i < row.labels.size(); ++i) {
      EXPECT_EQ(row.labels[i], -1);
      EXPECT_EQ(row.boxes[4 * i + 2], 0);
    }
  }
  EXPECT_GT(seen, 1000);
}

// A point that is inside the row is one pixel inside its object's corner there.
TEST(AnnotatedFeed, KeypointsAreWhereThePixelsAre) {
  const FakeSource files = pictures();
  const PaintedSource source(files);
  Feed feed(source, AugmentSpec(kPaintedMoves, kPaintedRow), annotated_options());
  int visible = 0, hidden = 0;
  for (const auto& [id, row] : rows_of(feed)) {
    for (int i = 0; i < 2 * row.count; ++i) {
      const float x = row.keypoints[static_cast<size_t>(3 * i)],
                  y = row.keypoints[static_cast<size_t>(3 * i + 1)];
      if (row.keypoints[static_cast<size_t>(3 * i + 2)] == 0) {
        ++hidden;
        continue;
      }
      ++visible;
      const int at = static_cast<int>(y) * kPaintedRow.width + static_cast<int>(x);
      const int before = at - 1 - kPaintedRow.width;  // the pixel on the other side of the point
      const int64_t colour = row.labels[static_cast<size_t>(i / 2)];
      EXPECT_TRUE(row.pixels[static_cast<size_t>(3 * at)] == colour ||
                  row.pixels[static_cast<size_t>(3 * before)] == colour)
          << id << " " << i << " " << x << " " << y;
    }
  }
  EXPECT_GT(visible, 20);
  EXPECT_GT(hidden, 5);
}

void expect_same_rows(const Rows& a, const Rows& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [id, row] : a) {
    const AnnotatedRow& other = b.at(id);
    EXPECT_EQ(row.pixels, other.pixels) << id;
    EXPECT_EQ(row.boxes, other.boxes) << id;
    EXPECT_EQ(row.labels, other.labels) << id;
    EXPECT_EQ(row.keypoints, other.keypoints) << id;
    EXPECT_EQ(row.masks, other.masks) << id;
    EXPECT_EQ(row.ids, other.ids) << id;
    EXPECT_EQ(row.area, other.area) << id;
    EXPECT_EQ(row.crowd, other.crowd) << id;
    EXPECT_EQ(row.picture_box, other.picture_box) << id;
  }
}

TEST(AnnotatedFeed, RowsAreTheSameForAnyBatchAndThreads) {
  const FakeSource files = pictures();
  const PaintedSource source(files);
  const AugmentSpec augment("random_crop((30, 38)) | affine(20, translate=0.1) | flip", {38, 30});
  LoaderOptions options = annotated_options();
  const AugmentSpec moves(kPaintedMoves, kPaintedRow);
  Feed one(source, moves, options);
  const Rows expected = rows_of(one);
  options.batch_size = 3;
  options.feed.workers = 3;
  Feed other(source, moves, options);
  expect_same_rows(rows_of(other), expected);
  options.feed.workers = 0;
  Feed inline_feed(source, moves, options);
  expect_same_rows(rows_of(inline_feed), expected);
}

// A tar with the pictures and, as JSON, what PaintedSource says of them.
std::string tar_of_pictures(SampleId broken) {
  std::string tar;
  for (int id = 0; id < kPictures; ++id) {
    const auto objects = objects_of(id);
    std::string json;
    for (size_t i = 0; i < objects.size(); ++i) {
      const auto [x, y, width, height] = objects[i].box;
      const std::string x0 = std::to_string(x), y0 = std::to_string(y),
                        x1 = std::to_string(x + width), y1 = std::to_string(y + height);
      json += (i == 0 ? R"({"id": )" : R"(, {"id": )") + std::to_string(1000 * id + i) +
              R"(, "category_id": )" + std::to_string(id == broken ? -1 : objects[i].colour) +
              R"(, "iscrowd": )" + (i == 2 ? "1" : "0") + R"(, "bbox": [)" + x0 + ", " + y0 + ", " +
              std::to_string(width) + ", " + std::to_string(height) + R"(], "segmentation": [[)" +
              x0 + ", " + y0 + ", " + x1 + ", " + y0 + ", " + x1 + ", " + y1 + ", " + x0 + ", " +
              y1 + R"(]], "keypoints": [)" + std::to_string(x + 1) + ", " + std::to_string(y + 1) +
              ", 2, " + std::to_string(x + width - 1) + ", " + std::to_string(y + height - 1) +
              ", 1]}";
    }
    const std::vector<uint8_t> picture = picture_of(Painting{}, id);
    tar += tar_member(std::to_string(id) + ".ppm", std::string(picture.begin(), picture.end()));
    tar += tar_member(std::to_string(id) + ".json", "[" + json + "]");
  }
  return tar + tar_end();
}

TEST(AnnotatedFeed, ObjectsInRecordsMakeTheSameRows) {
  const FakeSource files = pictures();
  const PaintedSource painted(files);
  const AugmentSpec moves(kPaintedMoves, kPaintedRow);
  LoaderOptions options = annotated_options();
  Feed expected(painted, moves, options);
  const TempFolder folder;
  const auto open = [&](SampleId broken) {
    return open_source(folder.write("x.tar", tar_of_pictures(broken)),
                       {.objects_from = "json", .cache_dir = ""});
  };
  {
    const auto source = open(-1);
    Feed feed(*source, moves, options);
    expect_same_rows(rows_of(feed), rows_of(expected));
  }
  const auto source = open(9);
  options.feed.max_bad = 1;
  options.quarantine_file = folder.path() + "/quarantine.jsonl";
  Feed feed(*source, moves, options);
  const Rows rows = rows_of(feed);
  EXPECT_EQ(rows.at(9).weight, 0);
  EXPECT_EQ(feed.loader().stats().bad_samples, 1);
  const std::string listed = read_whole_file(options.quarantine_file);
  EXPECT_THAT(listed, ::testing::HasSubstr("x.tar/9.ppm"));
  EXPECT_THAT(listed, ::testing::HasSubstr("object 0 (id 9000): the class is -1"));
}

TEST(AnnotatedFeed, RanksHaveTheRowsOfOne) {
  const FakeSource files = pictures();
  const PaintedSource source(files);
  const AugmentSpec moves(kPaintedMoves, kPaintedRow);
  LoaderOptions options = annotated_options();
  Feed whole(source, moves, options);
  const Rows expected = rows_of(whole);
  options.world = 2;
  Rows together;
  for (options.rank = 0; options.rank < options.world; ++options.rank) {
    Feed part(source, moves, options);
    const Rows rows = rows_of(part);
    EXPECT_LT(rows.size(), size_t{kPictures} - 5);
    together.insert(rows.begin(), rows.end());
  }
  expect_same_rows(together, expected);
}

TEST(AnnotatedFeed, AResumedFeedGoesOnWithTheSameRows) {
  const FakeSource files = pictures();
  const PaintedSource source(files);
  const AugmentSpec moves(kPaintedMoves, kPaintedRow);
  LoaderOptions options = annotated_options();
  Feed whole(source, moves, options);
  Rows expected = rows_of(whole);
  Feed begun(source, moves, options);
  Delivered batch;
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(begun.next(0, batch, [&](const DeviceBatch& leased) {
      for (int row = 0; row < leased.shape().rows; ++row) expected.erase(leased.ids()[row]);
    }));
  }
  ASSERT_EQ(std::ssize(expected), kPictures - 3 * 4);
  options.first_step = Loader::resume_step(begun.loader().state(), begun.loader());
  Feed resumed(source, moves, options);
  expect_same_rows(rows_of(resumed), expected);
}

TEST(AnnotatedFeed, ABrokenAnnotationIsABadSample) {
  const FakeSource files = pictures();
  PaintedSource source(files);
  source.broken[3] = "object 17: the box is nothing";
  source.sizes[8] = {640, 480};
  LoaderOptions options = annotated_options();
  options.feed.max_bad = 5;
  Feed feed(source, AugmentSpec(kPaintedMoves, kPaintedRow), options);
  const Rows rows = rows_of(feed);
  EXPECT_EQ(feed.loader().stats().bad_samples, 2);
  for (const SampleId id : {3, 8}) {
    const AnnotatedRow& row = rows.at(id);
    EXPECT_EQ(row.weight, 0);
    ASSERT_TRUE(row.note.bad);
    // It has the objects of the picture that it shows.
    ASSERT_GE(row.note.pixels_of, 0);
    ASSERT_EQ(row.count, std::ssize(objects_of(row.note.pixels_of)));
    EXPECT_EQ(row.ids[0] / 1000, row.note.pixels_of);
  }
  options.feed.on_bad_sample = OnBadSample::fail;
  Feed failing(source, AugmentSpec(kPaintedMoves, kPaintedRow), options);
  const std::string text = message_of([&] { rows_of(failing); });
  EXPECT_THAT(text,
              ::testing::AnyOf(::testing::HasSubstr("fake/3"), ::testing::HasSubstr("fake/8")));
  EXPECT_THAT(text, ::testing::AnyOf(::testing::HasSubstr("object 17: the box is nothing"),
                                     ::testing::HasSubstr("640 x 480")));
}

TEST(AnnotatedFeed, ARowWithoutAPictureHasNoObjects) {
  const FakeSource files = pictures();
  PaintedSource source(files);
  LoaderOptions options = annotated_options();
  options.feed.max_bad = 3 * kPictures;
  options.epochs = 2;
  options.shuffle = false;
  options.ring_depth = 1;
  options.feed.workers = 0;
  Feed feed(source, AugmentSpec(kPaintedMoves, kPaintedRow), options);
  Delivered batch;
  bool is_broken = false;
  const auto look = [&](const DeviceBatch& leased) {
    if (!is_broken) return;
    for (int row = 0; row < leased.shape().rows; ++row) {
      EXPECT_EQ(row_notes(leased)[row].pixels_of, -1);
      EXPECT_EQ(row_notes(leased)[row].objects, 0);
      EXPECT_EQ(values_of<int32_t>(feed.loader(), leased, "object_count", row)[0], 0);
      EXPECT_EQ(values_of<int64_t>(feed.loader(), leased, "labels", row)[0], -1);
    }
  };
  ASSERT_TRUE(feed.next(0, batch, look));  // the slab has objects now
  source.has_bad_masks = true;
  is_broken = true;
  ASSERT_TRUE(feed.next(0, batch, look));
}

TEST(AnnotatedFeed, TheLargestObjectsHaveRoom) {
  const FakeSource files = pictures();
  PaintedSource source(files);
  source.is_reversed = true;
  LoaderOptions options = annotated_options();
  options.annotations.max_objects = 2;
  Feed feed(source, AugmentSpec("resize((32, 40))", kPaintedRow), options);
  const Rows rows = rows_of(feed);
  int64_t full = 0, left_out = 0;
  for (const auto& [id, row] : rows) {
    const auto all = std::ssize(objects_of(id));
    EXPECT_EQ(row.count, std::min<int64_t>(all, 2));
    full += all > 2;
    left_out += std::max<int64_t>(all - 2, 0);
    // Those below are smaller, and the order is that of the data.
    if (all > 2) {
      EXPECT_THAT(row.labels, ::testing::ElementsAre(100, 50)) << id;
    }
  }
  // The last batch has a row that comes twice.
  EXPECT_GE(feed.loader().stats().full_rows, full);
  EXPECT_GE(feed.loader().stats().objects_left_out, left_out);
  EXPECT_LE(feed.loader().stats().full_rows, full + 1);

  options.annotations.too_many = TooManyObjects::fail;
  options.feed.max_bad = kPictures;
  Feed failing(source, AugmentSpec("resize((32, 40))", kPaintedRow), options);
  rows_of(failing);
  EXPECT_EQ(failing.loader().stats().bad_samples, full);
}

TEST(AnnotatedFeed, PackedObjectsAreThoseOfTheRows) {
  const FakeSource files = pictures();
  const PaintedSource source(files);
  LoaderOptions options = annotated_options();
  options.annotations.packed = true;
  Feed feed(source, AugmentSpec(kPaintedMoves, kPaintedRow), options);
  const Loader& loader = feed.loader();
  Delivered batch;
  int objects = 0;
  const auto look = [&](const DeviceBatch& leased) {
    std::vector<float> packed, padded;
    int expected = 0;
    for (int row = 0; row < leased.shape().rows; ++row) {
      const int count = values_of<int32_t>(loader, leased, "object_count", row)[0];
      EXPECT_EQ(values_of<int32_t>(loader, leased, "object_offsets", row)[0], expected);
      expected += count;
      const auto boxes = values_of<float>(loader, leased, "boxes", row);
      padded.insert(padded.end(), boxes.begin(), boxes.begin() + 4 * count);
      const auto some = values_of<float>(loader, leased, "packed_boxes", row);
      packed.insert(packed.end(), some.begin(), some.end());
    }
    objects += expected;
    packed.resize(static_cast<size_t>(4 * expected));
    EXPECT_EQ(packed, padded);
  };
  while (feed.next(0, batch, look)) {
  }
  EXPECT_GT(objects, kPictures);
}

// Rows that another process has made come with what lies on them.
TEST(AnnotatedFeed, SharedRowsHaveTheirObjects) {
  const FakeSource files = pictures();
  const PaintedSource source(files);
  const AugmentSpec moves(kPaintedMoves, kPaintedRow);
  LoaderOptions options = annotated_options();
  options.annotations.packed = true;
  Feed alone(source, moves, options);
  const Rows expected = rows_of(alone);
  options.share.name = "annotated_feed_test_" + std::to_string(::getpid());
  Feed first(source, moves, options), second(source, moves, options);
  expect_same_rows(rows_of(first), expected);
  expect_same_rows(rows_of(second), expected);
  EXPECT_GT(second.loader().stats().share.taken + first.loader().stats().share.taken, 0);
}

TEST(AnnotatedFeed, WhatCannotMoveIsRefused) {
  const FakeSource files = pictures();
  const PaintedSource source(files);
  const auto refused = [&](const std::string& stages, const LoaderOptions& options) {
    return message_of([&] { Feed feed(source, AugmentSpec(stages, kPaintedRow), options); });
  };
  LoaderOptions options = annotated_options();
  EXPECT_THAT(refused("resize_center_crop | aug_mix", options),
              ::testing::HasSubstr("blend_begin cannot move what the samples carry: objects"));
  EXPECT_THAT(refused("random_iou_crop | resize((32, 40)) | aug_mix", options),
              ::testing::HasSubstr("blend_begin cannot move what the samples carry"));
  EXPECT_THAT(refused("resize((30, 38)) | pad(1, mode='reflect')", options),
              ::testing::HasSubstr("pad cannot move what the samples carry"));
  EXPECT_THAT(refused("resize_center_crop | mix(mixup=0.2)", options),
              ::testing::HasSubstr("have one view and are not mixed"));
  EXPECT_THAT(refused("views(random_resized_crop, random_resized_crop)", options),
              ::testing::HasSubstr("have one view"));
  options.annotations.max_objects = 0;
  EXPECT_THAT(refused("resize_center_crop", options),
              ::testing::HasSubstr("annotations.max_objects is 0, must be 1 to 65536"));
  options = annotated_options();
  options.annotations.box_format = BoxFormat::cxcywhr;
  EXPECT_THAT(refused("resize_center_crop", options),
              ::testing::HasSubstr("is for rotated boxes, and those of the samples are upright"));
  AugmentSpec own("resize_center_crop", kPaintedRow);
  own.add({.name = "mine", .apply = [](MutableImageView, const RandomKey&) {}});
  EXPECT_THROW(Feed(source, own, annotated_options()), std::invalid_argument);
  AugmentSpec still("resize_center_crop", kPaintedRow);
  still.add({.name = "mine", .apply = [](MutableImageView, const RandomKey&) {}, .moves = false});
  EXPECT_NO_THROW(Feed(source, still, annotated_options()));
}

// Pictures that carry a label image and nothing else.
class LabelledSource final : public ForwardingSource {
 public:
  explicit LabelledSource(const Source& source) : ForwardingSource(source), info_(source.info()) {
    info_.annotations = {.label_image = true};
  }
  const SourceInfo& info() const override { return info_; }

 private:
  SourceInfo info_;
};

TEST(AnnotatedFeed, StagesThatNeedBoxesAreRefusedForLabelImages) {
  const FakeSource files = pictures();
  const LabelledSource source(files);
  LoaderOptions options = annotated_options();
  options.annotations.masks = RowMasks::none;
  const auto refused = [&](const std::string& stages) {
    return message_of([&] { Feed feed(source, AugmentSpec(stages, kPaintedRow), options); });
  };
  const char* const kProblem =
      "LoaderOptions: annotations: random_iou_crop: the data have no boxes, but label images";
  EXPECT_THAT(refused("random_iou_crop | resize((32, 40))"), ::testing::HasSubstr(kProblem));
  EXPECT_THAT(refused("random_apply(random_iou_crop, p=0.1) | resize((32, 40))"),
              ::testing::HasSubstr(kProblem));
  // A list that fails on the example images with and without boxes is another matter.
  EXPECT_EQ(refused("trim_border(300) | resize((32, 40))"), "nothing was thrown");
}

TEST(AnnotatedFeed, ViewsOfSourcesHaveTheirAnnotations) {
  const FakeSource files = pictures();
  const PaintedSource source(files);
  const SubsetSource some(source, std::vector<SampleId>{7, 2});
  const ConcatSource both({&some, &source});
  EXPECT_NE(some.annotations().digest, source.annotations().digest);
  EXPECT_NE(both.annotations().digest, source.annotations().digest);
  Annotations read;
  ASSERT_TRUE(both.read_annotations(1, {}, read).ok);
  EXPECT_EQ(read.objects.at(0).id, 2000);
  ASSERT_TRUE(both.read_annotations(2 + 5, {}, read).ok);
  EXPECT_EQ(read.objects.at(0).id, 5000);
  const std::vector<const Source*> differ = {&source, &files};
  EXPECT_THAT(message_of([&] { const ConcatSource joined(differ); }),
              ::testing::HasSubstr("no annotations, not objects of 0 classes, with masks"));
}

TEST(AnnotatedFeed, DigestsAndFingerprintsCoverObjects) {
  const FakeSource files = pictures();
  const PaintedSource source(files);
  LoaderOptions options = annotated_options();
  options.digests = true;
  Feed feed(source, AugmentSpec(kPaintedMoves, kPaintedRow), options);
  Feed plain(files, AugmentSpec(kPaintedMoves, kPaintedRow), options);
  EXPECT_NE(feed.loader().fingerprint(), plain.loader().fingerprint());
  const Rows rows = rows_of(feed);
  options.annotations.masks = RowMasks::bits;
  Feed bits(source, AugmentSpec(kPaintedMoves, kPaintedRow), options);
  EXPECT_NE(bits.loader().fingerprint(), feed.loader().fingerprint());
  const uint64_t digest = rows.begin()->second.note.digest;
  EXPECT_NE(rows_of(bits).begin()->second.note.digest, digest);
}

}  // namespace
}  // namespace stoker::testing
