#include "pipeline/source/format/mds.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "pipeline/files/durable_file.h"
#include "tests/support/collected_samples.h"
#include "tests/support/mds_maker.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

using Sample = CollectedSamples::Sample;
using Columns = std::vector<MadeMdsColumn>;

const MemoryScan kMdsScan{scan_mds, "blob"};

// A shard with these columns, and one sample.
std::string shard_of_one(const Columns& columns, const std::vector<std::string>& values) {
  return mds_shard(mds_settings(columns), {mds_sample(columns, values)});
}

// "IMAGE LABEL" of the only sample, or the error.
std::string found_in(const Columns& columns, const std::vector<std::string>& values,
                     const FieldChoice& fields = {}) {
  const std::string file = shard_of_one(columns, values);
  const std::string error = kMdsScan.refusal(file, fields);
  if (error != "nothing was thrown") return error;
  const Sample sample = kMdsScan(file, fields).samples[0];
  return image_of(file, sample) + " " + sample.label;
}

const Columns kUsual = {{"class", "int", 8}, {"image", "jpeg"}};

// Where the settings begin in a shard of `samples` samples.
size_t settings_at(size_t samples) { return 8 + 4 * samples; }

std::string usual_sample(int64_t label, const std::string& image) {
  return mds_sample(kUsual, {mds_number(static_cast<uint64_t>(label), 8), image});
}

TEST(Mds, ColumnsLieInTheOrderOfTheSettings) {
  // Sizes of the variable columns come first, then all values.
  const Columns columns = {{"a", "str"},
                           {"image", "png"},
                           {"k", "ndarray:uint8:2,3", 6},
                           {"label", "uint8", 1},
                           {"words", "list[png]"}};
  EXPECT_EQ(found_in(columns, {"text", "pixels", "123456", "\x07", "others"}), "pixels 7");
  EXPECT_EQ(found_in(columns, {"", "pixels", "123456", "\x07", ""}), "pixels 7");
  EXPECT_EQ(found_in(columns, {"tabby", "pixels", "123456", "\x07", ""}, {"", "a"}),
            "pixels text tabby");
}

TEST(Mds, ReadsHeadersAndLabelsOnlyFromAFile) {
  const TempFolder folder;
  const Columns columns = {{"image", "jpeg"}, {"label", "int", 8}};
  std::vector<std::string> samples;
  for (uint64_t i = 0; i < 50; ++i) {
    samples.push_back(mds_sample(columns, {std::string(100000 + i, 'x'), mds_number(i, 8)}));
  }
  const std::string file = mds_shard(mds_settings(columns), samples);
  BlobReader blob(folder.write("shard.00000.mds", file));
  int64_t pieces = 0;
  blob.set_progress([&](int64_t) { ++pieces; });
  CollectedSamples out;
  scan_mds(blob, {}, out);
  ASSERT_EQ(out.samples.size(), 50u);
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(out.samples[i].found.length, static_cast<int64_t>(100000 + i));
    EXPECT_EQ(image_of(file, out.samples[i]), std::string(100000 + i, 'x'));
    EXPECT_EQ(out.samples[i].label, std::to_string(i));
  }
  // A label and the sizes after it are in one piece, and no piece is of an image alone.
  EXPECT_LE(pieces, 55);
}

TEST(Mds, TakesTheFirstOfTheUsualColumnsThatFits) {
  EXPECT_EQ(found_in({{"img", "bytes"}, {"jpg", "jpeg"}, {"y", "int8", 1}}, {"a", "b", "\x02"}),
            "b 2");
  EXPECT_EQ(found_in({{"image", "pil"}, {"x", "png"}, {"class", "str"}, {"label", "float32", 4}},
                     {"a", "b", "dog", "1234"}),
            "b text dog");
  const Columns columns = {{"image", "jpeg"}, {"label", "int16", 2}, {"mine", "bytes"}};
  const std::vector<std::string> values = {"a", std::string("\x01\x01"), "m"};
  EXPECT_EQ(found_in(columns, values), "a 257");
  EXPECT_EQ(found_in(columns, values, {"mine", "none"}), "m none");
  EXPECT_EQ(found_in({{"image", "jpeg"}}, {"a"}, {"", "none"}), "a none");
}

