// The contract of the scanners of all formats, and of sources of their files: every sample in its
// order with its name, label, targets and bytes; errors with a path and a place for files that are
// empty, cut or damaged; files that change; indexes that are kept. Tests of one format alone are in
// its own file (tar_test.cc ...).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/source/blob/blob_index.h"
#include "pipeline/source/folder_source.h"
#include "pipeline/source/format/blob_reader.h"
#include "tests/support/collected_samples.h"
#include "tests/support/format_maker.h"
#include "tests/support/mds_maker.h"
#include "tests/support/sanitizers.h"
#include "tests/support/source_contents.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {

void PrintTo(const MadeFormat& format, std::ostream* out) { *out << format.name; }

namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Samples = std::vector<MadeSample>;

const std::string kAgain = "again and again and again and again";  // can be packed

Samples many_samples(int64_t count, size_t largest) {
  Samples samples;
  const std::string bytes = patternless(largest);
  for (int64_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    samples.push_back({"n" + std::to_string(i % 3) + "/" + number,
                       number + bytes.substr(0, static_cast<size_t>(i * 7919) % (largest + 1)),
                       i % 5});
  }
  return samples;
}

class FormatContract : public ::testing::TestWithParam<MadeFormat> {
 protected:
  static const MadeFormat& format() { return GetParam(); }
  static std::string make(const Samples& samples) { return format().make(samples); }
  static CollectedSamples scan(const std::string& file, const FieldChoice& fields = {}) {
    return MemoryScan{format().scan, "blob"}(file, fields);
  }
  static std::string scan_error(const std::string& file, const FieldChoice& fields = {}) {
    return MemoryScan{format().scan, "blob"}.error(file, fields);
  }
  static FieldChoice with_targets(const std::string& label = "none") {
    FieldChoice fields{"", label, {}};
    for (const std::string& field : format().targets) fields.targets.push_back({field, field, {}});
    return fields;
  }

  // Files "a" and "b" of the format, as one source.
  std::string path_of(const std::string& stem) const {
    return folder_.path() + "/" + format().file_name(stem);
  }
  std::string write(const std::string& stem, const Samples& samples) const {
    return folder_.write(format().file_name(stem), make(samples));
  }
  std::string all() const { return folder_.path() + "/*." + format().ending; }
  static std::unique_ptr<Source> open(const std::string& path, SourceOptions options = {}) {
    options.cache_dir = "";
    return open_source(path, options);
  }
  std::string error_of_all(const SourceOptions& options = {}) const {
    return message_of([&] { open(all(), options); });
  }
  // A sample's name in a source.
  std::string name_in(const std::string& stem, const std::string& key, int row) const {
    const std::string file = format().file_name(stem);
    return format().has_names ? file + "/" + key + ".jpg" : file + "#" + std::to_string(row);
  }

  const TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Each, FormatContract, ::testing::ValuesIn(made_formats()),
                         [](const auto& test) { return std::string(test.param.name); });

// ---- What a scan finds

TEST_P(FormatContract, EverySampleIsFoundInItsOrder) {
  const Samples samples = {
      {"a", "first", 7}, {"n/b", "", -1}, {"c", patternless(5000), 1000}, {"d", kAgain, 3}};
  const std::string file = make(samples);
  const CollectedSamples found = scan(file);
  ASSERT_EQ(found.samples.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const CollectedSamples::Sample& sample = found.samples[i];
    EXPECT_EQ(image_in(file, sample.found), samples[i].image);
    EXPECT_EQ(sample.label, std::to_string(std::get<int64_t>(samples[i].label)));
    EXPECT_EQ(sample.name, format().has_names ? samples[i].key + ".jpg" : "");
    EXPECT_TRUE(sample.targets.empty());
    const bool is_packed = format().is_packed && i == 3;
    EXPECT_EQ(sample.found.storage, is_packed ? BlobStorage::snappy : BlobStorage::bytes);
  }
  EXPECT_THAT(found.left_out, IsEmpty());
  EXPECT_THAT(found.class_names, IsEmpty());
}

TEST_P(FormatContract, LabelsAreNumbersTextOrNone) {
  const auto labels = [](const Samples& samples, const std::string& field = "") {
    return labels_of(scan(make(samples), {"", field}));
  };
  const Samples numbers = {{"a", "x", 0}, {"b", "x", -4}, {"c", "x", int64_t{1} << 40}};
  EXPECT_THAT(labels(numbers), ElementsAre("0", "-4", "1099511627776"));
  EXPECT_THAT(labels({{"a", "x", "tabby cat"}, {"b", "x", "7th dog"}}),
              ElementsAre("text tabby cat", "text 7th dog"));
  for (const Samples& samples : {numbers, Samples{{"a", "x"}, {"b", "x"}, {"c", "x"}}}) {
    EXPECT_THAT(labels(samples, "none"), ElementsAre("none", "none", "none"));
  }
  EXPECT_THAT(scan_error(make({{"a", "x"}})), StartsWith("blob: at byte "));
}

