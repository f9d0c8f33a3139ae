// Samples find their annotations: by name, in folders and in shards, and what has no partner is
// left out and said.
#include "pipeline/source/annotated_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/files/invalid_field.h"
#include "pipeline/source/annotated/match_pictures.h"
#include "pipeline/source/sample_checker.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/decode/png_maker.h"
#include "tests/support/same_annotations.h"
#include "tests/support/tar_maker.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SharedAnnotations set_of_names(const std::vector<std::string>& names) {
  AnnotationSetBuilder builder({.objects = true});
  for (const std::string& name : names) builder.add(name, {});
  return builder.finish();
}

std::vector<int64_t> matches(const std::vector<std::string>& pictures,
                             const std::vector<std::string>& samples) {
  return match_pictures(*set_of_names(pictures), samples);
}

// COCO's JSON of pictures of 6 x 5 pixels; picture i has one object, with the id 100 + i.
std::string coco_of(const std::vector<std::string>& names) {
  std::string images, objects;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string comma = i == 0 ? "" : ",", id = std::to_string(i);
    images += comma + R"({"width": 6, "height": 5, "file_name": ")" + names[i] + R"(", "id": )" +
              id + "}";
    objects += comma + R"({"bbox": [1, 2, 3, 2], "category_id": 1, "image_id": )" + id +
               R"(, "id": )" + std::to_string(100 + i) + "}";
  }
  return R"({"categories": [{"id": 1, "name": "cat"}], "images": [)" + images +
         R"(], "annotations": [)" + objects + "]}";
}

// "NAME: the ids of its objects" of each sample.
std::vector<std::string> ids_of(const Source& source) {
  std::vector<std::string> texts;
  Annotations found;
  for (SampleId id = 0; id < source.size(); ++id) {
    std::string text = source.name(id) + ":";
    const ReadStatus status = source.read_annotations(id, {}, found);
    if (!status.ok) text += " " + status.message;
    for (const AnnotatedObject& object : found.objects) text += " " + std::to_string(object.id);
    texts.push_back(text);
  }
  return texts;
}

std::vector<std::string> note_texts(const Source& source) {
  std::vector<std::string> texts;
  for (const SourceNote& note : source.notes()) texts.push_back(note.reason + ": " + note.message);
  return texts;
}

class AnnotatedData : public ::testing::Test {
 protected:
  std::unique_ptr<Source> open(const std::string& data, const std::string& objects,
                               Split split = Split::all) const {
    return open_source(data, {.split = split, .objects = objects, .cache_dir = ""});
  }