TEST(Mds, LabelsHaveEveryIntegerEncoding) {
  const auto label = [](const std::string& encoding, int size, const std::string& value) {
    return found_in({{"image", "jpeg"}, {"label", encoding, size}}, {"i", value});
  };
  for (const int size : {1, 2, 4, 8}) {
    const std::string bits = std::to_string(8 * size);
    const std::string all_ones(static_cast<size_t>(size), '\xff');
    EXPECT_EQ(label("int" + bits, size, all_ones), "i -1");
    EXPECT_EQ(label("int" + bits, size, mds_number(100, size)), "i 100");
    EXPECT_EQ(label("uint" + bits, size, mds_number(100, size)), "i 100");
    if (size < 8) {
      EXPECT_EQ(label("uint" + bits, size, all_ones),
                "i " + std::to_string((uint64_t{1} << (8 * size)) - 1));
    }
  }
  EXPECT_EQ(label("int", 8, mds_number(uint64_t{1} << 63, 8)), "i " + std::to_string(INT64_MIN));
  EXPECT_EQ(label("uint64", 8, mds_number(INT64_MAX, 8)), "i " + std::to_string(INT64_MAX));
  EXPECT_EQ(label("str_int", 0, "-12"), "i -12");
  EXPECT_EQ(label("str_int", 0, std::to_string(INT64_MAX)), "i " + std::to_string(INT64_MAX));
  EXPECT_EQ(label("str", 0, "tabby cat"), "i text tabby cat");
}

TEST(Mds, LabelsThatAreNoNumbersOrTooLargeAreErrors) {
  const auto label = [](const std::string& encoding, int size, const std::string& value) {
    return found_in({{"image", "jpeg"}, {"label", encoding, size}}, {"i", value});
  };
  const auto at = [](const std::string& encoding, int size) {
    const Columns columns = {{"image", "jpeg"}, {"label", encoding, size}};
    const size_t place = settings_at(1) + mds_settings(columns).size() + (size == 0 ? 8 : 4) +
                         std::string("i").size();
    return std::to_string(place) + ": the label of sample 0, column 'label' (" + encoding + "), ";
  };
  EXPECT_EQ(label("uint64", 8, std::string(8, '\xff')),
            at("uint64", 8) + "is 18446744073709551615, too large");
  EXPECT_EQ(label("str_int", 0, "9223372036854775808"),
            at("str_int", 0) + "is '9223372036854775808', no 64-bit number");
  EXPECT_EQ(label("str_int", 0, ""), at("str_int", 0) + "is '', no 64-bit number");
  EXPECT_EQ(label("str_int", 0, "1\n"), at("str_int", 0) + "is '1\\x0a', no 64-bit number");
  EXPECT_EQ(label("int", 0, "1234567"), at("int", 0) + "has 7 bytes");
  EXPECT_EQ(label("int16", 4, "1234"), at("int16", 4) + "has 4 bytes");
}

TEST(Mds, ColumnsThatDoNotFitAreErrorsWithTheirEncoding) {
  const std::string at = std::to_string(settings_at(1)) + ": ";
  for (const std::string encoding :
       {"pil", "ndarray", "ndarray:uint8", "jpeg_array", "jpegarray", "list[jpeg]", "pkl", "str"}) {
    EXPECT_EQ(found_in({{"image", encoding}, {"label", "str"}}, {"i", "l"}),
              at + "column 'image' (" + encoding +
                  ") cannot be the image: its encoding is not jpeg, png or bytes");
  }
  for (const std::string encoding : {"float32", "str_float", "json", "bytes", "ndarray:int64:1"}) {
    EXPECT_EQ(found_in({{"image", "jpeg"}, {"label", encoding}}, {"i", "l"}),
              at + "column 'label' (" + encoding +
                  ") cannot be the label: its encoding is not int, int8 to int64, uint8 to uint64, "
                  "str_int or str");
  }
  EXPECT_EQ(
      found_in({{"image", "jpeg"}, {"label", "str"}}, {"i", "l"}, {"label", ""}),
      at + "column 'label' (str) cannot be the image: its encoding is not jpeg, png or bytes");
}

TEST(Mds, AMissingColumnIsAnErrorWithThoseThatAreThere) {
  const std::string at = std::to_string(settings_at(1)) + ": ";
  const Columns columns = {{"picture", "jpeg"}, {"text", "str"}};
  EXPECT_EQ(found_in(columns, {"a", "b"}),
            at + "no column of the usual names (image, jpg, jpeg, png, img, x) for the image; the "
                 "columns are 'picture' (jpeg), 'text' (str)");
  EXPECT_EQ(found_in(columns, {"a", "b"}, {"picture", ""}),
            at + "no column of the usual names (label, labels, class, target, y) for the label; "
                 "the columns are 'picture' (jpeg), 'text' (str)");
  EXPECT_EQ(
      found_in(columns, {"a", "b"}, {"pict\x07", ""}),
      at + "no column 'pict\\x07' for the image; the columns are 'picture' (jpeg), 'text' (str)");
  Columns many;
  for (int i = 0; i < 14; ++i) many.push_back({"c" + std::to_string(i), "str", 1});
  const std::string error = found_in(many, std::vector<std::string>(14, "v"));
  EXPECT_NE(error.find("'c11' (str) and 2 more"), std::string::npos) << error;
}