TEST_P(FormatContract, TargetsAreFoundWithTheirShapes) {
  const Samples samples = {{"a", "x", 1, 30, {0.5f, 0.25f, 2.5f}},
                           {"b", "x", 1, -2, {-1.5f, 0.125f, 3.5f}}};
  const CollectedSamples found = scan(make(samples), with_targets(""));
  ASSERT_EQ(found.samples.size(), 2u);
  std::vector<std::string> texts;
  for (const auto& sample : found.samples) {
    EXPECT_EQ(sample.label, "1");
    ASSERT_EQ(sample.targets.size(), 2u);
    for (const FoundTarget& target : sample.targets) texts.push_back(text_of(target));
  }
  EXPECT_THAT(texts, ElementsAre("int64 (): 30", "float32 (3): 0.5 0.25 2.5", "int64 (): -2",
                                 "float32 (3): -1.5 0.125 3.5"));
  EXPECT_THAT(scan_error(make({{"a", "x", 1}}), with_targets()), StartsWith("blob: at byte "));
}

// Small images, then some that are larger than what is read at once, then small ones again.
TEST_P(FormatContract, AFileIsReadAsMemoryIs) {
  Samples samples = many_samples(60, 40000);
  const size_t largest = format().is_packed ? 300'000 : 3'000'000;  // packing takes time
  for (const size_t length : {size_t{3}, largest, size_t{1}, largest / 15}) {
    samples.push_back({"l" + std::to_string(length), patternless(length), 3});
  }
  const std::string file = make(samples);
  BlobReader blob(folder_.write("file", file));
  int64_t last = -1;
  bool ascends = true;
  blob.set_progress([&](int64_t offset) { ascends &= offset > std::exchange(last, offset); });
  CollectedSamples found;
  format().scan(blob, {}, found);
  EXPECT_TRUE(ascends || format().is_parquet);  // whose footer is read first
  EXPECT_GT(last, 0);
  const CollectedSamples expected = scan(file);
  ASSERT_EQ(found.samples.size(), samples.size());
  ASSERT_EQ(expected.samples.size(), samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto &a = found.samples[i], &b = expected.samples[i];
    EXPECT_EQ(a.found.offset, b.found.offset);
    EXPECT_EQ(a.found.length, b.found.length);
    EXPECT_EQ(a.label, b.label);
    EXPECT_EQ(a.name, b.name);
    EXPECT_TRUE(image_in(file, a.found) == samples[i].image) << i;
  }
}

// ---- What is broken

TEST_P(FormatContract, AFileOfNothingIsAnError) {
  EXPECT_EQ(scan_error(""), "blob: at byte 0: " + format().empty);
  const std::string file = make({});
  if (format().no_samples.empty()) {
    EXPECT_THAT(scan(file, {"", "none"}).samples, IsEmpty());
  } else {
    EXPECT_EQ(scan_error(file), "blob: at byte 0: " + format().no_samples);
  }
}

void expect_place(const std::string& error, size_t bytes) {
  ASSERT_THAT(error, StartsWith("blob: at byte "));
  EXPECT_LE(std::stoll(error.substr(std::string("blob: at byte ").size())),
            static_cast<int64_t>(bytes))
      << error;
}

Samples few_samples(bool has_text) {
  Samples samples = {{"a", kAgain, 7, 1, {0.5f, 2}}, {"b", "xyz", 300, -5, {1, 0.25f}}};
  if (has_text) samples[0].label = "7", samples[1].label = "300";
  return samples;
}

TEST_P(FormatContract, ACutFileIsAnErrorWithAPlaceWhereverItIsCut) {
  const std::string file = make(few_samples(false)), first = make({few_samples(false)[0]});
  for (const FieldChoice& fields : {FieldChoice{}, with_targets("")}) {
    for (size_t bytes = 0; bytes < file.size(); ++bytes) {
      if (format().ends_anywhere && bytes == first.size()) {
        EXPECT_EQ(scan(file.substr(0, bytes), fields).samples.size(), 1u);
      } else {
        expect_place(scan_error(file.substr(0, bytes), fields), bytes);
      }
    }
  }
}

