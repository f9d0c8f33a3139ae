// Tests of the choice of a convolution's plan and of the file that stores it. There is no cuDNN:
// candidates and times are invented.
#include "train/cuda/plan_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "pipeline/files/durable_file.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr float kFails = std::numeric_limits<float>::infinity();

// A GPU's plans and their times, and the calls that it received.
struct FakeGpu {
  std::vector<std::string> names{"first", "second", "third"};
  std::vector<float> ms{3, 1, 2};
  std::vector<float> bests;  // arguments of time()
  int listed = 0;
  std::vector<std::string> restored;

  PlanSearch search() {
    return {[this](const std::string& name) {
              restored.push_back(name);
              return std::find(names.begin(), names.end(), name) != names.end();
            },
            [this] {
              ++listed;
              return names;
            },
            [this](size_t index, float best) {
              bests.push_back(best);
              return ms.at(index);
            }};
  }
};

class PlanChoicesTest : public ::testing::Test {
 protected:
  PlanChoices open() { return open(path_); }
  PlanChoices open(const std::string& path) {
    return PlanChoices(path, [this](const std::string& line) { said_.push_back(line); });
  }
  void keep(const std::string& question, FakeGpu gpu = {}) {
    PlanChoices choices = open();
    choices.choose(question, gpu.search());
    choices.save();
  }

  const TempFolder folder_;
  const std::string path_ = folder_.path() + "/cache/conv-plans.bin";
  std::vector<std::string> said_;
};

TEST_F(PlanChoicesTest, AMissTimesEveryCandidateOnceAndTakesTheFastest) {
  FakeGpu gpu;
  PlanChoices choices = open();
  EXPECT_EQ(choices.choose("stem", gpu.search()), 1u);
  EXPECT_THAT(gpu.bests, ElementsAre(kFails, 3.0f, 1.0f));  // the best one so far
  EXPECT_THAT(gpu.restored, IsEmpty());
  EXPECT_EQ(choices.summary(), "0 plans kept, 1 timed");
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(PlanChoicesTest, AHitTimesNothingAndListsNothing) {
  keep("stem");
  FakeGpu gpu;
  PlanChoices choices = open();
  EXPECT_EQ(choices.choose("stem", gpu.search()), std::nullopt);
  EXPECT_THAT(gpu.restored, ElementsAre("second"));
  EXPECT_THAT(gpu.bests, IsEmpty());
  EXPECT_EQ(gpu.listed, 0);
  EXPECT_EQ(choices.summary(), "1 plans kept, 0 timed");
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(PlanChoicesTest, AnotherQuestionIsAMiss) {
  keep("H100, cuDNN 91900; stem");
  FakeGpu gpu;
  PlanChoices choices = open();
  EXPECT_EQ(choices.choose("H100, cuDNN 91901; stem", gpu.search()), 1u);
  EXPECT_EQ(gpu.bests.size(), 3u);
}

TEST_F(PlanChoicesTest, APlanThatIsNoLongerOfferedIsTimedAnewAndSaid) {
  keep("stem");
  FakeGpu newer;
  newer.names = {"fourth", "fifth"};
  newer.ms = {1, 2};
  PlanChoices choices = open();
  EXPECT_EQ(choices.choose("stem", newer.search()), 0u);
  EXPECT_EQ(newer.bests.size(), 2u);
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr(path_), HasSubstr("second"), HasSubstr("stem"))));
  choices.save();
  EXPECT_EQ(read_plan_file(path_).lines, (std::vector<PlanLine>{{"stem", "fourth"}}));
}

TEST_F(PlanChoicesTest, WhatCouldNotBeTimedIsTheFirstAndIsNotKept) {
  FakeGpu gpu;
  gpu.ms = {kFails, kFails, kFails};
  keep("stem", gpu);
  EXPECT_FALSE(fs::exists(path_));
  PlanChoices choices = open();
  EXPECT_EQ(choices.choose("stem", gpu.search()), 0u);
  gpu.ms[2] = 5;
  EXPECT_EQ(choices.choose("stem", gpu.search()), 2u);
}

TEST_F(PlanChoicesTest, WithoutAFileEachProcessTimes) {
  FakeGpu gpu;
  PlanChoices choices = open("");
  for (int i = 0; i < 40; ++i) choices.choose("shape " + std::to_string(i), gpu.search());
  choices.save();
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_EQ(choices.choose("shape 3", gpu.search()), std::nullopt);  // this process knows it
}

TEST_F(PlanChoicesTest, ManyNewChoicesAreWrittenBeforeTheEnd) {
  FakeGpu gpu;
  PlanChoices choices = open();
  for (int i = 0; i < 40; ++i) choices.choose("shape " + std::to_string(i), gpu.search());
  EXPECT_EQ(read_plan_file(path_).lines.size(), 32u);
  choices.save();
  EXPECT_EQ(read_plan_file(path_).lines.size(), 40u);
}

TEST_F(PlanChoicesTest, TwoProcessesKeepWhatBothTimed) {
  FakeGpu gpu;
  PlanChoices one = open(), two = open();
  one.choose("stem", gpu.search());
  two.choose("head", gpu.search());
  one.save();
  two.save();
  EXPECT_EQ(read_plan_file(path_).lines,
            (std::vector<PlanLine>{{"stem", "second"}, {"head", "second"}}));
}

