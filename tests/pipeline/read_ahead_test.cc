// The waits between the driver, the I/O threads and the workers.
#include "pipeline/feed/read_ahead.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <future>
#include <string>

#include "tests/pipeline/loader_support.h"

namespace stoker::testing {
namespace {

constexpr auto kAWhile = std::chrono::milliseconds(20);
constexpr int kWorkers = 2, kUnits = 3 * kWorkers + 1;

class ReadAheadTest : public ::testing::Test {
 protected:
  // Starts a thread that requests a ticket; the thread sleeps when this returns.
  std::future<bool> ask() {
    std::promise<pid_t> thread;
    std::future<bool> asked = std::async(std::launch::async, [&, this] {
      thread.set_value(gettid());
      return read_ahead_.next(ticket_);
    });
    const std::string path = "/proc/self/task/" + std::to_string(thread.get_future().get());
    for (std::string state; state != "S (sleeping)";) {
      std::ifstream status(path + "/status");
      for (std::string line; std::getline(status, line);) {
        if (line.starts_with("State:")) state = line.substr(line.find('\t') + 1);
      }
    }
    return asked;
  }
  void submit(int tickets) {
    for (int i = 0; i < tickets; ++i) read_ahead_.submit({.step = i, .rows = 1});
  }
  void take_all_units() {
    submit(2 * kUnits);
    for (int i = 0; i < kUnits; ++i) {
      ASSERT_TRUE(read_ahead_.next(ticket_));
      EXPECT_EQ(ticket_.step, i);
      EXPECT_EQ(ticket_.unit, i);
    }
  }

  const std::unique_ptr<FakeSource> source_ = jpeg_source(20);
  const LoaderOptions options_{};
  Quarantine quarantine_{*source_, options_};
  RowFiller filler_{*source_, crop_spec(), options_, 1, quarantine_};
  ReadAhead read_ahead_{filler_, kWorkers, 1, 1, 2 * kUnits};
  FillTicket ticket_;
};

TEST_F(ReadAheadTest, AThreadWithoutAUnitSleepsUntilSeveralAreFree) {
  take_all_units();
  std::future<bool> asked = ask();
  for (int unit = 0; unit < kWorkers; ++unit) {
    read_ahead_.give_back(unit);
    EXPECT_EQ(asked.wait_for(kAWhile), std::future_status::timeout) << unit + 1 << " free";
  }
  read_ahead_.give_back(kWorkers);
  EXPECT_TRUE(asked.get());
  EXPECT_EQ(ticket_.step, kUnits);
  for (int i = 0; i < kWorkers; ++i) EXPECT_TRUE(read_ahead_.next(ticket_)) << "no wait for these";
}

TEST_F(ReadAheadTest, ATicketIsTakenAtOnce) {
  std::future<bool> asked = ask();
  submit(1);
  EXPECT_TRUE(asked.get());
  EXPECT_EQ(ticket_.unit, 0);
}

TEST_F(ReadAheadTest, AbandoningWakesWhoWaitsForAUnit) {
  take_all_units();
  std::future<bool> asked = ask();
  read_ahead_.abandon();
  EXPECT_TRUE(asked.get());
  EXPECT_EQ(ticket_.unit, -1);
}

// Otherwise nobody would take it when the I/O threads are gone.
TEST_F(ReadAheadTest, TakesNoTicketOnceItIsAbandoned) {
  EXPECT_TRUE(read_ahead_.submit({.step = 0, .rows = 1}));
  read_ahead_.abandon();
  EXPECT_FALSE(read_ahead_.submit({.step = 1, .rows = 1}));
  EXPECT_TRUE(read_ahead_.next(ticket_));
  EXPECT_EQ(ticket_.step, 0);
  read_ahead_.close();
  EXPECT_FALSE(read_ahead_.next(ticket_)) << "there was one";
}

TEST_F(ReadAheadTest, ClosingWakesWhoWaitsForATicket) {
  std::future<bool> asked = ask();
  read_ahead_.close();
  EXPECT_FALSE(asked.get());
}

}  // namespace
}  // namespace stoker::testing
