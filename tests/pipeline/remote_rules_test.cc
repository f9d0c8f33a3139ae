// Which rows are offered to others, and how many at a time, with a feed that only notes what it is
// asked. (remote_rows_test.cc has real feeds.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "pipeline/exchange/remote_rows.h"

namespace stoker::testing {
namespace {

class NotingFeed final : public RowExchange::Feed {
 public:
  void store(const RowRange& range, const Slab&, const std::vector<BadSample>&) noexcept override {
    stored.push_back(range);
  }
  void ask_here(int times) noexcept override { asked += times; }
  void put(const FillTicket&) override {}
  bool read(const FillTicket&) override { return false; }
  int fill_rows(const FillTicket&, RowWorker&) override { return 0; }
  bool fill_made(const FillTicket&, RowWorker&, Slab&, const BatchPosition&) override {
    return false;
  }
  void fail(std::exception_ptr) noexcept override {}
  double local_rows_per_s() const override { return rate; }
  std::vector<RowRange> stored;
  int asked = 0;
  double rate = 0;
};

class RemoteRulesTest : public ::testing::Test {
 protected:
  static constexpr int kRows = 16;
  void open(int window, int rows_per_ticket = 4, double patience_s = 0,
            bool is_all_remote = false) {
    rows_ = std::make_unique<RemoteRows>(
        RemoteRows::Options{.batch = {.rows = kRows, .height = 8, .width = 8},
                            .window = window,
                            .is_all_remote = is_all_remote,
                            .least_patience_s = patience_s});
    rows_->open(feed_, rows_per_ticket);
  }
  void put(Step step) { rows_->put({step, 0, 0, kRows}); }
  std::vector<RowRange> claim_all() {
    std::vector<RowRange> claims;
    while (const auto claim = rows_->claim(1, 0)) claims.push_back(claim->range);
    return claims;
  }
  bool take_here(RowRange& range) {
    FillTicket ticket;
    if (rows_->turn(ticket) == RowExchange::Turn::none) return false;
    range = ticket.range();
    return true;
  }
  NotingFeed feed_;
  std::unique_ptr<RemoteRows> rows_;
};

TEST_F(RemoteRulesTest, RowsAreOfferedFromTheFarEndWhileMostBatchesAreIncomplete) {
  open(4);
  put(0);
  put(1);
  EXPECT_TRUE(claim_all().empty()) << "half of the window is complete, or not begun";
  put(2);
  const auto claim = rows_->claim(1, 0);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->range, (RowRange{2, 0, 0, 16}));
  RowRange here;
  ASSERT_TRUE(take_here(here));
  EXPECT_EQ(here, (RowRange{0, 0, 0, 4}));
  rows_->batch_is_complete({});
  EXPECT_TRUE(claim_all().empty());
  EXPECT_EQ(rows_->close().size(), 3u);
}

TEST_F(RemoteRulesTest, ClaimsAreWholeTicketsAndLeaveWholeTickets) {
  open(1, 6);  // tickets of rows 0, 6 and 12
  put(0);
  std::vector<RowRange> claims = claim_all();
  // Half of the window is 8 rows; one claimer has half of that at once, a ticket at least.
  EXPECT_THAT(claims, ::testing::ElementsAre(RowRange{0, 0, 12, 4}, RowRange{0, 0, 6, 6},
                                             RowRange{0, 0, 0, 6}));
}

TEST_F(RemoteRulesTest, ClaimsOfABatchAreAlikeAndLeaveNoSmallRest) {
  const auto claims = [](int64_t tickets, double wanted, int64_t most) {
    std::vector<int64_t> taken;
    for (; tickets > 0; tickets -= taken.back()) {
      taken.push_back(tickets_of_claim(tickets, wanted, most));
    }
    return taken;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(claims(32, 27.5, 100), ElementsAre(32));
  EXPECT_THAT(claims(32, 15.5, 100), ElementsAre(16, 16));
  EXPECT_THAT(claims(32, 15.5, 15), ElementsAre(11, 11, 10));
  EXPECT_THAT(claims(32, 100, 27), ElementsAre(16, 16));
  EXPECT_THAT(claims(3, 0.1, 1), ElementsAre(1, 1, 1));
  for (int64_t tickets = 1; tickets < 40; ++tickets) {
    for (int64_t wanted = 1; wanted < 50; wanted += 3) {
      for (int64_t most = 1; most < 40; most += 5) {
        const auto taken = claims(tickets, static_cast<double>(wanted), most);
        const auto [least, largest] = std::ranges::minmax(taken);
        EXPECT_GE(least, 1);
        EXPECT_LE(largest, most);
        EXPECT_LE(2 * largest, 3 * wanted + 1) << tickets << " tickets, at most " << most;
        EXPECT_GE(2 * least + 2, std::min(largest, wanted))
            << tickets << " tickets, at most " << most;
      }
    }
  }
}

TEST_F(RemoteRulesTest, RowsGivenUpAreAskedForHereOnceAndFirst) {
  open(1);
  put(0);
  put(1);
  EXPECT_EQ(feed_.asked, 8);
  const auto claim = rows_->claim(4, 0);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->range, (RowRange{1, 0, 12, 4}));
  rows_->give_up(*claim);
  EXPECT_EQ(feed_.asked, 8) << "8 calls are to come, for 8 tickets";
  RowRange here;
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(take_here(here));
  EXPECT_EQ(here, claim->range);
  put(2);
  const auto last = rows_->claim(4, 0);
  ASSERT_TRUE(last);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(take_here(here));
  EXPECT_FALSE(take_here(here));
  EXPECT_EQ(feed_.asked, 12);
  rows_->give_up(*last);
  EXPECT_EQ(feed_.asked, 13);
  EXPECT_TRUE(take_here(here));
  EXPECT_EQ(here, last->range);
}

TEST_F(RemoteRulesTest, OnlyLateClaimsOfIdleFeedsAreTakenBack) {
  open(1);
  put(0);
  const auto claim = rows_->claim(4, 0);
  ASSERT_TRUE(claim);
  EXPECT_FALSE(rows_->give_up_if_late(*claim)) << "there are other rows to fill";
  RowRange here;
  while (take_here(here)) {
  }
  EXPECT_TRUE(rows_->give_up_if_late(*claim));
  EXPECT_TRUE(rows_->give_up_if_late(*claim));
  EXPECT_EQ(rows_->stats().taken_back, 1);
  EXPECT_TRUE(take_here(here));
  EXPECT_EQ(here, claim->range);
  open(1, 4, 1e6);
  put(0);
  const auto patient = rows_->claim(4, 0);
  while (take_here(here)) {
  }
  EXPECT_FALSE(rows_->give_up_if_late(*patient));
}

TEST_F(RemoteRulesTest, AFeedWithoutWorkersIsIdleWhateverIsToBeFilled) {
  open(1, 4, 0, true);
  feed_.rate = 1e12;  // of a worker that is there for what was given up
  put(0);
  EXPECT_EQ(feed_.asked, 0);
  const auto claim = rows_->claim(4, 0);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->range.first_row, 12);
  EXPECT_TRUE(rows_->give_up_if_late(*claim));
  EXPECT_EQ(feed_.asked, 1);
  EXPECT_EQ(claim_all().size(), 4u) << "half of the window is no limit";
}

