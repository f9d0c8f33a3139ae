// Texts about samples: every form of a subset, of weights and of a blend's part, and
// the whole message of everything that is refused.
#include "tools/option/sample_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "pipeline/source/subset_source.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using Ids = std::vector<SampleId>;
using Weights = std::vector<double>;

// Sample i is of class i % 7 of the seven. One name is a number, one has a space, and two classes
// have the same name.
class NamedSamples final : public Source {
 public:
  explicit NamedSamples(int64_t size = 14)
      : info_{.size = size,
              .class_names = {"cat", "dog", "0", "big cat", "x", "x", "bird"},
              .fingerprint = 1} {}
  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override { return static_cast<int>(id % 7); }
  std::string name(SampleId id) const override { return std::to_string(id % 7) + "/" + letter(id); }
  ReadStatus read(SampleId, std::vector<uint8_t>&, std::span<const uint8_t>&) const override {
    return {false, "no file"};
  }

 private:
  static std::string letter(SampleId id) { return std::string(1, static_cast<char>('a' + id)); }

  const SourceInfo info_;
};

class SampleLists : public ::testing::Test {
 protected:
  std::string file(const std::string& text) const { return folder_.write("list", text); }
  // Returns the message of what `call` throws, without the path of file().
  std::string problem(const std::function<void()>& call) const {
    try {
      call();
    } catch (const std::invalid_argument& error) {
      const std::string text = error.what(), path = folder_.path() + "/";
      return text.starts_with(path) ? text.substr(path.size()) : text;
    }
    return "accepted";
  }
  std::string subset_problem(const std::string& spec) const {
    return problem([&] { subset_ids(source_, spec); });
  }
  std::string list_problem(const std::string& text) const { return subset_problem(file(text)); }
  std::string weights_problem(const std::string& text) const {
    return problem([&] { weights_from_file(source_, file(text)); });
  }
  std::string blend_problem(const std::string& text) const {
    return problem([&] { parse_blend_part(text); });
  }

  const TempFolder folder_;
  const NamedSamples source_;
};

// Python's random_split(source, [0.9, 0.1], seed=0) hands these two numbers, as Python reads them,
// to the same C++ function: the ids are equal if the numbers are. (1 - 0.9 is not 0.1.)
TEST_F(SampleLists, TwoPartsAreThoseOfARandomSplit) {
  const std::vector<std::tuple<std::string, double, double>> cases = {
      {"0.9", 0.9, 0.1}, {"0.7", 0.7, 0.3},       {"0.05", 0.05, 0.95},
      {"0.5", 0.5, 0.5}, {"0.125", 0.125, 0.875}, {"0.333333333", 0.333333333, 0.666666667}};
  for (const int64_t size : {20, 40, 99, 100, 1003, 50000}) {
    const NamedSamples source(size);
    for (const auto& [border, first, second] : cases) {
      const auto lists = random_split(size, {first, second}, 0);
      EXPECT_EQ(subset_ids(source, "part=0:" + border), lists[0]) << size << " " << border;
      EXPECT_EQ(subset_ids(source, "part=" + border + ":1.0"), lists[1]) << size << " " << border;
    }
  }
}

TEST_F(SampleLists, PartsThatShareBordersCoverAllSamplesOnce) {
  for (const int64_t size : {10, 11, 20, 100, 997}) {
    const NamedSamples source(size);
    for (const std::vector<std::string>& borders :
         {std::vector<std::string>{"0", "0.3", "0.55", "1"},
          {"0.0", "0.1", "0.2", "0.35", "1"},
          {"0", "0.15", "0.9", "1"}}) {
      Ids all;
      for (size_t i = 1; i < borders.size(); ++i) {
        const Ids part = subset_ids(source, "part=" + borders[i - 1] + ":" + borders[i]);
        EXPECT_TRUE(std::is_sorted(part.begin(), part.end()));
        all.insert(all.end(), part.begin(), part.end());
      }
      std::sort(all.begin(), all.end());
      Ids expected(static_cast<size_t>(size));
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(all, expected) << size << " " << borders[1];
    }
  }
  EXPECT_EQ(subset_ids(source_, "part=0:1").size(), 14u);
}

