// Images in Parquet files: every row's bytes, label and place, for all kinds of pages that are
// read; what is not read, or is broken, is an error that says where and what.
#include "pipeline/source/format/parquet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/source/format/unpack.h"
#include "tests/support/collected_samples.h"
#include "tests/support/format_maker.h"
#include "tests/support/parquet_maker.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Images of several lengths, with parts that can be packed; each third one is the same.
std::string parquet_image(size_t row) {
  if (row % 3 == 2) return "again and again and again and again";
  std::string text;
  for (size_t i = 0; i < 40 * row % 700; ++i) text += static_cast<char>(i * i % 251 + row);
  return text + std::string(row % 50, 'x');
}

MadeColumn image_column(size_t rows, std::vector<std::string> names = {"image", "bytes"}) {
  MadeColumn column;
  column.names = std::move(names);
  for (size_t row = 0; row < rows; ++row)
    column.values.emplace_back(plain_bytes(parquet_image(row)));
  return column;
}

MadeColumn label_column(size_t rows) {
  MadeColumn column;
  column.names = {"label"};
  column.type = kMadeInt64;
  for (size_t row = 0; row < rows; ++row) column.values.emplace_back(plain_int64(row % 7));
  return column;
}

// The path of a picture, as the Hub has it beside the bytes.
MadeColumn path_column(size_t rows) {
  MadeColumn column = image_column(0, {"image", "path"});
  column.converted = 0;
  for (size_t row = 0; row < rows; ++row) {
    if (row % 2 == 0) {
      column.values.emplace_back(plain_bytes("file.jpg"));
    } else {
      column.values.emplace_back();
    }
  }
  return column;
}

MadeParquet hub_file(size_t rows) {
  return {.columns = {image_column(rows), path_column(rows), label_column(rows)}};
}

const MemoryScan kParquetScan{scan_parquet, "x.parquet"};

std::string parquet_error(const MadeParquet& file, const FieldChoice& fields = {}) {
  return kParquetScan.refusal(file.bytes(), fields);
}

void expect_images(const std::string& file, const CollectedSamples& found, size_t rows) {
  ASSERT_EQ(found.samples.size(), rows);
  for (size_t row = 0; row < rows; ++row) {
    EXPECT_EQ(image_in(file, found.samples[row].found), parquet_image(row)) << "row " << row;
    EXPECT_EQ(found.samples[row].name, "");
  }
}

TEST(Parquet, ReadsWhatTheHubHas) {
  MadeParquet made = hub_file(50);
  made.rows_per_group = 20;
  made.rows_per_page = 6;
  made.metadata = {{"other", "{}"},
                   {"huggingface", R"({"info": {"features": {"image": {"_type": "Image"},
                     "label": {"names": ["a", "b", "c"], "_type": "ClassLabel"}}}})"}};
  const std::string file = made.bytes();
  const CollectedSamples found = kParquetScan(file);
  expect_images(file, found, 50);
  for (size_t row = 0; row < 50; ++row) {
    EXPECT_EQ(found.samples[row].found.storage, BlobStorage::bytes);
    EXPECT_EQ(found.samples[row].label, std::to_string(row % 7));
  }
  EXPECT_THAT(found.class_names, ElementsAre("a", "b", "c"));
  EXPECT_THAT(found.left_out, IsEmpty());
}

TEST(Parquet, ReadsEveryKindOfPage) {
  const TempFolder folder;
  for (const int codec : {kMadePlain, kMadeSnappy, kMadeZstd}) {
    if (codec == kMadeZstd && !has_zstd()) continue;
    for (int kind = 0; kind < 16; ++kind) {
      MadeParquet made = hub_file(60);
      made.page_version = 1 + kind % 2;
      made.rows_per_group = kind % 4 < 2 ? 60 : 17;
      made.rows_per_page = 23;
      for (MadeColumn& column : made.columns) {
        column.codec = codec;
        column.dictionary = kind / 4 % 2 == 1;
        // Columns without levels cannot hold nulls.
        column.optional = kind / 8 == 0 || column.names.back() == "path";
      }
      made.columns[1].names = {"path"};
      const std::string file = made.bytes();
      SCOPED_TRACE("codec " + std::to_string(codec) + ", kind " + std::to_string(kind));
      // From a real file: what has been read is no longer there when the next part is.
      BlobReader blob(folder.write("x.parquet", file));
      CollectedSamples found;
      scan_parquet(blob, {}, found);
      expect_images(file, found, 60);
      if (found.samples.size() != 60) continue;
      for (size_t row = 0; row < 60; ++row) {
        EXPECT_EQ(found.samples[row].label, std::to_string(row % 7));
      }
    }
  }
}

