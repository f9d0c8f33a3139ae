// Targets that vary (texts, lists of numbers), as each format finds them, and their way through the
// index into a source: what is missing or damaged is one bad sample with its reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/source/concat_source.h"
#include "pipeline/source/format/safetensors.h"
#include "pipeline/source/subset_source.h"
#include "tests/support/mds_maker.h"
#include "tests/support/parquet_maker.h"
#include "tests/support/tar_maker.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tfrecord_maker.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::string_literals;
using Lines = std::vector<std::string>;

std::unique_ptr<Source> open_texts(const std::string& path, Lines fields) {
  SourceOptions options;
  options.label_from = "none";
  options.targets_from = std::move(fields);
  options.cache_dir = "";
  return open_source(path, options);
}

template <class T>
std::string numbers_text(std::span<const std::byte> bytes) {
  std::string text = "[";
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, &bytes[at], sizeof value);
    text += (at == 0 ? "" : " ") + std::to_string(value);
  }
  return text + "]";
}

// "a|b|" for two texts, "[1 2]" for numbers, "! why" for a sample without values.
std::string values_of(const Source& source, SampleId id) {
  SampleTargets targets;
  std::vector<std::vector<std::byte>> memory;
  for (const TargetColumn& column : source.targets()) {
    memory.emplace_back(static_cast<size_t>(column.bytes()));
    targets.columns.push_back(memory.back().data());
  }
  targets.varying.resize(memory.size());
  source.read_targets(id, {}, targets);
  if (!targets.problem.empty()) return "! " + targets.problem;
  std::string all;
  for (size_t i = 0; i < memory.size(); ++i) {
    const TargetColumn& column = source.targets()[i];
    const std::span<const std::byte> bytes = column.varies ? targets.varying[i] : memory[i];
    if (!all.empty()) all += "; ";
    if (column.type == TargetType::text) {
      for (const std::byte byte : bytes)
        all += byte == std::byte{0} ? '|' : static_cast<char>(byte);
    } else if (column.type == TargetType::int64) {
      all += numbers_text<int64_t>(bytes);
    } else if (column.type == TargetType::int32) {
      all += numbers_text<int32_t>(bytes);
    } else if (column.type == TargetType::float32) {
      all += numbers_text<float>(bytes);
    } else {
      all += numbers_text<uint16_t>(bytes);
    }
  }
  return all;
}

Lines all_values(const Source& source) {
  Lines lines;
  for (SampleId id = 0; id < source.size(); ++id) lines.push_back(values_of(source, id));
  return lines;
}

std::string npy_file(const std::string& descr, const std::string& shape,
                     const std::string& numbers) {
  const std::string header =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }   \n";
  std::string file = "\x93NUMPY\x01";
  file += '\0';
  return file + mds_number(header.size(), 2) + header + numbers;
}

TEST(FormatTexts, OfATar) {
  const TempFolder folder;
  const std::string tokens = npy_file("<i2", "(3,)", mds_number(5, 2) + mds_number(6, 2) + "\7\0"s);
  const std::string path = folder.write(
      "a.tar", tar_member("1.jpg", "x") + tar_member("1.txt", "a dog\n") +
                   tar_member("1.json", R"({"c": ["one", "two"], "t": [1, 2, 3]})") +
                   tar_member("1.ids.npy", tokens) + tar_member("2.txt", "") +
                   tar_member("2.jpg", "x") + tar_member("2.json", R"({"c": "drei", "t": []})") +
                   tar_member("2.ids.npy", npy_file("<i8", "(0,)", "")) + tar_end());
  const auto source =
      open_texts(path, {"txt:text", "json:c:text", "json:t:int32[]", "ids.npy:int64[]"});
  EXPECT_EQ(source->targets()[0].describe(), "'txt': text");
  EXPECT_EQ(source->targets()[2].describe(), "'t': int32 []");
  EXPECT_THAT(all_values(*source),
              ElementsAre("a dog\n|; one|two|; [1 2 3]; [5 6 7]", "|; drei|; []; []"));
}

