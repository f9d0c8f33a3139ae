// Where the system makes no more threads, whichever thread is the first that is missing: one line
// says so and what to do, and nothing aborts or waits for ever. Where memory is short, too.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train_runs.h"

namespace stoker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class NoThreads : public TrainRuns {
 protected:
  // Runs the command with fewer threads than it wants, from 0 on, until they are enough. Returns
  // how often they were not.
  static int run_with_ever_more(const Words& words) {
    constexpr int kEnough = 100;
    for (int from = 1; from < kEnough; ++from) {
      Words command = {"env", "LD_PRELOAD=" STOKER_NO_THREADS,
                       "STOKER_NO_THREAD_FROM=" + std::to_string(from)};
      command.insert(command.end(), words.begin(), words.end());
      const ProgramResult result = run_program(command);
      if (result.exit_code == 0) return from - 1;
      EXPECT_EQ(result.exit_code, 3) << from << ": " << result.err;
      // Notes may stand before it.
      EXPECT_THAT(result.err, AllOf(HasSubstr("cannot make thread "), HasSubstr("pids.max")))
          << from;
    }
    ADD_FAILURE() << "it needs more than " << kEnough << " threads";
    return kEnough;
  }
};

bool has_sanitizer() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

TEST_F(NoThreads, ADumpSaysWhichIsMissing) {
  if (has_sanitizer()) GTEST_SKIP() << "the sanitizer has pthread_create() itself";
  const int least =
      run_with_ever_more({STOKER_PROGRAM, "dump", "--data", data(), "--size", "32", "--batch", "16",
                          "--steps", "2", "--workers", "3", "--out", run_folder("rows")});
  EXPECT_GE(least, 3 + 1 + 4);  // workers, the feed, and what reads
}

TEST_F(NoThreads, ATrainingSaysWhichIsMissing) {
  if (has_sanitizer()) GTEST_SKIP() << "the sanitizer has pthread_create() itself";
  Words words = with(command("x", 1), {"--workers", "2", "--threads", "2", "--devices", "cpu:2",
                                       "--max-steps", "2", "--resume"});
  EXPECT_GE(run_with_ever_more(words), 2 + 2 + 2 + 1);
}

TEST_F(NoThreads, TooLittleMemoryIsSaidWithSizes) {
  if (has_sanitizer()) GTEST_SKIP() << "a sanitizer maps terabytes";
  int refused = 0;
  for (const int kib : {100'000, 150'000, 200'000, 300'000, 500'000, 800'000}) {
    const std::string limited =
        "ulimit -v " + std::to_string(kib) + "; exec '" STOKER_PROGRAM "' dump --data '" + data() +
        "' --size 224 --batch 1024 --workers 2 --steps 1 --out '" + run_folder("much") + "'";
    const ProgramResult result = run_program({"sh", "-c", limited});
    if (result.exit_code == 0) continue;
    // A program that is too large to be loaded says so itself.
    if (result.exit_code == 127) continue;
    ++refused;
    EXPECT_EQ(result.exit_code, 3) << kib << ": " << result.err;
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr("ulimit -v"), Not(HasSubstr("bad_alloc")))) << kib;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace stoker