  void write_picture(const std::string& name, const std::vector<uint8_t>& bytes) const {
    folder_.write(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  const TempFolder folder_;
};

TEST(MatchPictures, TakesTheLongestCommonPath) {
  EXPECT_THAT(matches({"1.jpg", "2.jpg"}, {"2.jpg", "1.jpg", "3.jpg"}), ElementsAre(1, 0, -1));
  EXPECT_THAT(matches({"1.jpg"}, {"a/b/1.jpg"}), ElementsAre(0));
  EXPECT_THAT(matches({"a/b/1.jpg"}, {"1.jpg"}), ElementsAre(0));
  EXPECT_THAT(matches({"a/1", "b/1"}, {"b/1.jpg", "x/a/1.png"}), ElementsAre(1, 0));
  EXPECT_THAT(matches({"a/1.jpg"}, {"1.png"}), ElementsAre(0));
  EXPECT_THAT(matches({"a/1.jpg", "1.jpg"}, {"x/1.jpg", "x/a/1.jpg"}), ElementsAre(1, 0));
  EXPECT_THAT(matches({"1.jpg", "1.png"}, {"1.png"}), ElementsAre(1));
  EXPECT_THAT(matches({"a/1.jpg", "1.jpg"}, {"b/a/1"}), ElementsAre(0));
  EXPECT_THAT(matches({"1.jpg", "a/1.jpg"}, {"b/a/1"}), ElementsAre(1));
  // Other folders, a part of a name, a dot of a folder.
  EXPECT_THAT(matches({"a/1.jpg"}, {"b/1.jpg", "11.jpg", "a.b/2"}), ElementsAre(-1, -1, -1));
  EXPECT_THAT(matches({"xa/1.jpg"}, {"a/1.jpg", "a/1.png"}), ElementsAre(-1, -1));
  EXPECT_THAT(matches({"shelf.2.top"}, {"a/shelf.2.top.jpg"}), ElementsAre(0));
  EXPECT_THAT(matches({".jpg"}, {"x/.jpg"}), ElementsAre(0));
}

TEST(MatchPictures, SaysWhereNamesDoNotTell) {
  EXPECT_EQ(message_of([] {
              matches({"a/1.jpg", "b/1.jpg"}, {"1.jpg"});
            }),
            "the picture 1.jpg may be a/1.jpg or b/1.jpg of the annotations");
  EXPECT_EQ(message_of([] {
              matches({"1.jpg"}, {"a/1.jpg", "b/1.jpg"});
            }),
            "both a/1.jpg and b/1.jpg are the picture 1.jpg of the annotations");
}

TEST_F(AnnotatedData, AFolderHasThePicturesInTheOrderOfTheAnnotations) {
  for (const char* name : {"a.jpg", "b.jpg", "c.jpg"})
    folder_.write("images/" + std::string(name), name);
  const std::string json = folder_.write("instances.json", coco_of({"c.jpg", "a.jpg", "b.jpg"}));
  const auto source = open(folder_.path() + "/images", json);
  EXPECT_THAT(ids_of(*source), ElementsAre("c.jpg: 100", "a.jpg: 101", "b.jpg: 102"));
  EXPECT_TRUE(source->notes().empty());
  EXPECT_TRUE(source->annotations().objects);
  EXPECT_EQ(source->annotations().class_names, (std::vector<std::string>{"", "cat"}));
  EXPECT_EQ(source->label(2), 0);
  EXPECT_TRUE(source->class_names().empty());
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  ASSERT_TRUE(source->read(1, buffer, bytes).ok);
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "a.jpg");
}

TEST_F(AnnotatedData, SaysWhatIsLeftOut) {
  folder_.write("images/a.jpg");
  folder_.write("images/more/b.jpg");
  folder_.write("images/more/extra.jpg");
  folder_.write("images/more/extra.txt");
  const std::string json =
      folder_.write("i.json", coco_of({"gone.jpg", "more/b.jpg", "a.jpg", "gone_too.jpg"}));
  const auto source = open(folder_.path() + "/images", json);
  EXPECT_THAT(ids_of(*source), ElementsAre("more/b.jpg: 101", "a.jpg: 102"));
  EXPECT_THAT(note_texts(*source),
              ElementsAre("not_annotated: 1 picture has no annotation and is left out, as "
                          "more/extra.jpg",
                          "no_picture: 2 pictures have an annotation, but no file and are left "
                          "out, as gone.jpg"));
}

TEST_F(AnnotatedData, RefusesAFolderOfOtherPictures) {
  folder_.write("images/a.jpg");
  const std::string json = folder_.write("i.json", coco_of({"b.jpg"}));
  const std::string images = folder_.path() + "/images";
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { open(images, json); }),
            images + ": none of 1 pictures is one of 1 in " + json +
                "; the first is a.jpg, theirs is b.jpg");
}

TEST_F(AnnotatedData, TakesThePartOfTheSplit) {
  folder_.write("images/train/1.jpg");
  folder_.write("images/val/1.jpg");
  const std::string json = folder_.write("i.json", coco_of({"1.jpg"}));
  const std::string images = folder_.path() + "/images";
  EXPECT_THAT(ids_of(*open(images, json, Split::test)), ElementsAre("1.jpg: 100"));
  EXPECT_THAT(message_of([&] { open(images, json); }), HasSubstr("both train/1.jpg and val/1.jpg"));
}

TEST_F(AnnotatedData, ShardsKeepTheirOrder) {
  folder_.write("data/train-0.tar", tar_member("b.jpg", "x") + tar_member("none.jpg", "x") +
                                        tar_member("x/a.jpg", "x") + tar_end());
  const std::string json =
      folder_.write("i.json", coco_of({"folder/x/a.jpg", "b.png", "gone.jpg"}));
  const auto source = open(folder_.path() + "/data", json);
  EXPECT_THAT(ids_of(*source), ElementsAre("train-0.tar/b.jpg: 101", "train-0.tar/x/a.jpg: 100"));
  EXPECT_EQ(source->notes().size(), 2);
  EXPECT_EQ(source->label(1), 0);
}

TEST_F(AnnotatedData, NamesTheFileOfABrokenAnnotation) {
  folder_.write("images/a.jpg");
  std::string text = coco_of({"a.jpg"});
  text.replace(text.find("[1, 2, 3, 2]"), 12, "[1, 2, 3, -2]");
  const std::string json = folder_.write("i.json", text);
  EXPECT_THAT(ids_of(*open(folder_.path() + "/images", json)),
              ElementsAre("a.jpg: " + json +
                          ": object 0 (id 100): the box has a negative height: (1, 2, 4, 0) 100"));
}

TEST_F(AnnotatedData, RefusesObjectsAsAnOption) {
  folder_.write("images/a.jpg");
  const std::string json = folder_.write("i.json", "{");
  EXPECT_EQ(thrown_by<InvalidField>([&] { open(folder_.path() + "/images", json); }),
            "SourceOptions: objects: " + json + ": byte 1: the text ends too soon");
  EXPECT_EQ(thrown_by<InvalidField>([&] {
              open_source(folder_.path() + "/images", {.image_from = "x", .objects = json});
            }),
            "SourceOptions: image_from is \"x\", and " + folder_.path() +
                "/images is a folder of pictures, which has no such choice");
}

