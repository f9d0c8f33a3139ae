// stoker pack: shards with the bytes of the files, which appear whole or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/cli_harness.h"
#include "tests/tools/packed_files.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::string_literals;

class Pack : public ::testing::Test {
 protected:
  ProgramResult pack(std::vector<std::string> more, const std::string& out = "") {
    std::vector<std::string> words = {"pack", "--data", data_.path(), "--out",
                                      out.empty() ? out_ : out};
    words.insert(words.end(), more.begin(), more.end());
    return run_stoker(words);
  }
  std::string shard(const std::string& name) const { return read_text(out_ + "/" + name); }

  TempFolder data_, place_;
  const std::string out_ = place_.path() + "/shards";
};

TEST_F(Pack, KeepsTheBytesOrderAndLabels) {
  const std::string first = jpeg_file(1), second = jpeg_file(2, 40), third = jpeg_file(3);
  data_.write("train/cat/1.jpg", first);
  data_.write("train/cat/2.JPEG", second);
  data_.write("val/dog/1.png", third);  // the bytes say what it is
  const auto octal = [](const std::string& content) {
    char digits[12];
    std::snprintf(digits, sizeof digits, "%011o", static_cast<unsigned>(content.size()));
    return std::string(digits);
  };
  const auto member = [&](const std::string& name, const std::string& content) {
    return tar_header(name, octal(content), '0') + in_blocks(content);
  };
  const std::string of_train = member("train/cat/1.jpg", first) + member("train/cat/1.cls", "0") +
                               member("train/cat/2.jpg", second) + member("train/cat/2.cls", "0");
  const std::string of_test = member("val/dog/1.jpg", third) + member("val/dog/1.cls", "1");
  const std::string end(1024, '\0');
  ProgramResult result = pack({"--format", "tar"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("3 images, 3 packed, 3 indexed, 0 bad, "));
  EXPECT_THAT(result.err,
              HasSubstr(out_ + ": 1 shard of " + std::to_string((of_train + of_test + end).size()) +
                        " bytes, "));
  EXPECT_THAT(names_in(out_), ElementsAre("classes.txt", "data-000000.tar", "seek-index.bin"));
  EXPECT_EQ(shard("data-000000.tar"), of_train + of_test + end);
  EXPECT_EQ(shard("classes.txt"), "cat\ndog\n");
  EXPECT_THAT(names_in(place_.path()), ElementsAre("shards"));
  // A part of the data, into a folder that is there and empty, by a path with a slash at its end.
  const std::string other = place_.make_folder("other");
  result = pack({"--format", "tar", "--split", "test", "--json"}, other + "/");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(read_text(other + "/test-000000.tar"), of_test + end);
  EXPECT_EQ(read_text(other + "/classes.txt"), "cat\ndog\n");
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["folder"], other + "/");
  EXPECT_EQ(json["format"], "tar");
  EXPECT_EQ(json["images"], 1);
  EXPECT_EQ(json["packed"], 1);
  EXPECT_EQ(json["shards"], 1);
  EXPECT_EQ(json["image_bytes"], third.size());
  EXPECT_EQ(json["file_bytes"], (of_test + end).size());
  EXPECT_TRUE(json["bad"].empty());
}

TEST_F(Pack, AShardEndsBeforeItIsTooLargeAndHasASample) {
  const std::string small = jpeg_file(1);
  // Bytes behind the image's end are part of the file.
  const auto write = [&](const std::string& name, size_t bytes) {
    data_.write(name, small + std::string(bytes - small.size(), 'x'));
  };
  constexpr size_t kHalf = 512 << 10, kAround = 3 * 512, kEnd = 1024;
  constexpr size_t kRest = (1 << 20) - kHalf - 2 * kAround - kEnd;
  write("a/1.jpg", 6 * kHalf);
  write("a/2.jpg", kHalf);
  write("a/3.jpg", kRest);  // exactly 1 MiB, together with the one before
  write("a/4.jpg", kHalf);
  write("a/5.jpg", kRest + 1);
  ASSERT_EQ(pack({"--format", "tar", "--shard-mib", "1"}).exit_code, 0);
  std::vector<size_t> sizes;
  for (const std::string& name : names_in(out_)) {
    if (name != "classes.txt") sizes.push_back(shard(name).size());
  }
  EXPECT_THAT(sizes, ElementsAre(6 * kHalf + kAround + kEnd, 1 << 20, kHalf + kAround + kEnd,
                                 kRest + 512 + kAround + kEnd));
  ASSERT_EQ(pack({"--format", "parquet", "--shard-mib", "1"}, out_ + "2").exit_code, 0);
  EXPECT_THAT(names_in(out_ + "2"),
              ElementsAre("classes.txt", "data-00000-of-00003.parquet",
                          "data-00001-of-00003.parquet", "data-00002-of-00003.parquet"));
}

