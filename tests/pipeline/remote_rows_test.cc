// Rows that others fill: whoever fills them, whatever is lost on the way, and whenever a feed ends,
// a feed gives the bytes that it gives alone.
#include "pipeline/exchange/remote_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "pipeline/exchange/remote_filler.h"
#include "pipeline/files/digest.h"
#include "pipeline/files/invalid_field.h"
#include "pipeline/receipt/receipt.h"
#include "pipeline/row/fingerprint.h"
#include "pipeline/source/forwarding_source.h"
#include "pipeline/source/synthetic_source.h"
#include "pipeline/source/target_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/fake_device.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using Message = std::vector<std::byte>;

LoaderOptions with_remote(LoaderOptions options) {
  options.remote_rows = true;
  return options;
}

// Threads that carry rows for a feed: each claims, fills and delivers by turns, until the feed
// ends.
class Carriers {
 public:
  // `carry` is called instead of carrying a claim simply.
  using Carry = std::function<void(RemoteRows&, RemoteFiller&, const RowClaim&)>;

  Carriers(Loader& loader, const Source& source, const AugmentSpec& augment,
           const LoaderOptions& options, int count, int devices = 1, DeviceEdits edits = {},
           Carry carry = &Carriers::carry)
      : rows_(loader.remote_rows()),
        filler_(source, augment, options, {.threads = 2, .devices = devices, .edits = edits}) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, count, carry] {
        while (!rows_->ended()) {
          if (const auto claim = rows_->claim(count, 20)) carry(*rows_, filler_, *claim);
        }
      });
    }
  }
  // The feed must have ended.
  ~Carriers() {
    for (std::thread& thread : threads_) thread.join();
  }

  static Message fill(RemoteFiller& filler, const RowRange& range, std::vector<uint8_t>& bad) {
    Message message(filler.message_bytes(range.rows));
    bad = filler.fill(range, message);
    return message;
  }
  static void carry(RemoteRows& rows, RemoteFiller& filler, const RowClaim& claim) {
    std::vector<uint8_t> bad;
    const Message message = fill(filler, claim.range, bad);
    rows.deliver(claim, message, bad);
  }

 private:
  const std::shared_ptr<RemoteRows> rows_;
  RemoteFiller filler_;
  std::vector<std::thread> threads_;
};

struct RemoteRun {
  std::vector<Delivered> batches;
  RemoteStats stats;
};

RemoteRun run_with(const Source& source, const AugmentSpec& augment, const LoaderOptions& local,
                   int carriers, int devices = 1, const Carriers::Carry& carry = &Carriers::carry) {
  const LoaderOptions options = with_remote(local);
  Feed feed(source, augment, options, devices);
  const Carriers others(feed.loader(), source, augment, options, carriers, devices, {}, carry);
  RemoteRun run{feed.all(), feed.loader().stats().remote};
  feed.loader().stop();
  return run;
}

TEST(RemoteRows, AnyNumberOfCarriersGivesTheBytesOfALocalFeed) {
  const auto source = faulty_source();
  const std::vector<Delivered> expected = Feed(*source, crop_spec(), exchange_options(1)).all();
  for (const int carriers : {0, 1, 2, 3, 8}) {
    for (const int workers : {1, 2}) {
      const RemoteRun run = run_with(*source, crop_spec(), exchange_options(workers), carriers);
      EXPECT_EQ(run.batches, expected) << carriers << ", " << workers;
      EXPECT_EQ(run.stats.given_up, 0);
    }
  }
}

// Without workers of its own, a feed gets every row from others.
TEST(RemoteRows, AFeedWithoutWorkersIsFilledByOthers) {
  const auto source = faulty_source();
  const auto raw = make_synthetic_source(53, {16, 16}, 5, 2);
  for (const bool is_file : {true, false}) {
    const Source& data = is_file ? *static_cast<const Source*>(source.get()) : *raw;
    const AugmentSpec augment = is_file ? crop_spec() : pad_spec();
    for (const int devices : {1, 2}) {
      for (const int batch : {1, 5, 16, 300}) {
        const auto expected = Feed(data, augment, exchange_options(1, batch), devices).all();
        for (const int carriers : {1, 8}) {
          const RemoteRun run =
              run_with(data, augment, exchange_options(0, batch), carriers, devices);
          EXPECT_EQ(run.batches, expected) << devices << ", " << batch << ", " << carriers;
          EXPECT_GE(run.stats.rows, rows_in(expected));  // and those ahead of the last batch
        }
      }
    }
  }
}