// Whatever is wrong, it is a BlobError or what is in the file.
TEST_P(FormatContract, DamageIsAnErrorOrGivesSamplesInsideTheFile) {
  for (const bool has_text : {false, true}) {
    const std::string good = make(few_samples(has_text));
    for (size_t i = 0; i < good.size(); ++i) {
      for (const int flip : {0x01, 0x80, 0xff}) {
        std::string bad = good;
        bad[i] = static_cast<char>(bad[i] ^ flip);
        format().repair(bad);
        BlobReader blob("blob", bytes_of(bad));
        CollectedSamples found;
        try {
          format().scan(blob, has_text ? FieldChoice{} : with_targets(""), found);
        } catch (const BlobError& error) {
          expect_place(error.what(), bad.size());
        }
        for (const auto& [place, name, label, targets, objects] : found.samples) {
          const bool packed = place.storage != BlobStorage::bytes;
          ASSERT_GE(place.offset, 0);
          ASSERT_GE(place.length, 0);
          ASSERT_LE(place.offset + (packed ? place.packed_length : place.length), std::ssize(bad));
          if (packed) {
            ASSERT_EQ(image_in(bad, place).size(), static_cast<size_t>(place.length));
          }
        }
      }
    }
  }
}

// ---- Sources

TEST_P(FormatContract, FilesAreOneSourceInTheOrderOfTheirNames) {
  write("b", {{"n/3", "three", 1}});
  write("a", {{"1", "one", 2}, {"2", "two", 0}});
  std::vector<MadeShard> shards;  // which an index.json must name
  for (const char* stem : {"a", "b"}) {
    shards.push_back(
        {format().file_name(stem), static_cast<int64_t>(fs::file_size(path_of(stem)))});
  }
  folder_.write("index.json", mds_index(shards));
  for (const std::string& path : {all(), folder_.path()}) {
    const auto source = open(path);
    EXPECT_THAT(names_of(*source),
                ElementsAre(name_in("a", "1", 0), name_in("a", "2", 1), name_in("b", "n/3", 0)));
    EXPECT_THAT(labels_of(*source), ElementsAre(2, 0, 1));
    EXPECT_THAT(source->class_names(), ElementsAre("0", "1", "2"));
    EXPECT_EQ(text_of(*source, 0), "one");
    EXPECT_EQ(text_of(*source, 2), "three");
    EXPECT_EQ(cached_text_of(*source, 1), "two");
    EXPECT_EQ(source->root(), folder_.path());
    EXPECT_EQ(source->encoding(), SampleEncoding::image_file);
  }
}

TEST_P(FormatContract, TextsBecomeClassesInSortedOrderOverAllFiles) {
  write("a", {{"1", "one", "zebra"}, {"2", "two", "cat"}});
  write("b", {{"3", "three", "dog"}, {"4", "four", "zebra"}});
  const auto source = open(all());
  EXPECT_THAT(source->class_names(), ElementsAre("cat", "dog", "zebra"));
  EXPECT_THAT(labels_of(*source), ElementsAre(2, 0, 1, 2));
}

TEST_P(FormatContract, ClassNamesLieBesideTheFiles) {
  const std::string path = write("a", {{"1", "one", 1}, {"2", "two", 0}});
  folder_.write("classes.txt", "cat\r\ndog\nhorse\n");
  EXPECT_THAT(open(all())->class_names(), ElementsAre("cat", "dog", "horse"));
  EXPECT_THAT(open(all(), {.label_from = "none"})->class_names(), IsEmpty());
  folder_.write("classes.txt", "cat");
  EXPECT_EQ(error_of_all(), path + "#0: its label is 1, and there are 1 class names");
  folder_.write("classes.txt", std::string("a\0b", 3));
  EXPECT_EQ(
      error_of_all(),
      folder_.path() + "/classes.txt: it has a NUL byte, and should have a class name per line");
}

TEST_P(FormatContract, WithoutLabelsThereAreNoClasses) {
  write("a", {{"1", "one"}, {"2", "two"}});
  const auto source = open(all(), {.label_from = "none"});
  EXPECT_THAT(source->class_names(), IsEmpty());
  EXPECT_THAT(labels_of(*source), ElementsAre(0, 0));
}