TEST(Mds, SizesThatDoNotAddUpAreErrors) {
  const std::string settings = mds_settings(kUsual);
  const std::string good = usual_sample(1, "abc");  // 4 + 8 + 3 bytes
  const size_t second = settings_at(2) + settings.size() + good.size();
  const auto error = [&](const std::string& sample) {
    return kMdsScan.refusal(mds_shard(settings, {good, sample}));
  };
  const std::string at = std::to_string(second) + ": sample 1 has ";
  EXPECT_EQ(error(good + "x"), at + "16 bytes, and its values and their sizes have 15");
  EXPECT_EQ(error(good.substr(0, 14)), at + "14 bytes, and its values and their sizes have 15");
  EXPECT_EQ(error(mds_number(0xffffffff, 4) + std::string(11, 'x')),
            at + "15 bytes, and its values and their sizes have 4294967307");
  EXPECT_EQ(error("abc"), at + "3 bytes, and the sizes of its values have 4");
  EXPECT_EQ(error(""), at + "0 bytes, and the sizes of its values have 4");
}

TEST(Mds, OffsetsThatDescendOrLieOutsideAreErrors) {
  const std::string settings = mds_settings(kUsual);
  const std::string good =
      mds_shard(settings, {usual_sample(1, "abc"), usual_sample(2, "de"), usual_sample(3, "f")});
  const size_t first = settings_at(3) + settings.size();
  const auto with_offset = [&](size_t index, uint64_t value) {
    std::string bad = good;
    bad.replace(4 + 4 * index, 4, mds_number(value, 4));
    return kMdsScan.refusal(bad);
  };
  EXPECT_EQ(with_offset(2, first + 15 + 14), "nothing was thrown");
  EXPECT_EQ(with_offset(0, 19),
            "4: offset 19 of sample 0 is smaller than 20, where what is before it ends");
  EXPECT_EQ(with_offset(2, first + 14),
            "12: offset " + std::to_string(first + 14) + " of sample 2 is smaller than " +
                std::to_string(first + 15) + ", where what is before it ends");
  EXPECT_EQ(with_offset(3, good.size() + 1),
            "16: offset " + std::to_string(good.size() + 1) +
                " of sample 3 lies behind the file's end at byte " + std::to_string(good.size()) +
                "; it is damaged or incomplete");
  EXPECT_EQ(kMdsScan.refusal(good + "x"), std::to_string(good.size()) +
                                              ": the samples end here, and the file has " +
                                              std::to_string(good.size() + 1) + " bytes");
}

TEST(Mds, NumbersOfSamplesThatDoNotFitAreErrors) {
  const std::string good = mds_shard(mds_settings(kUsual), {usual_sample(1, "abc")});
  const auto with_samples = [&](uint64_t samples) {
    return kMdsScan.refusal(mds_number(samples, 4) + good.substr(4));
  };
  const std::string size = std::to_string(good.size());
  EXPECT_EQ(with_samples(1000), "0: 1000 samples do not fit a file of " + size +
                                    " bytes; it is damaged, incomplete or no MDS shard");
  EXPECT_EQ(with_samples(0xffffffff), "0: 4294967295 samples do not fit a file of " + size +
                                          " bytes; it is damaged, incomplete or no MDS shard");
  EXPECT_EQ(kMdsScan.refusal(good.substr(0, 3)),
            "0: the number of samples of 4 bytes is needed here, and the file ends at byte 3");
  EXPECT_EQ(kMdsScan.refusal(good.substr(0, 4)),
            "0: 1 samples do not fit a file of 4 bytes; it is damaged, incomplete or no MDS shard");
  EXPECT_EQ(kMdsScan.refusal(mds_number(1, 4) + mds_number(12, 4)),
            "0: 1 samples do not fit a file of 8 bytes; it is damaged, incomplete or no MDS shard");
}

