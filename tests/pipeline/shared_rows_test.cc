// Blocks of rows that processes share: whatever becomes of the members of a share, none gets other
// bytes, and none waits for another one for long. (shared_feeds_test.cc has feeds.)
#include "pipeline/exchange/shared_rows.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <span>
#include <thread>

#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using Found = SharedRows::Found;
using ::testing::HasSubstr;
constexpr int64_t kRowsLong = int64_t{3600} * 1000000000;
constexpr size_t kBlock = 1000;

class SharedRowsTest : public ::testing::Test {
 protected:
  SharedRows::Options options(int steps = 4) const {
    return {.name = "test",
            .folder = folder_.path(),
            .fingerprint = 1,
            .facts = "seed: 1\nbatch_size: 20\n",
            .steps = steps,
            .block_bytes = kBlock,
            .patience_ms = 100000};
  }
  std::string file() const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      EXPECT_EQ(found, "");
      found = entry.path();
    }
    return found;
  }
  std::string problem(const SharedRows::Options& options) const {
    return thrown_by<std::runtime_error>([&] { const SharedRows refused(options); });
  }

  TempFolder folder_;
};

std::vector<std::byte> block_of_rows(Step step) {
  std::vector<std::byte> rows(kBlock);
  for (size_t i = 0; i < kBlock; ++i) rows[i] = static_cast<std::byte>(step * 31 + int64_t(i));
  return rows;
}

bool give(SharedRows& rows, Step step) {
  const auto look = rows.look({step}, 0);
  return look.found == Found::ours && rows.give({step}, look.word, block_of_rows(step));
}

bool has(SharedRows& rows, Step step) {
  const auto look = rows.look({step}, 0);
  std::vector<std::byte> read(kBlock);
  return look.found == Found::done && rows.read({step}, look.word, read) &&
         read == block_of_rows(step);
}

TEST_F(SharedRowsTest, OneDecodesAndTheOthersRead) {
  SharedRows a(options()), b(options()), c(options());
  const auto ours = a.look({0}, 0);
  EXPECT_EQ(ours.found, Found::ours);
  EXPECT_EQ(b.look({0}, 0).found, Found::busy);
  EXPECT_EQ(b.look({1}, 0).found, Found::ours);
  EXPECT_EQ(a.look({1}, 0).found, Found::busy);
  EXPECT_TRUE(a.give({0}, ours.word, block_of_rows(0)));
  EXPECT_TRUE(has(b, 0) && has(c, 0));
}

TEST_F(SharedRowsTest, AReleasedBlockIsTheNextOnesAndADeclinedOneNobodys) {
  SharedRows a(options()), b(options());
  const auto first = a.look({0}, 0);
  a.release({0}, first.word);
  const auto second = b.look({0}, 0);
  EXPECT_EQ(second.found, Found::ours);
  EXPECT_TRUE(b.decline({0}, second.word));
  EXPECT_EQ(a.look({0}, 0).found, Found::alone);
  EXPECT_EQ(b.look({0}, 0).found, Found::alone);
}

TEST_F(SharedRowsTest, ALateOwnersBlockIsTakenOverAndItsRowsAreRefused) {
  SharedRows a(options()), b(options());
  const auto late = a.look({0}, 0);
  EXPECT_EQ(b.look({0}, 0).found, Found::busy);
  const auto taken = b.look({0}, kRowsLong);
  EXPECT_EQ(taken.found, Found::ours);
  EXPECT_EQ(b.counts().taken_over, 1);
  EXPECT_FALSE(a.give({0}, late.word, block_of_rows(7)));
  // Its word does not come again, although the same member takes the block a second time.
  const auto again = a.look({0}, kRowsLong);
  EXPECT_EQ(again.found, Found::ours);
  EXPECT_FALSE(a.give({0}, late.word, block_of_rows(7)));
  EXPECT_FALSE(a.decline({0}, late.word));
  a.release({0}, late.word);
  EXPECT_FALSE(b.give({0}, taken.word, block_of_rows(7)));
  EXPECT_TRUE(a.give({0}, again.word, block_of_rows(0)));
  EXPECT_TRUE(has(b, 0));
}