TEST_F(SampleLists, APartIsTwoSharesInOrder) {
  for (const std::string shares : {"", "0.9", "0.9:", ":0.9", "0:1.1", "0:1.000000001", "0.9:0.5",
                                   "0.5:0.5", "a:b", "0:0.1234567891", "-0.1:1", "0:0.5:1", "0:2",
                                   "00:1", "0:+1", "0:1e-1", "0:0.", "0:.5", "0: 0.5"}) {
    EXPECT_EQ(subset_problem("part=" + shares),
              "'part=" + shares +
                  "': after part= stand two numbers from 0 to 1, the smaller one first, as in "
                  "part=0:0.9, with at most 9 decimals");
  }
  EXPECT_EQ(subset_problem("part=0.99:1"), "'part=0.99:1' takes none of the 14 samples");
}

TEST_F(SampleLists, ClassesAreNamesOrNumbers) {
  EXPECT_THAT(subset_ids(source_, "classes=cat"), ElementsAre(0, 7));
  EXPECT_THAT(subset_ids(source_, "classes=bird,cat,cat"), ElementsAre(0, 6, 7, 13));
  EXPECT_THAT(subset_ids(source_, "classes=1,big cat"), ElementsAre(1, 3, 8, 10));
  // A name comes before a number, and stands for all classes that are called so.
  EXPECT_THAT(subset_ids(source_, "classes=0"), ElementsAre(2, 9));
  EXPECT_THAT(subset_ids(source_, "classes=x"), ElementsAre(4, 5, 11, 12));
  const std::string seven = "the 7 classes are 'cat', 'dog', '0', 'big cat', 'x', ...";
  for (const std::string name : {"dgo", "7", "-1", "99999999999999999999", "", "Cat"}) {
    EXPECT_EQ(subset_problem("classes=" + name),
              "'classes=" + name + "': there is no class '" + name + "'; " + seven);
  }
  EXPECT_EQ(subset_problem("classes=cat,"), "'classes=cat,': there is no class ''; " + seven);
  EXPECT_EQ(problem([] { subset_ids(NamedSamples(3), "classes=bird"); }),
            "'classes=bird' takes none of the 3 samples");
}

TEST_F(SampleLists, AFileHasNumbersOrNamesInItsOrder) {
  EXPECT_THAT(subset_ids(source_, file("13\n0\n5")), ElementsAre(13, 0, 5));
  EXPECT_THAT(subset_ids(source_, file("\n4\r\n\r\n2\r\n")), ElementsAre(4, 2));
  EXPECT_THAT(subset_ids(source_, file("6/n\n0/a\n")), ElementsAre(13, 0));

  EXPECT_EQ(list_problem("3\n14\n"), "list:2: there is no sample 14; they are 0 to 13");
  EXPECT_EQ(list_problem("99999999999999999999\n"),
            "list:1: there is no sample 99999999999999999999; they are 0 to 13");
  EXPECT_EQ(list_problem("3\n\n1\n3\n"), "list:4: '3' is also in line 1");
  EXPECT_EQ(list_problem("0/a\n6/n\n6/n"), "list:3: '6/n' is also in line 2");
  EXPECT_EQ(list_problem("0/a\n0/b\n"), "list:2: there is no sample '0/b'");
  EXPECT_EQ(list_problem("3\n0/a\n"), "list:1: there is no sample '3'");
  EXPECT_EQ(list_problem("-1\n"), "list:1: there is no sample '-1'");
  EXPECT_EQ(list_problem("0/a\nx\x1b\n"), "list:2: there is no sample 'x\\x1b'");
  EXPECT_EQ(list_problem(""), "list: it lists no sample");
  EXPECT_EQ(list_problem("\n\n"), "list: it lists no sample");
  EXPECT_EQ(subset_problem(folder_.path() + "/none"),
            "none: no such file (a subset is part=A:B, classes=NAME,... or a file)");
  EXPECT_EQ(subset_problem(folder_.make_folder("dir")), "dir: a folder, not a file");
}

