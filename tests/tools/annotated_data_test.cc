// The program with annotations: check finds what is wrong with them, peek draws them, and dump
// writes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/tar_maker.h"
#include "tests/tools/cli_harness.h"
#include "tests/tools/npy_reader.h"

namespace stoker {
namespace {

using ObjectJson = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kWide = 64, kHigh = 48;

class AnnotatedData : public ::testing::Test {
 protected:
  AnnotatedData() {
    for (int i = 0; i < 5; ++i) {
      json_["images"].push_back(
          {{"id", i + 1}, {"file_name", name(i)}, {"width", kWide}, {"height", kHigh}});
      data_.write("pictures/" + name(i),
                  "P6\n64 48\n255\n" + std::string(size_t{3} * kWide * kHigh, '\x40'));
    }
    json_["categories"] = {{{"id", 1}, {"name", "cat"}}, {{"id", 2}, {"name", "dog"}}};
    json_["annotations"] = ObjectJson::array();
  }

  static std::string name(int picture) { return "p" + std::to_string(picture) + ".ppm"; }

  ObjectJson& add(int picture, const std::vector<double>& box) {
    ObjectJson object = {{"id", 10 + json_["annotations"].size()},
                         {"image_id", picture + 1},
                         {"category_id", 1 + picture % 2},
                         {"bbox", box},
                         {"area", box[2] * box[3]},
                         {"iscrowd", 0}};
    const double x0 = box[0], y0 = box[1], x1 = box[0] + box[2], y1 = box[1] + box[3];
    object["segmentation"] = {{x0, y0, x1, y0, x1, y1, x0, y1}};
    json_["annotations"].push_back(object);
    return json_["annotations"].back();
  }

  ProgramResult run(const std::string& command, std::vector<std::string> options) {
    data_.write("objects.json", json_.dump());
    options.insert(options.begin(), {command, "--data", data_.path() + "/pictures", "--objects",
                                     data_.path() + "/objects.json"});
    return run_stoker(options);
  }

