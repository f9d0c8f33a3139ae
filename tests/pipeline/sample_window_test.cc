// The samples of a store that are fetched before they are read: which ranges are asked for, how
// much memory that takes, and what a reader gets, on a server whose answers wait and fail.
#include "pipeline/source/blob/sample_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/pipeline/order_support.h"
#include "tests/support/object_server.h"
#include "tests/support/test_store.h"
#include "tests/support/wait_until.h"

namespace stoker {
namespace {

constexpr int64_t kSampleBytes = 10'000;
constexpr int64_t kWindowSamples = 200;

class SampleWindowTest : public ::testing::Test {
 protected:
  SampleWindowTest() {
    bytes_.resize(kWindowSamples * kSampleBytes);
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<uint8_t>(i * 7 + i / 251);
    server_.put("/blob", bytes_, "\"v1\"");
    store_ = std::make_shared<TestStore>(server_);
    object_ =
        std::make_shared<const StoredObject>(StoredObject{"/blob", std::ssize(bytes_), "\"v1\""});
  }

  // Samples lie one behind the other, `step` samples apart.
  void open(const StoreOptions& options, int64_t step = 1) {
    window_.reset();
    const auto locate = [this, step](SampleId id) {
      if (id * step >= kWindowSamples) return SampleAddress{};
      return SampleAddress{object_, id * step * kSampleBytes, kSampleBytes};
    };
    window_ = std::make_unique<SampleWindow>(
        store_, options,
        StoredSamples{.root = store_->root(),
                      .count = kWindowSamples / step,
                      .locate = locate,
                      .bytes_of = [locate](SampleId id) { return locate(id).length; }});
  }
  static SampleSequence sequence(std::vector<SampleId> ids) {
    return [ids = std::move(ids), next = size_t{0}](SampleId& id) mutable {
      if (next == ids.size()) return NextSample::end;
      id = ids[next++];
      return NextSample::found;
    };
  }
  static std::vector<SampleId> numbers(SampleId count) {
    std::vector<SampleId> ids;
    for (SampleId id = 0; id < count; ++id) ids.push_back(id);
    return ids;
  }
  bool is_right(SampleId id, std::span<const uint8_t> bytes, int64_t step = 1) const {
    return std::ranges::equal(
        bytes, std::span(bytes_).subspan(static_cast<size_t>(id * step * kSampleBytes),
                                         static_cast<size_t>(kSampleBytes)));
  }
  void read_well(SampleId id, int64_t step = 1) {
    EXPECT_TRUE(window_->read(id, MayWait::yes, [&](std::span<const uint8_t> bytes) {
      return is_right(id, bytes, step);
    })) << id;
  }
  // Reads a sample that is fetched before anybody waits for it.
  void comes_unasked(SampleId id, int64_t step) {
    const auto comes = [&] {
      return window_->read(id, MayWait::no, [&](std::span<const uint8_t> bytes) {
        return is_right(id, bytes, step);
      });
    };
    EXPECT_TRUE(wait_until(comes)) << id;
  }
  // Bytes of ranges that the server was asked for, once or again because it is slow.
  int64_t bytes_asked_for() const {
    int64_t bytes = 0;
    std::set<std::string> ranges;
    for (const SeenRequest& request : server_.seen()) {
      if (!ranges.insert(request.headers.at("range")).second) continue;
      long long first = 0, last = -1;
      std::sscanf(request.headers.at("range").c_str(), "bytes=%lld-%lld", &first, &last);
      bytes += last - first + 1;
    }
    return bytes;
  }

