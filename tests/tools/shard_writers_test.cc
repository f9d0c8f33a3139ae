// The files that `stoker pack` is made of: writers of shards, keys, image files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "decode/image_decoder.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/tools/cli_harness.h"
#include "tests/tools/packed_files.h"
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
      : info_{.size = std::ssize(names), .encoding = encoding, .class_names = std::move(names)} {}
  const SourceInfo& info() const override { return info_; }
  int label(SampleId) const override { return 0; }
  std::string name(SampleId id) const override {
    return info_.class_names[static_cast<size_t>(id)];
  }
  ReadStatus read(SampleId, std::vector<uint8_t>&, std::span<const uint8_t>&) const override {
    return {false, "it has only names"};
  }

 private:
  const SourceInfo info_;
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

}  // namespace
}  // namespace stoker
