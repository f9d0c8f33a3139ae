#include "pipeline/source/format/list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/collected_samples.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CollectedSamples scan_of_list(const char* name, const std::string& text,
                              const FieldChoice& fields = {}) {
  return MemoryScan{scan_list, name}(text, fields);
}

std::string list_error(const char* name, const std::string& text, const FieldChoice& fields = {}) {
  return MemoryScan{scan_list, name}.refusal(text, fields);
}

// "PATH LABEL" for each sample.
std::vector<std::string> list_lines(const CollectedSamples& found) {
  std::vector<std::string> lines;
  for (const auto& sample : found.samples) lines.push_back(sample.name + " " + sample.label);
  return lines;
}

TEST(List, CsvWithoutHeaderIsPathAndLabel) {
  const CollectedSamples found = scan_of_list("l.csv", "a/1.jpg,7\nb.png, 8\r\na/1.jpg,-1");
  EXPECT_THAT(list_lines(found), ElementsAre("a/1.jpg 7", "b.png 8", "a/1.jpg -1"));
  EXPECT_EQ(found.samples[0].found.storage, BlobStorage::file);
  EXPECT_EQ(found.samples[0].found.offset, 0);
  EXPECT_EQ(found.samples[0].found.length, 0);
  EXPECT_THAT(found.left_out, IsEmpty());
}

TEST(List, QuotesOfCsv) {
  EXPECT_THAT(list_lines(scan_of_list("l.csv",
                                      "\"a,1.jpg\",\"cat\"\r\n\"a \"\"b\"\".jpg\",\"x\ny\"\r\n"
                                      "\"two\r\nlines,.jpg\",\"\"\"\"\n\"\"\"q.jpg\",dog")),
              ElementsAre("a,1.jpg text cat", "a \"b\".jpg text x\ny", "two\r\nlines,.jpg text \"",
                          "\"q.jpg text dog"));
}

TEST(List, TsvHasNoQuotes) {
  EXPECT_THAT(list_lines(scan_of_list("L.TSV", "\"a,b.jpg\t\"cat\nc\td\n")),
              ElementsAre("\"a,b.jpg text \"cat", "c text d"));
}

TEST(List, AByteOrderMarkIsDropped) {
  EXPECT_THAT(list_lines(scan_of_list("l.csv", "\xef\xbb\xbfpath,label\na,1\n")),
              ElementsAre("a 1"));
  EXPECT_THAT(list_lines(scan_of_list("l.tsv",
                                      "\xef\xbb\xbf"
                                      "a\t1\n")),
              ElementsAre("a 1"));
  EXPECT_THAT(list_lines(scan_of_list("l.jsonl", "\xef\xbb\xbf{\"path\":\"a\",\"y\":1}")),
              ElementsAre("a 1"));
}

TEST(List, AHeaderSaysWhereTheColumnsAre) {
  EXPECT_THAT(list_lines(scan_of_list("l.csv", "id,Label, FileName \n0,3,a\n1,4,b\n")),
              ElementsAre("a 3", "b 4"));
  // The first of the usual names, not the first column that has one of them.
  EXPECT_THAT(list_lines(scan_of_list("l.tsv", "y\tlabel\timage\tpath\n1\t2\ti\tp\n")),
              ElementsAre("p 2"));
  EXPECT_THAT(list_lines(scan_of_list("l.csv", "where,what,y\na,cat,1\n", {"where", "what"})),
              ElementsAre("a text cat"));
  EXPECT_THAT(list_lines(scan_of_list("l.csv", "where,y\na,1\n", {"where", ""})),
              ElementsAre("a 1"));
  EXPECT_THAT(list_lines(scan_of_list("l.csv", "path,what\na,1\n", {"", "what"})),
              ElementsAre("a 1"));
  EXPECT_THAT(scan_of_list("l.csv", "path,label\n").samples, IsEmpty());
}

TEST(List, EveryUsualNameIsFound) {
  for (const char* path :
       {"path", "file", "file_name", "filename", "filepath", "image", "image_path"}) {
    for (const char* label :
         {"label", "labels", "class", "class_name", "category", "target", "y"}) {
      const std::string header = "x," + std::string(label) + "," + path + "\n";
      EXPECT_THAT(list_lines(scan_of_list("l.csv", header + "0,c,p\n")), ElementsAre("p text c"))
          << header;
    }
  }
}

TEST(List, WithoutLabels) {
  EXPECT_THAT(list_lines(scan_of_list("l.csv", "a\nb\n", {"", "none"})),
              ElementsAre("a none", "b none"));
  EXPECT_THAT(list_lines(scan_of_list("l.csv", "path,label\na,1\n", {"", "none"})),
              ElementsAre("a none"));
  EXPECT_THAT(list_lines(scan_of_list("l.ndjson", "{\"file\":\"a\"}\n", {"", "none"})),
              ElementsAre("a none"));
}

