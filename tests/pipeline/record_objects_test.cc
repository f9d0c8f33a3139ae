// Objects and label images in the records of shards: one meaning in all formats, and bad samples
// that say what is wrong with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "pipeline/files/invalid_field.h"
#include "pipeline/source.h"
#include "pipeline/source/blob/index_writer.h"
#include "pipeline/source/concat_source.h"
#include "pipeline/source/subset_source.h"
#include "tests/decode/png_maker.h"
#include "tests/support/mds_maker.h"
#include "tests/support/parquet_maker.h"
#include "tests/support/record_maker.h"
#include "tests/support/same_annotations.h"
#include "tests/support/tar_maker.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tfrecord_maker.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<MadeRecord> three_records() {
  return {{"first", {{{1, 2, 10.5, 20}, 3, 7, 210, false}, {{0, 0, 64, 32}, 1, 9, 0.25, true}}},
          {"second", {{{4, 5, 6, 7.25}, 3, 1, 43.5, false}}},
          {"third", {{{8, 8, 16, 0}, 0, 2, 0, false}}}};
}

// The objects of each sample, without the picture's size, which not every format says.
std::vector<std::string> objects_in(const Source& source) {
  std::vector<std::string> texts;
  Annotations found;
  for (SampleId id = 0; id < source.size(); ++id) {
    const ReadStatus status = source.read_annotations(id, {}, found);
    const std::string text = describe(found);
    texts.push_back(status.ok ? text.substr(text.find('\n') + 1) : "bad: " + status.message);
  }
  return texts;
}

std::string bytes_of_sample(const Source& source, SampleId id) {
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  const ReadStatus status = source.read(id, buffer, bytes);
  return status.ok ? std::string(bytes.begin(), bytes.end()) : status.message;
}

class RecordData : public ::testing::Test {
 protected:
  std::unique_ptr<Source> open(const std::string& file, const std::string& content,
                               const std::string& objects_from,
                               const std::string& label_image_from = "") const {
    const std::string path = folder_.write(file, content);
    return open_source(
        path,
        {.objects_from = objects_from, .label_image_from = label_image_from, .cache_dir = ""});
  }
  std::unique_ptr<Source> open(const MadeShards& made) const {
    return open(made.file, made.content, made.objects);
  }
  // Returns the objects of the only sample of a tar that has this JSON.
  std::string problem(const std::string& json, const std::string& field = "json") const {
    const auto source =
        open("x.tar", tar_member("a.jpg", "x") + tar_member("a.json", json) + tar_end(), field);
    return objects_in(*source).at(0);
  }

  const TempFolder folder_;
};

// TFRecord's objects have no ids: they are numbered.
std::vector<std::string> expected_of(const MadeShards& made) {
  if (made.name == "TFRecord") {
    return {
        "0: id 0 class 3 box 1 2 11.5 22 area 210\n"
        "1: id 1 class 1 crowd box 0 0 64 32 area 0.25\n",
        "0: id 0 class 3 box 4 5 10 12.25 area 43.5\n", "0: id 0 class 0 box 8 8 24 8 area 0\n"};
  }
  return {
      "0: id 7 class 3 box 1 2 11.5 22 area 210\n"
      "1: id 9 class 1 crowd box 0 0 64 32 area 0.25\n",
      "0: id 1 class 3 box 4 5 10 12.25 area 43.5\n", "0: id 2 class 0 box 8 8 24 8 area 0\n"};
}

TEST_F(RecordData, IsTheSameInAllFormats) {
  for (const MadeShards& made : made_records(three_records())) {
    SCOPED_TRACE(made.name);
    const auto source = open(made);
    EXPECT_EQ(objects_in(*source), expected_of(made));
    EXPECT_EQ(bytes_of_sample(*source, 1), "second");
    EXPECT_TRUE(source->annotations().objects);
    EXPECT_FALSE(source->annotations().masks || source->annotations().label_image);
    EXPECT_TRUE(source->class_names().empty());  // no label was asked for
    EXPECT_NE(source->annotations().digest, 0U);
  }
}