TEST(FormatTexts, WhatATarLacksIsABadSample) {
  const TempFolder folder;
  const auto member = [](const std::string& key, const std::string& json) {
    return tar_member(key + ".jpg", "x") + tar_member(key + ".json", json);
  };
  const std::string path = folder.write(
      "a.tar", tar_member("0.jpg", "x") + member("1", R"({"c": null})") + member("2", "{}") +
                   member("3", "{") + member("4", R"({"c": ["a", 7]})") +
                   member("5", R"({"c": "a\u0000b"})") + member("6", R"({"c": "good"})") +
                   member("7", std::string((1 << 20) + 1, ' ')) + tar_end());
  EXPECT_THAT(
      all_values(*open_texts(path, {"json:c:text"})),
      ElementsAre("! target 'c' is not there: its key has no .json",
                  "! target 'c' is null, and no text", "! target 'c' is not there: no field 'c'",
                  "! target 'c' cannot be read: that is no JSON",
                  "! target 'c' has number, and no text", "! target 'c' has a text with a NUL byte",
                  "good|", "! target 'c' has 1048577 bytes; at most 1048576"));
}

TEST(FormatTexts, AFieldThatNobodyHasIsRefused) {
  const TempFolder folder;
  const std::string path =
      folder.write("a.tar", tar_member("0.jpg", "x") + tar_member("0.txt", "x") +
                                tar_member("1.jpg", "x") + tar_end());
  EXPECT_EQ(message_of([&] { open_texts(path, {"caption:text"}); }),
            path +
                ": sample 0, '0.jpg': target 'caption' is not there: its key has no .caption, "
                "and no sample has values there");
  EXPECT_EQ(values_of(*open_texts(path, {"txt:text"}), 1),
            "! target 'txt' is not there: its key has no .txt");
}

TEST(FormatTexts, OfLists) {
  const TempFolder folder;
  const std::string csv = folder.write(
      "l.csv", "path,caption,ids\na.jpg,\"a \"\"dog\"\", big\",1 2\nb.jpg,,\nc.jpg,x,1.5\n");
  EXPECT_THAT(all_values(*open_texts(csv, {"caption:text", "ids:int32[]"})),
              ElementsAre("a \"dog\", big|; [1 2]", "|; []",
                          "! target 'ids' has the value 1.5, which is no int32"));
  const std::string jsonl =
      folder.write("l.jsonl",
                   "{\"path\": \"a\", \"c\": \"\\u00e9t\\u00e9\", \"x\": [0.5]}\n"
                   "{\"path\": \"b\", \"c\": null, \"x\": []}\n"
                   "{\"path\": \"c\", \"x\": []}\n"
                   "{\"path\": \"d\", \"c\": [], \"x\": []}\n"
                   "{\"path\": \"e\", \"c\": \"y\", \"x\": [[1], [2]]}\n");
  EXPECT_THAT(all_values(*open_texts(jsonl, {"c:text", "x:float32[]"})),
              ElementsAre("\xc3\xa9t\xc3\xa9|; [0.500000]", "! target 'c' is null, and no text",
                          "! target 'c' is not there", "[]",
                          "! target 'x' has the shape (2, 1), and is no list"));
}

TEST(FormatTexts, OfRecords) {
  const TempFolder folder;
  const auto record = [](const std::vector<std::pair<std::string, std::string>>& more) {
    std::vector<std::pair<std::string, std::string>> all = {{"image", bytes_feature({"x"})}};
    all.insert(all.end(), more.begin(), more.end());
    return make_record(make_example(all));
  };
  const std::string path = folder.write(
      "a.tfrecord", record({{"c", bytes_feature({"a", "b"})}, {"t", int64_feature({4})}}) +
                        record({{"c", bytes_feature({"a"})}, {"t", int64_feature({})}}) +
                        record({{"t", int64_feature({1, 2})}}) +
                        record({{"c", int64_feature({1})}, {"t", int64_feature({1, 2})}}) +
                        record({{"c", bytes_feature({"a"})}, {"t", bytes_feature({"4"})}}));
  EXPECT_THAT(all_values(*open_texts(path, {"c:text", "t:int64[]"})),
              ElementsAre("a|b|; [4]", "a|; []", "! target 'c' is not there: no key 'c'",
                          "! target 'c' has 1 int64 values", "! target 't' has 1 bytes values"));
}