TEST_F(SampleLists, WeightsAreOfSamplesOrOfClasses) {
  const NamedSamples three(3);
  EXPECT_EQ(weights_from_file(three, file("0.5\n1e2\n0")), (Weights{0.5, 100, 0}));
  const std::string classes = "cat 2\ndog 0\n0 1\nbig cat \t 7\nbird 3\n";
  EXPECT_EQ(weights_from_file(source_, file(classes + "x 4\n")),
            (Weights{2, 0, 1, 7, 4, 4, 3, 2, 0, 1, 7, 4, 4, 3}));

  EXPECT_EQ(weights_problem("1\n2\n"), "list: it has 2 weights, and there are 14 samples");
  EXPECT_EQ(weights_problem("1\nx\n"), "list:2: 'x' is not a number");
  EXPECT_EQ(weights_problem("1\n2 3\n"), "list:2: '2 3' is not a number");
  EXPECT_EQ(weights_problem("1\n\n-2\n"),
            "list:3: the weight is -2, must be a finite number, 0 or more");
  for (const std::string wrong : {"nan", "inf", "1e999", "-0.1"}) {
    EXPECT_EQ(weights_problem(wrong),
              "list:1: the weight is " + wrong + ", must be a finite number, 0 or more");
    EXPECT_EQ(weights_problem("dog 1\ncat " + wrong),
              "list:2: the weight is " + wrong + ", must be a finite number, 0 or more");
  }
  EXPECT_EQ(problem([&] { weights_from_file(three, file("0\n0\n-0\n")); }),
            "list: the weights of all 3 samples are 0");
  EXPECT_EQ(weights_problem(""), "list: it has no weight");
  EXPECT_EQ(weights_problem("cat 1\nfish 2\n"),
            "list:2: there is no class 'fish'; the 7 classes are 'cat', 'dog', '0', 'big cat', "
            "'x', ...");
  EXPECT_EQ(weights_problem("cat 1\ncat 2\n"), "list:2: class 'cat' is there twice");
  EXPECT_EQ(weights_problem("x 1\n5 2\n"), "list:2: class '5' is there twice");
  EXPECT_EQ(weights_problem("cat 1\n2\n"),
            "list:2: '2' is not CLASS WEIGHT, as the lines before are");
  EXPECT_EQ(weights_problem("cat one\n"), "list:1: 'one' is not a number");
  EXPECT_EQ(weights_problem("cat 1\n"), "list: it has no line for class 'dog'");
  // Only the class of no sample has a weight.
  EXPECT_EQ(problem([&] {
              weights_from_file(three, file("cat 0\ndog 0\n0 0\nbig cat 1\nx 1\nbird 1\n"));
            }),
            "list: the weights of all 3 samples are 0");
  EXPECT_EQ(problem([&] { weights_from_file(source_, folder_.path() + "/none"); }),
            "none: no such file (weights are balanced, or a file)");
}

TEST_F(SampleLists, APartOfABlendIsAPathAndItsWeight) {
  const BlendPart part = parse_blend_part("data/lr=0.1/train-{000..127}.tar=2.5");
  EXPECT_EQ(part.path, "data/lr=0.1/train-{000..127}.tar");
  EXPECT_EQ(part.weight, 2.5);
  EXPECT_EQ(blend_problem("data"), "'data' is not PATH=WEIGHT, as in data/photos=3");
  EXPECT_EQ(blend_problem("=3"), "'=3' is not PATH=WEIGHT, as in data/photos=3");
  EXPECT_EQ(blend_problem("a="), "'a=': the weight '' is not a number");
  EXPECT_EQ(blend_problem("a=b"), "'a=b': the weight 'b' is not a number");
  EXPECT_EQ(blend_problem("a=1 "), "'a=1 ': the weight '1 ' is not a number");
  for (const std::string wrong : {"0", "-1", "nan", "inf", "1e999"}) {
    EXPECT_EQ(blend_problem("a=" + wrong),
              "'a=" + wrong + "': the weight is " + wrong + ", must be a finite number above 0");
  }
}

}  // namespace
}  // namespace stoker