TEST_F(RecordData, APictureMayHaveNoObjects) {
  std::vector<MadeRecord> records = three_records();
  records[1].objects.clear();
  for (const MadeShards& made : made_records(records)) {
    SCOPED_TRACE(made.name);
    const auto source = open(made);
    std::vector<std::string> expected = expected_of(made);
    expected[1] = "";
    if (made.name == "MdsArrays") {  // the format has no array without numbers
      expected[1] = "bad: column 'bbox' (ndarray:float64) does not say its shape";
    }
    EXPECT_EQ(objects_in(*source), expected);
  }
}

TEST_F(RecordData, ABrokenRecordIsABadSample) {
  for (const MadeShards& made : made_records(three_records(), 1)) {
    SCOPED_TRACE(made.name);
    const auto source = open(made);
    std::vector<std::string> expected = expected_of(made);
    expected[1] = "bad: object 0 (id 1): the bbox has 3 numbers, must be 4";
    if (made.name == "TFRecord") {
      expected[1] = "bad: object 0 (id 0): the box has a negative width: (4, 5, 3, 12.25)";
    } else if (made.name == "MdsArrays") {
      expected[1] = "bad: its boxes have the shape (2, 2), must be 4 numbers for each";
    } else if (made.name.starts_with("Parquet")) {
      expected[1] = "bad: its boxes have the shape (1, 3), must be 4 numbers for each";
    }
    EXPECT_EQ(objects_in(*source), expected);
    EXPECT_EQ(bytes_of_sample(*source, 1), "second");
  }
}

TEST_F(RecordData, ViewsHaveTheObjectsOfTheirSamples) {
  const std::vector<MadeShards> all = made_records(three_records());
  const auto source = open(all.front());
  const SubsetSource some(*source, std::vector<SampleId>{2, 0});
  const std::vector<std::string> own = expected_of(all.front());
  EXPECT_THAT(objects_in(some), ElementsAre(own[2], own[0]));
  const TempFolder elsewhere;
  const MadeShards& parquet = all.back();
  const auto other = open_source(elsewhere.write(parquet.file, parquet.content),
                                 {.objects_from = parquet.objects, .cache_dir = ""});
  const ConcatSource both({&some, other.get()});
  EXPECT_THAT(objects_in(both), ElementsAre(own[2], own[0], own[0], own[1], own[2]));
}

TEST_F(RecordData, BoxesHaveTheFormatThatTheSuffixSays) {
  const std::string json = R"([{"bbox": [10, 20, 14, 26], "category": 1}])";
  EXPECT_THAT(problem(json), HasSubstr("box 10 20 24 46 area 364"));
  EXPECT_THAT(problem(json, "json:xywh"), HasSubstr("box 10 20 24 46 area 364"));
  EXPECT_THAT(problem(json, "json:xyxy"), HasSubstr("box 10 20 14 26 area 24"));
  EXPECT_THAT(problem(json, "json:cxcywh"), HasSubstr("box 3 7 17 33 area 364"));
}

TEST_F(RecordData, JsonMayHaveMasksAndKeypoints) {
  const std::string first =
      R"({"width": 4, "height": 2, "image_id": 88, "annotations": [
          {"bbox": [0, 0, 2, 2], "category_id": 1, "segmentation": [[0, 0, 2, 0, 2, 2.5]],
           "keypoints": [1, 1, 2, 0, 0, 0]},
          {"bbox": [1, 0, 2, 2], "category_id": 2, "segmentation": {"counts": [2, 3, 3],
           "size": [2, 4]}}]})";
  const std::string second =
      R"({"bbox": [[0, 0, 2, 2], [1, 0, 2, 2]], "label": [1, 2], "segmentation":
          [[[0, 0, 1, 0, 1, 1]], null], "keypoints": [[1, 2, 1, 3, 3, 2], [3, 4, 1, 5, 6, 0]]})";
  const auto source = open("x.tar",
                           tar_member("a.jpg", "") + tar_member("a.json", first) +
                               tar_member("b.jpg", "") + tar_member("b.json", second) +
                               tar_member("c.jpg", "") + tar_member("c.json", "[]") + tar_end(),
                           "json");
  EXPECT_TRUE(source->annotations().masks);
  EXPECT_EQ(source->annotations().keypoints, 2);
  EXPECT_THAT(
      objects_in(*source),
      ElementsAre("0: id 0 class 1 box 0 0 2 2 area 4 point 1 1 2 point 0 0 0 polygon 0 0 2 0 2 "
                  "2.5\n"
                  "1: id 1 class 2 box 1 0 3 2 area 4 point 0 0 0 point 0 0 0 runs 2,3,3\n",
                  "0: id 0 class 1 box 0 0 2 2 area 4 point 1 2 1 point 3 3 2 polygon 0 0 1 0 1 1\n"
                  "1: id 1 class 2 box 1 0 3 2 area 4 point 3 4 1 point 5 6 0\n",
                  ""));
  Annotations found;
  ASSERT_TRUE(source->read_annotations(0, {}, found).ok);
  EXPECT_EQ(found.picture_id, 88);
  EXPECT_EQ(found.size, (Size{4, 2}));
}