TEST(Parquet, PagesOfAPackedColumnThatAreNotPacked) {
  for (const bool dictionary : {false, true}) {
    MadeParquet made = hub_file(20);
    made.page_version = 2;
    for (MadeColumn& column : made.columns) {
      column.codec = kMadeSnappy;
      column.packed = false;
      column.dictionary = dictionary;
    }
    const std::string file = made.bytes();
    expect_images(file, kParquetScan(file), 20);
  }
}

TEST(Parquet, AnImageInALargePageNeedsLittleOfIt) {
  MadeColumn images;
  images.names = {"image"};
  images.codec = kMadeSnappy;
  const std::string picture = patternless(30000);
  for (int row = 0; row < 60; ++row) {
    images.values.emplace_back(plain_bytes(picture + std::to_string(row)));
  }
  MadeParquet made = {.columns = {images}};
  const std::string file = made.bytes();
  const CollectedSamples found = kParquetScan(file, {"", "none"});
  ASSERT_EQ(found.samples.size(), 60u);
  int packed = 0;
  for (int row = 0; row < 60; ++row) {
    const FoundSample& place = found.samples[static_cast<size_t>(row)].found;
    EXPECT_EQ(image_in(file, place), picture + std::to_string(row));
    EXPECT_LE(place.skip, 65536);
    EXPECT_LE(place.packed_length, 65536 + 2 * place.length);
    packed += place.storage == BlobStorage::snappy ? 1 : 0;
  }
  EXPECT_GT(packed, 20);
}

TEST(Parquet, SharesTheImagesOfADictionary) {
  MadeParquet made = hub_file(30);
  made.columns[0].dictionary = true;
  const CollectedSamples found = kParquetScan(made.bytes());
  EXPECT_EQ(found.samples.at(2).found.offset, found.samples.at(5).found.offset);
  EXPECT_EQ(found.samples.at(2).found.offset, found.samples.at(29).found.offset);
  EXPECT_NE(found.samples.at(2).found.offset, found.samples.at(3).found.offset);
}

// The label of each of three rows.
std::vector<std::string> parquet_labels(const MadeColumn& labels, const FieldChoice& fields = {}) {
  const MadeParquet made = {.columns = {image_column(3), labels}};
  return labels_of(kParquetScan(made.bytes(), fields));
}

TEST(Parquet, LabelsAreIntegersOrText) {
  MadeColumn labels = label_column(0);
  labels.values = {plain_int64(5), plain_int64(uint64_t(-1)), plain_int64(uint64_t{1} << 40)};
  EXPECT_THAT(parquet_labels(labels), ElementsAre("5", "-1", "1099511627776"));
  EXPECT_THAT(parquet_labels(labels, {"", "none"}), ElementsAre("none", "none", "none"));
  labels.converted = 14;  // UINT_64
  EXPECT_THAT(parquet_error({.columns = {image_column(3), labels}}),
              HasSubstr("column label: the label 18446744073709551615 is too large"));
  labels.type = kMadeInt32;
  labels.values = {plain_int32(7), plain_int32(-2), plain_int32(0)};
  labels.converted = 15;  // INT_8
  EXPECT_THAT(parquet_labels(labels), ElementsAre("7", "-2", "0"));
  labels.converted = 13;  // UINT_32
  EXPECT_THAT(parquet_labels(labels), ElementsAre("7", "4294967294", "0"));
  labels.converted = -1;
  labels.logical = 10;
  EXPECT_THAT(parquet_labels(labels), ElementsAre("7", "-2", "0"));
  labels.is_unsigned = true;
  EXPECT_THAT(parquet_labels(labels), ElementsAre("7", "4294967294", "0"));
  labels = image_column(0, {"label"});
  labels.values = {plain_bytes("cat"), plain_bytes(""), plain_bytes("a dog")};
  for (const bool dictionary : {false, true}) {
    labels.dictionary = dictionary;
    EXPECT_THAT(parquet_labels(labels), ElementsAre("text cat", "text ", "text a dog"));
  }
}