TEST(FormatTexts, OfMds) {
  const TempFolder folder;
  const std::vector<MadeMdsColumn> columns = {
      {"caption", "str"}, {"image", "jpeg"}, {"ids", "ndarray"}, {"fixed", "ndarray:uint16:2"}};
  const std::string ids = "\x10\x04\x03"s + mds_number(7, 2) + mds_number(8, 2) + "\x09\0"s;
  const std::string two = mds_number(1, 2) + mds_number(2, 2);
  const std::string path =
      folder.write("shard.00000.mds",
                   mds_shard(mds_settings(columns), {mds_sample(columns, {"a dog", "x", ids, two}),
                                                     mds_sample(columns, {"", "x", "?", two})}));
  EXPECT_THAT(all_values(*open_texts(path, {"caption:text", "fixed:int32[]"})),
              ElementsAre("a dog|; [1 2]", "|; [1 2]"));
  EXPECT_THAT(all_values(*open_texts(path, {"ids:int32[]"})),
              ElementsAre("[7 8 9]", "! target 'ids' does not say its type"));
  EXPECT_THAT(message_of([&] { open_texts(path, {"image:text"}); }),
              HasSubstr("cannot be the target: its encoding is not str"));
}

std::string parquet_with(MadeColumn column) {
  const size_t rows = std::max(column.values.size(), column.lists.size());
  MadeColumn image{.names = {"image"}};
  for (size_t i = 0; i < rows; ++i) image.values.push_back(plain_bytes("x"));
  return MadeParquet{.columns = {image, std::move(column)}}.bytes();
}

TEST(FormatTexts, OfParquet) {
  constexpr int kUtf8 = 0;
  const TempFolder folder;
  for (const bool dictionary : {false, true}) {
    for (const int codec : {kMadePlain, kMadeSnappy}) {
      const std::string path = folder.write(
          "a.parquet",
          parquet_with({.names = {"c"},
                        .values = {plain_bytes("a dog"), std::nullopt, plain_bytes("")},
                        .converted = kUtf8,
                        .dictionary = dictionary,
                        .codec = codec}));
      EXPECT_THAT(all_values(*open_texts(path, {"c:text"})),
                  ElementsAre("a dog|", "! target 'c' has no value (null)", "|"));
      const std::string lists =
          folder.write("b.parquet", parquet_with({.names = {"c", "list", "element"},
                                                  .converted = kUtf8,
                                                  .lists = {{plain_bytes("a"), plain_bytes("bc")},
                                                            {plain_bytes("")},
                                                            {},
                                                            {plain_bytes("a"), std::nullopt}},
                                                  .repeated_at = {1},
                                                  .empty_definition = 1,
                                                  .dictionary = dictionary,
                                                  .codec = codec}));
      EXPECT_THAT(all_values(*open_texts(lists, {"c:text"})),
                  ElementsAre("a|bc|", "|", "", "! target 'c' has no value (null)"));
    }
  }
  const auto lists_of_numbers = [&](uint64_t empty_definition) {
    return folder.write(
        "n.parquet",
        parquet_with({.names = {"t", "list", "element"},
                      .type = kMadeInt64,
                      .lists = {{plain_int64(1), plain_int64(2)}, {}, {plain_int64(7)}},
                      .repeated_at = {1},
                      .empty_definition = empty_definition}));
  };
  EXPECT_THAT(all_values(*open_texts(lists_of_numbers(0), {"t:int32[]"})),
              ElementsAre("[1 2]", "! target 't' has no value (null)", "[7]"));
  const std::string numbers = lists_of_numbers(1);
  EXPECT_THAT(all_values(*open_texts(numbers, {"t:int32[]"})), ElementsAre("[1 2]", "[]", "[7]"));
  EXPECT_THAT(message_of([&] { open_texts(numbers, {"t:text"}); }),
              HasSubstr("and targets are texts or lists of them"));
}

// A text that a page cuts off is damage of the file.
TEST(FormatTexts, ATextThatEndsBehindItsPageIsRefused) {
  const TempFolder folder;
  std::string cut = plain_bytes("a dog");
  cut.resize(cut.size() - 1);
  const std::string path =
      folder.write("a.parquet", parquet_with({.names = {"c"}, .values = {cut}, .converted = 0}));
  EXPECT_THAT(message_of([&] { open_texts(path, {"c:text"}); }),
              HasSubstr("ends inside one of them"));
}