TEST_F(RemoteRulesTest, WhatIsBegunHereWithinARoundIsKept) {
  const RemotePace unknown{.claimers = 2};
  EXPECT_EQ(rows_kept_here(unknown), 0);
  EXPECT_EQ(rows_of_claim(unknown, 1000), 125);
  const RemotePace pace{
      .local_rows_per_s = 300, .round_s = 0.5, .rows_per_round = 50, .claimers = 3};
  EXPECT_EQ(rows_kept_here(pace), 150);
  EXPECT_DOUBLE_EQ(pace.remote_rows_per_s(), 300);
  EXPECT_EQ(rows_of_claim(pace, 1200), 100);  // half of half of the window, for three
  EXPECT_EQ(rows_of_claim(pace, 2), 1);
  open(1);
  feed_.rate = 1e12;  // and a round takes longer than nothing
  put(0);
  const auto claim = rows_->claim(4, 0);
  ASSERT_TRUE(claim);
  std::vector<std::byte> message(
      message_bytes({.rows = kRows, .height = 8, .width = 8}, claim->range.rows));
  begin_message(message, {.rows = kRows, .height = 8, .width = 8}, claim->range, 0);
  EXPECT_TRUE(rows_->deliver(*claim, message, {}));
  EXPECT_THAT(feed_.stored, ::testing::ElementsAre(claim->range));
  EXPECT_FALSE(rows_->claim(4, 0));
  feed_.rate = 0;
  EXPECT_TRUE(rows_->claim(4, 0));
}

}  // namespace
}  // namespace stoker::testing
