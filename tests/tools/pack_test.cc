// stoker pack: shards with the bytes of the files, which appear whole or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "decode/image_decoder.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/tools/cli_harness.h"
#include "tools/data/image_file_reader.h"
#include "tools/data/jpeg_writer.h"
#include "tools/data/parquet_writer.h"
#include "tools/data/sample_keys.h"
#include "tools/data/tar_writer.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::string_literals;

std::string jpeg_file(int seed, int side = 16) {
  std::vector<uint8_t> pixels(size_t{3} * side * side);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<uint8_t>(i * i / 7 + static_cast<size_t>(seed) * 31);
  }
  const std::vector<uint8_t> file = encode_jpeg({pixels.data(), side, side, 3 * side}, 90);
  return {file.begin(), file.end()};
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::span<const uint8_t> as_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Fills a block of zeros with fields, and its checksum.
std::string tar_header(const std::string& name, const std::string& octal_size, char kind,
                       const std::string& prefix = "") {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  block.replace(100, 7, "0000444");
  block.replace(108, 7, "0000000");
  block.replace(116, 7, "0000000");
  block.replace(124, 11, octal_size);
  block.replace(136, 11, "00000000000");
  block.replace(148, 8, 8, ' ');
  block[156] = kind;
  block.replace(257, 8, "ustar\00000"s);
  block.replace(329, 7, "0000000");
  block.replace(337, 7, "0000000");
  block.replace(345, prefix.size(), prefix);
  int sum = 0;
  for (const char c : block) sum += static_cast<uint8_t>(c);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", static_cast<unsigned>(sum));
  block.replace(148, 7, digits, 7);
  return block;
}

std::string in_blocks(std::string content) {
  content.resize((content.size() + 511) / 512 * 512);
  return content;
}

// Writes a shard of one sample, "content" with label 7, and returns its bytes.
std::string tar_of(const std::string& key) {
  TempFolder folder;
  TarShardWriter writer(folder.path() + "/x.tar");
  const std::string content = "content";
  const ShardSample sample{key, "", "jpg", 7, as_bytes(content)};
  const int64_t expected = writer.bytes_with(sample);
  writer.add(sample);
  EXPECT_EQ(writer.finish(), expected);
  const std::string file = read_text(folder.path() + "/x.tar");
  EXPECT_EQ(static_cast<int64_t>(file.size()), expected);
  return file;
}

std::string plain_tar(const std::string& name, const std::string& prefix = "") {
  return tar_header(name + ".jpg", "00000000007", '0', prefix) + in_blocks("content") +
         tar_header(name + ".cls", "00000000001", '0', prefix) + in_blocks("7") +
         std::string(1024, '\0');
}

TEST(TarShard, IsAUstarArchive) { EXPECT_EQ(tar_of("cat/1"), plain_tar("cat/1")); }

TEST(TarShard, LongNamesAreSplitAtASlash) {
  // 100 bytes fit, one more moves the first folder to the prefix.
  const std::string name = std::string(50, 'a') + "/" + std::string(45, 'b');
  EXPECT_EQ(tar_of(name), plain_tar(name));
  EXPECT_EQ(tar_of(name + "c"), plain_tar(std::string(45, 'b') + "c", std::string(50, 'a')));
  const std::string prefix = std::string(100, 'd') + "/" + std::string(54, 'e');
  EXPECT_EQ(tar_of(prefix + "/" + std::string(96, 'f')), plain_tar(std::string(96, 'f'), prefix));
}

TEST(TarShard, OtherNamesHaveAnExtendedHeader) {
  // A name whose last part is too long, one whose folder is too long, one that is not ASCII. The
  // record's length counts its own digits: 2 digits, 3 digits, and where counting them adds one.
  const std::string record_99 = std::string(85, '.') + "\xC3\xA4";
  for (const std::string& key :
       {std::string(97, 'g'), std::string(156, 'h') + "/i", "gr\303\266\303\237e/1"s, record_99,
        record_99 + "x", std::string(987, 'j'), std::string(988, 'j')}) {
    std::string expected;
    for (const std::string extension : {"jpg", "cls"}) {
      const std::string name = key + "." + extension;
      std::string record = " path=" + name + "\n";
      for (size_t digits = 1; digits <= 4; ++digits) {
        const std::string length = std::to_string(record.size() + digits);
        if (length.size() == digits) {
          record = length + record;
          break;
        }
      }
      std::string ascii = name.substr(0, 100), size(12, '\0');
      for (char& c : ascii) c = static_cast<uint8_t>(c) < 128 ? c : '?';
      std::snprintf(size.data(), size.size(), "%011o", static_cast<unsigned>(record.size()));
      const bool image = extension == "jpg";
      expected += tar_header("././@PaxHeader", size.substr(0, 11), 'x') + in_blocks(record) +
                  tar_header(ascii, image ? "00000000007" : "00000000001", '0') +
                  in_blocks(image ? "content" : "7");
    }
    EXPECT_EQ(tar_of(key), expected + std::string(1024, '\0')) << key;
  }
}