TEST_F(RecordData, ClassesMayBeTexts) {
  const auto json = [](const char* text) {
    return R"([{"bbox": [0, 0, 1, 1], "category": ")" + std::string(text) +
           R"(", "category_id": 7}, {"bbox": [0, 0, 1, 1], "category": "dog"}])";
  };
  folder_.write("0.tar", tar_member("a.jpg", "") + tar_member("a.json", json("zebra")) + tar_end());
  folder_.write("1.tar", tar_member("a.jpg", "") + tar_member("a.json", json("cat")) + tar_end());
  const auto source =
      open_source(folder_.path() + "/{0,1}.tar", {.objects_from = "json", .cache_dir = ""});
  EXPECT_THAT(source->annotations().class_names, ElementsAre("cat", "dog", "zebra"));
  const std::vector<std::string> objects = objects_in(*source);
  EXPECT_THAT(objects.at(0), HasSubstr("0: id 0 class 2"));
  EXPECT_THAT(objects.at(0), HasSubstr("1: id 1 class 1"));
  EXPECT_THAT(objects.at(1), HasSubstr("0: id 0 class 0"));
  EXPECT_THAT(objects.at(1), HasSubstr("1: id 1 class 1"));

  folder_.write("1.tar", tar_member("a.jpg", "") +
                             tar_member("a.json", R"([{"bbox": [0, 0, 1, 1], "label": 4}])") +
                             tar_end());
  EXPECT_EQ(message_of([&] {
              open_source(folder_.path() + "/{0,1}.tar", {.objects_from = "json", .cache_dir = ""});
            }),
            "the classes of some objects are numbers, and those of others are texts, as 'dog'");
}

TEST_F(RecordData, TFRecordTakesTextsWhereThereAreNoNumbers) {
  const auto record = [](const std::vector<std::pair<std::string, std::string>>& others) {
    std::vector<std::pair<std::string, std::string>> features = {
        {"image/encoded", bytes_feature({"x"})},
        {"image/width", int64_feature({64})},
        {"image/height", int64_feature({32})},
        {"image/source_id", bytes_feature({"0042"})},
        {"image/object/bbox/xmin", float_feature({0.5})},
        {"image/object/bbox/ymin", float_feature({0.25})},
        {"image/object/bbox/xmax", float_feature({1})},
        {"image/object/bbox/ymax", float_feature({0.5})}};
    features.insert(features.end(), others.begin(), others.end());
    return make_record(make_example(features));
  };
  const std::string text = "image/object/class/text", label = "image/object/class/label";
  const auto source = open("x.tfrecord",
                           record({{text, bytes_feature({"dog"})}}) +
                               record({{text, bytes_feature({"cat"})}, {label, int64_feature({})}}),
                           "image/object");
  EXPECT_THAT(objects_in(*source), ElementsAre("0: id 0 class 1 box 32 8 64 16 area 256\n",
                                               "0: id 0 class 0 box 32 8 64 16 area 256\n"));
  Annotations found;
  ASSERT_TRUE(source->read_annotations(0, {}, found).ok);
  EXPECT_EQ(found.picture_id, 42);
  EXPECT_EQ(found.size, (Size{64, 32}));

  const auto numbers =
      open("x.tfrecord", record({{text, bytes_feature({"dog"})}, {label, int64_feature({5})}}),
           "image/object");
  EXPECT_THAT(objects_in(*numbers).at(0), HasSubstr("class 5"));
  EXPECT_TRUE(numbers->annotations().class_names.empty());

  const auto broken = open("x.tfrecord",
                           record({}) + record({{label, int64_feature({1, 2})}}) +
                               make_record(make_example({{"image/encoded", bytes_feature({"x"})},
                                                         {"image/width", float_feature({64})}})),
                           "image/object");
  EXPECT_THAT(objects_in(*broken), ElementsAre("bad: its objects have 1 boxes and 0 labels",
                                               "bad: its objects have 1 boxes and 2 labels", ""));
}