// Numbers of 16 bits are as they were written.
TEST(FormatTexts, HalvesPassThrough) {
  const TempFolder folder;
  const std::string bits = mds_number(0x3c01, 2) + mds_number(0xfbff, 2) + mds_number(1, 2);
  const std::string shard = tar_member("1.jpg", "x") +
                            tar_member("1.f.npy", npy_file("<f2", "(3,)", bits)) +
                            tar_member("1.b.npy", npy_file("|V2", "(3,)", bits)) + tar_end();
  const std::string path = folder.write("a.tar", shard);
  const std::string as_numbers = "[15361 64511 1]";
  EXPECT_EQ(values_of(*open_texts(path, {"f.npy:float16", "b.npy:bfloat16"}), 0),
            as_numbers + "; " + as_numbers);
  EXPECT_EQ(values_of(*open_texts(path, {"f.npy:float16[]", "b.npy:bfloat16[]"}), 0),
            as_numbers + "; " + as_numbers);
  const std::string list = folder.write("l.csv", "path,x\na.jpg,1 70000\n");
  EXPECT_THAT(message_of([&] { open_texts(list, {"x:float16"}); }),
              HasSubstr("has the value 70000 at 1, which is no float16"));
  EXPECT_EQ(values_of(*open_texts(list, {"x:bfloat16"}), 0), "[16256 18313]");
}

TEST(FormatTexts, OfFilesBesideTheImagesOfAFolder) {
  const TempFolder folder;
  folder.write("cat/1.jpg", "x");
  folder.write("cat/1.txt", "a cat");
  folder.write("cat/2.b.png", "x");
  folder.write("cat/2.b.txt", "");
  folder.write("dog/1.JPG", "x");
  folder.write("dog/2.jpg", "x");
  folder.write("dog/2.txt", "a\0b"s);
  folder.write("dog/3.jpg", "x");
  folder.write("dog/3.txt", std::string((1 << 20) + 1, 'x'));
  folder.write("dog/3.md", "x");
  SourceOptions options{.targets_from = {"txt:text"}, .cache_dir = ""};
  const auto source = open_source(folder.path(), options);
  EXPECT_EQ(source->targets()[0].describe(), "'txt': text");
  EXPECT_THAT(all_values(*source),
              ElementsAre("a cat|", "|",
                          "! target 'txt' cannot be read: dog/1.txt: open: No such file or "
                          "directory",
                          "! target 'txt' has a text with a NUL byte",
                          "! target 'txt' has 1048577 bytes; at most 1048576"));
  ASSERT_EQ(source->notes().size(), 1U);  // the .txt files are not left out
  EXPECT_THAT(source->notes()[0].message, HasSubstr(".md"));
  EXPECT_EQ(open_source(folder.path(), {.cache_dir = ""})->notes().size(), 2U);
  options.targets_from = {"txt:text", "json:x"};
  EXPECT_THAT(message_of([&] { open_source(folder.path(), options); }),
              HasSubstr("targets_from is \"json:x\""));
}

std::string safetensors_of(const std::string& header, const std::string& numbers) {
  return mds_number(header.size(), 8) + header + numbers;
}

TEST(FormatTexts, TensorsOfSafetensors) {
  const TempFolder folder;
  const std::string header =
      R"({"__metadata__": {"a": "b"}, "x": {"dtype": "BF16", "shape": [2, 1], "data_offsets": [4, 8]},)"
      R"( "Y.z": {"dtype": "I32", "shape": [1], "data_offsets": [0, 4]}})";
  const std::string file =
      safetensors_of(header, mds_number(77, 4) + mds_number(0x3c01, 2) + mds_number(0xfb7f, 2));
  const std::string path = folder.write(
      "a.tar", tar_member("1.jpg", "x") + tar_member("1.Lat.safetensors", file) + tar_end());
  const auto source = open_texts(path, {"lat.safetensors:x:bfloat16", "lat.safetensors:Y.z:int32"});
  EXPECT_EQ(source->targets()[0].describe(), "'x': bfloat16 (2, 1)");
  EXPECT_EQ(values_of(*source, 0), "[15361 64383]; [77]");
  EXPECT_EQ(values_of(*open_texts(path, {"lat.safetensors:Y.z:int64[]"}), 0), "[77]");
}