TEST(Mds, DamagedSettingsAreErrors) {
  const auto error = [](const std::string& settings) {
    return kMdsScan.refusal(mds_shard(settings, {"sample"}));
  };
  const std::string at = "12: the writer's settings ";
  EXPECT_EQ(error("{\"a\": "), at + "(6 bytes of JSON) cannot be read; the file is damaged");
  EXPECT_EQ(error(""), at + "(0 bytes of JSON) cannot be read; the file is damaged");
  EXPECT_EQ(error("[1]"), at + "are wrong: there is no \"column_names\"");
  EXPECT_EQ(error("{\"column_names\": 3}"), at + "are wrong: \"column_names\" is no list");
  EXPECT_EQ(error(mds_settings({})), at + "are wrong: there are no columns");
  const auto lists = [&](const std::string& names, const std::string& encodings,
                         const std::string& sizes) {
    return error("{\"column_names\": [" + names + "], \"column_encodings\": [" + encodings +
                 "], \"column_sizes\": [" + sizes + "]}");
  };
  EXPECT_EQ(lists("\"a\"", "\"str\", \"str\"", "null"),
            at + "are wrong: there are 1 names, 2 encodings and 1 sizes of columns");
  EXPECT_EQ(lists("\"a\"", "\"str\"", ""),
            at + "are wrong: there are 1 names, 1 encodings and 0 sizes of columns");
  EXPECT_EQ(lists("1", "\"str\"", "null"), at + "are wrong: the name of column 0 is no text");
  EXPECT_EQ(lists("\"a\"", "null", "null"), at + "are wrong: the encoding of column 0 is no text");
  for (const char* size : {"-1", "1.5", "\"8\"", "9223372036854775808"}) {
    EXPECT_EQ(lists("\"a\"", "\"str\"", size),
              at + "are wrong: the size of column 0 is no number of bytes");
  }
  EXPECT_EQ(lists("\"a\"", "\"str\"", "0"), at + "are wrong: the size of column 0 is 0");
  EXPECT_EQ(lists("\"a\"", "\"str\"", "4294967296"),
            at + "are wrong: the size of column 0 is 4294967296");
  EXPECT_EQ(error(std::string(1 << 20 | 1, ' ')),
            at + "have 1048577 bytes, more than 1 MiB; the file is damaged");
  // As deep as it can be.
  EXPECT_EQ(error(std::string(1 << 20, '[')),
            at + "(1048576 bytes of JSON) cannot be read; the file is damaged");
}

TEST(Mds, CompressedShardsAreErrors) {
  const std::string reason =
      ": at byte 0: the shard is compressed; decompress it, or write it without compression";
  EXPECT_EQ(kMdsScan.error("\x28\xb5\x2f\xfd and more"), "blob" + reason);
  const TempFolder folder;
  for (const char* ending : {"zstd", "gz", "br", "bz2", "snappy"}) {
    const std::string path = folder.write(std::string("shard.00000.mds.") + ending, "abcdef");
    BlobReader blob(path);
    CollectedSamples out;
    EXPECT_EQ(thrown_by<BlobError>([&] { scan_mds(blob, {}, out); }), path + reason);
  }
}

std::vector<std::string> shards_of(const TempFolder& folder) {
  namespace fs = std::filesystem;
  return mds_shards(folder.path(), read_whole_file(folder.path() + "/index.json"),
                    [&](const std::string& name) -> int64_t {
                      std::error_code error;
                      const fs::path path = fs::path(folder.path()) / name;
                      if (!fs::is_regular_file(path, error)) return -1;
                      return static_cast<int64_t>(fs::file_size(path));
                    });
}

std::string index_error(const TempFolder& folder, const std::string& index) {
  folder.write("index.json", index);
  return thrown_by<std::runtime_error>([&] { shards_of(folder); });
}

TEST(MdsShards, AreThoseOfTheIndexInItsOrder) {
  const TempFolder folder;
  folder.write("b/shard.00000.mds", "12345");
  folder.write("a/shard.00000.mds", "123");
  folder.write("c/shard.00000.mds", "not listed");
  folder.write("index.json", mds_index({{"b/shard.00000.mds", 5},
                                        {"a/shard.00000.mds", 3, "a/shard.00000.mds.zstd"}}));
  EXPECT_EQ(shards_of(folder),
            (std::vector<std::string>{"b/shard.00000.mds", "a/shard.00000.mds"}));
}

