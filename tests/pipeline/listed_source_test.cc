#include "pipeline/source/listed_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/collected_samples.h"
#include "tests/support/source_contents.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

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
