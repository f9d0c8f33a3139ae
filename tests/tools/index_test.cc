// stoker index: one file of seek indexes, which training finds and which changes no pixel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "pipeline/seek_index/file.h"
#include "pipeline/source.h"
#include "tests/tools/cli_harness.h"
#include "tools/data/jpeg_writer.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

class Index : public ::testing::Test {
 protected:
  Index() {
    setenv("XDG_CACHE_HOME", (cache_.path() + "/home").c_str(), 1);
    make_small_shapes(data_.path());
  }
  ~Index() override { unsetenv("XDG_CACHE_HOME"); }

  // Returns what is delivered with these options, without the columns that every run has.
  std::string dump(const std::string& seek_index, std::string& err) {
    TempFolder out;
    const ProgramResult result = run_stoker(
        {"dump", "--data", data_.path(), "--size", "32", "--augment", "random_resized_crop | flip",
         "--batch", "40", "--pixels", "fast", "--out", out.path(), "--seek-index", seek_index});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    err = result.err;
    return read_text(out.path() + "/images_00000.npy") + read_text(out.path() + "/rows.jsonl");
  }

  TempFolder data_, cache_;
};

TEST_F(Index, MakesAFileThatLoadersFindByThemselves) {
  ProgramResult result = run_stoker({"index", "--data", data_.path()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("60 images, 60 indexed, 0 bad, 0 of other kinds"));
  ASSERT_EQ(std::distance(std::filesystem::directory_iterator(cache_.path() + "/home/stoker"), {}),
            1);
  std::string err;
  const std::string plain = dump("off", err);
  EXPECT_EQ(dump("auto", err), plain);
  EXPECT_THAT(err, ::testing::Not(HasSubstr("seek index")));
  // A damaged file is still found, and reported.
  const auto entry = *std::filesystem::directory_iterator(cache_.path() + "/home/stoker");
  std::filesystem::resize_file(entry, 100);
  EXPECT_EQ(dump("auto", err), plain);
  EXPECT_THAT(err, HasSubstr("is not used"));
}

TEST_F(Index, TheFileIsTheSameForAnyNumberOfThreads) {
  std::string first;
  for (const std::string workers : {"1", "3"}) {
    const std::string path = cache_.path() + "/" + workers + ".bin";
    const ProgramResult result = run_stoker({"index", "--data", data_.path(), "--out", path,
                                             "--granularity", "8", "--workers", workers, "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_EQ(json["indexed"], 60);
    EXPECT_EQ(json["granularity"], "8");
    EXPECT_EQ(json["file"], path);
    EXPECT_EQ(json["file_bytes"], std::filesystem::file_size(path));
    EXPECT_TRUE(json["bad"].empty());
    if (first.empty()) first = read_text(path);
    EXPECT_EQ(read_text(path), first);
  }
  std::string err;
  EXPECT_EQ(dump(cache_.path() + "/1.bin", err), dump("off", err));
}

TEST_F(Index, ListsBadFilesAndLeavesOtherKindsOut) {
  const std::string good = read_text(data_.path() + "/train/star/star_000000.jpg");
  data_.write("train/star/cut.jpg", good.substr(0, good.size() / 2));
  data_.write("train/arrow/empty.jpg", "");
  data_.link(data_.path() + "/nowhere.jpg", "test/ring/broken_link.jpg");
  const ProgramResult result =
      run_stoker({"index", "--data", data_.path(), "--out", cache_.path() + "/i.bin"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, run_stoker({"check", "--data", data_.path()}).out);
  EXPECT_EQ(count_lines(result.out), 3);
  EXPECT_THAT(result.err, HasSubstr("63 images, 60 indexed, 3 bad, 0 of other kinds"));
}

// Pictures whose files are large enough.
void add_noise(const TempFolder& data, int count) {
  constexpr int kSide = 96;
  std::mt19937 random(1);
  std::vector<uint8_t> pixels(size_t{3} * kSide * kSide);
  for (int i = 0; i < count; ++i) {
    for (uint8_t& value : pixels) value = static_cast<uint8_t>(random());
    const std::vector<uint8_t> jpeg = encode_jpeg({pixels.data(), kSide, kSide, 3 * kSide}, 95);
    data.write("train/star/noise" + std::to_string(i) + ".jpg",
               {reinterpret_cast<const char*>(jpeg.data()), jpeg.size()});
  }
}

TEST_F(Index, TrainingLeavesOneOnItsWay) {
  constexpr int kNoisy = 12;
  add_noise(data_, kNoisy);
  const auto indexes = [&] {
    std::string problem;
    const auto source = open_source(data_.path(), Split::train);
    const auto file = SeekIndexFile::open(default_seek_index_path(*source), problem);
    return file ? file->count() : 0;
  };
  const auto train = [&](const std::string& epochs) {
    TempFolder out;
    return run_stoker({"train", "--data", data_.path(), "--model", "airnet-narrow", "--batch", "8",
                       "--epochs", epochs, "--augment", "random_resized_crop | flip", "--out",
                       out.path() + "/a"});
  };
  ProgramResult result = train("1");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(indexes(), 0);
  result = train("2");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(indexes(), kNoisy);
  result = run_stoker({"train", "--data", data_.path(), "--build-seek-index"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--seek-index"));
}

// Makes a noisy picture under so many names that no command finishes.
void make_long_work(const TempFolder& data) {
  constexpr int kSide = 1600, kNames = 4000;
  std::mt19937 random(1);
  std::vector<uint8_t> pixels(size_t{3} * kSide * kSide);
  for (uint8_t& value : pixels) value = static_cast<uint8_t>(random());
  const std::vector<uint8_t> jpeg = encode_jpeg({pixels.data(), kSide, kSide, 3 * kSide}, 90);
  const std::string file =
      data.write("train/a/0.jpg", {reinterpret_cast<const char*>(jpeg.data()), jpeg.size()});
  for (int i = 1; i < kNames; ++i) data.link(file, "train/a/" + std::to_string(i) + ".jpg");
}

TEST_F(Index, InterruptedLeavesEverythingAsItWas) {
  TempFolder data;
  make_long_work(data);
  const std::string folder = cache_.make_folder("indexes"), indexes = folder + "/i.bin";
  cache_.write("indexes/i.bin", "of an older version");
  const auto files = [&] { return std::distance(std::filesystem::directory_iterator(folder), {}); };
  const auto interrupt = [&](const std::vector<std::string>& words) {
    RunningProgram program(words);
    EXPECT_TRUE(program.wait_until([&] { return files() == 2; }, 60)) << "it writes a second file";
    program.send(SIGINT);
    return program.wait();
  };
  const ProgramResult index =
      interrupt({STOKER_PROGRAM, "index", "--data", data.path(), "--out", indexes});
  EXPECT_EQ(index.exit_code, 128 + SIGINT) << index.err;
  EXPECT_THAT(index.err, HasSubstr("interrupted: nothing was written"));
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(read_text(indexes), "of an older version");
}

TEST_F(Index, ErrorsAreOneLine) {
  const std::string file = cache_.path() + "/file";
  cache_.write("file");
  ProgramResult result =
      run_stoker({"index", "--data", data_.path(), "--out", file + "/indexes.bin"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("cannot write " + file + "/indexes.bin: Not a directory"));
  result = run_stoker({"index", "--data", data_.path(), "--out", "/dev/full"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("cannot write /dev/full"));
  EXPECT_EQ(run_stoker({"index", "--data", cache_.path() + "/none"}).exit_code, 2);
  EXPECT_EQ(run_stoker({"index", "--data", data_.path(), "--granularity", "7"}).exit_code, 2);
  // Nobody who feeds ignores the option: each refuses a file that is not there.
  const std::vector<std::string> data = {"--data", data_.path()};
  const std::vector<std::string> none = {"--seek-index", cache_.path() + "/none.bin"};
  const std::vector<std::vector<std::string>> feeds = {
      {"dump", "--pixels", "fast", "--out", cache_.path() + "/d"},
      {"profile", "--demand", "300", "--seconds", "0.5", "--out", cache_.path() + "/p"},
      {"profile", "--seconds", "0.5", "--out", cache_.path() + "/q", "--", "train", "--model",
       "airnet-narrow", "--batch", "16"}};
  for (std::vector<std::string> words : feeds) {
    words.insert(words.end(), data.begin(), data.end());
    words.insert(words.end(), none.begin(), none.end());
    result = run_stoker(words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr("--seek-index: " + none[1] + ": no such file"));
  }
}

}  // namespace
}  // namespace stoker
