// Sources made of other sources: subsets by a list, splits, and several as one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "pipeline/source/concat_source.h"
#include "pipeline/source/listed_source.h"
#include "pipeline/source/subset_source.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/support/fake_source.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

// Sample i is the one byte i, of class i % 10.
FakeSource ten_samples() {
  std::vector<std::vector<uint8_t>> files;
  for (uint8_t i = 0; i < 10; ++i) files.push_back({i});
  return FakeSource(files, 10, 10);
}

int byte_of(const Source& source, SampleId id) {
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  return source.read(id, buffer, bytes).ok ? bytes[0] : -1;
}

// A source whose root is only a name: nothing is read from it.
class RootedSource final : public Source {
 public:
  explicit RootedSource(std::string root, std::vector<std::string> names = {"x/1.jpg"})
      : names_(std::move(names)),
        info_{.size = std::ssize(names_),
              .root = std::move(root),
              .class_names = {"x"},
              .notes = {{"left_out", 1, "y.gif", "a note"}},
              .fingerprint = 1} {}
  const SourceInfo& info() const override { return info_; }
  int label(SampleId) const override { return 0; }
  std::string name(SampleId id) const override { return names_[static_cast<size_t>(id)]; }
  ReadStatus read(SampleId, std::vector<uint8_t>&, std::span<const uint8_t>&) const override {
    return {false, "no file"};
  }

 private:
  const std::vector<std::string> names_;
  const SourceInfo info_;
};

TEST(SubsetSource, OfAListHasItsSamplesInItsOrder) {
  FakeSource whole = ten_samples();
  whole.cache(2);
  const SubsetSource some(whole, std::vector<SampleId>{7, 2, 9});
  ASSERT_EQ(some.size(), 3);
  const int expected[] = {7, 2, 9};
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  for (SampleId id = 0; id < 3; ++id) {
    EXPECT_EQ(byte_of(some, id), expected[id]);
    EXPECT_EQ(some.label(id), expected[id]);
    EXPECT_EQ(some.name(id), whole.name(expected[id]));
    EXPECT_EQ(some.storage().read_cached(id, buffer, bytes), id == 1);
  }
  EXPECT_EQ(bytes[0], 2);
}