TEST(RemoteRows, RanksOrdersAndResumedFeedsAreTheSame) {
  const auto source = jpeg_source(41);
  for (const LastBatch last : {LastBatch::pad, LastBatch::drop, LastBatch::wrap}) {
    LoaderOptions options = exchange_options(0, 6);
    options.last_batch = last;
    options.rank = 1;
    options.world = 2;
    options.first_step = 4;
    options.order = repeated_order({.samples = 41, .repeats = 3});
    LoaderOptions local = options;
    local.feed.workers = 1;
    EXPECT_EQ(run_with(*source, crop_spec(), options, 2).batches,
              Feed(*source, crop_spec(), local).all());
  }
}

TEST(RemoteRows, ConvertedAndMixedRowsViewsAndTargetsArrive) {
  const auto pictures = faulty_source();
  std::vector<float> ages(41);
  for (size_t i = 0; i < ages.size(); ++i) ages[i] = 0.5f * static_cast<float>(i);
  const TargetSource source(
      *pictures, {{{"age", TargetType::float32, {}}, std::as_bytes(std::span(ages)), nullptr}});
  const RowFormat planar{PixelType::fp32, PixelOrder::nchw, {0.5f, 0.4f, 0.3f}, {0.2f, 0.3f, 0.4f}};
  const char* const lists[] = {"random_resized_crop | flip",
                               "random_resized_crop | flip | mix(mixup=0.4, cutmix=1.0)",
                               "views(random_resized_crop, resize_center_crop)"};
  for (const char* list : lists) {
    for (const bool converts : {false, true}) {
      SCOPED_TRACE(list);
      const AugmentSpec augment(list, {24, 24});
      LoaderOptions local = exchange_options(1);
      if (converts) local.format = planar;
      Feed alone(source, augment, local);
      LoaderOptions options = with_remote(local);
      options.feed.workers = 0;
      Feed feed(source, augment, options);
      const Carriers others(feed.loader(), source, augment, options, 3);
      EXPECT_TRUE(all_bytes(feed) == all_bytes(alone)) << converts;
      feed.loader().stop();
    }
  }
}

// Edits behind the copy are done by the feed's own devices.
TEST(RemoteRows, TheDevicesEditRowsOfOthers) {
  const auto source = jpeg_source(41);
  const AugmentSpec augment(
      "random_resized_crop | random_erasing(p=0.7, noise=True) | mix(mixup=0.4, cutmix=1.0)",
      {24, 24});
  LoaderOptions local = exchange_options(1);
  local.digests = false;
  FakeDevice far({.host_accessible = false});
  const DeviceEdits edits = device_edits(augment, {&far}, local);
  ASSERT_TRUE(edits.erases && edits.mixes);
  const auto expected = Feed(*source, augment, local, 1, DeviceKind::far).all();
  LoaderOptions options = with_remote(local);
  options.feed.workers = 0;
  Feed feed(*source, augment, options, 1, DeviceKind::far);
  const Carriers others(feed.loader(), *source, augment, options, 2, 1, edits);
  EXPECT_EQ(feed.all(), expected);
  feed.loader().stop();
}

// Claims are given up, come late, come twice, or bring what is not theirs.
TEST(RemoteRows, NothingIsLostOrDoubledWhateverBecomesOfClaims) {
  const auto source = faulty_source();
  const auto expected = Feed(*source, crop_spec(), exchange_options(1)).all();
  LoaderOptions other_options = exchange_options(1);
  other_options.seed = 10;
  RemoteFiller other(*source, crop_spec(), other_options, {});
  std::atomic<int64_t> given_up = 0, refused = 0, thrown = 0;
  const auto carry = [&](RemoteRows& rows, RemoteFiller& filler, const RowClaim& claim) {
    std::vector<uint8_t> bad;
    switch (claim.number % 7) {
      case 1:
        rows.give_up(claim);
        ++given_up;
        return;
      case 2: {  // late
        const Message message = Carriers::fill(filler, claim.range, bad);
        rows.give_up(claim);
        rows.give_up(claim);
        ++given_up;
        refused += !rows.deliver(claim, message, bad);
        return;
      }
      case 3: {  // twice
        const Message message = Carriers::fill(filler, claim.range, bad);
        EXPECT_TRUE(rows.deliver(claim, message, bad) || rows.ended());
        refused += !rows.deliver(claim, message, bad);
        return;
      }
      case 4: {  // another feed's
        const Message message = Carriers::fill(other, claim.range, bad);
        EXPECT_THROW(rows.deliver(claim, message, bad), std::invalid_argument);
        ++thrown;
        refused += !rows.deliver(claim, message, bad);  // it was given up by that
        return;
      }
      case 5: {  // other rows, no rows, half of the rows
        RowRange range = claim.range;
        ++range.step;
        Message message = Carriers::fill(filler, range, bad);
        if (claim.number % 2 == 0) message.resize(message.size() / 2);
        if (claim.number % 3 == 0) message.resize(5);
        EXPECT_THROW(rows.deliver(claim, message, bad), std::invalid_argument);
        ++thrown;
        return;
      }
      default:
        Carriers::carry(rows, filler, claim);
    }
  };
  for (const int workers : {0, 1, 3}) {
    given_up = refused = thrown = 0;
    const RemoteRun run = run_with(*source, crop_spec(), exchange_options(workers), 3, 1, carry);
    EXPECT_EQ(run.batches, expected) << workers;
    if (workers > 0) continue;
    EXPECT_GT(thrown, 0);
    EXPECT_GT(refused, 0);
    EXPECT_GT(given_up, 0);
  }
}