TEST_F(RecordData, TFRecordMayHaveMasksAsPNGs) {
  // A gray PNG of 8 bits whose rows have no filter.
  const auto png_of = [](Size size, const std::vector<uint8_t>& pixels) {
    std::vector<uint8_t> rows;
    for (int y = 0; y < size.height; ++y) {
      rows.push_back(0);
      for (int x = 0; x < size.width; ++x) {
        rows.push_back(pixels[static_cast<size_t>(y * size.width + x)]);
      }
    }
    const std::vector<uint8_t> head = {
        0, 0, 0, static_cast<uint8_t>(size.width), 0, 0, 0, static_cast<uint8_t>(size.height), 8, 0,
        0, 0, 0};
    const std::vector<uint8_t> file =
        join_png({{"IHDR", head}, {"IDAT", deflate(rows, 6, 0)}, {"IEND", {}}});
    return std::string(file.begin(), file.end());
  };
  const auto record = [&](const std::vector<std::string>& masks) {
    return make_record(make_example({{"image/encoded", bytes_feature({"x"})},
                                     {"image/width", int64_feature({3})},
                                     {"image/height", int64_feature({2})},
                                     {"image/object/bbox/xmin", float_feature({0, 0})},
                                     {"image/object/bbox/ymin", float_feature({0, 0})},
                                     {"image/object/bbox/xmax", float_feature({1, 1})},
                                     {"image/object/bbox/ymax", float_feature({1, 1})},
                                     {"image/object/class/label", int64_feature({1, 2})},
                                     {"image/object/mask", bytes_feature(masks)}}));
  };
  const std::string first = png_of({3, 2}, {0, 1, 1, 0, 0, 255}),
                    second = png_of({3, 2}, {7, 0, 0, 7, 0, 0});
  const auto source = open("x.tfrecord",
                           record({first, second}) + record({first, png_of({2, 2}, {0, 0, 0, 1})}) +
                               record({first, "no PNG"}) + record({first}),
                           "image/object");
  EXPECT_TRUE(source->annotations().masks);
  const std::vector<std::string> objects = objects_in(*source);
  EXPECT_EQ(objects[0],
            "0: id 0 class 1 box 0 0 3 2 area 6 runs 2,1,1,2\n"
            "1: id 1 class 2 box 0 0 3 2 area 6 runs 0,2,4\n");
  EXPECT_EQ(objects[1],
            "bad: object 1 (id 1): the run lengths are of 2 x 2 pixels, the picture has 3 x 2");
  EXPECT_THAT(objects[2], HasSubstr("bad: object 1 (id 1): its mask: "));
  EXPECT_EQ(objects[3], "bad: its objects have 2 boxes and 1 masks");
}

TEST_F(RecordData, TFRecordNeedsTheSizeOfThePicture) {
  std::vector<std::pair<std::string, std::string>> features = {
      {"image/encoded", bytes_feature({"x"})}, {"image/object/class/label", int64_feature({1})}};
  for (const char* side : {"xmin", "ymin", "xmax", "ymax"}) {
    features.emplace_back(std::string("image/object/bbox/") + side, float_feature({0.5}));
  }
  const auto source = open("x.tfrecord", make_record(make_example(features)), "image/object");
  EXPECT_THAT(objects_in(*source),
              ElementsAre("bad: its boxes are shares of a size that is not there: no "
                          "'image/width' or 'image/height'"));
  features.pop_back();
  features.emplace_back("image/width", int64_feature({9}));
  const auto cut = open("x.tfrecord", make_record(make_example(features)), "image/object");
  EXPECT_THAT(objects_in(*cut),
              ElementsAre("bad: its boxes have 1 numbers at 'image/object/bbox/xmin' and 0 at "
                          "'image/object/bbox/ymax'"));
}

