#include "pipeline/source/label_image_source.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "pipeline/source/annotated_source.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

std::unique_ptr<Source> folder_source(const TempFolder& folder) {
  return open_source(folder.path(), SourceOptions{.cache_dir = ""});
}

std::string text_of_label(const Annotations& annotations) {
  return {annotations.label_file.begin(), annotations.label_file.end()};
}

TEST(LabelImageSource, GivesThemBesideTheObjects) {
  const TempFolder pictures, labels;
  for (const char* name : {"a/1.jpg", "a/2.jpg"}) pictures.write(name, "picture");
  labels.write("a/1.png", "first");
  const std::string second = labels.write("a/2.png", "second");
  const auto plain = folder_source(pictures), label_images = folder_source(labels);
  AnnotationSetBuilder builder({.objects = true});
  Annotations given;
  given.objects = {{.box = {1, 2, 3, 4}, .label = 5}};
  for (const char* name : {"1", "2"}) builder.add(name, given);
  const AnnotatedSource objects(*plain, {.set = builder.finish(), .pictures = {0, 1}});
  const LabelImageSource source(objects, *label_images), alone(*plain, *label_images);

  Annotations found;
  ASSERT_TRUE(source.read_annotations(1, {}, found).ok);
  EXPECT_EQ(found.objects.size(), 1U);
  EXPECT_EQ(text_of_label(found), "second");
  ASSERT_TRUE(alone.read_annotations(0, {}, found).ok);
  EXPECT_TRUE(found.objects.empty());
  EXPECT_EQ(text_of_label(found), "first");

  EXPECT_TRUE(source.annotations().objects && source.annotations().label_image);
  EXPECT_FALSE(alone.annotations().objects);
  EXPECT_NE(source.fingerprint(), objects.fingerprint());
  EXPECT_NE(source.annotations().digest, objects.annotations().digest);
  EXPECT_NE(source.annotations().digest, alone.annotations().digest);

  std::filesystem::remove(second);
  const ReadStatus status = source.read_annotations(1, {}, found);
  EXPECT_FALSE(status.ok);
  EXPECT_EQ(status.message.rfind("label image: ", 0), 0U) << status.message;
}

TEST(LabelImageSource, RefusesWhatDoesNotFit) {
  const TempFolder pictures, labels;
  pictures.write("a/1.jpg");
  labels.write("a/1.png");
  const auto plain = folder_source(pictures), one = folder_source(labels);
  const LabelImageSource source(*plain, *one);
  EXPECT_EQ(problem_of([&] { LabelImageSource(source, *one); }),
            "the samples have label images already");
  labels.write("a/2.png");
  const auto two = folder_source(labels);
  EXPECT_EQ(problem_of([&] { LabelImageSource(*plain, *two); }), "2 label images for 1 samples");
}

}  // namespace
}  // namespace stoker