TEST(RemoteRows, MessagesOfOthersAreRefusedWithBothFingerprints) {
  const auto source = jpeg_source(20);
  const LoaderOptions options = with_remote(exchange_options(0));
  Feed feed(*source, crop_spec(), options);
  RemoteRows& rows = *feed.loader().remote_rows();
  LoaderOptions others = options;
  others.seed = 10;
  RemoteFiller filler(*source, crop_spec(), others, {});
  EXPECT_NE(filler.fingerprint(), rows.fingerprint());
  const auto claim = rows.claim(1, 10000);
  ASSERT_TRUE(claim);
  std::vector<uint8_t> bad;
  const Message message = Carriers::fill(filler, claim->range, bad);
  EXPECT_THAT(problem_of([&] { rows.deliver(*claim, message, bad); }),
              ::testing::AllOf(::testing::HasSubstr(hex64(filler.fingerprint())),
                               ::testing::HasSubstr(hex64(rows.fingerprint()))));
  // Another size, another place in the world, another list: another fingerprint.
  std::set<uint64_t> all = {rows.fingerprint(), filler.fingerprint()};
  for (int change = 0; change < 4; ++change) {
    LoaderOptions changed = options;
    if (change == 0) changed.batch_size = 4;
    if (change == 1) changed.world = 2;
    if (change == 2) changed.digests = false;
    const AugmentSpec augment = change == 3 ? crop_spec(32) : crop_spec();
    all.insert(RemoteFiller(*source, augment, changed, {}).fingerprint());
  }
  all.insert(RemoteFiller(*jpeg_source(21), crop_spec(), options, {}).fingerprint());
  all.insert(
      RemoteFiller(*source, crop_spec(), options, {.edits = {.erases = true}}).fingerprint());
  EXPECT_EQ(all.size(), 8u);
}

// With claims outside, deliveries under way and carriers that wait, for feeds with and without
// workers.
TEST(RemoteRows, StoppingAtEveryStepIsClean) {
  const auto source = faulty_source(19);
  for (const int workers : {0, 1, 2}) {
    for (int steps = 0; steps <= 10; ++steps) {
      LoaderOptions options = with_remote(exchange_options(workers, 4));
      options.ring_depth = 1 + steps % 3;
      options.slots = steps % 4;
      options.feed.io_threads = steps % 3;
      Feed feed(*source, crop_spec(), options, 1 + steps % 2,
                workers == 2 ? DeviceKind::nasty : DeviceKind::host);
      const auto keep_some = [](RemoteRows& rows, RemoteFiller& filler, const RowClaim& claim) {
        // Nobody gives these up: the feed's end does.
        if (claim.number % 5 == 4 && claim.range.step > 5) return;
        Carriers::carry(rows, filler, claim);
      };
      const Carriers others(feed.loader(), *source, crop_spec(), options, 2, 1 + steps % 2, {},
                            keep_some);
      if (steps <= 5) feed.take(steps);
      if (steps % 3 == 0) feed.loader().stop();
      feed.destroy();
    }
  }
}

// A carrier may hold on to the rows of a feed that has ended.
TEST(RemoteRows, AnEndedFeedTakesNothing) {
  const auto source = jpeg_source(20);
  const LoaderOptions options = with_remote(exchange_options(0));
  RemoteFiller filler(*source, crop_spec(), options, {});
  std::shared_ptr<RemoteRows> rows;
  std::optional<RowClaim> claim;
  {
    Feed feed(*source, crop_spec(), options);
    rows = feed.loader().remote_rows();
    EXPECT_FALSE(rows->ended());
    claim = rows->claim(1, 10000);
    ASSERT_TRUE(claim);
  }
  EXPECT_TRUE(rows->ended());
  std::vector<uint8_t> bad;
  const Message message = Carriers::fill(filler, claim->range, bad);
  EXPECT_FALSE(rows->deliver(*claim, message, bad));
  EXPECT_FALSE(rows->claim(1, 0));
  EXPECT_TRUE(rows->give_up_if_late(*claim));
  rows->give_up(*claim);
  rows->fail("nobody hears this");
}

TEST(RemoteRows, AProblemOfTheCarriersReachesTheConsumer) {
  const auto source = jpeg_source(20);
  Feed feed(*source, crop_spec(), with_remote(exchange_options(0)));
  feed.loader().remote_rows()->fail("worker 3 has stoker 0.0.9, here is 0.1.0");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(thrown_by<std::runtime_error>([&] { feed.all(); }),
              "worker 3 has stoker 0.0.9, here is 0.1.0");
  }
}