TEST(List, TheFirstLabelDecidesWhetherTheyAreNumbers) {
  EXPECT_THAT(list_lines(scan_of_list("l.csv", "a,x1\nb,007\n")),
              ElementsAre("a text x1", "b text 007"));
  EXPECT_THAT(list_lines(scan_of_list("l.csv", "a,7x\nb,8\n")),
              ElementsAre("a text 7x", "b text 8"));
  EXPECT_THAT(list_lines(scan_of_list("l.csv", "a,007\nb,8\n")), ElementsAre("a 7", "b 8"));
  EXPECT_EQ(list_error("l.csv", "a,7\nb,8\nc,cat\n"),
            "8: line 3: the label 'cat': text where the first lines have numbers");
  EXPECT_EQ(
      list_error("l.csv", "a,7\nb,9223372036854775808\n"),
      "4: line 2: the label '9223372036854775808' is a number, but none that a class may have: "
      "classes are whole numbers from 0 on, or text; other numbers are read as a target");
  // They would silently become text, as the first label as well.
  for (const std::string label : {"0.5", "99999999999999999999", "-1e3", "+.5"}) {
    EXPECT_THAT(list_error("l.csv", "a," + label + "\n"), HasSubstr("'" + label + "' is a number"));
  }
  EXPECT_THAT(list_lines(scan_of_list("l.csv", "a,v0.5\nb,nan\nc,0.5\n")),
              ElementsAre("a text v0.5", "b text nan", "c text 0.5"));
  // The parser of JSON would take the last one.
  EXPECT_EQ(list_error("l.jsonl",
                       "{\"path\":\"a\",\"y\":1,\"x\":{\"y\":3,\"y\":4}}\n"
                       "{\"path\":\"a:{\\\"\",\"y\":1,\"y\":2}\n"),
            "37: line 2: the key 'y' is there twice");
  // Before another key's list, too: keys are counted first, those in lists are not.
  EXPECT_EQ(list_error("l.jsonl", "{\"path\":\"a\",\"path\":\"b\",\"x\":[1],\"y\":1}\n"),
            "0: line 1: the key 'path' is there twice");
}

TEST(List, JsonLines) {
  EXPECT_THAT(list_lines(scan_of_list("l.jsonl",
                                      "{\"y\":1,\"file_name\":\"a\\u00e4\"}\n\n \r\n"
                                      "{\"file_name\":\"b\",\"y\":-2,\"more\":[{}]}\r\n")),
              ElementsAre("a\u00e4 1", "b -2"));
  EXPECT_THAT(list_lines(scan_of_list("l.NDJSON", "{\"p\":\"a\",\"c\":\"7\"}", {"p", "c"})),
              ElementsAre("a text 7"));
}

TEST(List, LinesAreReadInPieces) {
  std::string text = "path,label\n";
  std::vector<std::string> expected;
  for (size_t i = 0; i < 3000; ++i) {
    const std::string path = std::to_string(i) + std::string(i % 4000, 'p');
    text += i % 3 ? path + "," : "\"" + path + "\",";
    text += std::to_string(i) + (i % 2 ? "\n" : "\r\n");
    expected.push_back(path + " " + std::to_string(i));
  }
  EXPECT_EQ(list_lines(scan_of_list("l.csv", text)), expected);
  const TempFolder folder;
  BlobReader blob(folder.write("l.csv", text));
  CollectedSamples found;
  scan_list(blob, {}, found);
  EXPECT_EQ(list_lines(found), expected);
}

TEST(List, ALineMayHaveOneMebibyte) {
  constexpr size_t kMax = 1 << 20;
  const std::string longest = "a,0," + std::string(kMax - 4, 'x');
  EXPECT_EQ(scan_of_list("l.csv", longest + "\r\n" + longest + "\n" + longest).samples.size(), 3u);
  for (const char* end : {"", "\n", "\r\n", "\nb,1,x\n"}) {
    EXPECT_EQ(list_error("l.csv", "b,1,x\n" + longest + "x" + end),
              "6: line 2: more than 1048576 bytes");
  }
  EXPECT_EQ(list_error("l.csv", "b,1,\"\n" + longest),
            "0: line 1: more than 1048576 bytes; is there a quote that is not closed?");
  EXPECT_EQ(list_error("l.jsonl", std::string(kMax + 1, ' ')),
            "0: line 1: more than 1048576 bytes");
}

TEST(ListErrors, TheFile) {
  EXPECT_EQ(list_error("l.csv", ""), "0: the file is empty");
  EXPECT_EQ(list_error("l.txt", "a,1"),
            "0: the name of a list ends in .csv, .tsv, .jsonl or .ndjson");
}