TEST(FormatTexts, TensorsThatAreNotThereAreRefused) {
  const auto problem = [](const std::string& file) {
    FoundTarget out;
    return read_safetensors({reinterpret_cast<const uint8_t*>(file.data()), file.size()}, "x", out);
  };
  const auto of = [&](const std::string& tensor) {
    return problem(safetensors_of(R"({"x": )" + tensor + "}", "12345678"));
  };
  EXPECT_EQ(of(R"({"dtype": "U8", "shape": [2, 4], "data_offsets": [0, 8]})"), "");
  EXPECT_EQ(problem("1234567"), "is no .safetensors file");
  EXPECT_EQ(problem(mds_number(uint64_t{1} << 40, 8)),
            "has a header of 1099511627776 bytes; at most 1048576");
  EXPECT_EQ(problem(mds_number(9, 8) + "12345678"), "ends inside its header");
  EXPECT_EQ(problem(safetensors_of("[1]", "")), "has a header that is no JSON object");
  EXPECT_EQ(problem(safetensors_of(R"({"a": 1, "__metadata__": 2})", "")),
            "has no tensor 'x'; it has 'a'");
  EXPECT_EQ(of("7"), "has a dtype for 'x' that is not read");
  EXPECT_EQ(of(R"({"dtype": "F8_E4M3", "shape": [], "data_offsets": [0, 1]})"),
            "has a dtype for 'x' that is not read");
  const std::string nowhere = "says of 'x' where it has no bytes";
  EXPECT_EQ(of(R"({"dtype": "U8", "shape": [2], "data_offsets": [7, 9]})"), nowhere);
  EXPECT_EQ(of(R"({"dtype": "U8", "shape": [2], "data_offsets": [3, 1]})"), nowhere);
  EXPECT_EQ(of(R"({"dtype": "U8", "shape": [-2], "data_offsets": [0, 2]})"), nowhere);
  EXPECT_EQ(of(R"({"dtype": "U8", "shape": [2]})"), nowhere);
  const std::string other = "has 2 bytes for 'x', which its shape and dtype do not make";
  EXPECT_EQ(of(R"({"dtype": "U8", "shape": [3], "data_offsets": [0, 2]})"), other);
  EXPECT_EQ(of(R"({"dtype": "I16", "shape": [4611686018427387904, 4], "data_offsets": [0, 2]})"),
            other);
}

// Segments end early where texts are long, and views show what the shards have.
TEST(FormatTexts, ManyAndLongOnesAreThereInAnyView) {
  const TempFolder folder;
  std::string list = "path,c\n";
  const auto text = [](int i) {
    return std::string(static_cast<size_t>(i % 7) * 100, 'a' + i % 26);
  };
  constexpr int kRows = 20'000;
  for (int i = 0; i < kRows; ++i) list += "p" + std::to_string(i) + "," + text(i) + "\n";
  const auto source = open_texts(folder.write("l.csv", list), {"c:text"});
  for (int i = 0; i < kRows; i += 37) ASSERT_EQ(values_of(*source, i), text(i) + "|") << i;
  const SubsetSource part(*source, std::vector<SampleId>{5, 19'999});
  const ConcatSource both({&part, source.get()});
  EXPECT_EQ(values_of(both, 1), text(19'999) + "|");
  EXPECT_EQ(values_of(both, 8), text(6) + "|");
}

TEST(FormatTexts, TheDigestIsThatOfTheValues) {
  const TempFolder folder;
  const auto digest = [&](const std::string& rows) {
    return open_texts(folder.write("l.csv", "path,a,b\n" + rows), {"a:text", "b:text"})
        ->targets_digest();
  };
  const uint64_t own = digest("1,ab,c\n2,d,e\n");
  EXPECT_EQ(digest("1,ab,c\n2,d,e\n"), own);
  EXPECT_NE(digest("1,ab,c\n2,d,f\n"), own);
  EXPECT_NE(digest("1,a,bc\n2,d,e\n"), own);
  EXPECT_NE(digest("1,ab,c\n2,e,d\n"), own);
  const auto of_numbers = [&](const std::string& rows) {
    return open_texts(folder.write("l.csv", "path,a\n" + rows), {"a:int32[]"})->targets_digest();
  };
  EXPECT_NE(of_numbers("1,1 2\n2,3\n"), of_numbers("1,1\n2,2 3\n"));
}

}  // namespace
}  // namespace stoker