TEST(Parquet, ChoosesColumnsByTheirNames) {
  const auto choose = [](const std::vector<std::vector<std::string>>& images, FieldChoice fields) {
    MadeParquet made;
    for (size_t i = 0; i < images.size(); ++i) {
      made.columns.push_back(image_column(1, images[i]));
      made.columns.back().values = {plain_bytes("column " + std::to_string(i))};
    }
    fields.label = "none";
    const std::string file = made.bytes();
    return image_in(file, kParquetScan(file, fields).samples.at(0).found);
  };
  EXPECT_EQ(choose({{"id"}, {"pixels"}, {"jpg"}, {"img"}}, {}), "column 3");
  EXPECT_EQ(choose({{"id"}, {"pixels"}, {"jpg"}}, {}), "column 2");
  EXPECT_EQ(choose({{"id"}, {"image", "path"}, {"image", "bytes"}}, {}), "column 2");
  EXPECT_EQ(choose({{"id"}, {"photo", "bytes"}, {"photo", "path"}}, {}), "column 1");
  EXPECT_EQ(choose({{"image"}, {"a", "b", "bytes"}}, {"a.b", ""}), "column 1");
  EXPECT_EQ(choose({{"image"}, {"a", "b", "c"}}, {"a.b.c", ""}), "column 1");
  EXPECT_EQ(choose({{"image"}, {"my.column"}}, {"my.column", ""}), "column 1");
}

TEST(Parquet, ColumnsThatCannotBeTaken) {
  MadeParquet made = hub_file(3);
  EXPECT_THAT(parquet_error(made, {"photo", ""}),
              HasSubstr(": there is no column photo for images: the columns are image (a struct), "
                        "label (INT64)"));
  EXPECT_THAT(parquet_error(made, {"", "cl\nass"}),
              HasSubstr(R"(: there is no column cl\x0aass for labels: the columns are image)"));
  made.columns[0].names[0] = made.columns[1].names[0] = "a";
  made.columns.push_back(image_column(3, {"b", "bytes"}));
  EXPECT_THAT(
      parquet_error(made),
      HasSubstr("no column has a usual name for images (image, img, jpg, jpeg, png, webp, picture, "
                "pixels): the columns are a (a struct), label (INT64), b (a struct)"));
  made.columns[2].names = {"score"};
  EXPECT_THAT(parquet_error(made, {"b", ""}),
              HasSubstr("no column has a usual name for labels (label, labels, class, fine_label, "
                        "cls): the columns are a (a struct), score (INT64), b (a struct)"));
  made.columns[2].type = kMadeFloat;
  EXPECT_THAT(parquet_error(made, {"b", "score"}),
              HasSubstr("the column score is FLOAT, and labels are integers or text"));
  made.columns[2].type = kMadeInt32;
  made.columns[2].converted = 6;
  EXPECT_THAT(parquet_error(made, {"b", "score"}),
              HasSubstr("the column score is INT32 (DATE), and"));
  made.columns[2].converted = -1;
  made.columns[2].logical = 8;
  EXPECT_THAT(parquet_error(made, {"b", "score"}), HasSubstr("score is INT32 (TIMESTAMP), and"));
  made.columns[2].repeated = true;
  EXPECT_THAT(parquet_error(made, {"b", "score"}), HasSubstr("the column score is a list, and"));
  EXPECT_THAT(parquet_error(made, {"b", "a"}),
              HasSubstr("the column a is a struct, and labels are"));
  EXPECT_THAT(parquet_error(made, {"score", ""}),
              HasSubstr("the column score is a list, and images are binary values or a struct with "
                        "binary `bytes`"));
  EXPECT_THAT(parquet_error(made, {"a.path", ""}),
              HasSubstr("the column a.path is BYTE_ARRAY (UTF8), and images are"));
  made.columns[3].repeated = true;
  EXPECT_THAT(parquet_error(made, {"b", ""}),
              HasSubstr("the column b is a struct, and images are"));
  EXPECT_THAT(parquet_error(MadeParquet()), HasSubstr("pixels): there are no columns"));
  made.columns.assign(43, image_column(1, {"x"}));
  EXPECT_THAT(parquet_error(made), HasSubstr("x (BYTE_ARRAY), x (BYTE_ARRAY) and 3 more"));
}