// A damaged file is not used, and the next process writes a valid one.
TEST_F(PlanChoicesTest, ADamagedFileIsSaidAndReplaced) {
  keep("stem");
  const std::string sound = read_whole_file(path_);
  FakeGpu gpu;
  replace_file(path_, sound.substr(0, sound.size() - 1));
  PlanChoices choices = open();
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr(path_), HasSubstr("damaged"))));
  EXPECT_EQ(choices.choose("stem", gpu.search()), 1u);
  choices.save();
  EXPECT_EQ(read_whole_file(path_), sound);
}

TEST_F(PlanChoicesTest, AFolderThatCannotBeWrittenIsSaidOnce) {
  FakeGpu gpu;
  folder_.write("file");
  for (const std::string& path : {folder_.path() + "/file/conv-plans.bin",  // the parent is a file
                                  std::string("/proc/conv-plans.bin")}) {
    said_.clear();
    PlanChoices choices = open(path);
    for (int i = 0; i < 40; ++i) {
      EXPECT_EQ(choices.choose("shape " + std::to_string(i), gpu.search()), 1u);
    }
    choices.save();
    EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("not kept"), HasSubstr(path))));
  }
}

TEST_F(PlanChoicesTest, ACompiledPlanIsKeptForItsQuestionAndName) {
  const std::string plan("kernel\n\t\0of cuDNN", 18);
  open().keep_compiled("stem", "eng3", plan);
  EXPECT_EQ(open().compiled("stem", "eng3"), plan);
  EXPECT_EQ(open().compiled("stem", "eng4"), std::nullopt);
  EXPECT_EQ(open().compiled("head", "eng3"), std::nullopt);
  EXPECT_EQ(open("").compiled("stem", "eng3"), std::nullopt);
  EXPECT_THAT(said_, IsEmpty());
}

// Two lines with the same checksum would share a file, so the file names its line.
TEST_F(PlanChoicesTest, AnotherPlansFileIsNotTaken) {
  open().keep_compiled("stem", "eng3", "one");
  const fs::path one = fs::directory_iterator(folder_.path() + "/cache")->path();
  const std::string content = read_whole_file(one);
  fs::remove(one);
  open().keep_compiled("head", "eng3", "two");
  const fs::path two = fs::directory_iterator(folder_.path() + "/cache")->path();
  ASSERT_NE(one, two);
  replace_file(two, content);
  EXPECT_EQ(open().compiled("head", "eng3"), std::nullopt);
}

TEST_F(PlanChoicesTest, ACompiledPlanThatCannotBeKeptIsSaidOnce) {
  PlanChoices choices = open("/proc/conv-plans.bin");
  for (int i = 0; i < 3; ++i) choices.keep_compiled("stem", "eng3", "plan");
  EXPECT_THAT(said_, ElementsAre(HasSubstr("not kept")));
}

class PlanFileTest : public PlanChoicesTest {
 protected:
  void SetUp() override { add_plan_lines(path_, {{"a, 3x3", "eng1_k2=0"}, {"b", "eng2"}}); }
};

TEST_F(PlanFileTest, AnotherVersionIsNotRead) {
  std::string content = read_whole_file(path_);
  char& version = content.at(8);  // pipeline/files/sealed_file.h
  ++version;
  replace_file(path_, content);
  EXPECT_THAT(read_plan_file(path_).problem, HasSubstr("a newer version"));
  version = 1;
  replace_file(path_, content);
  EXPECT_THAT(read_plan_file(path_).problem, HasSubstr("an older version"));
}

TEST_F(PlanFileTest, WhatIsNoFileIsSaidAndNoFileIsNoProblem) {
  fs::remove(path_);
  EXPECT_EQ(read_plan_file(path_).problem, "");
  fs::create_directory(path_);
  EXPECT_THAT(read_plan_file(path_).problem, HasSubstr("not a regular file"));
  EXPECT_THROW(add_plan_lines(path_, {{"c", "eng3"}}), std::runtime_error);
  fs::remove(path_);
  EXPECT_TRUE(fs::is_empty(fs::path(path_).parent_path())) << "a temporary file was left";
}

TEST_F(PlanFileTest, TheNewestAnswerStays) {
  add_plan_lines(path_, {{"a, 3x3", "eng9"}});
  EXPECT_EQ(read_plan_file(path_).lines,
            (std::vector<PlanLine>{{"b", "eng2"}, {"a, 3x3", "eng9"}}));
}

TEST_F(PlanFileTest, TheOldestLinesGo) {
  std::vector<PlanLine> many;
  for (size_t i = 0; i < kMaxPlanLines - 1; ++i) many.push_back({std::to_string(i), "eng1"});
  add_plan_lines(path_, many);
  const std::vector<PlanLine> lines = read_plan_file(path_).lines;
  ASSERT_EQ(lines.size(), kMaxPlanLines);
  EXPECT_EQ(lines.front().question, "b");
  EXPECT_EQ(lines.back(), many.back());
}

TEST(SpreadOverEnginesTest, NoEngineTakesAllTheFirstPlaces) {
  EXPECT_THAT(spread_over_engines({62, 62, 62, 62, 62, 45, 62, 22, 45}, 2),
              ElementsAre(0, 1, 5, 7, 8, 2, 3, 4, 6));
  EXPECT_THAT(spread_over_engines({7, 7, 7}, 2), ElementsAre(0, 1, 2));
  EXPECT_THAT(spread_over_engines({}, 2), IsEmpty());
}

}  // namespace
}  // namespace stoker