TEST_F(Pack, ShardsFeedThePixelsOfTheFolder) {
  make_small_shapes(data_.path());
  // With the name of the data's folder; returns all pixels.
  const auto pixels_of = [&](const std::string& data, const std::string& seek_index) {
    const std::string out = place_.path() + "/dump";
    std::filesystem::remove_all(out);
    const ProgramResult result =
        run_stoker({"dump", "--data", data, "--split", "all", "--batch", "16", "--size", "24",
                    "--seek-index", seek_index, "--out", out});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::string all;
    for (const std::string& name : names_in(out)) {
      if (name.ends_with(".npy")) all += read_text(out + "/" + name);
    }
    return all;
  };
  const std::string expected = pixels_of(data_.path(), "off");
  ASSERT_GT(expected.size(), size_t{60} * 24 * 24 * 3);
  for (const std::string format : {"tar", "parquet"}) {
    const std::string shards = place_.path() + "/" + format;
    ASSERT_EQ(pack({"--format", format}, shards).exit_code, 0);
    EXPECT_EQ(pixels_of(shards, "auto"), expected) << format;
    EXPECT_EQ(pixels_of(shards, "off"), expected) << format;
    EXPECT_EQ(pixels_of(shards, shards + "/seek-index.bin"), expected) << format;
  }
}

TEST_F(Pack, TheSameDataGiveTheSameBytes) {
  make_small_shapes(data_.path());
  const auto touch = [&] {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(data_.path())) {
      std::filesystem::last_write_time(entry, std::filesystem::file_time_type::clock::now());
    }
  };
  for (const std::string format : {"tar", "parquet"}) {
    const std::string first = place_.path() + "/1" + format, second = place_.path() + "/2" + format;
    ASSERT_EQ(pack({"--format", format}, first).exit_code, 0);
    touch();
    ASSERT_EQ(pack({"--format", format}, second).exit_code, 0);
    ASSERT_EQ(names_in(first), names_in(second));
    EXPECT_EQ(names_in(first).size(), 3u);
    for (const std::string& name : names_in(first)) {
      EXPECT_EQ(read_text(first + "/" + name), read_text(second + "/" + name)) << name;
    }
  }
}

