// The numbers of targets in Parquet files: flat columns and lists, in all kinds of pages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pipeline/source/format/parquet.h"
#include "pipeline/source/format/unpack.h"
#include "tests/support/collected_samples.h"
#include "tests/support/parquet_maker.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
std::string plain(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

MadeColumn column_of(int type, std::vector<std::string> names = {"x"}) {
  MadeColumn column;
  column.names = std::move(names);
  column.type = type;
  return column;
}

// A column of lists of three levels; each row has these int32.
MadeColumn lists_of(const std::vector<std::vector<int>>& rows) {
  MadeColumn column = column_of(kMadeInt32, {"x", "list", "element"});
  column.repeated_at = {1};
  for (const std::vector<int>& row : rows) {
    column.lists.emplace_back();
    for (const int value : row) column.lists.back().emplace_back(plain_int32(value));
  }
  return column;
}

MadeParquet file_of(const MadeColumn& column) {
  MadeParquet file;
  MadeColumn images = column_of(kMadeBytes, {"image"});
  const size_t rows = column.lists.empty() ? column.values.size() : column.lists.size();
  for (size_t i = 0; i < rows; ++i) images.values.emplace_back(plain_bytes("picture"));
  file.columns = {images, column};
  return file;
}

std::vector<std::string> parquet_targets_in(const MadeParquet& made,
                                            const std::string& field = "x") {
  const MemoryScan scan{scan_parquet, "a.parquet"};
  const FieldChoice fields{"", "none", {{field, field, {}}}};
  std::vector<std::string> lines;
  const std::string error = thrown_by<BlobError>([&] {
    for (const auto& sample : scan(made.bytes(), fields).samples) {
      lines.push_back(text_of(sample.targets[0]));
    }
  });
  return error == "nothing was thrown" ? lines : std::vector{error};
}

// The error without the path and the byte.
std::string parquet_refusal(const MadeParquet& made, const std::string& field = "x") {
  const std::string error = parquet_targets_in(made, field)[0];
  const size_t at = error.find(": at byte ");
  if (at == std::string::npos) return "no error: " + error;
  return error.substr(error.find(": ", at + 10) + 2);
}

TEST(ParquetTargets, AllKindsOfNumbers) {
  const auto only = [](MadeColumn column, const std::string& value) {
    column.values = {value};
    return parquet_targets_in(file_of(column))[0];
  };
  EXPECT_EQ(only(column_of(kMadeInt32), plain_int32(-7)), "int64 (): -7");
  EXPECT_EQ(only(column_of(kMadeInt64), plain_int64(static_cast<uint64_t>(-8))), "int64 (): -8");
  EXPECT_EQ(only(column_of(kMadeFloat), plain(0.5F)), "float32 (): 0.5");
  EXPECT_EQ(only(column_of(kMadeDouble), plain(0.25)), "float32 (): 0.25");
  EXPECT_EQ(only(column_of(kMadeBoolean), "\1"), "uint8 (): 1");
  MadeColumn column = column_of(kMadeInt32);
  column.converted = 11;  // UINT_8
  EXPECT_EQ(only(column, plain_int32(255)), "uint8 (): 255");
  column.converted = 13;  // UINT_32
  EXPECT_EQ(only(column, plain_int32(-1)), "int64 (): 4294967295");
  column = column_of(kMadeInt64);
  column.converted = 14;  // UINT_64
  EXPECT_EQ(only(column, plain_int64(5)), "int64 (): 5");
  EXPECT_THAT(only(column, plain_int64(uint64_t{1} << 63)),
              HasSubstr("column x: row 0 has the value 9223372036854775808, which has more than "
                        "63 bits"));
}

TEST(ParquetTargets, BooleansInAllTheirEncodings) {
  for (const int encoding : {-1, 3}) {
    for (const int version : {1, 2}) {
      MadeColumn column = column_of(kMadeBoolean);
      column.encoding = encoding;
      std::vector<std::string> expected;
      for (int i = 0; i < 40; ++i) {
        const bool value = i % 3 == 0 || i > 25;
        column.values.emplace_back(value ? std::string("\1") : std::string(1, '\0'));
        expected.push_back(value ? "uint8 (): 1" : "uint8 (): 0");
      }
      MadeParquet file = file_of(column);
      file.page_version = version;
      file.rows_per_page = 11;
      EXPECT_EQ(parquet_targets_in(file), expected) << encoding << " " << version;
    }
  }
}

struct PageCase {
  int version, codec;
  bool dictionary, optional;
  size_t values_per_page;
};

std::vector<PageCase> page_cases() {
  std::vector<PageCase> cases;
  for (const int version : {1, 2}) {
    for (const int codec : {kMadePlain, kMadeSnappy, kMadeZstd}) {
      if (codec == kMadeZstd && !has_zstd()) continue;
      for (const bool dictionary : {false, true}) {
        for (const bool optional : {false, true}) {
          // In version 1, a row may begin in one page and end in another.
          for (const size_t values : {0, 4}) {
            if (version == 2 && values > 0) continue;
            cases.push_back({version, codec, dictionary, optional, values});
          }
        }
      }
    }
  }
  return cases;
}

void expect_in_all_pages(MadeColumn column, const std::vector<std::string>& expected) {
  for (const PageCase& pages : page_cases()) {
    if (column.lists.empty() && pages.values_per_page > 0) continue;
    column.codec = pages.codec;
    column.dictionary = pages.dictionary;
    column.optional = pages.optional;
    column.values_per_page = pages.values_per_page;
    MadeParquet file = file_of(column);
    file.page_version = pages.version;
    file.rows_per_page = 3;
    file.rows_per_group = 7;
    EXPECT_EQ(parquet_targets_in(file), expected)
        << pages.version << pages.codec << pages.dictionary << pages.optional;
  }
}

TEST(ParquetTargets, ListsInAllKindsOfPages) {
  std::vector<std::vector<int>> rows;
  std::vector<std::string> expected;
  for (int i = 0; i < 16; ++i) {
    rows.push_back({i, i % 2, 7});
    expected.push_back("int64 (3): " + std::to_string(i) + " " + std::to_string(i % 2) + " 7");
  }
  expect_in_all_pages(lists_of(rows), expected);
}

TEST(ParquetTargets, FlatColumnsInAllKindsOfPages) {
  std::vector<std::string> expected;
  MadeColumn column = column_of(kMadeDouble);
  for (int i = 0; i < 16; ++i) {
    column.values.emplace_back(plain(i % 5 + 0.5));
    expected.push_back("float32 (): " + std::to_string(i % 5) + ".5");
  }
  expect_in_all_pages(column, expected);
}

TEST(ParquetTargets, ListsOfTwoLevelsAndOfOne) {
  MadeColumn column = lists_of({{1, 2}, {3, 4}});
  column.names = {"x", "array"};
  EXPECT_THAT(parquet_targets_in(file_of(column)), ElementsAre("int64 (2): 1 2", "int64 (2): 3 4"));
  column.names = {"x"};
  column.repeated_at = {0};
  EXPECT_THAT(parquet_targets_in(file_of(column)), ElementsAre("int64 (2): 1 2", "int64 (2): 3 4"));
  // Inside a struct, by its path.
  column.names = {"s", "x", "list", "element"};
  column.repeated_at = {2};
  EXPECT_THAT(parquet_targets_in(file_of(column), "s.x"),
              ElementsAre("int64 (2): 1 2", "int64 (2): 3 4"));
}

TEST(ParquetTargets, ListsOfLists) {
  MadeColumn column = lists_of({{1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1}});
  column.names = {"x", "list", "element", "list", "element"};
  column.repeated_at = {1, 3};
  column.inner = 2;
  EXPECT_THAT(parquet_targets_in(file_of(column)),
              ElementsAre("int64 (3, 2): 1 2 3 4 5 6", "int64 (3, 2): 6 5 4 3 2 1"));
  column.inner = 3;
  EXPECT_THAT(parquet_targets_in(file_of(column)),
              ElementsAre("int64 (2, 3): 1 2 3 4 5 6", "int64 (2, 3): 6 5 4 3 2 1"));
  const std::string ragged =
      "column x.list.element.list.element: row 0 has lists of different lengths beside each other";
  column.inner = 4;
  EXPECT_EQ(parquet_refusal(file_of(column)), ragged);
  column = lists_of({{1, 2, 3, 4, 5}});
  column.names = {"x", "list", "element", "list", "element"};
  column.repeated_at = {1, 3};
  column.inner = 2;
  EXPECT_EQ(parquet_refusal(file_of(column)), ragged);
}

TEST(ParquetTargets, RowsOfOtherLengthsAreFoundAsTheyAre) {
  EXPECT_THAT(parquet_targets_in(file_of(lists_of({{1}, {2, 3}}))),
              ElementsAre("int64 (1): 1", "int64 (2): 2 3"));
}

TEST(ParquetTargets, NullsAndEmptyListsAreRefused) {
  MadeColumn flat = column_of(kMadeInt32);
  flat.values = {plain_int32(1), std::nullopt};
  EXPECT_EQ(parquet_refusal(file_of(flat)), "column x: row 1 has no target (null)");
  MadeColumn column = lists_of({{1}, {}});
  EXPECT_EQ(parquet_refusal(file_of(column)),
            "column x.list.element: row 1 has an empty list or a null");
  column = lists_of({{1}, {2}});
  column.lists[1].emplace_back();
  EXPECT_EQ(parquet_refusal(file_of(column)),
            "column x.list.element: row 1 has an empty list or a null");
}

TEST(ParquetTargets, ColumnsOfOtherThingsAreRefused) {
  const auto refused = [](MadeColumn column) {
    column.values = {plain_bytes("12345678")};
    return parquet_refusal(file_of(column));
  };
  const std::string rule = ", and targets are numbers or lists of them";
  EXPECT_EQ(refused(column_of(kMadeBytes)), "the column x is BYTE_ARRAY" + rule);
  MadeColumn date = column_of(kMadeInt32);
  date.converted = 6;
  EXPECT_EQ(refused(date), "the column x is INT32 (DATE)" + rule);
  EXPECT_EQ(refused(column_of(kMadeInt32, {"x", "y"})), "the column x is a struct" + rule);
  EXPECT_EQ(refused(column_of(kMadeInt32, {"y"})),
            "there is no column x for targets: the columns are image (BYTE_ARRAY), y (INT32)");
  MadeColumn texts = lists_of({{1}});
  texts.type = kMadeBytes;
  EXPECT_EQ(parquet_refusal(file_of(texts)), "the column x is a list" + rule);
  MadeParquet structs = file_of(lists_of({{1}}));
  structs.columns[1].names = {"x", "list", "a"};
  structs.columns.push_back(structs.columns[1]);
  structs.columns[2].names = {"x", "list", "b"};
  EXPECT_EQ(parquet_refusal(structs), "the column x is a list" + rule);
  // A field of a struct by its path.
  MadeColumn inner = column_of(kMadeInt32, {"x", "y"});
  inner.values = {plain_int32(4)};
  EXPECT_THAT(parquet_targets_in(file_of(inner), "x.y"), ElementsAre("int64 (): 4"));
}

TEST(ParquetTargets, BrokenPagesAreRefused) {
  const auto broken = [](auto&& breaking) {
    MadeColumn column = lists_of({{1, 2}, {3, 4}});
    breaking(column);
    return parquet_refusal(file_of(column));
  };
  const std::string start = "column x.list.element: ";
  // The levels of a long row are a run, which ends with its last value.
  EXPECT_EQ(broken([](MadeColumn& c) {
              c.lists = {std::vector<std::optional<std::string>>(20, plain_int32(1))};
              c.more_in_page = 1;
            }),
            start + "the repetition levels of a page end before its last value");
  EXPECT_EQ(broken([](MadeColumn& c) {
              c.names = {"x", "list", "element", "list", "element"};
              c.repeated_at = {1, 3};
              c.inner = 2;
              c.more_repetition = 1;
            }),
            "column x.list.element.list.element: a repetition level of 3, and the schema has 2");
  EXPECT_EQ(parquet_refusal(file_of([] {
              MadeColumn column = lists_of({{1}});
              column.more_repetition = 1;
              return column;
            }())),
            start + "row 0 begins with a value that goes on with the row before it");
  EXPECT_EQ(broken([](MadeColumn& c) { c.repetition_encoding = 4; }),
            start + "repetition levels encoded as BIT_PACKED, which is not read");
  EXPECT_EQ(broken([](MadeColumn& c) { c.more_level_bytes = 1000; }),
            start + "a page ends inside its levels");
  EXPECT_EQ(broken([](MadeColumn& c) { c.repeats_last_page = true; }),
            start + "its pages have more rows than the 2 of the row group");
  EXPECT_EQ(broken([](MadeColumn& c) { c.lists[1].back() = "123"; }),
            start + "a page of 4 values ends inside one of them");
  EXPECT_EQ(broken([](MadeColumn& c) {
              c.lists.pop_back();
              c.lists.emplace_back();
              c.lists[0].back().reset();
            }),
            start + "row 0 has an empty list or a null");
  EXPECT_EQ(broken([](MadeColumn& c) {
              c.lists[0].emplace_back(plain_int32(5));
              c.dictionary = true;
              c.more_in_index = 1;
            }),
            start + "place 5 in a dictionary of 5 values");
  EXPECT_EQ(broken([](MadeColumn& c) { c.dictionary = c.leaves_out_dictionary = true; }),
            start + "a page of places in a dictionary, and no dictionary");
  EXPECT_EQ(broken([](MadeColumn& c) { c.encoding = 9; }),
            start +
                "a page is encoded as BYTE_STREAM_SPLIT, which is not read: write the column with "
                "PLAIN or RLE_DICTIONARY (pyarrow's write_table() does without column_encoding)");
}

TEST(ParquetTargets, RowsThatAreMissingAreFound) {
  MadeColumn column = lists_of({{1, 2}, {3, 4}});
  MadeParquet file = file_of(column);
  // The images have one row more.
  file.columns[0].values.emplace_back(plain_bytes("picture"));
  file.columns[1].lists.push_back({});
  file.columns[1].lists[2].clear();
  EXPECT_EQ(parquet_refusal(file), "column x.list.element: row 2 has an empty list or a null");
  file = file_of(column_of(kMadeBoolean));
  MadeColumn booleans = column_of(kMadeBoolean);
  booleans.values = {"\1", "\1"};
  booleans.optional = false;
  booleans.more_in_page = 100;
  EXPECT_EQ(parquet_refusal(file_of(booleans)),
            "column x: a page of 102 values, where there can be no more than 2");
}

TEST(ParquetTargets, AFileCannotPromiseAnyNumberOfValues) {
  MadeColumn column = lists_of({{1, 2}, {3, 4}});
  column.more_in_page = int64_t{1} << 40;
  EXPECT_THAT(parquet_refusal(file_of(column)),
              HasSubstr("a page of 1099511627780 values, where there can be no more than "));
  // Equal values take next to nothing, so the bound is for all pages together.
  const auto found_in = [](size_t rows) {
    MadeColumn equal = lists_of({});
    constexpr size_t kEach = 700'000;
    equal.lists.assign(rows, std::vector<std::optional<std::string>>(kEach, plain_int32(0)));
    equal.dictionary = true;
    MadeParquet file = file_of(equal);
    file.rows_per_page = 1;
    return parquet_refusal(file);
  };
  EXPECT_THAT(found_in(1), HasSubstr("no error: int64 (700000): 0 0"));
  EXPECT_THAT(found_in(2), HasSubstr("a page of 700000 values, where there can be no more than "));
}

}  // namespace
}  // namespace stoker