TEST_F(AnnotatedData, FingerprintCoversTheAnnotations) {
  folder_.write("images/a.jpg");
  const std::string images = folder_.path() + "/images";
  const std::string json = folder_.write("i.json", coco_of({"a.jpg"}));
  const uint64_t fingerprint = open(images, json)->fingerprint();
  EXPECT_EQ(open(images, json)->fingerprint(), fingerprint);
  std::string text = coco_of({"a.jpg"});
  text.replace(text.find("[1, 2, 3, 2]"), 12, "[1, 2, 3, 1]");
  folder_.write("i.json", text);
  EXPECT_NE(open(images, json)->fingerprint(), fingerprint);
}

TEST_F(AnnotatedData, TakesVocsFiles) {
  folder_.write("JPEGImages/2007_1.jpg");
  folder_.write("JPEGImages/2007_2.jpg");
  folder_.write("Annotations/2007_2.xml",
                "<annotation><object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin>"
                "<xmax>2</xmax><ymax>2</ymax></bndbox></object></annotation>");
  const auto source = open(folder_.path() + "/JPEGImages", folder_.path() + "/Annotations");
  EXPECT_THAT(ids_of(*source), ElementsAre("2007_2.jpg: 0"));
  EXPECT_EQ(source->annotations().class_names[8], "cat");
}

// A segment in front of the header that is longer than what is read first.
std::vector<uint8_t> with_long_comment(std::vector<uint8_t> jpeg) {
  const std::vector<uint8_t> head = {0xff, 0xfe, 0x80, 0x00};
  std::vector<uint8_t> comment(0x8002, 'x');
  std::ranges::copy(head, comment.begin());
  jpeg.insert(jpeg.begin() + 2, comment.begin(), comment.end());
  return jpeg;
}

TEST_F(AnnotatedData, TakesYolosFilesWithTheSizesOfThePictures) {
  write_picture("images/train/a.jpg", make_jpeg({40, 20}, {}));
  write_picture("images/train/b.jpg", with_long_comment(make_jpeg({30, 50}, {})));
  folder_.write("images/train/c.jpg", "no JPEG");
  for (const char* name : {"a", "b", "c", "gone"}) {
    folder_.write("labels/train/" + std::string(name) + ".txt", "0 0.5 0.5 1 1\n");
  }
  const auto source = open(folder_.path() + "/images", folder_.path() + "/labels");
  ASSERT_EQ(source->size(), 3);
  Annotations found;
  ASSERT_TRUE(source->read_annotations(0, {}, found).ok);
  EXPECT_EQ(describe(found), "40x20\n0: id 0 class 0 box 0 0 40 20 area 800\n");
  ASSERT_TRUE(source->read_annotations(1, {}, found).ok);
  EXPECT_EQ(found.size, (Size{30, 50}));
  EXPECT_EQ(source->read_annotations(2, {}, found).message,
            folder_.path() + "/labels: the size of its picture is not known");
  EXPECT_THAT(note_texts(*source), ElementsAre(HasSubstr("as train/gone")));
}

TEST_F(AnnotatedData, YolosPicturesWithoutAFileHaveNoObjects) {
  for (const char* name : {"a", "b", "c"}) {
    write_picture("images/train/" + std::string(name) + ".jpg", make_jpeg({40, 20}, {}));
  }
  folder_.write("labels/train/b.txt", "0 0.5 0.5 1 1\n");
  const auto source = open(folder_.path() + "/images", folder_.path() + "/labels");
  ASSERT_EQ(source->size(), 3);
  EXPECT_EQ(source->name(0), "train/b.jpg");
  Annotations found;
  ASSERT_TRUE(source->read_annotations(0, {}, found).ok);
  EXPECT_EQ(found.objects.size(), 1u);
  for (SampleId id = 1; id < 3; ++id) {
    ASSERT_TRUE(source->read_annotations(id, {}, found).ok);
    EXPECT_TRUE(found.objects.empty());
  }
  EXPECT_THAT(note_texts(*source),
              ElementsAre("background: 2 pictures have no text file, and so no "
                          "objects, as train/a.jpg"));
  folder_.write("other/x.txt", "0 0.5 0.5 1 1\n");
  EXPECT_THAT(message_of([&] { open(folder_.path() + "/images", folder_.path() + "/other"); }),
              HasSubstr("none of 3 pictures is one of 1"));
}

TEST_F(AnnotatedData, YoloNeedsFiles) {
  folder_.write("data/train-0.tar", tar_member("b.jpg", "x") + tar_end());
  folder_.write("labels/b.txt", "");
  EXPECT_THAT(message_of([&] { open(folder_.path() + "/data", folder_.path() + "/labels"); }),
              HasSubstr("need the pictures as files in a folder"));
}