TEST(TarShard, RefusesWhatAHeaderCannotCount) {
  TempFolder folder;
  TarShardWriter writer(folder.path() + "/x.tar");
  const uint8_t byte = 0;  // the rest is not looked at
  try {
    writer.add({"a", "a.jpg", "jpg", 0, {&byte, size_t{1} << 33}});
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), "cannot write " + folder.path() +
                                "/x.tar: a.jpg has 8589934592 bytes, a member has at most "
                                "8589934591");
  }
}

TEST(ParquetShard, HasPlainPagesAndAFooter) {
  TempFolder folder;
  const std::string path = folder.path() + "/x.parquet", content = "content";
  ParquetShardWriter writer(path, {"cat", "d\xFFg"});
  const ShardSample sample{"", "cat/1.jpg", "jpg", 1, as_bytes(content)};
  const int64_t at_most = writer.bytes_with(sample);
  writer.add(sample);
  const int64_t bytes = writer.finish();
  EXPECT_LE(bytes, at_most);
  // Thrift, compact: a field is its id's step and its type (5: i32, 6: i64, 8: text, 9: list,
  // 12: struct), then its value; integers are doubled; 0 ends a struct.
  const auto page = [](char size, const std::string& values) {
    return "\x15\0\x15"s + size + "\x15"s + size + "\x2C\x15\x02\x15\0\x15\x06\x15\x06\0\0"s +
           values;
  };
  const std::string image = page(34, "\x02\0\0\0\x02\x02\x07\0\0\0content"s);
  const std::string name = page(38, "\x02\0\0\0\x02\x02\x09\0\0\0cat/1.jpg"s);
  const std::string label = page(28, "\x02\0\0\0\x02\x01\x01\0\0\0\0\0\0\0"s);
  const auto number = [](size_t value) {  // doubled, seven bits to a byte
    const auto twice = static_cast<unsigned>(2 * value);
    std::string text(1, static_cast<char>(twice < 128 ? twice : twice % 128 + 128));
    return twice < 128 ? text : text + static_cast<char>(twice / 128);
  };
  const auto chunk = [&](char type, const std::string& names, size_t size, size_t offset) {
    return "\x26\0\x1C\x15"s + type + "\x19\x25\0\x06\x19"s + names + "\x15\0\x16\x02\x16"s +
           number(size) + "\x16" + number(size) + "\x26" + number(offset) + "\0\0"s;
  };
  const std::string features = R"({"info":{"features":{"image":{"_type":"Image"},)"
                               R"("label":{"names":["cat","d\\xffg"],"_type":"ClassLabel"}}}})";
  const std::string schema =
      "\x19\x5C\x48\x06schema\x15\x04\0"s                  // five elements; two children
      "\x35\x02\x18\005image\x15\x04\0"s                   // a group; optional, two children
      "\x15\x0C\x25\x02\x18\005bytes\0"s                   // BYTE_ARRAY, optional
      "\x15\x0C\x25\x02\x18\x04path\x25\0\x4C\x1C\0\0\0"s  // the same; UTF8, STRING
      "\x15\x04\x25\x02\x18\005label\0"s;                  // INT64, optional
  const size_t all = image.size() + name.size() + label.size();
  const std::string group =
      "\x19\x1C\x19\x3C" + chunk(12, "\x28\005image\005bytes", image.size(), 4) +
      chunk(12, "\x28\005image\x04path", name.size(), 4 + image.size()) +
      chunk(4, "\x18\005label", label.size(), 4 + image.size() + name.size()) + "\x16" +
      number(all) + "\x16\x02\0"s;
  const std::string footer =
      "\x15\x02" + schema + "\x16\x02" + group + "\x19\x1C\x18\x0Bhuggingface\x18" +
      static_cast<char>(features.size()) + features + "\0"s + "\x18\x06stoker\0"s;
  std::string length(4, '\0');
  length[0] = static_cast<char>(footer.size() % 256);
  length[1] = static_cast<char>(footer.size() / 256);
  EXPECT_EQ(read_text(path), "PAR1" + image + name + label + footer + length + "PAR1");
  EXPECT_EQ(bytes, static_cast<int64_t>(read_text(path).size()));
}

TEST(ParquetShard, HoldsNoMoreThanARowGroup) {
  TempFolder folder;
  ParquetShardWriter writer(folder.path() + "/x.parquet", {});
  const auto on_disk = [&] {
    return std::filesystem::file_size(folder.path() + "/" + names_in(folder.path())[0]);
  };
  const std::vector<uint8_t> image(size_t{30} << 20);
  const ShardSample large{"", "a.jpg", "jpg", 0, image};
  writer.add(large);
  writer.add(large);
  EXPECT_EQ(on_disk(), 4u);
  writer.add(large);
  EXPECT_GT(on_disk(), 2 * image.size());
  EXPECT_LT(on_disk(), 2 * image.size() + 200);
  const ShardSample small{"", "b.jpg", "jpg", 0, std::span(image).first(1)};
  for (int row = 1; row < 100; ++row) {
    EXPECT_LT(on_disk(), 3 * image.size());
    writer.add(small);
  }
  EXPECT_GT(on_disk(), 3 * image.size()) << "a group has 100 rows";
}