TEST_F(RecordData, WrongJsonSaysWhere) {
  EXPECT_EQ(problem(""), "bad: 'a.json' is empty");
  EXPECT_EQ(problem("7"),
            "bad: the JSON of its objects: byte 0: a list of objects or an object "
            "with lists is expected");
  EXPECT_EQ(problem("[7]"),
            "bad: the JSON of its objects: object 0: byte 1: an object is expected");
  EXPECT_EQ(problem("[] x"),
            "bad: the JSON of its objects: byte 3: there is more behind the end of the JSON");
  EXPECT_EQ(problem(R"({"x": 1, "bbox": 4})"),
            "bad: its JSON has no objects: no list, and none in annotations, objects or bbox, "
            "boxes");
  EXPECT_EQ(problem(R"({"objects": {"objects": []}})"), "");
  EXPECT_EQ(problem(R"([{"bbox": [1, 2, 3, 4]}])"),
            "bad: object 0 (id 0): it has no class (category, label, labels, category_id, "
            "categories)");
  EXPECT_EQ(problem(R"([{"label": 1, "id": 8}])"),
            "bad: object 0 (id 8): it has no box (bbox, "
            "boxes)");
  EXPECT_EQ(problem(R"({"bbox": [[1, 2, 3, 4]], "label": [1, 2]})"),
            "bad: its objects have 1 boxes and 2 labels");
  const std::string good = R"({"bbox": [1, 2, 3, 4], "label": 1, "id": 5})";
  EXPECT_EQ(problem("[" + good + ", " + good + "]"),
            "bad: object 1 (id 5): an object before it has this id, too");
  EXPECT_EQ(problem("[" + good + R"(, {"bbox": [1, 2, -3, 4], "label": 1}])"),
            "bad: object 1 (id 1): the box has a negative width: (1, 2, -2, 6)");
  EXPECT_EQ(problem("[" + good + R"(, {"bbox": [1, 2, 3, 4], "label": "x"}])"),
            "bad: object 0 (id 5): its class is a number or empty, and that of others is a text");
  EXPECT_EQ(problem(R"([{"bbox": [1, 2, 3, 4], "label": 1.5}])"),
            "bad: the JSON of its objects: object 0: byte 33: a whole number is expected");
  // The second value ends where the first one was kept already.
  EXPECT_THAT(problem(R"([{"segmentation": [[0, 0, 1, 0, 1, 1]], "segmentation": [[0, )"),
              HasSubstr("object 0: byte 61: the text ends too soon"));
  EXPECT_EQ(problem("[]", "json:a"), "bad: the JSON of its objects: byte 0: an object is expected");
  EXPECT_EQ(problem(R"({"b": []})", "json:a"), "bad: its JSON has no field 'a'");
}