  TempFolder data_;
  ObjectJson json_;
};

TEST_F(AnnotatedData, CheckNamesWhatIsWrong) {
  for (int i = 0; i < 5; ++i) add(i, {4, 5, 20, 30});
  EXPECT_EQ(run("check", {}).exit_code, 0);
  add(1, {50, 30, 20, 10});
  ObjectJson& thin = add(2, {10, 10, 5, 5});
  thin["segmentation"] = {{10.01, 10.01, 10.02, 10.01, 10.02, 10.02}};
  add(3, {10, 10, -5, 5});
  json_["images"][4]["width"] = 65;
  data_.write("pictures/other.ppm", "P6\n1 1\n255\nabc");
  json_["images"].push_back(
      {{"id", 99}, {"file_name", "gone.jpg"}, {"width", 640}, {"height", 480}});
  const ProgramResult result = run("check", {});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  std::map<std::string, std::string> messages;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    const ObjectJson row = ObjectJson::parse(line);
    if (row.contains("sample_id")) {
      EXPECT_EQ(row["reason"], "annotation");
    }
    messages[row["name"]] = row["message"];
  }
  EXPECT_THAT(messages[name(1)], HasSubstr("(id 15): the box (50, 30, 70, 40) reaches out of the "
                                           "picture of 64 x 48 pixels"));
  EXPECT_THAT(messages[name(2)], HasSubstr("(id 16): its polygons cover no pixel"));
  EXPECT_THAT(messages[name(3)], HasSubstr("negative width"));
  EXPECT_THAT(messages[name(4)], HasSubstr("65 x 48 pixels, the picture has 64 x 48"));
  EXPECT_EQ(messages.size(), 6u) << result.out;
  EXPECT_TRUE(messages.contains("other.ppm") && messages.contains("gone.jpg"));
}

TEST_F(AnnotatedData, PeekDrawsThem) {
  add(0, {8, 10, 20, 16});
  for (int i = 1; i < 5; ++i) add(i, {8, 10, 20, 16});
  const std::string sheet = data_.path() + "/sheet.png";
  const ProgramResult result =
      run("peek", {"-o", sheet, "--count", "1", "--augment", "resize((48, 64))", "--no-shuffle"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  ASSERT_TRUE(png_image_begin_read_from_file(&header, sheet.c_str()));
  header.format = PNG_FORMAT_RGB;
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(header));
  ASSERT_TRUE(png_image_finish_read(&header, nullptr, pixels.data(), 0, nullptr));
  // A picture begins at (8, 8), twice as large.
  const auto at = [&](int x, int y) {
    const uint8_t* pixel = &pixels[size_t{3} * ((8 + 2 * y) * header.width + 8 + 2 * x)];
    return std::vector<int>(pixel, pixel + 3);
  };
  EXPECT_THAT(at(4, 4), ElementsAre(0x40, 0x40, 0x40));
  EXPECT_THAT(at(40, 30), ElementsAre(0x40, 0x40, 0x40));
  const std::vector<int> frame = at(8, 20), inside = at(18, 22);
  EXPECT_NE(frame, at(4, 4));
  EXPECT_NE(inside, at(4, 4));
  EXPECT_NE(inside, frame);
}

TEST_F(AnnotatedData, DumpWritesThem) {
  for (int i = 0; i < 5; ++i) add(i, {8, 10, 20, 16});
  add(0, {30, 20, 10, 10});
  const std::string out = data_.path() + "/out";
  const ProgramResult result =
      run("dump", {"--out", out, "--batch", "5", "--steps", "1", "--augment",
                   "resize((48, 64)) | vertical_flip(1)", "--no-shuffle"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const NpyFile boxes = read_npy(out + "/target_boxes_00000.npy");
  const auto* numbers = reinterpret_cast<const float*>(boxes.data.data());
  EXPECT_THAT(std::vector<float>(numbers, numbers + 8), ElementsAre(8, 22, 28, 38, 30, 18, 40, 28));
  const NpyFile counts = read_npy(out + "/target_object_count_00000.npy");
  EXPECT_EQ(counts.values<int32_t>()[0], 2);
  EXPECT_THAT(read_npy(out + "/target_image_id_00000.npy").values<int64_t>(),
              ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(AnnotatedData, CheckReadsThemFromRecords) {
  const std::string picture = "P6\n64 48\n255\n" + std::string(size_t{3} * kWide * kHigh, '@');
  const auto sample = [&](const std::string& key, const char* box) {
    return tar_member(key + ".ppm", picture) +
           tar_member(key + ".json", R"([{"category": "cat", "bbox": )" + std::string(box) + "}]");
  };
  const std::string tar =
      data_.write("x.tar", sample("a", "[1, 2, 3, 4]") + sample("b", "[50, 2, 30, 4]") +
                               sample("c", "[1, 2, 3]") + tar_end());
  const ProgramResult result = run_stoker({"check", "--data", tar, "--objects-from", "json"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("x.tar/b.ppm"));
  EXPECT_THAT(result.out, HasSubstr("object 0 (id 0): the box (50, 2, 80, 6) reaches out of the "
                                    "picture of 64 x 48 pixels"));
  EXPECT_THAT(result.out, HasSubstr("object 0 (id 0): the bbox has 3 numbers, must be 4"));
  const ProgramResult wrong =
      run_stoker({"check", "--data", tar, "--objects-from", "boxes,labels,mine"});
  EXPECT_EQ(wrong.exit_code, 2) << wrong.err;
  EXPECT_THAT(wrong.err, HasSubstr("--data: " + tar +
                                   ": at byte 0: a tar has no objects in "
                                   "'boxes,labels,mine': --objects-from takes json"));
}

TEST_F(AnnotatedData, BenchesFeedThem) {
  for (int i = 0; i < 5; ++i) add(i, {8, 10, 20, 16});
  data_.write("objects.json", json_.dump());
  for (const char* from : {"memory", "files"}) {
    std::vector<std::string> options = {"bench",        "feed",
                                        "--data",       data_.path() + "/pictures",
                                        "--objects",    data_.path() + "/objects.json",
                                        "--size",       "32",
                                        "--workers",    "1",
                                        "--batch",      "4",
                                        "--ring-depth", "2",
                                        "--cpu-ms",     "1",
                                        "--repeats",    "6",
                                        "--json"};
    if (from == std::string("memory")) options.emplace_back("--in-memory");
    const ProgramResult result = run_stoker(options);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto report = nlohmann::ordered_json::parse(result.out);
    EXPECT_EQ(report["settings"]["data"],
              data_.path() + "/pictures, from " + from + "; objects of 2 classes, with masks");
  }
}

}  // namespace
}  // namespace stoker
