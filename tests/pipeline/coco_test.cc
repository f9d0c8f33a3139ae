#include "pipeline/source/annotated/coco.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "pipeline/files/durable_file.h"
#include "tests/support/same_annotations.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

SharedAnnotations coco_set(const std::string& json) { return read_coco(supply_of(json)).finish(); }

std::string coco_error(const std::string& json) {
  return message_of([&] { coco_set(json); });
}

// A data set of one picture, 6 x 5, and a category 3, "cat".
std::string with_annotations(const std::string& annotations) {
  return R"({"images": [{"id": 7, "file_name": "a.jpg", "width": 6, "height": 5}],
             "categories": [{"id": 3, "name": "cat"}], "annotations": [)" +
         annotations + "]}";
}

std::string with_mask(const std::string& segmentation) {
  return with_annotations(
      R"({"id": 1, "image_id": 7, "category_id": 3, "bbox": [1, 2, 3, 2], "segmentation": )" +
      segmentation + "}");
}

// The first picture as text, or its problem.
std::string first_picture(const std::string& json) {
  Annotations found;
  const std::string problem = coco_set(json)->read(0, found);
  return problem.empty() ? describe(found) : problem;
}

constexpr char kWholeCoco[] = R"({
  "info": {"year": 2017, "nested": [[1, {"a": "]}\""}], null, true]},
  "annotations": [
    {"segmentation": [[1, 2, 3.25, 2, 3, 4.5], [0, 0, 1, 0, 1, 1, 0, 1]], "area": 5.125,
     "iscrowd": 0, "image_id": 20, "bbox": [1, 2, 3.5, 4], "category_id": 3, "id": 900},
    {"id": 901, "segmentation": {"counts": [4, 20, 6], "size": [5, 6]}, "iscrowd": 1,
     "image_id": 10, "bbox": [0, 0, 6, 5], "category_id": 1, "area": 20, "else": {"x": []}},
    {"id": 902, "image_id": 20, "bbox": [-1, 0, 0, 2], "category_id": 1, "segmentation": []}],
  "images": [
    {"id": 10, "file_name": "b\u00e9\ud83d\ude00.jpg", "width": 6, "height": 5},
    {"id": 20, "file_name": "a.jpg", "height": 48, "width": 64.0},
    {"id": 30, "file_name": "empty.jpg", "height": 1, "width": 1}],
  "categories": [{"id": 3, "name": "dog", "supercategory": "animal"}, {"id": 1, "name": "cat"}]
})";

TEST(Coco, ReadsInstances) {
  const SharedAnnotations set = coco_set(kWholeCoco);
  const AnnotationInfo& info = set->info();
  EXPECT_TRUE(info.objects && info.masks && !info.label_image && !info.rotated);
  EXPECT_EQ(info.keypoints, 0);
  EXPECT_EQ(info.class_names, (std::vector<std::string>{"", "cat", "", "dog"}));
  ASSERT_EQ(set->pictures(), 3);
  EXPECT_EQ(set->name(0), "b\xc3\xa9\xf0\x9f\x98\x80.jpg");
  Annotations found;
  EXPECT_EQ(set->read(0, found), "");
  EXPECT_EQ(describe(found), "6x5\n0: id 901 class 1 crowd box 0 0 6 5 area 20 runs 4,20,6\n");
  EXPECT_EQ(set->read(1, found), "");
  EXPECT_EQ(describe(found),
            "64x48\n"
            "0: id 900 class 3 box 1 2 4.5 6 area 5.125"
            " polygon 1 2 3.25 2 3 4.5 polygon 0 0 1 0 1 1 0 1\n"
            "1: id 902 class 1 box -1 0 -1 2 area 0\n");
  EXPECT_EQ(set->read(2, found), "");
  EXPECT_EQ(describe(found), "1x1\n");
}

TEST(Coco, ReadsCompressedRuns) {
  // pycocotools: mask.encode() of a mask with runs of 4, 20 and 6.
  EXPECT_EQ(first_picture(with_mask(R"({"counts": "4d06", "size": [5, 6]})")),
            "6x5\n0: id 1 class 3 box 1 2 4 4 area 6 runs 4,20,6\n");
}