TEST(SubsetSource, FingerprintIsOfTheList) {
  const FakeSource whole = ten_samples();
  std::set<uint64_t> fingerprints{whole.fingerprint()}, labels;
  for (const std::vector<SampleId>& ids :
       {std::vector<SampleId>{0, 1}, {1, 0}, {0}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}) {
    EXPECT_TRUE(fingerprints.insert(SubsetSource(whole, ids).fingerprint()).second);
    EXPECT_TRUE(labels.insert(SubsetSource(whole, ids).labels_digest()).second);
  }
  EXPECT_TRUE(labels.contains(whole.labels_digest()));
  const SubsetSource backwards(whole, std::vector<SampleId>{9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
  EXPECT_NE(backwards.labels_digest(), whole.labels_digest());
}

TEST(SubsetSource, RefusesAListThatIsNone) {
  const FakeSource whole = ten_samples();
  const auto with = [&](const std::vector<SampleId>& ids) {
    return problem_of([&] { SubsetSource(whole, ids); });
  };
  EXPECT_EQ(with({}), "SubsetSource: no ids are listed of a source of 10 samples");
  EXPECT_EQ(with({1, 10}),
            "SubsetSource: id 10 at place 1 of 2: the source has the samples 0 to 9");
  EXPECT_EQ(with({-1}), "SubsetSource: id -1 at place 0 of 1: the source has the samples 0 to 9");
  EXPECT_EQ(with({4, 5, 4}), "SubsetSource: id 4 at place 2 of 3: it is listed before");
  EXPECT_EQ(with({9}), "nothing was thrown");
}

TEST(IdList, KeepsNumbersOfAnySize) {
  const SampleId border = int64_t{1} << 32;
  for (const std::vector<SampleId>& ids :
       {std::vector<SampleId>{0, border - 1, 5}, {0, border, 5}, {}}) {
    const IdList list(ids);
    ASSERT_EQ(list.size(), static_cast<int64_t>(ids.size()));
    for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(list[static_cast<int64_t>(i)], ids[i]);
  }
  EXPECT_NE(IdList({0, border - 1}).digest(), IdList({0, border}).digest());
  EXPECT_NE(IdList({1, 2}).digest(), IdList({2, 1}).digest());
}

TEST(IdsWithLabels, AreTheSamplesOfTheClasses) {
  const auto source = make_synthetic_source(23, {4, 4}, 5, 1);
  EXPECT_EQ(ids_with_labels(*source, {1, 3}),
            (std::vector<SampleId>{1, 3, 6, 8, 11, 13, 16, 18, 21}));
  EXPECT_TRUE(ids_with_labels(*source, {}).empty());
  EXPECT_EQ(problem_of([&] {
              ids_with_labels(*source, {0, 5});
            }),
            "ids_with_labels: label 5 of a source of 5 classes");
  EXPECT_EQ(problem_of([&] { ids_with_labels(*source, {-1}); }),
            "ids_with_labels: label -1 of a source of 5 classes");
}

TEST(RandomSplit, DealsEverySampleOnce) {
  const auto lists = random_split(1003, {0.7, 0.2, 0.1}, 5);
  ASSERT_EQ(lists.size(), 3U);
  // floor(702.1), floor(200.6), floor(100.3), and the one left goes to the first.
  EXPECT_EQ(lists[0].size(), 703U);
  EXPECT_EQ(lists[1].size(), 200U);
  EXPECT_EQ(lists[2].size(), 100U);
  std::set<SampleId> all;
  for (const auto& list : lists) {
    EXPECT_TRUE(std::is_sorted(list.begin(), list.end()));
    all.insert(list.begin(), list.end());
  }
  EXPECT_EQ(all.size(), 1003U);
  EXPECT_EQ(*all.begin(), 0);
  EXPECT_EQ(*all.rbegin(), 1002);
  EXPECT_EQ(random_split(1003, {0.7, 0.2, 0.1}, 5), lists);
  EXPECT_NE(random_split(1003, {0.7, 0.2, 0.1}, 6), lists);
  // At random: the ids of a list have the mean of all, within 4 deviations (of 29).
  double sum = 0;
  for (const SampleId id : lists[2]) sum += static_cast<double>(id);
  EXPECT_NEAR(sum / 100, 501, 4 * 29);
}

TEST(RandomSplit, SizesAreTorchs) {
  const auto sizes = [](int64_t samples, const std::vector<double>& shares) {
    std::vector<size_t> found;
    for (const auto& list : random_split(samples, shares, 0)) found.push_back(list.size());
    return found;
  };
  using Sizes = std::vector<size_t>;
  EXPECT_EQ(sizes(10, {0.3, 0.3, 0.4}), (Sizes{3, 3, 4}));
  EXPECT_EQ(sizes(11, {0.25, 0.25, 0.25, 0.25}), (Sizes{3, 3, 3, 2}));
  EXPECT_EQ(sizes(5, {0, 1}), (Sizes{0, 5}));
  EXPECT_EQ(sizes(1, {0.5, 0.5}), (Sizes{1, 0}));
  EXPECT_EQ(sizes(0, {0.5, 0.5}), (Sizes{0, 0}));
  EXPECT_EQ(sizes(7, {1}), (Sizes{7}));
}

TEST(RandomSplit, RefusesSharesThatAreNone) {
  const auto with = [](const std::vector<double>& shares, int64_t samples = 10) {
    return problem_of([&] { random_split(samples, shares, 0); });
  };
  EXPECT_EQ(with({0.5, 0.4}), "random_split: the sum of 2 shares is 0.900000, must be 1");
  EXPECT_EQ(with({}), "random_split: the sum of 0 shares is 0.000000, must be 1");
  EXPECT_EQ(with({1.5, -0.5}), "random_split: a share is 1.500000, must be 0 to 1");
  EXPECT_EQ(with({NAN}), "random_split: a share is nan, must be 0 to 1");
  EXPECT_EQ(with({1}, -1), "random_split: samples is -1, must be 0 or more");
}

TEST(ConcatSource, HasTheSamplesOfAll) {
  FakeSource first = ten_samples(), second = ten_samples();
  first.cache(3);
  second.cache(4);
  second.fail(6, "read: some error");
  const SubsetSource none(first, std::vector<SampleId>{5});
  const ConcatSource all({&first, &none, &second});
  ASSERT_EQ(all.size(), 21);
  EXPECT_EQ(all.begins(), (std::vector<int64_t>{0, 10, 11, 21}));
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  std::set<std::string> names;
  for (SampleId id = 0; id < 21; ++id) {
    const int expected = static_cast<int>(id < 10 ? id : id == 10 ? 5 : id - 11);
    EXPECT_EQ(byte_of(all, id), id == 17 ? -1 : expected);
    EXPECT_EQ(all.label(id), expected);
    EXPECT_EQ(all.storage().read_cached(id, buffer, bytes), id == 3 || id == 15);
    names.insert(all.name(id));
  }
  EXPECT_EQ(names.size(), 21U);
  EXPECT_EQ(all.class_names(), first.class_names());
  EXPECT_EQ(all.encoding(), SampleEncoding::image_file);
}

TEST(ConcatSource, FingerprintAndLabelsAreThoseOfTheList) {
  const FakeSource ten = ten_samples();
  const SubsetSource front(ten, std::vector<SampleId>{0, 1, 2}),
      back(ten, std::vector<SampleId>{3, 4, 5, 6, 7, 8, 9});
  const ConcatSource all({&front, &back}), swapped({&back, &front}), one({&ten}),
      other({&ten, &back});
  EXPECT_EQ(all.labels_digest(), ten.labels_digest());
  EXPECT_NE(swapped.labels_digest(), ten.labels_digest());
  const std::set<uint64_t> fingerprints{all.fingerprint(), swapped.fingerprint(), one.fingerprint(),
                                        other.fingerprint()};
  EXPECT_EQ(fingerprints.size(), 4U);
}

TEST(ConcatSource, NamesArePathsFromTheCommonFolder) {
  const auto names = [](const std::vector<std::string>& roots) {
    std::vector<std::unique_ptr<RootedSource>> sources;
    std::vector<const Source*> pointers;
    for (const std::string& root : roots) {
      pointers.push_back(sources.emplace_back(std::make_unique<RootedSource>(root)).get());
    }
    const ConcatSource all(pointers);
    std::string text = all.root() + ":";
    for (SampleId id = 0; id < all.size(); ++id) text += " " + all.name(id);
    EXPECT_EQ(all.notes().size(), roots.size());
    EXPECT_EQ(all.notes().back().name,
              all.name(all.size() - 1).substr(0, all.name(all.size() - 1).size() - 7) + "y.gif");
    return text;
  };
  EXPECT_EQ(names({"/data/a"}), "/data/a: x/1.jpg");
  EXPECT_EQ(names({"/data/a", "/data/b"}), "/data: a/x/1.jpg b/x/1.jpg");
  EXPECT_EQ(names({"/data/a/", "/data/./b/c", "/data/../data/d"}),
            "/data: a/x/1.jpg b/c/x/1.jpg d/x/1.jpg");
  EXPECT_EQ(names({"/data/ab", "/data/a"}), "/data: ab/x/1.jpg a/x/1.jpg");
  EXPECT_EQ(names({"/a", "/b"}), "/: a/x/1.jpg b/x/1.jpg");
  EXPECT_EQ(names({"a", "b"}), std::filesystem::current_path().string() + ": a/x/1.jpg b/x/1.jpg");
  // These might have names in common.
  EXPECT_EQ(names({"/data/a", "/data/a"}), ": 0/x/1.jpg 1/x/1.jpg");
  EXPECT_EQ(names({"/data/a", "/data/a/x"}), ": 0/x/1.jpg 1/x/1.jpg");
  EXPECT_EQ(names({"/data/a", ""}), ": 0/x/1.jpg 1/x/1.jpg");
  EXPECT_EQ(names({"", ""}), ": 0/x/1.jpg 1/x/1.jpg");
}

TEST(ConcatSource, OfFoldersReadsFromBoth) {
  const TempFolder folder;
  folder.write("a/cat/1.jpg", "one");
  folder.write("b/cat/1.jpg", "two");
  const auto first = open_source(folder.path() + "/a", Split::all);
  const auto second = open_source(folder.path() + "/b", Split::all);
  const ConcatSource all({first.get(), second.get()});
  EXPECT_EQ(all.root(), std::filesystem::path(folder.path()).lexically_normal().string());
  EXPECT_EQ(all.name(1), "b/cat/1.jpg");
  EXPECT_EQ(byte_of(all, 0), 'o');
  EXPECT_EQ(byte_of(all, 1), 't');
}

TEST(ConcatSource, RefusesSourcesThatDiffer) {
  const auto with = [](const std::vector<const Source*>& sources) {
    return problem_of([&] { ConcatSource{sources}; });
  };
  const FakeSource files = ten_samples(), few({{1}}, 3, 4);
  const auto drawn = make_synthetic_source(5, {8, 8}, 10, 1);
  const auto larger = make_synthetic_source(5, {8, 9}, 10, 1);
  const auto listed = [](std::vector<std::string> classes) {
    return make_listed_source({.paths = {"p"}, .labels = {0}, .class_names = std::move(classes)});
  };
  const auto cats = listed({"cat", "dog"}), cows = listed({"cat", "co\nw"});
  EXPECT_EQ(with({}), "ConcatSource: no sources");
  EXPECT_EQ(with({&files, &files, drawn.get()}),
            "ConcatSource: source 2 has raw pixels, not image files as source 0");
  EXPECT_EQ(with({drawn.get(), larger.get()}),
            "ConcatSource: source 1 has 8 x 9 pixels, not 8 x 8 pixels as source 0");
  EXPECT_EQ(with({&files, &few}),
            "ConcatSource: source 1 has 4 classes, not 10 classes as source 0");
  EXPECT_EQ(with({cats.get(), cows.get()}),
            "ConcatSource: source 1 has class 1 co\\x0aw, not dog as source 0");
  EXPECT_EQ(with({&files, &files}), "nothing was thrown");
}

}  // namespace
}  // namespace stoker