TEST_P(FormatContract, LabelsOfTwoKindsAndOutOfRangeAreRefused) {
  const std::string a = write("a", {{"1", "one", 1}}), b = write("b", {{"2", "two", "cat"}});
  EXPECT_EQ(error_of_all(),
            b + ": its labels are of another kind (numbers, text or none) than those of " + a);
  fs::remove(b);
  // There is a name for each class, and AddressSanitizer takes a minute for so many.
  const int64_t most = kAddressSanitizer ? 100'000 : 16'777'215;
  write("a", {{"1", "one", most}});
  EXPECT_THAT(labels_of(*open(all())), ElementsAre(most));
  for (const int64_t label : {int64_t{-1}, int64_t{16'777'216}}) {
    const Samples samples = {{"1", "one", label}};
    const int64_t place = scan(make(samples)).samples.at(0).found.offset;
    write("a", samples);
    EXPECT_EQ(error_of_all(),
              a + ": at byte " + std::to_string(place) + ": sample 0 has label " +
                  std::to_string(label) + ", which must be 0 to 16777215" +
                  (label < 0 ? "; for data without labels, `label_from` none" : ""));
  }
}

TEST_P(FormatContract, TargetsOfAllFilesAreColumns) {
  write("a", {{"1", "one", 1, 30, {0.5f, 0.25f}}, {"2", "two", 0, 31, {1, 2}}});
  write("b", {{"3", "three", 1, 32, {-1, 0.125f}}});
  SourceOptions options;
  options.targets_from = format().targets;
  const auto source = open(all(), options);
  ASSERT_EQ(source->targets().size(), 2u);
  EXPECT_THAT(source->targets()[0].describe(), HasSubstr(": int64 ()"));
  EXPECT_THAT(source->targets()[1].describe(), HasSubstr(": float32 (2)"));
  std::vector<int64_t> ages;
  std::vector<float> softs;
  for (SampleId id = 0; id < 3; ++id) {
    int64_t age = 0;
    float soft[2];
    SampleTargets targets;
    targets.columns = {reinterpret_cast<std::byte*>(&age), reinterpret_cast<std::byte*>(soft)};
    source->read_targets(id, {}, targets);
    EXPECT_EQ(targets.label, source->label(id));
    ages.push_back(age);
    softs.insert(softs.end(), soft, soft + 2);
  }
  EXPECT_THAT(ages, ElementsAre(30, 31, 32));
  EXPECT_THAT(softs, ElementsAre(0.5f, 0.25f, 1, 2, -1, 0.125f));
}

TEST_P(FormatContract, NumbersGoOnInTheNextSegment) {
  constexpr int64_t kRows = 2 * BlobSegment::kMaxSamples + 5;
  write("a", {{"first", "first", 1}});
  const Samples samples = many_samples(kRows, 0);
  write("b", samples);
  const auto source = open(all());
  ASSERT_EQ(source->size(), kRows + 1);
  for (const int64_t row : {int64_t{0}, BlobSegment::kMaxSamples - 1, BlobSegment::kMaxSamples,
                            2 * BlobSegment::kMaxSamples, kRows - 1}) {
    EXPECT_EQ(source->name(row + 1),
              name_in("b", samples[static_cast<size_t>(row)].key, static_cast<int>(row)));
    EXPECT_EQ(text_of(*source, row + 1), std::to_string(row));
    EXPECT_EQ(source->label(row + 1), row % 5);
  }
}

TEST_P(FormatContract, NoSamplesAreAnError) {
  const std::string a = write("a", {});
  if (!format().no_samples.empty()) {
    EXPECT_EQ(error_of_all(), a + ": at byte 0: " + format().no_samples);
    return;
  }
  EXPECT_EQ(error_of_all({.label_from = "none"}), a + ": it has no samples");
  write("b", {});
  EXPECT_EQ(error_of_all({.label_from = "none"}), a + " and 1 more files have no samples");
}

TEST_P(FormatContract, AFileThatChangedMakesBadSamplesAndNeverWrongPixels) {
  const std::string path = write("a", {{"1", "one", 1}, {"2", "two", 0}});
  const auto bytes = fs::file_size(path);
  settle(path);
  const auto source = open(path);
  EXPECT_EQ(text_of(*source, 0), "one");  // its descriptor is open now
  fs::resize_file(path, bytes - 10);
  EXPECT_EQ(text_of(*source, 0),
            "error: the file was changed after its samples were listed: it has " +
                std::to_string(bytes - 10) + " bytes now and had " + std::to_string(bytes));
  EXPECT_EQ(cached_text_of(*source, 0), "not cached");
  // The same size with another time.
  write("a", {{"1", "ONE", 1}, {"2", "TWO", 0}});
  EXPECT_THAT(text_of(*source, 1), HasSubstr("the file was changed"));
  EXPECT_THAT(text_of(*open(path), 1), "TWO");
}