TEST(Coco, ReadsKeypoints) {
  const SharedAnnotations set = coco_set(R"({
    "images": [{"id": 1, "file_name": "a.jpg", "width": 9, "height": 9},
               {"id": 2, "file_name": "b.jpg", "width": 9, "height": 9}],
    "categories": [{"id": 1, "name": "person", "keypoints": ["nose", "tail"], "skeleton": [[1, 2]]},
                   {"id": 2, "name": "ball"}],
    "annotations": [
      {"id": 5, "image_id": 1, "category_id": 2, "bbox": [1, 1, 2, 2]},
      {"id": 6, "image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2], "num_keypoints": 1,
       "keypoints": [3, 4.5, 2, 0, 0, 0]},
      {"id": 7, "image_id": 2, "category_id": 1, "bbox": [1, 1, 2, 2], "keypoints": [3, 4, 2]}]})");
  EXPECT_EQ(set->info().keypoints, 2);
  EXPECT_EQ(set->info().keypoint_names, (std::vector<std::string>{"nose", "tail"}));
  EXPECT_FALSE(set->info().masks);
  Annotations found;
  EXPECT_EQ(set->read(0, found), "");
  EXPECT_EQ(describe(found),
            "9x9\n"
            "0: id 5 class 2 box 1 1 3 3 area 4 point 0 0 0 point 0 0 0\n"
            "1: id 6 class 1 box 1 1 3 3 area 4 point 3 4.5 2 point 0 0 0\n");
  EXPECT_EQ(set->read(1, found), "object 0 (id 7): 1 keypoints, must be 2");
}

TEST(Coco, ReadsPanoptic) {
  const TempFolder folder;
  folder.write("panoptic/a.png", "PNG");
  const std::string path = folder.write("panoptic.json", R"({
    "images": [{"id": 1, "file_name": "a.jpg", "width": 9, "height": 9},
               {"id": 2, "file_name": "b.jpg", "width": 9, "height": 9},
               {"id": 3, "file_name": "c.jpg", "width": 9, "height": 9}],
    "categories": [{"id": 1, "name": "sky", "isthing": 0}],
    "annotations": [{"segments_info": [
        {"id": 500, "category_id": 1, "area": 7, "bbox": [0, 1, 2, 3], "iscrowd": 0},
        {"id": 501, "category_id": 1, "area": 8, "bbox": [1, 1, 2, 3], "iscrowd": 1}],
      "file_name": "a.png", "image_id": 1},
     {"segments_info": [{"id": 500, "category_id": 1, "area": 7, "bbox": [0, 1, 2, 3]}],
      "file_name": "a.png", "image_id": 3}]})");
  const SharedAnnotations set = open_coco(path, "");
  EXPECT_TRUE(set->info().objects && set->info().label_image);
  EXPECT_EQ(set->info().label_bytes, 4);
  Annotations found;
  EXPECT_EQ(set->read(0, found), "");
  EXPECT_EQ(describe(found),
            "9x9\n0: id 500 class 1 box 0 1 2 4 area 7\n1: id 501 class 1 crowd box 1 1 3 4 area "
            "8\n");
  EXPECT_EQ(std::string(found.label_file.begin(), found.label_file.end()), "PNG");
  EXPECT_EQ(set->read(1, found), "it has no segments");
  // Other pictures may have the same colours.
  EXPECT_EQ(set->read(2, found), "");
  EXPECT_EQ(describe(found), "9x9\n0: id 500 class 1 box 0 1 2 4 area 7\n");
}

TEST(Coco, KeepsItsSetWhileTheFileIsTheSame) {
  const TempFolder folder, cache;
  const std::string path = folder.write("instances.json", kWholeCoco);
  settle(path);
  const SharedAnnotations made = open_coco(path, cache.path());
  const auto file = std::filesystem::directory_iterator(cache.path())->path();
  std::filesystem::create_hard_link(file, cache.path() + "/first");
  const SharedAnnotations kept = open_coco(path, cache.path());
  EXPECT_TRUE(std::filesystem::equivalent(file, cache.path() + "/first")) << "it was made again";
  EXPECT_EQ(made->info(), kept->info());
  EXPECT_EQ(made->info().digest, coco_set(kWholeCoco)->info().digest);
  std::string changed = kWholeCoco;
  changed.replace(changed.find("5.125"), 5, "5.25 ");
  folder.write("instances.json", changed);
  settle(path);
  EXPECT_NE(open_coco(path, cache.path())->info().digest, made->info().digest);
}

TEST(Coco, SaysWhatIsWrongWithAnObject) {
  const auto with_object = [](const std::string& fields) {
    return first_picture(with_annotations(R"({"id": 1, "image_id": 7, )" + fields + "}"));
  };
  EXPECT_EQ(with_object(R"("category_id": 3, "bbox": [1, 2, -3, 4])"),
            "object 0 (id 1): the box has a negative width: (1, 2, -2, 6)");
  EXPECT_EQ(with_object(R"("category_id": 3, "bbox": [1, NaN, 3, 4], "area": 1)"),
            "object 0 (id 1): the box has a number that is no coordinate: (1, nan, 4, nan)");
  EXPECT_EQ(with_object(R"("category_id": 3, "bbox": [1, 2, 3])"),
            "object 0 (id 1): the bbox has 3 numbers, must be 4");
  EXPECT_EQ(with_object(R"("category_id": 4, "bbox": [1, 2, 3, 4])"),
            "object 0 (id 1): the class is 4, which is none of the data's classes");
  EXPECT_EQ(with_object(R"("bbox": [1, 2, 3, 4])"), "object 0 (id 1): it has no category_id");
  EXPECT_EQ(with_object(R"("category_id": 3, "bbox": [1, 2, 3, 4], "keypoints": [1, 2])"),
            "object 0 (id 1): 2 numbers of keypoints, must be 3 for each");
}

