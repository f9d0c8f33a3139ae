// ObjectReader on a server that does what it should: order, room, numbers under way, ends.
#include "pipeline/store/object_reader.h"

#include <gmock/gmock.h>

#include <list>
#include <set>

#include "tests/pipeline/object_reader_support.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

TEST_F(ObjectReaderTest, ReadsAndCounts) {
  open();
  std::list<Asked> ranges;
  int64_t bytes = 0;
  for (int i = 0; i < 200; ++i) {
    Asked& asked = ranges.emplace_back(i * 9000, 1 + i * 479 % 60'000);
    bytes += static_cast<int64_t>(asked.out.size());
    reader_->read(object_, asked.offset, asked.out, false, asked.done());
  }
  for (Asked& asked : ranges) {
    EXPECT_EQ(asked.wait(), "");
    EXPECT_TRUE(is_right(asked));
  }
  const StoreStats stats = reader_->stats();
  EXPECT_EQ(stats.ranges, 200);
  EXPECT_EQ(stats.bytes, bytes);
  EXPECT_GE(stats.bytes_carried, bytes);
  EXPECT_EQ(stats.requests, 200 + stats.second_requests);
  EXPECT_EQ(stats.retries, 0);
  EXPECT_EQ(stats.failed, 0);
  EXPECT_EQ(stats.requests_under_way, 0);
  EXPECT_GE(stats.requests_wanted, 4);
  EXPECT_GT(stats.first_byte_ms_median, 0);
  EXPECT_GE(stats.first_byte_ms_p99, stats.first_byte_ms_median);
  EXPECT_GE(stats.total_ms_median, stats.first_byte_ms_median);
  EXPECT_GE(stats.total_ms_p99, stats.total_ms_median);
  EXPECT_GT(stats.bytes_per_second, 0);
  EXPECT_GT(stats.requests_per_second, 0);
  EXPECT_EQ(&reader_->store(), store_.get());
}

TEST_F(ObjectReaderTest, ReadNowWaits) {
  open();
  std::vector<uint8_t> out(1000);
  std::atomic<bool> cancelled = false;
  reader_->read_now(object_, 77, out, cancelled);
  EXPECT_TRUE(std::equal(out.begin(), out.end(), bytes_.begin() + 77));
  fail_first({.kind = Kind::status, .status = 403, .body = "no right"});
  EXPECT_EQ(thrown_by<StoreError>([&] { reader_->read_now(object_, 0, out, cancelled); }),
            "test://server/object: no right");
  cancelled = true;
  server_.set_script([](const SeenRequest&) { return Fault{.waits = true}; });
  EXPECT_EQ(thrown_by<StoreError>([&] { reader_->read_now(object_, 0, out, cancelled); }),
            "test://server/object: it is no longer waited for");
  server_.release();
}

TEST_F(ObjectReaderTest, NoBytesTakeNoRequest) {
  open();
  read_well(object_, 1000, 0);
  EXPECT_EQ(server_.requests(), 0);
}

TEST_F(ObjectReaderTest, HasNoMoreUnderWayThanItMay) {
  open({.requests = 3});
  server_.set_script([](const SeenRequest&) { return Fault{.waits = true}; });
  EXPECT_EQ(reader_->room(), 3);
  std::list<Asked> ranges;
  for (int i = 0; i < 10; ++i) {
    Asked& asked = ranges.emplace_back(i, 1000);
    reader_->read(object_, asked.offset, asked.out, false, asked.done());
  }
  EXPECT_EQ(reader_->room(), 0);
  server_.wait_for_stalled(3);
  const StoreStats stats = reader_->stats();
  EXPECT_EQ(stats.requests - stats.second_requests, 3);
  EXPECT_EQ(stats.requests_under_way, stats.requests);
  EXPECT_EQ(stats.requests_wanted, 3);
  server_.release();
  for (Asked& asked : ranges) {
    EXPECT_EQ(asked.wait(), "");
    EXPECT_TRUE(is_right(asked));
  }
  EXPECT_EQ(reader_->room(), 3);
}

TEST_F(ObjectReaderTest, UrgentOnesGoFirst) {
  open({.requests = 1});
  server_.set_script(
      [](const SeenRequest& request) { return Fault{.waits = request.path == "/slow"}; });
  std::list<Asked> ranges;
  const auto ask = [&](const StoredObject& object, int64_t offset, bool urgent) {
    Asked& asked = ranges.emplace_back(offset, 1000);
    reader_->read(object, offset, asked.out, urgent, asked.done());
  };
  ask(slow_, 0, false);
  server_.wait_for_stalled(1);
  ask(object_, 1, false);
  ask(object_, 2, false);
  ask(object_, 3, true);
  ask(object_, 4, true);
  server_.release();
  for (Asked& asked : ranges) EXPECT_EQ(asked.wait(), "");
  std::vector<std::string> order;
  for (const SeenRequest& request : server_.seen()) {
    if (request.path == "/object") order.push_back(request.headers.at("range"));
  }
  EXPECT_THAT(order, ::testing::ElementsAre("bytes=3-1002", "bytes=4-1003", "bytes=1-1000",
                                            "bytes=2-1001"));
}

// A consumer that asks only where there is room, and only when it is told so.
TEST_F(ObjectReaderTest, TellsWhenThereIsRoom) {
  open({.requests = 4});
  std::list<Asked> ranges;
  for (int i = 0; i < 100; ++i) ranges.emplace_back(i * 100, 5000);
  auto next = ranges.begin();
  std::set<std::thread::id> threads;
  const auto fill = [&] {
    threads.insert(std::this_thread::get_id());
    while (next != ranges.end() && reader_->room() > 0) {
      Asked& asked = *next++;
      reader_->read(object_, asked.offset, asked.out, false, asked.done());
    }
  };
  reader_->set_room_hook(fill);
  store_->client().after(std::chrono::nanoseconds(0), fill);
  for (Asked& asked : ranges) {
    EXPECT_EQ(asked.wait(), "");
    EXPECT_TRUE(is_right(asked));
  }
  EXPECT_LE(server_.connections(), 4 + reader_->stats().second_requests);
  reader_.reset();  // before what its hook uses
  EXPECT_EQ(threads.size(), 1u);
}

TEST_F(ObjectReaderTest, ACallbackMayAsk) {
  open({.requests = 1});
  Asked first(10, 1000), second(20, 1000);
  reader_->read(object_, 10, first.out, false, [&](std::exception_ptr) {
    reader_->read(object_, 20, second.out, false, second.done());
  });
  EXPECT_EQ(second.wait(), "");
  EXPECT_TRUE(is_right(first));
  EXPECT_TRUE(is_right(second));
}

TEST_F(ObjectReaderTest, ARangeThatCannotBeSignedFails) {
  open();
  const StoredObject bad{"/unsigned", 1000, "\"v1\""};
  std::list<Asked> ranges;
  for (int i = 0; i < 50; ++i) {
    Asked& asked = ranges.emplace_back(0, 1000);
    reader_->read(bad, 0, asked.out, false, asked.done());
  }
  for (Asked& asked : ranges) EXPECT_EQ(asked.wait(), "the keys have expired");
  EXPECT_EQ(server_.requests(), 0);
  EXPECT_EQ(reader_->stats().failed, 50);
  read_well(object_, 0, 1000);
}

// Requests under way, in line, and waiting for their next try.
TEST_F(ObjectReaderTest, EndsWithRangesOfAllKinds) {
  open({.requests = 8});
  server_.set_script([](const SeenRequest& request) {
    return request.path == "/other" ? Fault{.kind = Kind::status, .status = 500}
                                    : Fault{.kind = Kind::stall};
  });
  std::list<Asked> ranges;
  for (int i = 0; i < 100; ++i) {
    Asked& asked = ranges.emplace_back(i, 10'000);
    reader_->read(i % 2 == 0 ? other_ : object_, i, asked.out, false, asked.done());
  }
  server_.wait_for_stalled(4);
  reader_.reset();
  std::vector<std::vector<uint8_t>> before;
  for (const Asked& asked : ranges) before.push_back(asked.out);
  server_.release();
  // The client goes on for others.
  reader_ = std::make_unique<ObjectReader>(store_, StoreOptions{});
  server_.set_script(nullptr);
  read_well(object_, 0, 1000);
  auto kept = before.begin();
  for (const Asked& asked : ranges) {
    EXPECT_EQ(asked.calls, 0);
    EXPECT_EQ(asked.out, *kept++);
  }
}

TEST_F(ObjectReaderTest, EndsWithoutEverHavingRead) {
  open();
  reader_.reset();
}

// Reads until more are under way, or for many ranges; the server takes its time for each.
class StarvingReaderTest : public ObjectReaderTest {
 protected:
  int most_wanted(bool starving, int enough, int most_ranges) {
    open();
    server_.set_script([](const SeenRequest&) { return Fault{.kind = Kind::slow}; });
    reader_->set_starving(starving);
    std::atomic<int> asked = 0, ended = 0;
    std::promise<void> all_ended;
    const auto fill = [&] {
      while (asked < most_ranges && reader_->stats().requests_wanted < enough &&
             reader_->room() > 0) {
        ++asked;
        reader_->read(object_, 0, places_.emplace_back(40'000), false,
                      [&](std::exception_ptr) { ++ended; });
      }
      if (ended == asked) all_ended.set_value();
    };
    reader_->set_room_hook(fill);
    store_->client().after(std::chrono::nanoseconds(0), fill);
    all_ended.get_future().get();
    const int wanted = reader_->stats().requests_wanted;
    reader_.reset();  // before what its hook uses
    return wanted;
  }
  std::list<std::vector<uint8_t>> places_;
};

TEST_F(StarvingReaderTest, HasMoreUnderWay) { EXPECT_GE(most_wanted(true, 16, 100'000), 16); }

TEST_F(StarvingReaderTest, OtherwiseTheNumberStays) { EXPECT_EQ(most_wanted(false, 16, 500), 8); }

}  // namespace
}  // namespace stoker