  std::vector<uint8_t> bytes_;
  ObjectServer server_;
  std::shared_ptr<TestStore> store_;
  std::shared_ptr<const StoredObject> object_;
  std::unique_ptr<SampleWindow> window_;
};

TEST_F(SampleWindowTest, SamplesSideBySideAreReadTogether) {
  open({});
  const auto look_ahead = window_->look_ahead(sequence(numbers(kWindowSamples)));
  for (SampleId id = 0; id < kWindowSamples; ++id) read_well(id);
  EXPECT_LE(server_.requests(), 4);  // 2 MB in ranges of at most 2 MiB
  EXPECT_EQ(bytes_asked_for(), std::ssize(bytes_));
  EXPECT_EQ(window_->stats().bytes, std::ssize(bytes_));
}

// The samples of four blocks come mixed; each block is asked for as a whole.
TEST_F(SampleWindowTest, BlocksThatAreMixedAreReadWhole) {
  const SharedOrder order =
      block_shuffled_order({.samples = kWindowSamples, .block = 5, .mixed = 4});
  open({.read_ahead_bytes = 50 * kSampleBytes});
  constexpr int64_t kEpochs = 5;
  std::vector<SampleId> ids;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (const OrderedSample& sample : epoch_of(*order, 1, epoch)) ids.push_back(sample.id);
  }
  const auto look_ahead = window_->look_ahead(sequence(ids));
  for (const SampleId id : ids) read_well(id);
  const StoreStats stats = window_->stats();
  EXPECT_LE(stats.bytes, kEpochs * std::ssize(bytes_));
  // A block that lies over the end of the blob comes in two ranges; what two epochs need at a time
  // is fetched once.
  EXPECT_LE(stats.ranges, kEpochs * kWindowSamples / 5 * 11 / 10);
}

// However many samples lie beside one: those that are needed first are not displaced.
TEST_F(SampleWindowTest, WhatLiesBesideTakesNoMoreThanTheMemoryHolds) {
  constexpr int64_t kFit = 10;
  server_.set_script([](const SeenRequest&) { return Fault{.waits = true}; });
  open({.requests = 64, .read_ahead_bytes = kFit * kSampleBytes});
  std::vector<SampleId> ids;
  for (SampleId id = 0; id < kWindowSamples / 2; ++id) {
    ids.push_back(id);
    ids.push_back(kWindowSamples - 1 - id);
  }
  const auto look_ahead = window_->look_ahead(sequence(ids));
  server_.wait_for_stalled(2);
  EXPECT_EQ(bytes_asked_for(), kFit * kSampleBytes);
  server_.release();
  for (const SampleId id : ids) read_well(id);
  EXPECT_EQ(window_->stats().bytes, std::ssize(bytes_));
}

// Samples are asked for several times, by two followers, in any order, and some before their turn.
TEST_F(SampleWindowTest, NothingIsLostAmongNeighbours) {
  std::mt19937 random(5);
  open({.read_ahead_bytes = 20 * kSampleBytes});
  for (int round = 0; round < 20; ++round) {
    std::vector<SampleId> ids[2];
    std::unique_ptr<LookAhead> look_ahead[2];
    for (const int i : {0, 1}) {
      for (int k = 0; k < 60; ++k) ids[i].push_back(static_cast<SampleId>(random() % 40));
      look_ahead[i] = window_->look_ahead(sequence(ids[i]));
      std::shuffle(ids[i].begin(), ids[i].begin() + 30, random);
    }
    for (size_t k = 0; k < 60; ++k) {
      for (const int i : {0, 1}) read_well(ids[i][k]);
    }
  }
}

TEST_F(SampleWindowTest, ALargeGapIsNotRead) {
  open({}, 2);
  const auto look_ahead = window_->look_ahead(sequence(numbers(kWindowSamples / 2)));
  for (SampleId id = 0; id < kWindowSamples / 2; ++id) read_well(id, 2);
  EXPECT_EQ(window_->stats().bytes, kWindowSamples / 2 * kSampleBytes);
}

TEST_F(SampleWindowTest, NoMoreIsAskedForThanTheMemoryHolds) {
  constexpr int64_t kFit = 10;
  server_.set_script([](const SeenRequest&) { return Fault{.waits = true}; });
  open({.requests = 64, .read_ahead_bytes = kFit * kSampleBytes}, 2);
  const auto look_ahead = window_->look_ahead(sequence(numbers(kWindowSamples / 2)));
  server_.wait_for_stalled(kFit);
  server_.release();
  for (SampleId id = 0; id < kWindowSamples / 2; ++id) {
    read_well(id, 2);
    // The sample that was read last is kept for a while, and counts.
    const StoreStats stats = window_->stats();
    EXPECT_LE(stats.requests - stats.second_requests - stats.retries, id + kFit);
  }
}

TEST_F(SampleWindowTest, WhatIsNotThereIsNotWaitedFor) {
  server_.set_script([](const SeenRequest&) { return Fault{.waits = true}; });
  open({});
  const auto never = [](std::span<const uint8_t>) -> bool {
    ADD_FAILURE();
    return true;
  };
  EXPECT_FALSE(window_->read(3, MayWait::no, never));  // not announced
  const auto look_ahead = window_->look_ahead(sequence(numbers(8)));
  server_.wait_for_stalled(1);
  EXPECT_FALSE(window_->read(3, MayWait::no, never));  // on its way
  server_.release();
  read_well(2);
  const auto is_third = [&](std::span<const uint8_t> bytes) { return is_right(3, bytes); };
  EXPECT_TRUE(window_->read(3, MayWait::no, is_third));  // came with the second
}

TEST_F(SampleWindowTest, AReadBeforeTheAnnouncementIsNoSecondFetch) {
  open({.read_ahead_bytes = 4 * kSampleBytes}, 2);
  const auto look_ahead = window_->look_ahead(sequence(numbers(30)));
  read_well(25, 2);  // far ahead of what fits
  for (SampleId id = 0; id < 30; ++id) {
    if (id != 25) read_well(id, 2);
  }
  EXPECT_EQ(window_->stats().bytes, 30 * kSampleBytes);
}

TEST_F(SampleWindowTest, WhatWasTakenStaysForAWhile) {
  open({});
  const auto look_ahead = window_->look_ahead(sequence(numbers(4)));
  read_well(0);
  const int64_t before = window_->stats().bytes;
  read_well(0);
  EXPECT_EQ(window_->stats().bytes, before);
}

TEST_F(SampleWindowTest, TwoReadersShareTheMemory) {
  open({.read_ahead_bytes = 8 * kSampleBytes}, 2);
  const auto first = window_->look_ahead(sequence(numbers(60)));
  const auto second = window_->look_ahead(sequence({70, 71, 72, 73, 74, 75, 76, 77, 78, 79}));
  for (SampleId id = 0; id < 5; ++id) read_well(id, 2);
  for (SampleId id = 70; id < 80; ++id) read_well(id, 2);
}

TEST_F(SampleWindowTest, WhatALookAheadHeldMakesRoomWhenItEnds) {
  open({.read_ahead_bytes = 8 * kSampleBytes}, 2);
  auto first = window_->look_ahead(sequence(numbers(60)));
  first.reset();
  const auto next = window_->look_ahead(sequence({80, 81, 82}));
  for (SampleId id = 80; id < 83; ++id) comes_unasked(id, 2);
}

// Samples that were announced, are under way, or have yet to be announced.
TEST_F(SampleWindowTest, WhatIsPassedOverMakesRoomAndIsNotFetched) {
  constexpr int64_t kFit = 8;
  server_.set_script([](const SeenRequest&) { return Fault{.waits = true}; });
  open({.requests = 4, .read_ahead_bytes = kFit * kSampleBytes}, 2);
  const auto look_ahead = window_->look_ahead(sequence(numbers(40)));
  window_->skip(20);
  server_.wait_for_stalled(4);
  for (SampleId id = 0; id < kFit; ++id) window_->skip(id);
  server_.release();
  for (SampleId id = kFit; id < 40; ++id) {
    if (id != 20) comes_unasked(id, 2);
  }
  // Four were under way; the others of the first ones, and the one in between, were not asked for.
  EXPECT_EQ(bytes_asked_for(), (4 + 40 - kFit - 1) * kSampleBytes);
}

TEST_F(SampleWindowTest, AnErrorReachesWhoeverReads) {
  server_.set_script([](const SeenRequest&) { return Fault{.kind = Fault::Kind::other_version}; });
  open({});
  const auto look_ahead = window_->look_ahead(sequence(numbers(3)));
  const auto ignore = [](std::span<const uint8_t>) { return true; };
  for (SampleId id = 0; id < 3; ++id) {
    EXPECT_THROW(window_->read(id, MayWait::yes, ignore), StoreError);
  }
}

TEST_F(SampleWindowTest, ASampleThatIsNowhereIsNotRead) {
  open({});
  const auto look_ahead = window_->look_ahead(sequence({kWindowSamples, 0}));
  read_well(0);
  EXPECT_FALSE(
      window_->read(kWindowSamples, MayWait::yes, [](std::span<const uint8_t>) { return true; }));
}

// Threads read a sequence with repetitions, roughly in order, and some samples that nobody
// announced; requests fail at random.
TEST_F(SampleWindowTest, EveryByteIsRightUnderFaultsAndThreads) {
  constexpr int kReads = 3'000, kThreads = 8;
  server_.set_script([](const SeenRequest& request) {
    constexpr Fault::Kind kKinds[] = {Fault::Kind::close, Fault::Kind::cut, Fault::Kind::reset,
                                      Fault::Kind::wrong_range, Fault::Kind::too_short};
    if (request.number % 11 != 0) return Fault{};
    return Fault{.kind = kKinds[request.number / 11 % 5]};
  });
  open({.read_ahead_bytes = 300'000, .tries = 1000});
  std::mt19937 random(5);
  std::vector<SampleId> ids;
  for (int i = 0; i < kReads; ++i) ids.push_back(static_cast<SampleId>(random() % kWindowSamples));
  auto look_ahead = window_->look_ahead(sequence(ids));
  std::atomic<size_t> next{0};
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = next++; i < ids.size(); i = next++) {
          const SampleId id = i % 50 == 0 ? (ids[i] + t) % kWindowSamples : ids[i];
          const auto check = [&](std::span<const uint8_t> bytes) { return is_right(id, bytes); };
          if (window_->read(id, MayWait::no, check)) continue;
          if (!window_->read(id, MayWait::yes, check)) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  look_ahead.reset();  // some samples were announced and not read
}

}  // namespace
}  // namespace stoker