TEST(Coco, SaysWhatIsWrongWithAMask) {
  EXPECT_EQ(first_picture(with_mask("[[1, 2, 3, 4]]")),
            "object 0 (id 1): a polygon of 2 points, must be 3 or more");
  EXPECT_EQ(first_picture(with_mask("[[1, 2, 3, 4, 5, 6, 7]]")),
            "object 0 (id 1): a polygon of 7 numbers");
  EXPECT_EQ(first_picture(with_mask("[1, 2, 3, 4, 5, 6]")),
            "object 0 (id 1): the segmentation is no list of polygons");
  EXPECT_EQ(first_picture(with_mask("5")),
            "object 0 (id 1): the segmentation is neither a list of polygons nor run lengths");
  EXPECT_EQ(first_picture(with_mask(R"({"counts": [4, 26], "size": [6, 5]})")),
            "object 0 (id 1): the run lengths are of 5 x 6 pixels, the picture has 6 x 5");
  EXPECT_EQ(first_picture(with_mask(R"({"counts": [4, 25], "size": [5, 6]})")),
            "object 0 (id 1): the run lengths add up to 29 pixels, the picture has 30");
  EXPECT_EQ(first_picture(with_mask(R"({"counts": [4, -1, 27], "size": [5, 6]})")),
            "object 0 (id 1): a run length that is none");
  EXPECT_EQ(first_picture(with_mask(R"({"size": [5, 6]})")),
            "object 0 (id 1): run lengths without counts");
  EXPECT_EQ(first_picture(with_mask("null")), "6x5\n0: id 1 class 3 box 1 2 4 4 area 6\n");
}

TEST(Coco, SaysWhatComesTwice) {
  const std::string object = R"({"id": 1, "image_id": 7, "category_id": 3, "bbox": [1, 2, 3, 2]})";
  EXPECT_EQ(first_picture(with_annotations(object + "," + object)),
            "object 1 (id 1): an object before it has this id, too");
  EXPECT_EQ(coco_error(R"({"images": [{"id": 7, "file_name": "a"}, {"id": 7, "file_name": "b"}]})"),
            "byte 41: two images have the id 7: a and b");
  EXPECT_EQ(coco_error(R"({"annotations": [], "images":
                           [{"id": 7, "file_name": "a"}, {"id": 8, "file_name": "a"}]})"),
            "two pictures have the name a");
  EXPECT_EQ(coco_error(R"({"categories": [{"id": 7, "name": "a"}, {"id": 7, "name": "b"}]})"),
            "byte 40: two categories have the id 7");
}

TEST(Coco, RefusesObjectsOfNoImage) {
  EXPECT_EQ(coco_error(with_annotations(
                R"({"id": 1, "image_id": 8, "category_id": 3, "bbox": [1, 2, 3, 4]})")),
            "the object with the id 1 is of an image with the id 8, which is not there");
}

TEST(Coco, RefusesWhatIsNoCoco) {
  EXPECT_EQ(coco_error(""), "byte 0: the text ends too soon");
  EXPECT_EQ(coco_error("[]"), "byte 0: an object is expected");
  EXPECT_EQ(coco_error("{}"), "these are no annotations of COCO's: no images");
  EXPECT_EQ(coco_error(R"({"images": []})"), "these are no annotations of COCO's: no annotations");
  EXPECT_EQ(coco_error(R"({"images": [], "annotations": []} x)"),
            "byte 34: there is more behind the end of the JSON");
  EXPECT_EQ(coco_error(R"({"images": [{"id": 1}]})"),
            "byte 12: an image without an id or a file_name");
  EXPECT_EQ(coco_error(R"({"categories": [{"id": 100000, "name": "a"}]})"),
            "byte 16: the category a has the id 100000, must be 0 to 99999");
  EXPECT_EQ(coco_error(with_annotations(R"({"id": 1, "image_id": 7, "caption": "a cat"})")),
            "none of its annotations has a bbox");
  EXPECT_EQ(coco_error(with_annotations("{}")), "byte 142: an annotation without an image_id");
}

TEST(Coco, NamesTheFile) {
  const TempFolder folder;
  const std::string path = folder.write("x.json", R"({"images": [)");
  EXPECT_EQ(message_of([&] { open_coco(path, ""); }), path + ": byte 12: the text ends too soon");
  EXPECT_EQ(message_of([&] { open_coco(folder.path() + "/no.json", ""); }),
            folder.path() + "/no.json: No such file or directory");
  EXPECT_EQ(message_of([&] { open_coco(folder.path(), ""); }),
            folder.path() + ": not a regular file");
}