TEST_F(AnnotatedData, TakesLabelImages) {
  folder_.write("leftImg8bit/val/bonn/x_1_leftImg8bit.png");
  folder_.write("gtFine/val/bonn/x_1_gtFine_labelIds.png", std::string(26, 'x') + "labels");
  folder_.write("gtFine/val/bonn/x_1_gtFine_color.png", "colours");
  const auto source = open(folder_.path() + "/leftImg8bit", folder_.path() + "/gtFine");
  ASSERT_EQ(source->size(), 1);
  EXPECT_TRUE(source->annotations().label_image);
  Annotations found;
  ASSERT_TRUE(source->read_annotations(0, {}, found).ok);
  EXPECT_EQ(std::string(found.label_file.begin(), found.label_file.end()),
            std::string(26, 'x') + "labels");
}

TEST_F(AnnotatedData, RefusesWhatIsNoAnnotation) {
  folder_.write("images/a.jpg");
  const std::string images = folder_.path() + "/images";
  EXPECT_EQ(message_of([&] { open(images, images); }),
            "SourceOptions: objects: " + images +
                ": no annotations there: .xml (VOC), .txt (YOLO) or .png (label images)");
  EXPECT_EQ(
      message_of([&] { open(images, folder_.path() + "/none"); }),
      "SourceOptions: objects: " + folder_.path() + "/none: neither COCO's JSON nor a folder");
}

// "NAME: REASON: MESSAGE" of each bad sample.
std::vector<std::string> findings_of(const Source& source) {
  SampleChecker checker(source, {});
  std::vector<std::string> texts;
  for (SampleId id = 0; id < source.size(); ++id) {
    Finding finding;
    if (!checker.is_bad(id, finding)) continue;
    texts.push_back(source.name(id) + ": " + finding.reason + ": " + finding.message);
  }
  return texts;
}

TEST_F(AnnotatedData, ACheckFindsBadAnnotations) {
  const auto bytes = make_jpeg({6, 5}, {});
  for (const char* name : {"a", "b", "c"})
    write_picture("images/" + std::string(name) + ".jpg", bytes);
  write_picture("images/d.jpg", make_jpeg({7, 5}, {}));
  std::string text = coco_of({"a.jpg", "b.jpg", "c.jpg", "d.jpg"});
  const auto replace_box = [&](const char* id, const char* box) {
    const size_t end = text.find(R"("category_id": 1, "image_id": )" + std::string(id));
    text.replace(text.rfind("[1, 2, 3, 2]", end), 12, box);
  };
  replace_box("1", "[1, 2, 3, -1]");
  replace_box("2", "[6, 2, 3, 2]");
  const std::string json = folder_.write("i.json", text);
  EXPECT_THAT(findings_of(*open(folder_.path() + "/images", json)),
              ElementsAre("b.jpg: annotation: " + json +
                              ": object 0 (id 101): the box has a negative height: (1, 2, 4, 1)",
                          "c.jpg: annotation: object 0 (id 102): the box (6, 2, 9, 4) reaches out "
                          "of the picture of 6 x 5 pixels",
                          "d.jpg: annotation: it is of a picture of 6 x 5 pixels, the picture "
                          "has 7 x 5"));
}

TEST_F(AnnotatedData, ACheckFindsBadLabelImages) {
  for (const char* name : {"a", "b", "c"}) {
    write_picture("images/" + std::string(name) + ".jpg", make_jpeg({6, 5}, {}));
  }
  const PngKind gray{.size = {6, 5}, .colours = 0};
  write_picture("labels/a.png", make_png(gray, 1));
  write_picture("labels/b.png", make_png({.size = {5, 6}, .colours = 0}, 1));
  folder_.write("labels/c.png", "no PNG");
  const auto found = findings_of(*open(folder_.path() + "/images", folder_.path() + "/labels"));
  EXPECT_THAT(found,
              ElementsAre("b.jpg: annotation: the label image is of 5 x 6 pixels, the picture "
                          "has 6 x 5",
                          HasSubstr("c.jpg: annotation: label image: ")));
}

TEST(AnnotatedSource, RefusesOtherNumbersOfPictures) {
  const TempFolder folder;
  folder.write("images/a.jpg");
  const auto plain = open_source(folder.path(), SourceOptions{.cache_dir = ""});
  const SharedAnnotations set = set_of_names({"a.jpg"});
  EXPECT_EQ(problem_of([&] { AnnotatedSource(*plain, {.set = set}); }), "0 pictures for 1 samples");
  EXPECT_EQ(problem_of([&] { AnnotatedSource(*plain, {.set = set, .pictures = {1}}); }),
            "picture 1, must be 0 to 0");
}

}  // namespace
}  // namespace stoker