TEST(ListErrors, Columns) {
  EXPECT_EQ(list_error("l.csv", "a.jpg\nb.jpg\n"),
            "0: line 1: one column, 'a.jpg': the label is missing; `label_from` none takes a list "
            "without labels");
  EXPECT_EQ(list_error("l.csv", "path,kind\na,1\n"),
            "0: line 1: none of label, labels, class, class_name, category, target, y is here; "
            "there is 'path', 'kind': say where the label is with `label_from`, or none");
  EXPECT_EQ(list_error("l.csv", "where,kind\na,1\n", {"", "kind"}),
            "0: line 1: none of path, file, file_name, filename, filepath, image, image_path is "
            "here; there is 'where', 'kind': say where the path is with `image_from`");
  EXPECT_EQ(list_error("l.csv", "path,label\na,1\n", {"img", ""}),
            "0: line 1: no 'img' is here; there is 'path', 'label': say where the path is with "
            "`image_from`");
  EXPECT_EQ(list_error("l.tsv", "a\t1\n", {"", "kind"}),
            "0: line 1: none of path, file, file_name, filename, filepath, image, image_path is "
            "here; there is 'a', '1': say where the path is with `image_from`");
}

TEST(ListErrors, Lines) {
  EXPECT_EQ(list_error("l.csv", "a,1\nb,1,2\n"), "4: line 2: 3 fields, and the first line has 2");
  EXPECT_EQ(list_error("l.tsv", "a\t1\n\n"), "4: line 2: 1 fields, and the first line has 2");
  EXPECT_EQ(list_error("l.csv", "\"a\nb\",1\n\"c\r\nd\",1\ne\n"),
            "17: line 5: 1 fields, and the first line has 2");
  EXPECT_EQ(list_error("l.csv", "a,\"1\nb,1\n"), "0: line 1: a quote is not closed");
  EXPECT_EQ(list_error("l.csv", "a,\"1\"2\n"),
            "0: line 1: text after the quote that closes a field");
  for (const char* text : {"x\"y,1\n", "\"b\",x\"y\n"}) {
    EXPECT_EQ(list_error("l.csv", text),
              "0: line 1: a quote inside the field 'x\"y': such a field is written in quotes, and "
              "its quotes twice");
  }
  EXPECT_EQ(list_error("l.csv", "a \"b\",1\n"),
            "0: line 1: a quote inside the field 'a \"b\"': such a field is written in quotes, and "
            "its quotes twice");
}

TEST(ListErrors, Paths) {
  EXPECT_EQ(list_error("l.csv", "a,1\n,1\n"), "4: line 2: an empty path");
  EXPECT_EQ(list_error("l.csv", std::string("a\0b,1\n", 6)),
            "0: line 1: a path with a NUL byte: 'a\\x00b'");
  EXPECT_EQ(list_error("l.jsonl", "{\"path\":\"a\\u0000b\",\"y\":1}"),
            "0: line 1: a path with a NUL byte: 'a\\x00b'");
  EXPECT_EQ(list_error("l.csv", "a,1\n" + std::string(4096, 'p') + ",1\n"),
            "4: line 2: a path of 4096 bytes; at most 4095");
  EXPECT_EQ(scan_of_list("l.csv", std::string(4095, 'p') + ",1\n").samples.size(), 1u);
}

TEST(ListErrors, Labels) {
  EXPECT_EQ(list_error("l.csv", "a, \n"), "0: line 1: the label is empty");
  EXPECT_EQ(list_error("l.csv", std::string("a,b\0c\n", 6)), "0: line 1: the label has a NUL byte");
  const auto json = [](const std::string& value) {
    return list_error("l.jsonl", "{\"path\":\"a\",\"y\":" + value + "}");
  };
  const std::string start = "0: line 1: the label 'y' ";
  EXPECT_EQ(json("1.5"), start + "is a number with a fraction, and no integer or text");
  EXPECT_EQ(json("null"), start + "is null, and no integer or text");
  EXPECT_EQ(json("true"), start + "is boolean, and no integer or text");
  EXPECT_EQ(json("\"\""), start + "is empty");
  EXPECT_EQ(json("9223372036854775808"), start + "has more than 63 bits");
}

TEST(ListErrors, JsonLines) {
  const std::string first = "{\"path\":\"a\",\"y\":1}\n";
  const auto error = [&](const std::string& second) {
    return list_error("l.jsonl", first + second);
  };
  const std::string start = "19: line 2: ";
  EXPECT_EQ(error("[1]"), start + "no JSON object");
  EXPECT_EQ(error("{\"path\":"), start + "no JSON object");
  EXPECT_EQ(error("{\"path\":\"a\"}"),
            start + "no 'y' is here, as on the first line; there is 'path'");
  EXPECT_EQ(error("{}"), start + "no 'path' is here, as on the first line; there is nothing");
  EXPECT_EQ(error("{\"path\":7,\"y\":1}"), start + "the path 'path' is number, and no text");
  EXPECT_EQ(error("{\"path\":\"a\",\"y\":\"1\"}"),
            start + "the label '1': text where the first lines have numbers");
  EXPECT_EQ(list_error("l.jsonl", "{\"path\":\"a\",\"y\":\"1\"}\n{\"path\":\"a\",\"y\":1}"),
            "21: line 2: the label 1: a number where the first lines have text");
}

}  // namespace
}  // namespace stoker