TEST_F(RecordData, MoreThanAHundredThousandObjectsAreNone) {
  std::string objects = "[{}", boxes = R"({"bbox": [[1, 2, 3, 4])";
  for (int i = 0; i < 100'000; ++i) {
    objects += ",{}";
    boxes += ",[1,2,3,4]";
  }
  EXPECT_THAT(problem(objects + "]"), HasSubstr("more than 100000 objects"));
  EXPECT_THAT(problem(boxes + "]}"), HasSubstr("more than 100000 objects"));
  const std::vector<float> sides(100'001, 0.5F);
  std::vector<std::pair<std::string, std::string>> features = {
      {"image/encoded", bytes_feature({"x"})},
      {"image/width", int64_feature({64})},
      {"image/height", int64_feature({32})}};
  for (const char* side : {"xmin", "ymin", "xmax", "ymax"}) {
    features.emplace_back(std::string("image/object/bbox/") + side, float_feature(sides));
  }
  const auto source = open("x.tfrecord", make_record(make_example(features)), "image/object");
  EXPECT_EQ(objects_in(*source).at(0), "bad: 100001 objects, at most 100000");
}

TEST_F(RecordData, RecordsMustAgreeInTheirKeypoints) {
  const auto json = [](const char* points) {
    return R"([{"bbox": [0, 0, 1, 1], "label": 4, "keypoints": )" + std::string(points) + "}]";
  };
  const auto source = open("x.tar",
                           tar_member("a.jpg", "") + tar_member("a.json", json("[1, 2, 2]")) +
                               tar_member("b.jpg", "") +
                               tar_member("b.json", json("[1, 2, 2, 3, 4, 1]")) + tar_end(),
                           "json");
  EXPECT_EQ(source->annotations().keypoints, 2);
  EXPECT_EQ(objects_in(*source).at(0), "bad: 1 keypoints of each object, others have 2");
}

TEST_F(RecordData, RefusesShardsWithoutSuchFields) {
  const std::string tar =
      tar_member("a.jpg", "") + tar_member("a.cls", "1") + tar_member("b.jpg", "") + tar_end();
  EXPECT_THAT(message_of([&] { open("x.tar", tar, "json"); }),
              HasSubstr("no key has .json with its objects; the first key has '.jpg', '.cls'"));
  EXPECT_THAT(message_of([&] { open("x.tar", tar, "cls"); }),
              HasSubstr("a tar has no objects in 'cls'"));
  const std::string record = make_record(make_example({{"image/encoded", bytes_feature({"x"})}}));
  EXPECT_THAT(message_of([&] { open("x.tfrecord", record, "image/object"); }),
              HasSubstr("no record has a key 'image/object/bbox/xmin' for objects; of the first, "
                        "its keys are 'image/encoded'"));
  EXPECT_THAT(message_of([&] { open("x.tfrecord", record, "image/object:xyxy"); }),
              HasSubstr("those of TFRecord files are xmin, ymin, xmax and ymax"));
  const std::vector<MadeMdsColumn> columns = {{"image", "jpeg"}, {"boxes", "bytes"}};
  const std::string mds = mds_shard(mds_settings(columns), {mds_sample(columns, {"x", "y"})});
  EXPECT_THAT(message_of([&] { open("shard.00000.mds", mds, "boxes"); }),
              HasSubstr("column 'boxes' (bytes) cannot be the objects: its encoding is not json"));
  EXPECT_THAT(message_of([&] { open("shard.00000.mds", mds, "boxes,labels"); }),
              HasSubstr("its encoding is not ndarray"));
  for (const auto& [wanted, problem] :
       {std::pair("boxes,mine", "has 'mine'"), std::pair("boxes,area", "names no labels"),
        std::pair("boxes,labels,bbox", "names the boxes twice")}) {
    EXPECT_THAT(message_of([&, field = wanted] { open("shard.00000.mds", mds, field); }),
                HasSubstr(problem));
  }
  const TempFolder pictures;
  pictures.write("cat/1.jpg");
  EXPECT_THAT(
      message_of([&] { open_source(pictures.path(), {.objects_from = "json", .cache_dir = ""}); }),
      HasSubstr("objects_from is \"json\", and " + pictures.path() + " is an image folder"));
  EXPECT_THAT(message_of([&] {
                open_source(folder_.path() + "/x.tar",
                            {.objects = "x.json", .objects_from = "json", .cache_dir = ""});
              }),
              HasSubstr("objects_from is \"json\", and `objects` names other annotations"));
  EXPECT_THAT(message_of([&] { open("x.csv", "path,label\na.jpg,1\n", "label"); }),
              HasSubstr("a list of files has no objects"));
}

TEST_F(RecordData, ParquetSaysWhichColumnIsWrong) {
  MadeColumn images{.names = {"image"}, .values = {plain_bytes("x")}};
  const auto list = [](const char* name, int type, const std::string& value) {
    return MadeColumn{.names = {"objects", name, "list", "element"},
                      .type = type,
                      .lists = {{value}},
                      .repeated_at = {2}};
  };
  const auto error = [&](std::vector<MadeColumn> columns, const char* field = "objects") {
    columns.insert(columns.begin(), images);
    return message_of([&] { open("x.parquet", MadeParquet{.columns = columns}.bytes(), field); });
  };
  EXPECT_THAT(error({list("bbox", kMadeInt32, plain_int32(1))}),
              HasSubstr("the column objects.bbox.list.element has lists of INT32, and boxes of "
                        "objects are lists of lists of 4 numbers"));
  EXPECT_THAT(
      error({list("category", kMadeBytes, plain_bytes("cat"))}),
      HasSubstr("objects.category.list.element has lists of BYTE_ARRAY, and labels of objects are "
                "lists of numbers"));
  EXPECT_THAT(error({list("category", kMadeInt32, plain_int32(1))}),
              HasSubstr("the column objects has no boxes of objects (bbox, boxes) inside"));
  EXPECT_THAT(error({}, "things"), HasSubstr("there is no column things for objects"));
}

TEST_F(RecordData, ParquetHasNamesOfClassesAndNumbersOfPictures) {
  MadeParquet made;
  made.columns = {
      {.names = {"image"}, .values = {plain_bytes("x"), plain_bytes("y")}},
      {.names = {"image_id"}, .type = kMadeInt64, .values = {plain_int64(31), plain_int64(32)}},
      {.names = {"objects", "list", "element", "bbox", "list", "element"},
       .type = kMadeInt32,
       .lists = {std::vector<std::optional<std::string>>(4, plain_int32(2)), {}},
       .repeated_at = {1, 4},
       .inner = 4},
      {.names = {"objects", "list", "element", "category"},
       .type = kMadeInt64,
       .lists = {{plain_int64(1)}, {}},
       .repeated_at = {1}}};
  made.metadata = {{"huggingface",
                    R"({"info": {"features": {"objects": {"feature": {"category":
                        {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}}})"}};
  const auto source = open("x.parquet", made.bytes(), "objects");
  EXPECT_THAT(source->annotations().class_names, ElementsAre("cat", "dog"));
  Annotations found;
  for (const int64_t id : {0, 1}) {
    ASSERT_TRUE(source->read_annotations(id, {}, found).ok);
    EXPECT_EQ(found.picture_id, 31 + id);
  }
  // The table's first name counts where two columns have one entry, whichever comes first.
  const MadeColumn category = made.columns[3];
  for (const size_t place : {3, 4}) {
    MadeParquet both = made;
    both.columns.insert(both.columns.begin() + static_cast<ptrdiff_t>(place), category);
    both.columns[place].names.back() = "label";
    both.columns[place].lists[0] = {plain_int64(7)};
    EXPECT_THAT(objects_in(*open("x.parquet", both.bytes(), "objects")).at(0),
                HasSubstr("class 1"));
  }
  std::string& features = made.metadata[0].second;
  features.replace(features.find("dog"), 3, "emu");
  const auto renamed = open("x.parquet", made.bytes(), "objects");
  EXPECT_NE(renamed->annotations().digest, source->annotations().digest);
  EXPECT_NE(renamed->fingerprint(), source->fingerprint());
  made.columns[3].lists[0] = {plain_int64(2)};
  EXPECT_EQ(objects_in(*open("x.parquet", made.bytes(), "objects")).at(0),
            "bad: object 0 (id 0): the class is 2, which is none of the data's classes");
  made.columns[3].lists[0] = {std::nullopt};
  EXPECT_EQ(objects_in(*open("x.parquet", made.bytes(), "objects")).at(0),
            "bad: column objects.list.element.category has no number (null)");
}

