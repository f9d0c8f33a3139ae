#include "staging/batch_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <stdexcept>

#include "tests/support/thrown.h"

namespace stoker {
namespace {

TEST(BatchLayout, PartsFollowEachOtherAlignedAndDoNotOverlap) {
  for (int rows : {1, 3, 64, 257}) {
    for (int notes : {0, 1, 100}) {
      BatchLayout layout({.rows = rows, .height = 5, .width = 9, .note_bytes_per_row = notes});
      size_t n = static_cast<size_t>(rows);
      EXPECT_EQ(layout.image_bytes(), 5U * 9 * 3);
      EXPECT_EQ(layout.images_offset(), 0U);
      EXPECT_GE(layout.labels_offset(), n * layout.image_bytes());
      EXPECT_GE(layout.weights_offset(), layout.labels_offset() + n * 4);
      EXPECT_GE(layout.device_bytes(), layout.weights_offset() + n * 4);
      EXPECT_GE(layout.ids_offset(), layout.device_bytes());
      EXPECT_GE(layout.notes_offset(), layout.ids_offset() + n * 8);
      EXPECT_GE(layout.header_offset(), layout.notes_offset() + n * static_cast<size_t>(notes));
      EXPECT_GE(layout.slab_bytes(), layout.header_offset() + sizeof(BatchHeader));
      for (size_t offset : {layout.labels_offset(), layout.weights_offset(), layout.device_bytes(),
                            layout.ids_offset(), layout.notes_offset(), layout.header_offset(),
                            layout.slab_bytes()}) {
        EXPECT_EQ(offset % BatchLayout::kAlignment, 0U);
      }
      EXPECT_LE(layout.slab_bytes(), n * (135 + 4 + 4 + 8 + static_cast<size_t>(notes)) +
                                         sizeof(BatchHeader) + 6 * BatchLayout::kAlignment);
    }
  }
}

TEST(BatchLayout, TargetsAreColumnsOfTheDevicePart) {
  const BatchLayout layout({.rows = 3, .height = 5, .width = 9, .target_bytes = {1, 400, 8}});
  const BatchLayout without({.rows = 3, .height = 5, .width = 9});
  EXPECT_EQ(layout.target_offset(0), without.device_bytes());
  EXPECT_EQ(layout.target_offset(1), layout.target_offset(0) + 256);
  EXPECT_EQ(layout.target_offset(2), layout.target_offset(1) + 1280);  // 3 * 400, aligned
  EXPECT_EQ(layout.device_bytes(), layout.target_offset(2) + 256);
  EXPECT_EQ(layout.ids_offset(), layout.device_bytes());
  EXPECT_EQ(layout.slab_bytes() - layout.ids_offset(), without.slab_bytes() - without.ids_offset());
  EXPECT_NE(layout.shape(), without.shape());
}

TEST(BatchLayout, TargetsOfTheHostComeBehindItsHeader) {
  const BatchLayout layout({.rows = 3,
                            .height = 5,
                            .width = 9,
                            .target_bytes = {100, 1, 400, 8},
                            .host_targets = {0, 2}});
  const BatchLayout without({.rows = 3, .height = 5, .width = 9, .target_bytes = {1, 8}});
  EXPECT_EQ(layout.device_bytes(), without.device_bytes());
  EXPECT_EQ(layout.target_offset(1), without.target_offset(0));
  EXPECT_EQ(layout.target_offset(3), without.target_offset(1));
  EXPECT_EQ(layout.header_offset(), without.header_offset());
  EXPECT_EQ(layout.target_offset(0), without.slab_bytes());
  EXPECT_EQ(layout.target_offset(2), layout.target_offset(0) + 512);  // 3 * 100, aligned
  EXPECT_EQ(layout.slab_bytes(), layout.target_offset(2) + 1280);     // 3 * 400, aligned
  EXPECT_FALSE(layout.is_on_host(1));
  EXPECT_TRUE(layout.is_on_host(2));
  EXPECT_THROW(BatchLayout({.rows = 1, .height = 1, .width = 1, .host_targets = {0}}),
               std::invalid_argument);
}

TEST(BatchLayout, EditsComeBehindTheTargets) {
  const BatchShape shape{.rows = 5, .height = 5, .width = 9, .target_bytes = {8}};
  BatchShape edited = shape;
  edited.edits = true;
  const BatchLayout layout(edited), without(shape);
  EXPECT_EQ(layout.edits_offset(), without.device_bytes());
  EXPECT_EQ(layout.device_bytes(), layout.edits_offset() + 512);  // 5 * 64, aligned
  EXPECT_EQ(layout.ids_offset(), layout.device_bytes());
  EXPECT_NE(layout.shape(), without.shape());
}

void expect_rejected(const BatchShape& shape, const char* number) {
  EXPECT_THAT(thrown_by<std::invalid_argument>([&] { BatchLayout layout(shape); }),
              ::testing::HasSubstr(number));
}

TEST(BatchLayout, NonsenseIsRejectedWithTheNumbers) {
  expect_rejected({.rows = 0, .height = 4, .width = 4}, "0 rows");
  expect_rejected({.rows = 2, .height = -7, .width = 4}, "-7 x 4");
  expect_rejected({.rows = 2, .height = 4, .width = 0}, "4 x 0");
  expect_rejected({.rows = 2, .height = 4, .width = 4, .note_bytes_per_row = -1}, "-1 note");
  expect_rejected({.rows = 2, .height = 4, .width = 4, .target_bytes = {8, 0}},
                  "a target of 0 bytes per row");
  expect_rejected({.rows = 1 << 20, .height = 4, .width = 4, .target_bytes = {1 << 28}}, "1 TiB");
  expect_rejected({.rows = INT_MAX, .height = INT_MAX, .width = INT_MAX}, "1 TiB");
  expect_rejected({.rows = 1 << 20, .height = 1024, .width = 1024}, "1 TiB");
}

}  // namespace
}  // namespace stoker
