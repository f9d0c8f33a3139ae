// stoker check finds exactly the bad files, with the reason, and reports them by its exit code.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/cli_harness.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

std::map<std::string, std::string> reasons_in(const std::string& jsonl) {
  std::map<std::string, std::string> reasons;
  std::istringstream lines(jsonl);
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    reasons[row["name"]] = row["reason"];
    EXPECT_TRUE(row.contains("sample_id") && row.contains("label") && row.contains("path") &&
                row.contains("byte_offset") && row.contains("message"));
  }
  return reasons;
}

TEST(Check, AGoodDataSetHasExitCodeZeroAndAnEmptyList) {
  TempFolder data;
  make_small_shapes(data.path());
  const ProgramResult result = run_stoker({"check", "--data", data.path()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("60 images of 10 classes, 0 bad"));
}

TEST(Check, ListsExactlyTheBadFiles) {
  TempFolder data;
  make_small_shapes(data.path());
  const std::string good = read_text(data.path() + "/train/star/star_000000.jpg");
  data.write("train/arrow/empty.jpg", "");
  data.write("train/disc/text.png", "hello");
  data.write("train/star/cut.jpg", good.substr(0, good.size() / 2));
  // Damage at the end of the scan is found only by decoding everything.
  data.write("test/ring/no_end.jpg", good.substr(0, good.size() - 2));
  data.link(data.path() + "/nowhere.jpg", "test/ring/broken_link.jpg");
  const std::map<std::string, std::string> expected = {{"train/arrow/empty.jpg", "empty"},
                                                       {"train/disc/text.png", "not_an_image"},
                                                       {"train/star/cut.jpg", "truncated"},
                                                       {"test/ring/no_end.jpg", "truncated"},
                                                       {"test/ring/broken_link.jpg", "unreadable"}};
  ProgramResult result = run_stoker({"check", "--data", data.path()});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(reasons_in(result.out), expected);

  result = run_stoker(
      {"check", "--data", data.path(), "-o", data.path() + "/bad.jsonl", "--workers", "3"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(reasons_in(read_text(data.path() + "/bad.jsonl")), expected);
}

TEST(Check, CountsAndNamesWhatIsLeftOut) {
  TempFolder data;
  make_small_shapes(data.path());
  data.write("train/star/b.gif");
  data.write("train/star/a.GIF");
  data.write("train/disc/notes");
  data.write("train/beside.jpg");
  const ProgramResult result = run_stoker({"check", "--data", data.path()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(count_lines(result.out), 3);
  std::map<std::string, int> files;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    EXPECT_EQ(row["reason"], "left_out");
    EXPECT_EQ(row["path"], data.path() + "/" + row["name"].get<std::string>());
    files[row["name"]] = row["files"];
  }
  EXPECT_EQ(files, (std::map<std::string, int>{
                       {"train/star/a.GIF", 2}, {"train/disc/notes", 1}, {"train/beside.jpg", 1}}));
  EXPECT_THAT(
      result.err,
      HasSubstr("2 .gif files are left out (not read from image folders, but from lists and "
                "shards), as train/star/a.GIF\n"));
  EXPECT_THAT(result.err, HasSubstr("1 .jpg file is left out (in no class folder)"));
}

TEST(Check, PicturesWithTwoLabelsAreBad) {
  TempFolder data;
  make_small_shapes(data.path());
  data.link(data.path() + "/train/star", "train/disc/more");
  const ProgramResult result = run_stoker({"check", "--data", data.path()});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const auto row = nlohmann::json::parse(result.out);
  EXPECT_EQ(row["reason"], "two_labels");
  EXPECT_EQ(row["files"], 4);
  EXPECT_THAT(result.err, HasSubstr("4 files have two labels, as train/disc/more/star_000000.jpg, "
                                    "which is train/star/star_000000.jpg"));
}

TEST(Check, FindsBrokenAnnotationsAndPicturesWithoutThem) {
  TempFolder data;
  make_small_shapes(data.path());
  const std::string json = data.write("objects.json", R"({
      "categories": [{"id": 1, "name": "star"}],
      "images": [{"id": 1, "file_name": "star_000000.jpg"}, {"id": 2, "file_name": "gone.jpg"}],
      "annotations": [{"id": 5, "image_id": 1, "category_id": 1, "bbox": [1, 2, -3, 4]}]})");
  const ProgramResult result =
      run_stoker({"check", "--data", data.path() + "/train/star", "--objects", json});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("1 images of 0 classes, 1 bad"));
  EXPECT_THAT(result.out, HasSubstr("\"reason\":\"annotation\""));
  EXPECT_THAT(result.out, HasSubstr("object 0 (id 5): the box has a negative width"));
  EXPECT_THAT(result.out, HasSubstr("\"reason\":\"not_annotated\""));
  EXPECT_THAT(result.out, HasSubstr("\"reason\":\"no_picture\",\"files\":1,\"name\":\"gone.jpg\""));
  const ProgramResult wrong =
      run_stoker({"check", "--data", data.path(), "--objects", data.path() + "/none"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--objects: " + data.path() + "/none"));
}

TEST(Check, SplitAndLimitsAreObeyed) {
  TempFolder data;
  make_small_shapes(data.path());
  data.write("test/ring/text.jpg", "hello");
  EXPECT_EQ(run_stoker({"check", "--data", data.path(), "--split", "train"}).exit_code, 0);
  const ProgramResult result =
      run_stoker({"check", "--data", data.path(), "--split", "train", "--max-pixels", "2000"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(count_lines(result.out), 40);
  EXPECT_THAT(result.out, HasSubstr("too_large"));
}

TEST(Check, AWrongPathIsAUsageError) {
  TempFolder data;
  data.make_folder("empty");
  data.make_folder("class_without_images/x");
  data.write("file", "x");
  for (const std::string name : {"missing", "empty", "class_without_images", "file"}) {
    const ProgramResult result = run_stoker({"check", "--data", data.path() + "/" + name});
    EXPECT_EQ(result.exit_code, 2) << name;
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(data.path() + "/" + name));
  }
  EXPECT_EQ(run_stoker({"check"}).exit_code, 2);
}

// Neither is read, and no pipe is waited for.
TEST(Check, CountsPipesAndDevices) {
  TempFolder data;
  make_small_shapes(data.path());
  ASSERT_EQ(mkfifo((data.path() + "/train/star/pipe.jpg").c_str(), 0600), 0);
  data.link("/dev/zero", "train/star/zero.jpg");
  const ProgramResult result = run_stoker({"check", "--data", data.path()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto row = nlohmann::json::parse(result.out);
  EXPECT_EQ(row["files"], 2);
  EXPECT_EQ(row["name"], "train/star/pipe.jpg");
  EXPECT_THAT(result.err, HasSubstr("2 entries are left out (no file, but a pipe, a socket or a "
                                    "device), as train/star/pipe.jpg\n"));
}

TEST(Check, AListShowsAbsolutePathsAsTheyAre) {
  TempFolder data;
  data.write("list.csv", "path,label\n/etc/passwd,0\n");
  const ProgramResult result = run_stoker({"check", "--data", data.path() + "/list.csv"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(nlohmann::json::parse(result.out)["path"], "/etc/passwd");
}

TEST(Check, ALabelThatIsANumberButNoClassIsRefused) {
  TempFolder data;
  const auto refusal = [&](const std::string& name, const std::string& text) {
    const std::string list = data.write(name, text);
    const ProgramResult result = run_stoker({"check", "--data", list});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(list));
    return result.err;
  };
  for (const std::string label : {"0.5", "99999999999999999999", "1e3", "-0.25", ".5"}) {
    EXPECT_THAT(refusal("a.csv", "path,label\na.jpg," + label + "\n"),
                HasSubstr("line 2: the label '" + label + "' is a number, but none"));
    EXPECT_THAT(refusal("b.csv", "path,label\na.jpg,3\nb.jpg," + label + "\n"),
                HasSubstr("line 3: the label '" + label + "'"));
  }
  EXPECT_THAT(refusal("c.jsonl",
                      "{\"path\": \"a.jpg\", \"label\": 1}\n"
                      "{\"path\": \"a.jpg\", \"label\": 1, \"label\": 2}\n"),
              HasSubstr("line 2: the key 'label' is there twice"));
  // Digits may be text, as versions are.
  const std::string list = data.write("d.csv", "path,label\na.jpg,v1.5\nb.jpg,nan\n");
  EXPECT_EQ(run_stoker({"check", "--data", list}).exit_code, 1);  // there are no such files
}

TEST(Check, ValIsAnotherNameOfTheTestPart) {
  TempFolder data;
  make_small_shapes(data.path());
  std::filesystem::rename(data.path() + "/test", data.path() + "/val");
  for (const std::string name : {"val", "validation", "test"}) {
    const ProgramResult result = run_stoker({"check", "--data", data.path(), "--split", name});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("20 images of 10 classes"));
  }
}

}  // namespace
}  // namespace stoker