TEST_F(SharedRowsTest, OlderStepsAreWrittenOverAndALaggardIsAlone) {
  SharedRows a(options(4)), b(options(4));
  b.set_position(3);
  for (Step step = 0; step < 6; ++step) {
    a.set_position(step);
    EXPECT_TRUE(give(a, step)) << step;
  }
  const auto old = b.look({1}, 0);
  EXPECT_EQ(old.found, Found::alone);  // step 5 is there
  EXPECT_TRUE(has(b, 2));
  // A block that is written over while it is read is not taken for the older one.
  const auto before = b.look({3}, 0);
  EXPECT_EQ(before.found, Found::done);
  a.set_position(7);
  EXPECT_TRUE(give(a, 7));
  std::vector<std::byte> read(kBlock);
  EXPECT_FALSE(b.read({3}, before.word, read));
  EXPECT_EQ(b.counts().corrupt, 0);
}

TEST_F(SharedRowsTest, AloneAMemberGivesNothingAfterItsFirstSteps) {
  SharedRows a(options(4));
  a.set_position(3);
  EXPECT_EQ(a.look({3}, 0).found, Found::ours);
  a.set_position(100);
  EXPECT_EQ(a.look({100}, 0).found, Found::alone);
  SharedRows b([&] {
    SharedRows::Options from = options(4);
    from.first_step = 97;
    return from;
  }());
  EXPECT_EQ(a.look({100}, 0).found, Found::ours);
}

TEST_F(SharedRowsTest, WhoIsAheadWaitsForWhatOthersStillNeedButNotForLong) {
  SharedRows::Options patient = options(4);
  patient.wait_s = 1e6;
  SharedRows a(patient), b(options(4));
  int asked = 0;
  const auto goes_on = [&] {
    if (++asked == 3) b.set_position(1);
    return false;
  };
  a.wait_for_others(3, goes_on);
  EXPECT_EQ(asked, 0);
  a.wait_for_others(4, goes_on);  // step 4 is where step 0 was
  EXPECT_EQ(asked, 3);
  EXPECT_GT(a.counts().waited_ns, 0);
  a.wait_for_others(6, goes_on);  // b is too far behind
  EXPECT_EQ(asked, 3);
  a.wait_for_others(5, [&] { return ++asked > 5; });
  EXPECT_EQ(asked, 6);

  SharedRows::Options impatient = options(4);
  impatient.wait_s = 0.05;
  SharedRows c(impatient);
  c.wait_for_others(5, [] { return false; });
  EXPECT_GE(c.counts().waited_ns, 50000000);
  impatient.wait_s = 0;
  SharedRows d(impatient);
  d.wait_for_others(5, [] {
    ADD_FAILURE() << "it waits";
    return true;
  });
}

// The rest of a run that was far ahead does not stop the others from sharing.
TEST_F(SharedRowsTest, LaterStepsThatNoMemberIsNearAreOldOnes) {
  SharedRows a(options(4)), b(options(4));
  {
    SharedRows::Options far = options(4);
    far.first_step = 1000;
    SharedRows c(far);
    for (Step step = 1000; step < 1004; ++step) EXPECT_TRUE(give(c, step));
    EXPECT_EQ(a.look({2}, 0).found, Found::alone);
  }
  EXPECT_TRUE(give(a, 2));
  EXPECT_TRUE(has(b, 2));
}

// The parts of the file, as a late owner sees them.
class RawFile {
 public:
  explicit RawFile(const std::string& path, int steps)
      : file_(open(path.c_str(), O_RDWR)),
        rows_(static_cast<off_t>(std::filesystem::file_size(path)) - steps * kStride),
        words_(static_cast<off_t>(ShareFile::head_bytes())) {}
  ~RawFile() { close(file_); }
  std::vector<std::byte> rows(int slot) { return get(rows_ + slot * kStride, kBlock); }
  std::vector<std::byte> seal(int slot) { return get(words_ + slot * 16 + 8, 8); }
  void put_rows(int slot, const std::vector<std::byte>& rows) { put(rows_ + slot * kStride, rows); }
  void put_seal(int slot, const std::vector<std::byte>& seal) { put(words_ + slot * 16 + 8, seal); }

 private:
  static constexpr off_t kStride = 1024;