TEST(Parquet, ClassNamesThatCannotBeReadAreLeftAlone) {
  MadeParquet made = hub_file(2);
  for (const std::string text :
       {"", "{", "[]", "{\"info\": 1}", R"({"info": {"features": {"label": {"names": "a"}}}})",
        R"({"info": {"features": {"label": {"names": ["a", 2]}}}})",
        R"({"info": {"features": {"label": {"names": ["a\u0000"]}}}})",
        R"({"info": {"features": {"other": {"names": ["a"]}}}})"}) {
    made.metadata = {{"huggingface", text}};
    EXPECT_THAT(kParquetScan(made.bytes()).class_names, IsEmpty()) << text;
  }
  // A text is its class's name itself.
  made.metadata = {{"huggingface", R"({"info": {"features": {"label": {"names": ["a"]}}}})"}};
  EXPECT_THAT(kParquetScan(made.bytes()).class_names, ElementsAre("a"));
  made.columns[2] = image_column(2, {"label"});
  EXPECT_THAT(kParquetScan(made.bytes()).class_names, IsEmpty());
}

TEST(Parquet, NullsAreErrorsWithTheirRow) {
  for (const int version : {1, 2}) {
    for (const int codec : {kMadePlain, kMadeSnappy}) {
      for (const bool dictionary : {false, true}) {
        MadeParquet made = hub_file(40);
        made.page_version = version;
        made.rows_per_group = 15;
        made.rows_per_page = 6;
        for (MadeColumn& column : made.columns) {
          column.codec = codec;
          column.dictionary = dictionary;
        }
        made.columns[0].values[25].reset();
        EXPECT_THAT(parquet_error(made),
                    HasSubstr("column image.bytes: row 25 has no image bytes"));
        made.columns[0] = image_column(40);
        made.columns[2].values[38].reset();
        EXPECT_THAT(parquet_error(made), HasSubstr("column label: row 38 has no label (null)"));
      }
    }
  }
}

TEST(Parquet, EndsOfTheFile) {
  const std::string file = hub_file(3).bytes();
  EXPECT_EQ(kParquetScan.refusal("PAR1PAR1"), "0: no Parquet file is as short as 8 bytes");
  EXPECT_EQ(kParquetScan.refusal("JUNK" + file.substr(4)),
            "0: this is no Parquet file: it begins with JUNK instead of PAR1");
  EXPECT_EQ(kParquetScan.refusal(
                "version https://git-lfs.github.com/spec/v1\noid sha256:1234\nsize 12\n"),
            "0: this is a pointer of Git LFS, not the file itself (git lfs pull gets it)");
  const size_t half = file.size() / 2;
  EXPECT_THAT(kParquetScan.refusal(file.substr(0, half)),
              AllOf(HasSubstr(std::to_string(half - 4) + ": the file ends with "),
                    HasSubstr(" instead of PAR1: a part of it is missing")));
  EXPECT_EQ(kParquetScan.refusal(file.substr(0, file.size() - 4) + "PARE"),
            std::to_string(file.size() - 4) +
                ": the footer is encrypted (PARE), and encrypted files are not read");
  EXPECT_EQ(kParquetScan.refusal(std::string("PAR1\x01\x00\x00\x00PAR1", 12)),
            "4: the footer has 1 bytes, and only 0 are before this");
}