// A shard at once, and in pieces of one sample.
TEST_F(RecordData, AnIndexGivesThemAgain) {
  std::vector<MadeRecord> records;
  for (int i = 0; i < 3000; ++i) {
    records.push_back({"x", {}});
    for (int k = 0; k < i % 40; ++k) {
      records.back().objects.push_back({{k + 0.25, 1, 2, 3}, i % 7, 100 + k, 6, k % 2 == 0});
    }
  }
  const MadeShards made = made_records(records).at(0);
  const std::string path = folder_.write(made.file, made.content);
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const auto source = open_source(path, {.objects_from = "json", .cache_dir = ""});
  ASSERT_EQ(source->size(), 3000);
  for (const int64_t id : {0, 39, 1234, 2999}) {
    Annotations found;
    ASSERT_TRUE(source->read_annotations(id, {}, found).ok);
    ASSERT_EQ(std::ssize(found.objects), id % 40);
    for (const AnnotatedObject& object : found.objects) EXPECT_EQ(object.label, id % 7);
  }
  const auto plain = open_source(path, {.label_from = "none", .cache_dir = ""});
  EXPECT_NE(source->fingerprint(), plain->fingerprint());
  EXPECT_FALSE(plain->annotations().any());
  const auto boxes = open_source(path, {.objects_from = "json:xyxy", .cache_dir = ""});
  EXPECT_NE(source->annotations().digest, boxes->annotations().digest);
  EXPECT_NE(source->fingerprint(), boxes->fingerprint());
}

