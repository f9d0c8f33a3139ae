// Further pictures of samples, as each kind of data has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/files/invalid_field.h"
#include "pipeline/source/growing_source.h"
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
using ::testing::IsEmpty;

std::unique_ptr<Source> open_with(const std::string& path, std::vector<std::string> pictures_from,
                                  SourceOptions options = {}) {
  options.pictures_from = std::move(pictures_from);
  options.cache_dir = "";
  return open_source(path, options);
}

// "NAME: own, first, second" for each sample.
std::vector<std::string> contents_of(const Source& source) {
  std::vector<std::string> lines;
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  const auto text = [&](const ReadStatus& status) {
    return status.ok ? std::string(bytes.begin(), bytes.end()) : "(" + status.message + ")";
  };
  for (SampleId id = 0; id < source.size(); ++id) {
    std::string line = source.name(id) + ": " + text(source.read(id, buffer, bytes));
    for (size_t i = 0; i < source.pictures().size(); ++i) {
      line += ", " + text(source.read_picture(id, i, MayWait::yes, buffer, bytes));
      const ReadStatus now = source.read_picture(id, i, MayWait::no, buffer, bytes);
      EXPECT_TRUE(!now.ok || line.ends_with(text(now))) << line;
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> notes_of(const Source& source) {
  std::vector<std::string> messages;
  for (const SourceNote& note : source.notes()) messages.push_back(note.message);
  return messages;
}

class PicturesData : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) const {
    return folder_.write(name, content);
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  const TempFolder folder_;
};

TEST_F(PicturesData, FoldersHaveFilesOfTheSameNames) {
  for (const char* name : {"1", "x/2", "x/3"}) {
    write(std::string("before/") + name + ".jpg", std::string("b") + name);
    write(std::string("after/") + name + ".png", std::string("a") + name);
  }
  const auto source = open_with(path("before"), {"after=" + path("after")});
  EXPECT_THAT(contents_of(*source),
              ElementsAre("1.jpg: b1, a1", "x/2.jpg: bx/2, ax/2", "x/3.jpg: bx/3, ax/3"));
  EXPECT_THAT(notes_of(*source), IsEmpty());
  EXPECT_TRUE(source->class_names().empty());
  const auto two =
      open_with(path("before"), {"after=" + path("after"), "again=file://" + path("before")});
  EXPECT_EQ(contents_of(*two).at(1), "x/2.jpg: bx/2, ax/2, bx/2");
  EXPECT_EQ(two->pictures()[1].name, "again");
  EXPECT_NE(two->fingerprint(), source->fingerprint());
}

TEST_F(PicturesData, AFolderMayLackPictures) {
  for (const char* name : {"1", "2", "3", "4"}) write(std::string("a/") + name + ".jpg", name);
  for (const char* name : {"2", "4", "5"}) write(std::string("b/") + name + ".png", name);
  const auto source = open_with(path("a"), {"other=" + path("b")});
  EXPECT_THAT(contents_of(*source), ElementsAre("1.jpg: 1, (there is none)", "2.jpg: 2, 2",
                                                "3.jpg: 3, (there is none)", "4.jpg: 4, 4"));
  EXPECT_THAT(notes_of(*source),
              ElementsAre("2 samples have no picture 'other', a bad sample, as 1.jpg",
                          "1 picture 'other' of no sample left out, as 5.png"));
  write("c/9.png", "");
  EXPECT_EQ(message_of([&] { open_with(path("a"), {"other=" + path("c")}); }),
            path("a") +
                ": none of 4 samples has a picture 'other'; the first is 1.jpg, and theirs "
                "is 9.png in " +
                path("c"));
  write("b/1.png", "");
  write("b/1.jpg", "");
  EXPECT_THAT(message_of([&] { open_with(path("a"), {"other=" + path("b")}); }),
              HasSubstr("1.jpg and 1.png differ in their extensions alone"));
  EXPECT_THAT(message_of([&] { open_with(path("a"), {"other=" + path("none")}); }),
              HasSubstr(path("none")));
  folder_.make_folder("empty");
  EXPECT_THAT(message_of([&] { open_with(path("a"), {"other=" + path("empty")}); }),
              HasSubstr("empty: no images"));
}

TEST_F(PicturesData, FoldersMayHaveParts) {
  for (const char* name : {"train/1", "val/2"}) {
    write(std::string("a/") + name + ".jpg", "own");
    write(std::string("b/") + name + ".jpg", name);
  }
  const auto opened = [&](Split split) {
    return contents_of(*open_with(path("a"), {"b=" + path("b")}, {.split = split}));
  };
  EXPECT_THAT(opened(Split::train), ElementsAre("1.jpg: own, train/1"));
  EXPECT_THAT(opened(Split::test), ElementsAre("2.jpg: own, val/2"));
  EXPECT_THAT(opened(Split::all),
              ElementsAre("train/1.jpg: own, train/1", "val/2.jpg: own, val/2"));
}

TEST_F(PicturesData, TarsHaveMembersOfTheKey) {
  const std::string shard =
      write("x.tar", tar_member("a/1.jpg", "i1") + tar_member("a/1.control.png", "c1") +
                         tar_member("a/1.json", "{}") + tar_member("2.control.png", "c2") +
                         tar_member("2.jpg", "i2") + tar_end());
  const auto source = open_with(shard, {"control=control.png"});
  EXPECT_THAT(contents_of(*source), ElementsAre("x.tar/a/1.jpg: i1, c1", "x.tar/2.jpg: i2, c2"));
  // An extension that an image usually has is none of the sample's own.
  const std::string alike =
      write("y.tar", tar_member("1.jpg", "i1") + tar_member("1.png", "c1") + tar_end());
  EXPECT_THAT(contents_of(*open_with(alike, {"control=png"})), ElementsAre("y.tar/1.jpg: i1, c1"));
  EXPECT_THAT(contents_of(*open_with(alike, {"control=jpg"})), ElementsAre("y.tar/1.png: c1, i1"));
}

TEST_F(PicturesData, ATarMayLackMembers) {
  write("0.tar", tar_member("1.jpg", "i1") + tar_member("1.c.png", "c1") +
                     tar_member("2.jpg", "i2") + tar_member("3.c.png", "c3") + tar_end());
  write("1.tar", tar_member("1.jpg", "j1") + tar_member("1.c.png", "d1") + tar_end());
  const auto source = open_with(path("{0,1}.tar"), {"c=c.png"});
  EXPECT_THAT(contents_of(*source),
              ElementsAre("0.tar/1.jpg: i1, c1", "0.tar/2.jpg: i2, (there is none)",
                          "1.tar/1.jpg: j1, d1"));
  EXPECT_THAT(notes_of(*source),
              ::testing::Contains("1 sample has no picture 'c', a bad sample, as 0.tar/2.jpg"));
  EXPECT_THAT(notes_of(*source),
              ::testing::Contains("1 picture 'c' of no sample left out, as 0.tar/3.c.png"));
}

TEST_F(PicturesData, RecordsHaveColumnsOrKeys) {
  const std::vector<MadeMdsColumn> columns = {{"image", "jpeg"}, {"control", "png"}};
  write("mds/shard.00000.mds",
        mds_shard(mds_settings(columns),
                  {mds_sample(columns, {"i0", "c0"}), mds_sample(columns, {"i1", "c1"})}));
  MadeColumn image{.names = {"image", "bytes"}}, control{.names = {"control", "bytes"}};
  image.values = {plain_bytes("i0"), plain_bytes("i1")};
  control.values = {plain_bytes("c0"), plain_bytes("c1")};
  write("x.parquet", MadeParquet{{image, control}}.bytes());
  std::string records;
  for (const char* number : {"0", "1"}) {
    records +=
        make_record(make_example({{"image/encoded", bytes_feature({std::string("i") + number})},
                                  {"control", bytes_feature({std::string("c") + number})}}));
  }
  write("x.tfrecord", records);
  for (const char* name : {"i0", "i1", "c0", "c1"}) write(std::string("list/") + name, name);
  write("list/x.csv", "path,control\ni0,c0\ni1,c1\n");
  for (const char* file : {"mds/shard.00000.mds", "x.parquet", "x.tfrecord", "list/x.csv"}) {
    SCOPED_TRACE(file);
    const auto source = open_with(path(file), {"control=control"});
    const std::vector<std::string> lines = contents_of(*source);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_TRUE(lines[0].ends_with(": i0, c0")) << lines[0];
    EXPECT_TRUE(lines[1].ends_with(": i1, c1")) << lines[1];
  }

  control.values[1] = std::nullopt;
  write("x.parquet", MadeParquet{{image, control}}.bytes());
  EXPECT_THAT(message_of([&] { open_with(path("x.parquet"), {"control=control"}); }),
              HasSubstr("column control.bytes: row 1 has no image bytes (null)"));
  // One control may be of several samples.
  write("list/x.csv", "path,control\ni0,c0\ni1,c0\n");
  EXPECT_TRUE(
      contents_of(*open_with(path("list/x.csv"), {"control=control"})).at(1).ends_with(": i1, c0"));
  write("list/x.csv", "path,control\ni0,c0\ni1,\n");
  EXPECT_THAT(message_of([&] { open_with(path("list/x.csv"), {"control=control"}); }),
              HasSubstr("line 3: an empty path"));
}

TEST_F(PicturesData, AreRefusedWithTheOption) {
  write("a/1.jpg", "");
  const auto problem = [&](std::vector<std::string> pictures, SourceOptions options = {}) {
    return thrown_by<InvalidField>([&] { open_with(path("a"), pictures, options); });
  };
  EXPECT_THAT(problem({"control"}), HasSubstr("has \"control\", must be NAME=FIELD"));
  EXPECT_THAT(problem({"control="}), HasSubstr("must be NAME=FIELD"));
  EXPECT_THAT(problem({"=png"}), HasSubstr("no picture can be called ''"));
  EXPECT_THAT(problem({"image=png"}), HasSubstr("'image' is the sample's own picture"));
  EXPECT_THAT(problem({"b=" + path("a")}, {.label_from = "none"}),
              HasSubstr("label_from is \"none\""));
  EXPECT_EQ(problem_of([&] {
              open_with(path("a"), {"b=" + path("a"), "b=" + path("a")});
            }),
            "the samples have two pictures 'b'");
}

}  // namespace
}  // namespace stoker