TEST(MdsShards, ADamagedIndexIsAnError) {
  const TempFolder folder;
  const std::string path = folder.path() + "/index.json: ";
  EXPECT_EQ(index_error(folder, "{\"shards\": "), path + "cannot be read as JSON");
  EXPECT_EQ(index_error(folder, ""), path + "cannot be read as JSON");
  EXPECT_EQ(index_error(folder, "[]"), path + "there is no \"version\"");
  EXPECT_EQ(index_error(folder, "{\"version\": 3}"), path + "\"version\" is not 2");
  EXPECT_EQ(index_error(folder, "{\"version\": 2}"), path + "there is no \"shards\"");
  EXPECT_EQ(index_error(folder, "{\"version\": 2, \"shards\": {}}"),
            path + "\"shards\" is no list");
  EXPECT_EQ(index_error(folder, mds_index({})), path + "it lists no shards");
  const auto of_shard = [&](const std::string& shard) {
    return index_error(folder, "{\"version\": 2, \"shards\": [" + shard + "]}");
  };
  EXPECT_EQ(of_shard("7"), path + "shard 0: there is no \"format\"");
  EXPECT_EQ(of_shard("{\"format\": 1}"), path + "shard 0: \"format\" is no text");
  for (const std::string format : {"json", "csv"}) {
    EXPECT_EQ(of_shard("{\"format\": \"" + format + "\"}"),
              path + "shard 0: its format is '" + format + "', and only \"mds\" is read");
  }
  const std::string begin = "{\"format\": \"mds\", \"version\": ";
  EXPECT_EQ(of_shard(begin + "1}"), path + "shard 0: \"version\" is not 2");
  EXPECT_EQ(of_shard(begin + "2}"), path + "shard 0: there is no \"raw_data\"");
  EXPECT_EQ(of_shard(begin + "2, \"raw_data\": {}}"), path + "shard 0: there is no \"basename\"");
  EXPECT_EQ(of_shard(begin + "2, \"raw_data\": {\"basename\": null}}"),
            path + "shard 0: \"basename\" is no text");
  for (const char* bytes : {"-1", "\"5\"", "2.5", "9223372036854775808"}) {
    EXPECT_EQ(of_shard(begin + "2, \"raw_data\": {\"basename\": \"a\", \"bytes\": " + bytes + "}}"),
              path + "shard 0: \"bytes\" is no number of bytes");
  }
  folder.write("a", "x");
  EXPECT_EQ(of_shard(begin + "2, \"raw_data\": {\"basename\": \"a\", \"bytes\": 1}}"),
            path + "shard 0: there is no \"zip_data\"");
  EXPECT_EQ(index_error(folder, mds_index({{"a", 1}, {"a", 1}})),
            path + "shard 1: 'a' is listed twice");
  EXPECT_EQ(index_error(folder, mds_index({{"a", 1}, {".//a", 1}})),
            path + "shard 1: './/a' is listed twice");
}

TEST(MdsShards, NamesOutsideOfTheFolderAreErrors) {
  const TempFolder folder;
  const std::string path = folder.path() + "/index.json: shard 0: basename ";
  folder.write("x", "x");
  for (const std::string name : {"../x", "a/../x", "..", "/etc/passwd", ""}) {
    EXPECT_EQ(index_error(folder, mds_index({{name, 1}})),
              path + "'" + name + "' is no name inside of the folder");
    if (name.empty()) continue;
    EXPECT_EQ(index_error(folder, mds_index({{"y", 1, name}})),
              path + "'" + name + "' is no name inside of the folder");
  }
  EXPECT_EQ(index_error(folder, mds_index({{"x\\u0000", 1}})),
            path + "'x\\x00' is no name inside of the folder");
  EXPECT_EQ(index_error(folder, mds_index({{"..x", 1}})),
            folder.path() + "/..x: index.json lists this shard, and it is not there");
}

TEST(MdsShards, MissingOrIncompleteShardsAreErrors) {
  const TempFolder folder;
  folder.write("a.mds", "12345");
  EXPECT_EQ(index_error(folder, mds_index({{"a.mds", 5}, {"b.mds", 5}})),
            folder.path() + "/b.mds: index.json lists this shard, and it is not there");
  EXPECT_EQ(index_error(folder, mds_index({{"a.mds", 6}})),
            folder.path() +
                "/a.mds: has 5 bytes, and index.json says 6; it is incomplete, or another shard");
  EXPECT_EQ(index_error(folder, mds_index({{"a.mds", 4}})),
            folder.path() +
                "/a.mds: has 5 bytes, and index.json says 4; it is incomplete, or another shard");
  folder.make_folder("c.mds");
  EXPECT_EQ(index_error(folder, mds_index({{"c.mds", 5}})),
            folder.path() + "/c.mds: index.json lists this shard, and it is not there");
  EXPECT_EQ(index_error(folder, mds_index({{"b.mds", 5, "b.mds.zstd"}})),
            folder.path() + "/b.mds: index.json lists this shard, and it is not there");
  folder.write("b.mds.zstd", "123");
  EXPECT_EQ(
      index_error(folder, mds_index({{"b.mds", 5, "b.mds.zstd"}})),
      folder.path() +
          "/b.mds.zstd: the shard is compressed; decompress it, or write it without compression");
}

}  // namespace
}  // namespace stoker
