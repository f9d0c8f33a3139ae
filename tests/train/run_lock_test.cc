// Tests of the lock of a run's folder: it has one holder at a time, names it, and ends with its
// process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "tests/support/temp_folder.h"
#include "train/run/lock.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

std::string lock_refusal(const std::string& folder) {
  EXPECT_THROW(RunLock::require_free(folder), std::runtime_error);
  try {
    const RunLock lock(folder);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(RunLock, HasOneHolderAndNamesIt) {
  const TempFolder folder;
  const std::string file = folder.path() + "/lock.json";
  {
    const RunLock lock(folder.path());
    const LockHolder own = this_process();
    EXPECT_THAT(lock_refusal(folder.path()),
                HasSubstr(folder.path() + ": in use by process " + std::to_string(getpid()) +
                          " on " + own.host + " since 2"));
    EXPECT_TRUE(std::filesystem::exists(file));
  }
  EXPECT_FALSE(std::filesystem::exists(file));
  RunLock::require_free(folder.path());
  const RunLock again(folder.path());
}

TEST(RunLock, EndsWithItsProcessThoughTheFileStays) {
  const TempFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const RunLock lock(folder.path());
    if (write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_THAT(lock_refusal(folder.path()),
              HasSubstr("in use by process " + std::to_string(child) + " on"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/lock.json"));
  RunLock::require_free(folder.path());
  { const RunLock lock(folder.path()); }
  close(ready[0]);
  close(ready[1]);
}

TEST(RunLock, AFolderThatIsNotThereIsFree) { RunLock::require_free("/no/such/run"); }

TEST(RunLock, ADamagedFileThatNobodyHoldsIsNoLock) {
  const TempFolder folder;
  folder.write("lock.json", "{\"process\": \"x\", ");
  RunLock::require_free(folder.path());
  const RunLock lock(folder.path());
}

// For file systems without locks: a reused process number does not belong to the process that wrote
// the file.
TEST(RunLock, KnowsALivingProcessByMoreThanItsNumber) {
  const LockHolder own = this_process();
  EXPECT_GT(own.start_ticks, 0);
  EXPECT_TRUE(may_live(own));
  LockHolder other = own;
  other.start_ticks += 1;
  EXPECT_FALSE(may_live(other));
  other = own;
  other.boot = "another";
  EXPECT_FALSE(may_live(other));
  other.host += ".elsewhere";
  EXPECT_TRUE(may_live(other));
}

}  // namespace
}  // namespace stoker