TEST_F(Pack, CifarBecomesPngFilesWithTheSamePixels) {
  std::string records;
  for (int i = 0; i < 3; ++i) {
    records += static_cast<char>(i);
    for (int at = 0; at < 3072; ++at) records += static_cast<char>(at * (at / 1024 + 3) + i);
  }
  data_.write("test_batch.bin", records);
  const ProgramResult result = pack({"--format", "tar", "--split", "test"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string file = shard("test-000000.tar");
  size_t at = 0;
  for (int i = 0; i < 3; ++i) {
    const std::string key = "test_batch_bin:" + std::to_string(i);
    EXPECT_EQ(file.substr(at, key.size() + 5), key + ".png\0"s);
    const size_t size = std::stoul(file.substr(at + 124, 11), nullptr, 8);
    const std::vector<uint8_t> pixels = pixels_of(as_bytes(file).subspan(at + 512, size));
    ASSERT_EQ(pixels.size(), 3072u);
    for (int pixel = 0; pixel < 1024; ++pixel) {
      for (int channel = 0; channel < 3; ++channel) {
        const int planar = channel * 1024 + pixel;
        ASSERT_EQ(pixels[static_cast<size_t>(3 * pixel + channel)],
                  static_cast<uint8_t>(records[static_cast<size_t>(i * 3073 + 1 + planar)]));
      }
    }
    at += 512 + in_blocks(std::string(size, '\0')).size();
    EXPECT_EQ(file.substr(at, key.size() + 5), key + ".cls\0"s);
    EXPECT_EQ(file[at + 512], static_cast<char>('0' + i));
    at += 1024;
  }
  EXPECT_EQ(file.size(), at + 1024);
}

TEST_F(Pack, ListsBadFilesAndLeavesThemOut) {
  const std::string good = jpeg_file(1);
  data_.write("a/1.jpg", good);
  data_.write("a/2.jpg", "");
  data_.write("a/3.jpg", "no image at all");
  data_.link(data_.path() + "/nowhere.jpg", "a/4.jpg");
  const std::string cut = good.substr(0, good.size() - 20);
  data_.write("b/5.jpg", cut);  // its header is fine: that stays as it is
  ProgramResult result = pack({"--format", "tar"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(count_lines(result.out), 3) << result.out;
  const auto line = nlohmann::json::parse(result.out.substr(0, result.out.find('\n')));
  EXPECT_EQ(line["name"], "a/2.jpg");
  EXPECT_EQ(line["path"], data_.path() + "/a/2.jpg");
  EXPECT_EQ(line["reason"], "empty");
  EXPECT_THAT(result.out, HasSubstr(R"("reason":"not_an_image")"));
  EXPECT_THAT(result.out, HasSubstr(R"("reason":"unreadable")"));
  EXPECT_THAT(result.out, HasSubstr("open: No such file or directory"));
  EXPECT_THAT(result.err, HasSubstr("5 images, 2 packed, 1 indexed, 3 bad, "));
  const std::string file = shard("data-000000.tar");
  EXPECT_EQ(file.size(), 7 * 512 + in_blocks(good).size() + in_blocks(cut).size() + 1024 - 512);
  EXPECT_THAT(file, HasSubstr("a/1.jpg"));
  EXPECT_THAT(file, HasSubstr(cut));
  result = pack({"--format", "parquet", "--json"}, out_ + "2");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(nlohmann::json::parse(result.out)["bad"].size(), 3u);
  // Nothing is left to write.
  result = pack({"--format", "tar", "--split", "train"}, out_ + "3");
  EXPECT_EQ(result.exit_code, 1) << "class folders at the top are any part";
  std::filesystem::remove(data_.path() + "/a/1.jpg");
  std::filesystem::remove(data_.path() + "/b/5.jpg");
  result = pack({"--format", "tar"}, out_ + "4");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(count_lines(result.out), 3);
  EXPECT_THAT(result.err, HasSubstr("no image could be read: nothing was written"));
  EXPECT_THAT(names_in(place_.path()), ElementsAre("shards", "shards2", "shards3"));
}

TEST_F(Pack, InterruptedLeavesNothing) {
  // A picture under so many names that the command does not finish.
  const std::string file = data_.write("a/0.jpg", jpeg_file(1, 400));
  for (int i = 1; i < 20000; ++i) data_.link(file, "a/" + std::to_string(i) + ".jpg");
  const std::string empty = place_.make_folder("empty");
  for (const int signal : {SIGINT, SIGTERM}) {
    for (const std::string format : {"tar", "parquet"}) {
      RunningProgram program({STOKER_PROGRAM, "pack", "--data", data_.path(), "--out", empty,
                              "--shard-mib", "1", "--format", format});
      const auto writes = [&] {
        for (const std::string& name : names_in(place_.path())) {
          if (name != "empty") return names_in(place_.path() + "/" + name).size() > 3;
        }
        return false;
      };
      EXPECT_TRUE(program.wait_until(writes, 60)) << "it writes shards beside the folder";
      program.send(signal);
      const ProgramResult result = program.wait();
      EXPECT_EQ(result.exit_code, 128 + signal) << result.err;
      EXPECT_THAT(result.err, HasSubstr("stopping; once more to stop at once"));
      EXPECT_THAT(result.err, HasSubstr("interrupted: nothing was written"));
      EXPECT_THAT(names_in(place_.path()), ElementsAre("empty"));
      EXPECT_TRUE(names_in(empty).empty());
    }
  }
}

TEST_F(Pack, ErrorsAreOneLineAndLeaveNothing) {
  data_.write("a/1.jpg", jpeg_file(1, 600));
  const auto refused = [&](const std::vector<std::string>& words, const std::string& out, int code,
                           const std::string& message) {
    const ProgramResult result = pack(words, out);
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
  };
  const std::string full = place_.make_folder("full"), file = place_.write("file");
  place_.write("full/x\ny");
  place_.link(place_.path() + "/nowhere", "dangling");
  refused({"--format", "tar"}, full, 2, "--out: " + full + " is not empty: it has x\\x0ay (see");
  refused({"--format", "tar"}, file, 2, "--out: " + file + " is there, and is no folder (see");
  refused({"--format", "tar"}, place_.path() + "/dangling", 2, "is there, and is no folder");
  refused({"--format", "tar"}, file + "/out", 3, "cannot make the folder " + file + "/out: ");
  refused({"--format", "tar"}, "/proc/out", 3, "cannot make the folder /proc/out: ");
  refused({"--format", "zip"}, out_, 2, "--format");
  refused({}, out_, 2, "--format is required");
  refused({"--format", "tar", "--shard-mib", "0"}, out_, 2, "--shard-mib");
  refused({"--format", "tar", "--split", "test"}, out_, 2, "no folder test, val or validation");
  refused({"--format", "tar", "--data", "/no/such"}, out_, 2, "--data: /no/such");
  // A limit on a file's size is reported like a full disk.
  for (const std::string format : {"tar", "parquet"}) {
    const ProgramResult result =
        run_program({"/bin/sh", "-c", "ulimit -f 8; exec \"$@\"", "sh", STOKER_PROGRAM, "pack",
                     "--data", data_.path(), "--out", out_, "--format", format});
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.err, HasSubstr("cannot write "));
    EXPECT_THAT(result.err, HasSubstr("File too large"));
  }
  data_.write("line\nbreak/1.jpg", jpeg_file(2));
  refused({"--format", "tar"}, out_, 2,
          "the name of class 1 has a line break, and classes.txt has a name per line: "
          "line\\x0abreak (see");
  EXPECT_THAT(names_in(place_.path()), ElementsAre("dangling", "file", "full"));
}

}  // namespace
}  // namespace stoker