// Notes what it is told of the samples to come, as a source in a store would.
class RemoteToldSource final : public ForwardingSource {
 public:
  explicit RemoteToldSource(const Source& source) : ForwardingSource(source) {}
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    return source_.read(id, buffer, bytes);
  }
  std::unique_ptr<LookAhead> look_ahead(SampleSequence next) const override {
    ++calls;
    for (SampleId id = 0; next(id) == NextSample::found;) told.push_back(id);
    return nullptr;
  }
  mutable int calls = 0;
  mutable std::vector<SampleId> told;
};

TEST(RemoteRows, WhoFillsRowsAnnouncesThemToTheSource) {
  const auto files = jpeg_source(41);
  const RemoteToldSource source(*files);
  const LoaderOptions options = with_remote(exchange_options(0));
  RemoteFiller filler(source, crop_spec(), options, {});
  const std::vector<Delivered> expected = Feed(*files, crop_spec(), exchange_options(1)).take(2);
  std::vector<uint8_t> bad;
  Carriers::fill(filler, {1, 0, 5, 9}, bad);
  ASSERT_EQ(source.told.size(), 9u);
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(source.told[i], expected[1].rows[5 + i].id);
  Carriers::fill(filler, {1, 0, 5, 9}, bad);
  EXPECT_EQ(source.calls, 2);
  // A feed whose rows others fill does not know which samples it will read itself.
  Feed(source, crop_spec(), options).destroy();
  EXPECT_EQ(source.calls, 2);
}

TEST(RemoteRows, OptionsThatDoNotGoTogetherAreRefused) {
  const auto source = jpeg_source(20);
  LoaderOptions options = with_remote(exchange_options(1));
  options.parts = 2;
  EXPECT_THROW(Feed(*source, crop_spec(), options), InvalidField);
  EXPECT_THROW(RemoteFiller(*source, crop_spec(), exchange_options(1), {.threads = 0}),
               InvalidField);
  RemoteFiller filler(*source, crop_spec(), exchange_options(1, 8), {});
  Message message(filler.message_bytes(4));
  for (const RowRange& range :
       {RowRange{0, 1, 0, 4}, RowRange{-1, 0, 0, 4}, RowRange{0, 0, 5, 4}, RowRange{0, 0, -1, 4},
        RowRange{0, 0, 0, 0}, RowRange{0, 0, 0, 5}}) {
    EXPECT_THROW(filler.fill(range, message), std::invalid_argument);
  }
}

// A bad sample has one line, whoever found it.
TEST(RemoteRows, TheListOfBadSamplesIsThatOfALocalFeed) {
  const auto source = faulty_source();
  const TempFolder folder;
  const auto lines = [&](const char* name) {
    std::ifstream file(folder.path() + "/" + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  LoaderOptions local = exchange_options(1);
  local.quarantine_file = folder.path() + "/local";
  Feed(*source, crop_spec(), local).all();
  for (const int workers : {0, 1}) {
    LoaderOptions options = exchange_options(workers);
    options.quarantine_file = folder.path() + "/remote" + std::to_string(workers);
    const auto late = [](RemoteRows& rows, RemoteFiller& filler, const RowClaim& claim) {
      if (claim.number % 2 == 0) rows.give_up(claim);
      Carriers::carry(rows, filler, claim);
    };
    run_with(*source, crop_spec(), options, 2, 1, late);
    EXPECT_EQ(lines(("remote" + std::to_string(workers)).c_str()), lines("local"));
  }
  EXPECT_NE(lines("local"), "");
}

TEST(RemoteRows, TheReceiptIsThatOfALocalFeed) {
  const auto source = faulty_source();
  const TempFolder folder;
  const auto receipt_of = [&](const std::string& name, int workers, bool remote) {
    LoaderOptions options = exchange_options(workers);
    options.remote_rows = remote;
    Feed feed(*source, crop_spec(), options);
    std::optional<Carriers> others;
    if (remote) others.emplace(feed.loader(), *source, crop_spec(), options, 2);
    Receipt receipt(folder.path() + "/" + name,
                    receipt_info(feed.loader(), *source, crop_spec(), options, 1), 0);
    Delivered batch;
    while (feed.next(0, batch, [&](const DeviceBatch& leased) { receipt.add(0, leased); })) {
    }
    feed.loader().stop();
    return receipt.epochs();
  };
  const auto expected = receipt_of("local", 1, false);
  ASSERT_EQ(expected.size(), 3u);
  EXPECT_EQ(receipt_of("remote", 0, true), expected);
  EXPECT_EQ(receipt_of("both", 1, true), expected);
}

}  // namespace
}  // namespace stoker::testing