  std::vector<std::byte> get(off_t place, size_t bytes) {
    std::vector<std::byte> read(bytes);
    EXPECT_EQ(pread(file_, read.data(), bytes, place), static_cast<ssize_t>(bytes));
    return read;
  }
  void put(off_t place, const std::vector<std::byte>& bytes) {
    EXPECT_EQ(pwrite(file_, bytes.data(), bytes.size(), place), static_cast<ssize_t>(bytes.size()));
  }

  const int file_;
  const off_t rows_, words_;
};

TEST_F(SharedRowsTest, WhatALateOwnerWritesIsFoundOutAndDecodedAgain) {
  SharedRows a(options(2)), b(options(2));
  RawFile raw(file(), 2);
  EXPECT_TRUE(give(a, 0));
  EXPECT_EQ(raw.rows(0), block_of_rows(0));
  const auto old_rows = raw.rows(0), old_seal = raw.seal(0);
  EXPECT_TRUE(give(a, 2));
  for (const bool is_whole : {false, true}) {
    EXPECT_TRUE(has(b, 2));
    if (is_whole) {  // with a seal of its own
      raw.put_rows(0, old_rows);
      raw.put_seal(0, old_seal);
    } else {
      auto torn = block_of_rows(2);
      std::copy(old_rows.begin() + 500, old_rows.end(), torn.begin() + 500);
      raw.put_rows(0, torn);
    }
    const auto look = b.look({2}, 0);
    std::vector<std::byte> read(kBlock);
    EXPECT_EQ(look.found, Found::done);
    EXPECT_FALSE(b.read({2}, look.word, read));
    EXPECT_EQ(b.counts().corrupt, is_whole ? 2 : 1);
    EXPECT_TRUE(give(b, 2));  // it is free again
    EXPECT_TRUE(has(a, 2));
  }
}

TEST_F(SharedRowsTest, TheBlockOfADeadOrStoppedMemberIsTakenOverAtOnce) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    SharedRows a(options());
    const BlockPosition place{1};
    const pid_t child = fork();
    if (child == 0) {
      SharedRows dying(options());
      if (dying.look(place, 0).found == Found::ours) raise(signal);
      _exit(1);
    }
    // The process that was killed is a zombie until somebody waits for it.
    siginfo_t state{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &state, WEXITED | WSTOPPED | WNOWAIT), 0);
    EXPECT_EQ(state.si_status, signal);
    EXPECT_EQ(a.look(place, 0).found, Found::ours);
    EXPECT_EQ(a.counts().taken_over, 1);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

TEST_F(SharedRowsTest, OtherRowsAreRefusedInWords) {
  const SharedRows a(options());
  SharedRows::Options others = options();
  others.fingerprint = 2;
  others.facts = "seed: 2\nbatch_size: 20\n";
  EXPECT_THAT(problem(others), HasSubstr("seed is 1 there and 2 here"));
  EXPECT_THAT(problem(others), HasSubstr("process " + std::to_string(getpid())));
  EXPECT_THAT(problem(others), ::testing::Not(HasSubstr("batch_size")));
  others.facts = options().facts;
  EXPECT_THAT(problem(others), HasSubstr("fingerprints differ"));
  EXPECT_EQ(problem(options()), "nothing was thrown");
}