TEST_F(RecordData, LabelImagesLieBesideThePictures) {
  const auto label_of = [&](const Source& source, SampleId id) {
    Annotations found;
    const ReadStatus status = source.read_annotations(id, {}, found);
    return status.ok ? std::string(found.label_file.begin(), found.label_file.end())
                     : status.message;
  };
  const std::string tar = tar_member("a.jpg", "A") + tar_member("a.png", "mask of A") +
                          tar_member("b.png", "mask of B") + tar_member("b.jpg", "B");
  const auto source = open("x.tar", tar + tar_end(), "", "png");
  EXPECT_TRUE(source->annotations().label_image);
  EXPECT_FALSE(source->annotations().objects);
  EXPECT_EQ(bytes_of_sample(*source, 0), "A");
  EXPECT_EQ(label_of(*source, 0), "mask of A");
  EXPECT_EQ(label_of(*source, 1), "mask of B");

  const std::string with_json = tar + tar_member("b.seg.png", "other") +
                                tar_member("b.json", R"([{"bbox": [1, 2, 3, 4], "label": 1}])");
  EXPECT_THAT(message_of([&] { open("x.tar", with_json + tar_end(), "", "seg.png"); }),
              HasSubstr("two images of one key"));
  const auto both =
      open("x.tar",
           tar_member("a.jpg", "A") + tar_member("a.seg.png", "mask") +
               tar_member("a.json", R"([{"bbox": [1, 2, 3, 4], "label": 1}])") + tar_end(),
           "json", "seg.png");
  EXPECT_EQ(label_of(*both, 0), "mask");
  EXPECT_THAT(objects_in(*both).at(0), HasSubstr("class 1"));

  EXPECT_THAT(
      message_of([&] { open("x.tar", tar + tar_member("c.jpg", "") + tar_end(), "", "png"); }),
      HasSubstr("x.tar/c.jpg: its key has no .png"));
  EXPECT_THAT(message_of([&] {
                open("x.tar", tar_member("0.png", "") + tar_member("1.jpg", "") + tar + tar_end(),
                     "", "png");
              }),
              HasSubstr("x.tar/1.jpg: its key has no .png"));

  const std::string record =
      make_record(make_example({{"image/encoded", bytes_feature({"A"})},
                                {"image/segmentation/class/encoded", bytes_feature({"mask"})}}));
  EXPECT_EQ(label_of(*open("x.tfrecord", record, "", "image/segmentation/class/encoded"), 0),
            "mask");
  const MadeParquet made{.columns = {{.names = {"image", "bytes"}, .values = {plain_bytes("A")}},
                                     {.names = {"mask", "bytes"}, .values = {plain_bytes("M")}}}};
  EXPECT_EQ(label_of(*open("x.parquet", made.bytes(), "", "mask"), 0), "M");
  const std::vector<MadeMdsColumn> columns = {{"image", "jpeg"}, {"mask", "png"}};
  const std::string mds = mds_shard(mds_settings(columns), {mds_sample(columns, {"A", "M"})});
  EXPECT_EQ(label_of(*open("shard.00000.mds", mds, "", "mask"), 0), "M");
}

}  // namespace
}  // namespace stoker