TEST(ParquetShard, RefusesWhatAPageCannotCount) {
  TempFolder folder;
  ParquetShardWriter writer(folder.path() + "/x.parquet", {});
  const uint8_t byte = 0;  // the rest is not looked at
  try {
    writer.add({"a", "a.jpg", "jpg", 0, {&byte, size_t{1} << 31}});
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), "cannot write " + folder.path() +
                                "/x.parquet: a.jpg has 2147483648 bytes, a page has at most "
                                "2147483647");
  }
}

// Samples that have nothing but names.
class NamedSource final : public Source {
 public:
  explicit NamedSource(std::vector<std::string> names,
                       SampleEncoding encoding = SampleEncoding::image_file)
      : names_(std::move(names)), encoding_(encoding) {}
  int64_t size() const override { return std::ssize(names_); }
  int label(SampleId) const override { return 0; }
  std::string name(SampleId id) const override { return names_[static_cast<size_t>(id)]; }
  const std::string& root() const override { return nothing_; }
  const std::vector<std::string>& class_names() const override { return names_; }
  SampleEncoding encoding() const override { return encoding_; }
  Size raw_size() const override { return {}; }
  ReadStatus read(SampleId, std::vector<uint8_t>&, std::span<const uint8_t>&) const override {
    return {false, "it has only names"};
  }
  uint64_t fingerprint() const override { return 0; }

 private:
  const std::vector<std::string> names_;
  const SampleEncoding encoding_;
  const std::string nothing_;
};

std::vector<std::string> keys_of(const Source& source) {
  const SampleKeys keys(source);
  std::vector<std::string> all;
  for (SampleId id = 0; id < source.size(); ++id) all.push_back(keys.key(id));
  return all;
}

TEST(SampleKeys, AreNamesWithoutExtensionAndDots) {
  EXPECT_THAT(keys_of(NamedSource({"a.b/c.jpg", "a.b/c.d.e.jpeg", "plain", "a/.jpg",
                                   "a/.hidden.jpg", "a/b..jpg", "gr\303\266\303\237e/1.png"})),
              ElementsAre("a.b/c", "a.b/c_d_e", "plain", "a/_jpg", "a/_hidden", "a/b_",
                          "gr\303\266\303\237e/1"));
  EXPECT_THAT(
      keys_of(NamedSource({"data_batch_1.bin:0", "x/synthetic:1"}, SampleEncoding::raw_rgb)),
      ElementsAre("data_batch_1_bin:0", "x/synthetic:1"));
}

TEST(SampleKeys, StayInsideOfAFolderAndAreNoMetadata) {
  EXPECT_THAT(keys_of(NamedSource({"/etc/a.jpg", "../a.jpg", "b/../../a.jpg", "c//./a.jpg", "d/..",
                                   "d/", "__meta__/a.jpg", "b/__c__/__a.jpg"})),
              ElementsAre("_/etc/a", "_/a", "b/_/_/a", "c/_/_/a", "d/_-4", "d/_-5", "x__meta__/a",
                          "b/x__c__/x__a"));
}

TEST(SampleKeys, AreUnique) {
  EXPECT_THAT(keys_of(NamedSource({"a.jpg", "a.png", "b/a.jpg", "a.b.jpg", "a_b.jpg"})),
              ElementsAre("a-0", "a-1", "b/a", "a_b-3", "a_b-4"));
  // A key with an id may be the name of another sample.
  EXPECT_THAT(keys_of(NamedSource({"a.jpg", "a.png", "a-0.jpg", "a-1-1.jpg", "a-1.jpg"})),
              ElementsAre("a-0-0", "a-1-1-1", "a-0", "a-1-1", "a-1"));
}

// Decodes the whole image.
std::vector<uint8_t> pixels_of(std::span<const uint8_t> file) {
  ImageDecoder decoder;
  ImageInfo info;
  EXPECT_TRUE(decoder.info(file, info).ok());
  EXPECT_EQ(info.format, ImageFormat::png);
  const auto [width, height] = info.size;
  std::vector<uint8_t> pixels(size_t{3} * width * height);
  const CropSpec whole{{0, 0, width, height}, info.size, {0, 0, width, height}};
  EXPECT_TRUE(decoder.decode(file, whole, {pixels.data(), width, height, 3 * width}).ok());
  return pixels;
}

TEST(ImageFileReader, MakesPngFilesOfSyntheticSamples) {
  const auto source = make_synthetic_source(5, {19, 7}, 3, 1);
  ImageFileReader reader(*source);
  std::vector<uint8_t> buffer;
  for (SampleId id = 0; id < 5; ++id) {
    ImageFile file;
    Finding finding;
    ASSERT_TRUE(reader.read(id, file, finding));
    EXPECT_EQ(file.name, "synthetic:" + std::to_string(id) + ".png");
    EXPECT_EQ(file.extension, "png");
    std::span<const uint8_t> raw;
    ASSERT_TRUE(source->read(id, buffer, raw).ok);
    EXPECT_EQ(pixels_of(file.bytes), std::vector(raw.begin(), raw.end()));
  }
}

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
  // What follows the image's end in a file is part of the file.
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