TEST_F(SharedRowsTest, TheLastOneRemovesTheFileAndALeftOverOneBeginsAnew) {
  auto a = std::make_unique<SharedRows>(options());
  {
    const SharedRows b(options());
    a.reset();
    EXPECT_NE(file(), "");
  }
  EXPECT_EQ(file(), "");
  const pid_t child = fork();
  if (child == 0) {
    SharedRows dying(options());
    if (give(dying, 0)) raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_NE(file(), "");
  SharedRows::Options others = options(3);
  others.fingerprint = 2;
  {
    SharedRows next(others);
    EXPECT_EQ(next.look({0}, 0).found, Found::ours);
  }
  EXPECT_EQ(file(), "");
  // A maker that was killed before all was there.
  const std::string name = [&] {
    const SharedRows maker(options());
    return file();
  }();
  std::filesystem::resize_file(folder_.write(std::filesystem::path(name).filename()), 3000);
  std::filesystem::permissions(name, std::filesystem::perms(0600));
  SharedRows after(options());
  EXPECT_TRUE(give(after, 0));
}

TEST_F(SharedRowsTest, AForkedChildIsNoMember) {
  auto a = std::make_unique<SharedRows>(options());
  const pid_t child = fork();
  if (child == 0) {
    a.reset();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_NE(file(), "");
  SharedRows b(options());
  EXPECT_EQ(a->look({0}, 0).found, Found::ours);
  EXPECT_EQ(b.look({0}, 0).found, Found::busy);  // its owner lives
}

TEST_F(SharedRowsTest, TooManyMembersAndFilesOfOthersAreRefused) {
  std::vector<std::unique_ptr<SharedRows>> members;
  for (int i = 0; i < ShareFile::kMembers; ++i) {
    members.push_back(std::make_unique<SharedRows>(options()));
  }
  EXPECT_THAT(problem(options()), HasSubstr("64 members"));
  members[5].reset();
  EXPECT_EQ(problem(options()), "nothing was thrown");
  std::filesystem::permissions(file(), std::filesystem::perms(0644));
  EXPECT_THAT(problem(options()), HasSubstr("this user alone"));
}

TEST_F(SharedRowsTest, TooLittleSharedMemoryIsOneErrorWithNumbers) {
  if (mount("none", folder_.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "a small tmpfs cannot be mounted: " << std::strerror(errno);
  }
  SharedRows::Options large = options(20);
  large.block_bytes = 100000;
  const std::string text = problem(large);
  EXPECT_THAT(text, HasSubstr("of 20 steps takes 3 MB of shared memory"));
  EXPECT_THAT(text, HasSubstr("has 2 MB free; 10 steps would fit"));
  EXPECT_EQ(file(), "");
  large.steps = 10;
  EXPECT_EQ(problem(large), "nothing was thrown");
  umount(folder_.path().c_str());
}

// Two threads of one member, so that ThreadSanitizer sees both at the same addresses: one copies a
// block out while the other writes the next step over it.
TEST_F(SharedRowsTest, WhoIsWrittenOverWhileItReadsIsTold) {
  constexpr Step kSteps = 3000;
  constexpr size_t kOddBlock = kBlock - 3;
  SharedRows rows(options(1)), company(options(1));
  std::atomic<Step> given = -1;
  std::thread reader([&] {
    std::vector<std::byte> read(kOddBlock);
    for (Step step = -1; step < kSteps - 1;) {
      step = given.load(std::memory_order_relaxed);
      if (step < 0) continue;
      const auto [found, word] = rows.look({step}, 0);
      ASSERT_NE(found, Found::ours);
      if (found != Found::done || !rows.read({step}, word, read)) continue;
      auto expected = block_of_rows(step);
      expected.resize(kOddBlock);
      EXPECT_EQ(read, expected);
    }
  });
  for (Step step = 0; step < kSteps; ++step) {
    rows.set_position(step);
    company.set_position(step);
    const auto look = rows.look({step}, 0);
    EXPECT_EQ(look.found, Found::ours);
    const auto made = block_of_rows(step);
    EXPECT_TRUE(rows.give({step}, look.word, std::span(made).first(kOddBlock)));
    given.store(step, std::memory_order_relaxed);
  }
  reader.join();
  EXPECT_EQ(rows.counts().corrupt, 0);
}

// Several threads of several members, on a ring that is shorter than they are apart.
TEST_F(SharedRowsTest, NobodyReadsWhatIsNotWhole) {
  constexpr Step kSteps = 3000;
  std::atomic<int64_t> read_rows = 0, given = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      SharedRows rows(options(3));
      std::vector<std::byte> read(kBlock);
      for (Step step = 0; step < kSteps; ++step) {
        rows.set_position(step);
        for (bool is_there = false; !is_there;) {
          const auto [found, word] = rows.look({step}, i == 0 ? kRowsLong : 0);
          if (found == Found::done && rows.read({step}, word, read)) {
            EXPECT_EQ(read, block_of_rows(step));
            ++read_rows;
            is_there = true;
          } else if (found == Found::ours) {
            given += rows.give({step}, word, block_of_rows(step));
            is_there = true;
          } else if (found == Found::alone) {
            is_there = true;
          } else {
            std::this_thread::yield();
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(given, 0);
  EXPECT_LE(read_rows + given, 3 * kSteps);
}

}  // namespace
}  // namespace stoker::testing