TEST(Parquet, FootersThatAreNotThrift) {
  const auto footer = [](std::string_view bytes) {
    return kParquetScan.refusal(parquet_around(bytes));
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(footer(""), "4: the footer ends inside a field");
  EXPECT_EQ(footer("\x29"sv), "5: the footer ends inside a field");
  EXPECT_EQ(footer("\x1e"sv), "4: the footer is not Thrift: field 1 of type 14");
  EXPECT_EQ(footer("\x25\x02"sv),
            "5: the footer has a field of Thrift's type 5 here, and a list is expected");
  EXPECT_EQ(footer("\x29\xfc\x7f"sv),
            "6: the footer ends inside a field of length 127, 0 bytes are left");
  EXPECT_EQ(footer("\x18\x7f"sv),
            "5: the footer ends inside a field of length 127, 0 bytes are left");
  EXPECT_EQ(footer("\x15\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"sv),
            "5: the footer has a number of more than 64 bits here");
  EXPECT_EQ(footer("\x29\x1c\x15\x01"sv),
            "7: the footer has -1 where a size or a count is expected");
  EXPECT_THAT(footer(std::string(1, '\x1c') + std::string(100, '\x1c')),
              HasSubstr("has structs or lists inside each other, more than 64 levels"));
  // A schema of one field without a type, whose root counts none.
  EXPECT_EQ(footer("\x29\x2c\x00\x35\x00\x00\x00"sv),
            "7: the schema has more fields than its groups count");
}

TEST(Parquet, SchemasThatCannotBe) {
  MadeParquet made = hub_file(1);
  made.columns[0].type = 8;
  EXPECT_THAT(parquet_error(made),
              HasSubstr(": the field bytes of the schema has type 8, repetition 1 and 0 fields "
                        "inside it, which cannot be"));
  made.columns[0] = image_column(1, std::vector<std::string>(33, "x"));
  EXPECT_THAT(parquet_error(made),
              HasSubstr(": the schema has fields inside fields, more than 32 levels"));
}

TEST(Parquet, WhatIsNotRead) {
  MadeParquet made = hub_file(5);
  MadeColumn& images = made.columns[0];
  images.codec = kMadeGzip;
  EXPECT_EQ(parquet_error(made),
            "4: column image.bytes: its pages are packed with GZIP, which is not read: write the "
            "file with no compression, SNAPPY or ZSTD");
  images.codec = 77;
  EXPECT_THAT(parquet_error(made), HasSubstr("packed with codec 77, which is not read"));
  images.codec = kMadeZstd;
  if (!has_zstd()) {
    EXPECT_EQ(
        parquet_error(made),
        "4: column image.bytes: its pages are packed with ZSTD, and this build has no libzstd");
  }
  images.codec = kMadePlain;
  images.encoding = 6;
  EXPECT_EQ(parquet_error(made),
            "4: column image.bytes: a page is encoded as DELTA_LENGTH_BYTE_ARRAY, which is not "
            "read: write the column with PLAIN or RLE_DICTIONARY (pyarrow's write_table() does "
            "without column_encoding)");
  images.encoding = 99;
  EXPECT_THAT(parquet_error(made), HasSubstr("a page is encoded as encoding 99, which"));
  images.encoding = -1;
  images.level_encoding = 4;
  EXPECT_THAT(parquet_error(made),
              HasSubstr("image.bytes: definition levels encoded as BIT_PACKED, which is not read"));
  images.level_encoding = 3;
  made.columns[2].encoding = 5;
  EXPECT_THAT(parquet_error(made),
              HasSubstr("column label: a page is encoded as DELTA_BINARY_PACKED"));
  images.encrypted = true;
  EXPECT_THAT(parquet_error(made), HasSubstr(": column image.bytes in row group 0 is encrypted"));
  images.encrypted = false;
  images.file = "part.0";
  EXPECT_THAT(parquet_error(made),
              HasSubstr("column image.bytes in row group 0 is in another file"));
}

TEST(Parquet, CountsThatDoNotAgree) {
  MadeParquet made = hub_file(5);
  made.columns[0].more_in_footer = 2;
  EXPECT_THAT(
      parquet_error(made),
      HasSubstr("column image.bytes in row group 0 has 7 values, and the row group has 5 rows"));
  made = hub_file(5);
  made.rows_per_page = 2;
  made.columns[2].more_in_footer = -1;
  EXPECT_THAT(parquet_error(made),
              HasSubstr("column label in row group 0 has 4 values, and the row group has 5 rows"));
  made = hub_file(5);
  made.columns[0].more_in_page = 1;
  EXPECT_EQ(parquet_error(made).substr(parquet_error(made).find("column")),
            "column image.bytes: a page of 6 values, where there can be no more than 5");
  made.columns[0].more_in_page = -1;
  EXPECT_EQ(parquet_error(made),
            "4: column image.bytes: its pages have 4 values, and the row group has 5 rows");
  made = hub_file(5);
  made.columns[2].more_in_page = -1;
  EXPECT_THAT(parquet_error(made),
              HasSubstr("column label: its pages have 4 values, and the row group has 5 rows"));
  made.columns[2].more_in_page = 1;
  EXPECT_THAT(parquet_error(made),
              HasSubstr("column label: a page of 6 values, where there can be no more than 5"));
  for (const size_t column : {0, 2}) {
    made = hub_file(5);
    made.columns[column].repeats_last_page = true;
    EXPECT_THAT(parquet_error(made),
                HasSubstr(": a page of 5 values, where there can be no more than 0"));
  }
  made = hub_file(5);
  made.columns[2].more_in_page = -5;
  made.rows_per_page = 3;
  EXPECT_THAT(parquet_error(made), HasSubstr("where a size or a count is expected"));
}

TEST(Parquet, SizesThatCannotBe) {
  MadeParquet made = hub_file(5);
  made.more_rows = 100'000;
  EXPECT_THAT(parquet_error(made), HasSubstr("the footer counts more rows than a file of " +
                                             std::to_string(made.bytes().size()) +
                                             " bytes can hold: 100005 in row group 0"));
  made = hub_file(5);
  made.columns[2].more_bytes = 100'000;
  EXPECT_THAT(parquet_error(made), HasSubstr("column label in row group 0 has 1001"));
  EXPECT_THAT(parquet_error(made), HasSubstr(", which the file has not"));
  // Row groups that read the same pages: together they have more bytes than the file.
  made = hub_file(6);
  made.more_groups = 20;
  EXPECT_THAT(parquet_error(made), AllOf(HasSubstr("column image.bytes in row group "),
                                         HasSubstr(", which the file has not")));
  made = hub_file(5);
  made.columns[0].more_unpacked = -7;
  EXPECT_THAT(parquet_error(made), HasSubstr("column image.bytes: a page that is not packed has "));
  made.columns[0].codec = kMadeSnappy;
  EXPECT_THAT(parquet_error(made),
              HasSubstr("column image.bytes: a page packed with Snappy says that "));
  made.columns[0].more_unpacked = 1'000'000;
  EXPECT_THAT(parquet_error(made),
              HasSubstr(" is the most that is read: write the file with smaller row groups"));
  made = hub_file(5);
  made.columns[2].more_unpacked = 256 << 20;
  made.columns[2].codec = kMadeZstd;
  EXPECT_THAT(parquet_error(made), HasSubstr(has_zstd() ? ", and 268435456 is the most that is read"
                                                        : "this build has no libzstd"));
  // A page of version 2 whose levels are larger than it.
  made = hub_file(5);
  made.page_version = 2;
  made.columns[0].more_level_bytes = 5000;
  EXPECT_THAT(parquet_error(made), HasSubstr("column image.bytes: levels of 0 and 50"));
}

TEST(Parquet, LevelsThatEndTooEarly) {
  for (const int codec : {kMadePlain, kMadeSnappy}) {
    MadeParquet made = hub_file(5);
    made.columns[0].codec = codec;
    made.columns[0].more_level_bytes = -1;
    EXPECT_THAT(
        parquet_error(made),
        HasSubstr("column image.bytes: the definition levels of a page end after 0 of 5 values"));
    made.columns[0].more_level_bytes = 100'000;
    EXPECT_THAT(parquet_error(made),
                HasSubstr("column image.bytes: a page ends inside its definition levels"));
  }
}

TEST(Parquet, PagesThatEndTooEarly) {
  for (const bool dictionary : {false, true}) {
    MadeParquet made = hub_file(5);
    MadeColumn& images = made.columns[0];
    images.dictionary = dictionary;
    // The last value says that it is longer than it is.
    images.values[4] = plain_bytes("12345678").substr(0, 8);
    images.optional = false;
    EXPECT_THAT(parquet_error(made),
                HasSubstr("column image.bytes: a page ends inside value 4 of 5"));
    images.codec = kMadeSnappy;
    EXPECT_THAT(parquet_error(made),
                HasSubstr("column image.bytes: a page ends inside value 4 of 5"));
  }
  MadeParquet made = hub_file(5);
  made.columns[2].values[4] = plain_int64(3).substr(1);
  EXPECT_THAT(parquet_error(made),
              HasSubstr("column label: a page of 5 values ends inside one of them"));
}

TEST(Parquet, DictionariesThatDoNotFit) {
  for (const size_t column : {0, 2}) {
    MadeParquet made = hub_file(5);
    made.columns[column].dictionary = true;
    made.columns[column].more_in_index = 3;
    EXPECT_THAT(parquet_error(made), HasSubstr(": place 5 in a dictionary of 5 values"));
    made.columns[column].more_in_index = 0;
    made.columns[column].leaves_out_dictionary = true;
    EXPECT_THAT(parquet_error(made),
                HasSubstr(": a page of places in a dictionary, and no dictionary"));
  }
}

}  // namespace
}  // namespace stoker