TEST_P(FormatContract, AFileThatWasReplacedIsReadAsItWas) {
  const std::string path = write("a", {{"1", "one", 1}});
  settle(path);
  const auto opened = open(path), unopened = open(path);
  EXPECT_EQ(text_of(*opened, 0), "one");
  fs::rename(write("new", {{"1", "two", 1}}), path);
  EXPECT_EQ(text_of(*opened, 0), "one");
  EXPECT_EQ(text_of(*unopened, 0),
            "error: the file was changed after its samples were listed, at another time and to the "
            "same size");
  const auto gone = open(path);
  fs::remove(path);
  EXPECT_EQ(text_of(*gone, 0), "error: open: No such file or directory");
}

TEST_P(FormatContract, TheFingerprintFollowsTheList) {
  const auto fingerprint = [&](const Samples& samples) {
    write("a", samples);
    return open(all())->fingerprint();
  };
  const uint64_t before = fingerprint({{"1", "one", 1}, {"2", "two", 0}});
  EXPECT_EQ(fingerprint({{"1", "one", 1}, {"2", "two", 0}}), before);
  EXPECT_EQ(fingerprint({{"1", "one", 1}, {"2", "TWO", 0}}), before);  // pictures are not in it
  EXPECT_NE(fingerprint({{"1", "one", 0}, {"2", "two", 0}}), before);
  EXPECT_EQ(fingerprint({{"1", "one", 1}, {"3", "two", 0}}) == before, !format().has_names);
}

TEST_P(FormatContract, LabelsHaveTheDigestOfAFolderOfPictures) {
  const TempFolder pictures;
  for (const char* name : {"cat/1.jpg", "cat/2.jpg", "dog/3.jpg"}) pictures.write(name);
  const auto folder = make_folder_source(pictures.path(), {.cache_dir = ""});
  write("a", {{"1", "x", 0}, {"2", "x", 0}});
  write("b", {{"3", "x", 1}});
  EXPECT_EQ(open(all())->labels_digest(), folder->labels_digest());
  write("b", {{"3", "x", 0}});
  EXPECT_NE(open(all())->labels_digest(), folder->labels_digest());
  EXPECT_EQ(folder->labels_digest(), folder->Source::labels_digest());
}

// An index that is kept spares the scan until a file or a choice changes.
TEST_P(FormatContract, AnIndexIsKeptAndMadeAnew) {
  const std::string cache = folder_.make_folder("cache");
  Samples samples = many_samples(6'000, 0);
  for (MadeSample& sample : samples) sample.soft = {0.5f, 1.5f};
  const auto written = [&](const std::string& stem, const Samples& content) {
    settle(write(stem, content));
  };
  int scans = 0;
  const auto open_kept = [&](const std::vector<std::string>& targets = {}) {
    SourceOptions options{.targets_from = targets, .cache_dir = cache};
    options.go_on = [&scans, asked = false](int64_t, int64_t) mutable {
      scans += std::exchange(asked, true) ? 0 : 1;
      return true;
    };
    return open_source(all(), options);
  };
  const auto files = [&] { return std::distance(fs::directory_iterator(cache), {}); };
  written("a", samples);
  written("b", samples);
  const auto first = open_kept(), second = open_kept();
  EXPECT_EQ(scans, 1);
  EXPECT_EQ(files(), 1);
  ASSERT_EQ(second->size(), 12'000);
  EXPECT_EQ(names_of(*first), names_of(*second));
  EXPECT_EQ(labels_of(*first), labels_of(*second));
  EXPECT_EQ(text_of(*second, 11'999), "5999");
  EXPECT_EQ(first->fingerprint(), second->fingerprint());
  EXPECT_EQ(first->labels_digest(), second->Source::labels_digest());

  open_kept(format().targets);
  EXPECT_EQ(open_kept(format().targets)->targets().size(), 2u);
  EXPECT_EQ(scans, 2);
  EXPECT_EQ(files(), 2);

  samples.pop_back();
  written("b", samples);
  EXPECT_EQ(open_kept()->size(), 11'999);
  EXPECT_EQ(open_kept()->size(), 11'999);
  EXPECT_EQ(scans, 3);
  written("c", samples);
  EXPECT_EQ(open_kept()->size(), 17'998);
  // A file that changed a moment ago may change again at the same time.
  fs::last_write_time(path_of("a"), fs::file_time_type::clock::now());
  EXPECT_EQ(open_kept()->size(), 17'998);
  EXPECT_EQ(open_kept()->size(), 17'998);
  EXPECT_EQ(scans, 6);
}

}  // namespace
}  // namespace stoker