// Wherever it is cut, the text is an error, and none is longer in coming than its end.
TEST(Coco, FindsThatItIsCutShort) {
  const std::string whole = kWholeCoco;
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THROW(coco_set(whole.substr(0, length)), JsonError) << length;
  }
}

// The bytes come in pieces of any size.
TEST(JsonScanner, ReadsAcrossItsBuffer) {
  const std::string text = "[\"" + std::string(300'000, 'x') + "\", " + std::string(262'000, ' ') +
                           "123.25, \"\\u00e9\", {\"a\": [1]}]";
  ByteSupply all = supply_of(text);
  JsonScanner json(
      [&](std::span<char> out) { return all(out.first(std::min<size_t>(out.size(), 7))); });
  int number = 0;
  std::string first, third;
  double second = 0;
  json.read_array([&] {
    ++number;
    if (number == 1) json.read_string(first);
    if (number == 2) second = json.read_number();
    if (number == 3) json.read_string(third);
    if (number == 4) json.skip();
  });
  json.expect_end();
  EXPECT_EQ(json.byte(), std::ssize(text));
  EXPECT_EQ(number, 4);
  EXPECT_EQ(first, std::string(300'000, 'x'));
  EXPECT_EQ(second, 123.25);
  EXPECT_EQ(third, "\xc3\xa9");
}

// The twin is nlohmann's parser.
TEST(JsonScanner, ReadsNumbersAsAnotherParser) {
  std::mt19937_64 random(3);
  std::vector<std::string> texts = {"0",
                                    "-0",
                                    "1e5",
                                    "1E-5",
                                    "-12.5e+3",
                                    "0.1",
                                    "1e-400",
                                    "4.9e-324",
                                    "123456789012345678",
                                    "0.3333333333333333",
                                    "999999999999999",
                                    "9999999999999999",
                                    "702.1057499999998"};
  for (int i = 0; i < 5000; ++i) {
    const auto digits = static_cast<unsigned>(random() % 17);
    std::string text = std::to_string(random() % 1'000'000'000'000'000'000ULL);
    text.insert(text.size() - std::min<size_t>(digits, text.size() - 1), digits == 0 ? "" : ".");
    texts.push_back((random() % 2 == 0 ? "-" : "") + text);
  }
  for (const std::string& text : texts) {
    if (text.back() == '.') continue;
    JsonScanner json(supply_of(text));
    const double value = json.read_number();
    json.expect_end();
    EXPECT_EQ(value, nlohmann::json::parse(text).get<double>()) << text;
  }
}

TEST(JsonScanner, RefusesWhatIsNoNumber) {
  for (const char* text :
       {"", "-", ".5", "1.", "1.2.3", "+1", "1e", "e5", "x", "--1", "1-2", "NaNo"}) {
    EXPECT_THROW(
        {
          JsonScanner json(supply_of(text));
          json.read_number();
          json.expect_end();
        },
        JsonError)
        << text;
  }
  JsonScanner half(supply_of("5.5"));
  EXPECT_EQ(thrown_by<JsonError>([&] { half.read_whole(); }), "byte 0: a whole number is expected");
  const std::string digits(600, '1');
  JsonScanner large(supply_of(digits));
  EXPECT_EQ(thrown_by<JsonError>([&] { large.read_number(); }),
            "byte 0: a number of too many digits");
}

TEST(JsonScanner, PassesOverAnything) {
  for (const char* text : {"1", "-1.5e3", "\"a\\\"b\"", "true", "null", "NaN", "[]", "{}",
                           R"({"a": [1, {"b": "]"}, [[]], "\\"]})"}) {
    JsonScanner json(supply_of(text));
    json.skip();
    json.expect_end();
  }
  for (const char* text : {"", "]", "[", "{]", "\"a", "\"a\\", ",", "[}"}) {
    JsonScanner json(supply_of(text));
    EXPECT_THROW(json.skip(), JsonError) << text;
  }
  const std::string brackets(600, '[');
  JsonScanner deep(supply_of(brackets));
  EXPECT_EQ(thrown_by<JsonError>([&] { deep.skip(); }), "byte 512: values are nested too deep");
}

TEST(JsonScanner, RefusesBrokenStrings) {
  for (const char* text : {"\"a\nb\"", R"("\x")", R"("\u12")", R"("\ud800")", R"("\ud800\u0041")",
                           R"("\udc00")", "\"a"}) {
    JsonScanner json(supply_of(text));
    std::string read;
    EXPECT_THROW(json.read_string(read), JsonError) << text;
  }
}

}  // namespace
}  // namespace stoker
