// A source whose list is still being made: its first samples are those of the whole, and what needs
// the whole waits.
#include "pipeline/source/growing_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "pipeline/files/durable_file.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/object_server.h"
#include "tests/support/source_contents.h"
#include "tests/support/tar_maker.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Source> synthetic(int64_t samples) {
  return make_synthetic_source(samples, {4, 4}, 2, 1);
}

// A source that a test lets grow, and completes.
class ByHand {
 public:
  ByHand()
      : source("there", [this](GrowingSource&, const std::function<bool()>& go_on) {
          began_.set_value();
          auto end = end_.get_future();
          while (end.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
            if (!go_on()) throw std::runtime_error("stopped");
          }
          return end.get();
        }) {
    began_.get_future().wait();
  }
  void complete(int64_t samples) { end_.set_value(synthetic(samples)); }
  void fail(const char* why) {
    end_.set_exception(std::make_exception_ptr(std::runtime_error(why)));
  }

 private:
  std::promise<void> began_;
  std::promise<std::unique_ptr<Source>> end_;

 public:
  GrowingSource source;
};

TEST(GrowingSource, GivesTheFirstSamplesThatAreWantedAndThenTheWhole) {
  ByHand by_hand;
  GrowingSource& source = by_hand.source;
  EXPECT_TRUE(source.wants(1));
  source.grow(synthetic(10));
  EXPECT_FALSE(source.wants(20));  // nobody has asked for more
  EXPECT_EQ(source.first_samples(9)->size(), 10);
  EXPECT_EQ(source.label(7), synthetic(10)->label(7));
  auto more = std::async([&] { return source.first_samples(10); });
  while (!source.wants(11)) std::this_thread::yield();
  EXPECT_FALSE(source.wants(10));
  source.grow(synthetic(15));
  EXPECT_EQ(more.get()->size(), 15);
  EXPECT_FALSE(source.is_complete());
  EXPECT_EQ(source.root(), "there");

  auto size = std::async([&] { return source.size(); });
  auto label = std::async([&] { return source.label(25); });
  auto last = std::async([&] { return source.first_samples(15); });
  by_hand.complete(30);
  EXPECT_EQ(size.get(), 30);
  EXPECT_EQ(label.get(), synthetic(30)->label(25));
  EXPECT_EQ(last.get(), nullptr);
  EXPECT_TRUE(source.is_complete());
  EXPECT_EQ(source.first_samples(0), nullptr);
  EXPECT_EQ(source.fingerprint(), synthetic(30)->fingerprint());
}

TEST(GrowingSource, WhatIsNotFinalIsNotGiven) {
  ByHand by_hand;
  auto first = std::async([&] { return by_hand.source.first_samples(0); });
  by_hand.source.cannot_grow();
  EXPECT_EQ(first.get(), nullptr);
  EXPECT_FALSE(by_hand.source.wants(100));
  EXPECT_EQ(by_hand.source.first_samples(0, [] { return false; }), nullptr);
  by_hand.complete(3);
  EXPECT_EQ(by_hand.source.size(), 3);
}

TEST(GrowingSource, AnErrorComesFromAllThatWaitForTheWhole) {
  ByHand by_hand;
  auto size = std::async([&] { return by_hand.source.size(); });
  by_hand.fail("train-3.tar: damaged");
  EXPECT_THROW(size.get(), std::runtime_error);
  EXPECT_EQ(by_hand.source.first_samples(0), nullptr);
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { by_hand.source.fingerprint(); }),
            "train-3.tar: damaged");
}

TEST(GrowingSource, ItsEndEndsTheMakingOfTheList) {
  auto by_hand = std::make_unique<ByHand>();
  EXPECT_EQ(by_hand->source.first_samples(0, [] { return false; }), nullptr);
  by_hand.reset();  // returns
}

constexpr int kGrowingShards = 4, kGrowingPerShard = 10;

class GrowingShardsTest : public ::testing::Test {
 protected:
  GrowingShardsTest() {
    for (int shard = 0; shard < kGrowingShards; ++shard) {
      std::string tar, texts;
      for (int i = 0; i < kGrowingPerShard; ++i) {
        const int number = shard * kGrowingPerShard + i;
        const auto jpeg = jpeg_file(40 + number, 60, static_cast<uint64_t>(number));
        const std::string image =
            tar_member(std::to_string(number) + ".jpg", std::string(jpeg.begin(), jpeg.end()));
        tar += tar_member(std::to_string(number) + ".cls", std::to_string(number % (shard + 3)));
        tar += image;
        texts += tar_member(std::to_string(number) + ".cls", number % 2 == 0 ? "cat" : "ant");
        texts += image;
      }
      put("train-" + std::to_string(shard) + ".tar", tar + tar_end());
      put("text-" + std::to_string(shard) + ".tar", texts + tar_end());
    }
    hold_back(2);
  }
  ~GrowingShardsTest() override { server_.release(); }

  void put(const std::string& name, const std::string& bytes) {
    put(name, bytes, "\"" + name + "\"");
  }
  void put(const std::string& name, const std::string& bytes, const std::string& etag) {
    data_.write(name, bytes);
    server_.put("/" + name, {bytes.begin(), bytes.end()}, etag);
  }
  // The bytes of shards from this one on come when the server is told to release them.
  void hold_back(int first) {
    server_.set_script([first](const SeenRequest& request) {
      Fault fault;
      const size_t digit = request.path.find('-') + 1;
      fault.waits = request.method == "GET" && request.path[digit] - '0' >= first;
      return fault;
    });
  }
  std::unique_ptr<Source> begin(const std::string& name, StoreOptions store = {}) {
    return begin_source(server_.url("/" + name), {.cache_dir = "", .store = std::move(store)});
  }
  std::unique_ptr<Source> local(const std::string& name) const {
    return open_source(data_.path() + "/" + name, {.cache_dir = ""});
  }

  const TempFolder data_;
  ObjectServer server_;
};

const GrowingSource& growing(const Source& source) {
  return dynamic_cast<const GrowingSource&>(source);
}

TEST_F(GrowingShardsTest, TheFirstShardsAreThereBeforeTheOthers) {
  const auto all = local("train-{0..3}.tar");
  const auto source = begin("train-{0..3}.tar");
  const auto first = growing(*source).first_samples(kGrowingPerShard);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->size(), 2 * kGrowingPerShard);
  EXPECT_FALSE(growing(*source).is_complete());
  for (SampleId id = 0; id < first->size(); ++id) {
    EXPECT_EQ(first->name(id), all->name(id));
    EXPECT_EQ(first->label(id), all->label(id));
    EXPECT_EQ(text_of(*first, id), text_of(*all, id));
    EXPECT_EQ(text_of(*source, id), text_of(*all, id));
    EXPECT_EQ(source->name(id), all->name(id));
  }
  server_.release();
  EXPECT_EQ(names_of(*source), names_of(*all));
  EXPECT_EQ(labels_of(*source), labels_of(*all));
  EXPECT_EQ(source->fingerprint(), all->fingerprint());
  EXPECT_EQ(source->class_names(), all->class_names());
}

// Feeding the first samples, and then all from the next step on, is feeding all.
TEST_F(GrowingShardsTest, AFeedOfTheFirstSamplesIsTheBeginningOfTheWholeFeed) {
  LoaderOptions options{.batch_size = 6, .seed = 7, .shuffle = false, .epochs = 2, .digests = true};
  const auto expected = Feed(*local("train-{0..3}.tar"), crop_spec(), options).all();
  const auto source = begin("train-{0..3}.tar");
  std::vector<Delivered> batches;
  {
    const auto first = growing(*source).first_samples(kGrowingPerShard);
    LoaderOptions part = options;
    part.last_batch = LastBatch::drop;
    part.epochs = 1;
    batches = Feed(*first, crop_spec(), part).all();
  }
  EXPECT_EQ(batches.size(), 3u);
  server_.release();
  options.first_step = 3;
  const auto rest = Feed(*source, crop_spec(), options).all();
  batches.insert(batches.end(), rest.begin(), rest.end());
  EXPECT_EQ(batches, expected);
}

TEST_F(GrowingShardsTest, LabelsThatAreTextsAndPlacesInACacheAreKnownAtTheEnd) {
  const TempFolder cache;
  const auto texts = begin("text-{0..3}.tar");
  const auto cached = begin("train-{0..3}.tar", {.cache = cache.path(), .cache_bytes = 1 << 20});
  EXPECT_EQ(growing(*texts).first_samples(0), nullptr);
  EXPECT_EQ(growing(*cached).first_samples(0), nullptr);
  EXPECT_FALSE(growing(*texts).is_complete());
  EXPECT_FALSE(growing(*cached).is_complete());
  server_.release();
  EXPECT_EQ(texts->fingerprint(), local("text-{0..3}.tar")->fingerprint());
  EXPECT_EQ(cached->fingerprint(), local("train-{0..3}.tar")->fingerprint());
}

TEST_F(GrowingShardsTest, WhatIsWrongWithALaterShardComesWhenItIsWaitedFor) {
  put("train-3.tar", "no tar");
  const auto source = begin("train-{0..3}.tar");
  EXPECT_EQ(growing(*source).first_samples(kGrowingPerShard)->size(), 2 * kGrowingPerShard);
  server_.release();
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { static_cast<void>(source->size()); }),
              HasSubstr("train-3.tar: at byte 0"));
  EXPECT_THROW(begin("train-{0..4}.tar"), std::runtime_error);  // at once
}

TEST_F(GrowingShardsTest, ItIsLeftBeforeItIsComplete) {
  auto source = begin("train-{0..3}.tar");
  const auto first = growing(*source).first_samples(0);
  source.reset();  // returns, although the server still holds the last shards back
  EXPECT_EQ(text_of(*first, 3), text_of(*local("train-0.tar"), 3));
}

// Also one of few samples, which takes many rounds.
TEST_F(GrowingShardsTest, AnIndexOfAStoreIsKept) {
  server_.release();
  const TempFolder cache;
  const auto requests_to_open = [&] {
    const int64_t before = server_.requests();
    const auto source = begin_source(server_.url("/train-{0..3}.tar"), {.cache_dir = cache.path()});
    EXPECT_EQ(source->size(), kGrowingShards * kGrowingPerShard);
    return server_.requests() - before;
  };
  EXPECT_GT(requests_to_open(), 2 * kGrowingShards);
  const int64_t states =
      kGrowingShards + 1;  // of the shards, and whether there are names of classes
  EXPECT_LE(requests_to_open(), states);
  // Nobody could tell that an object without a version has changed.
  put("train-3.tar", read_whole_file(data_.path() + "/train-3.tar"), "");
  EXPECT_GT(requests_to_open(), 2 * kGrowingShards);
  EXPECT_GT(requests_to_open(), 2 * kGrowingShards);
}

TEST_F(GrowingShardsTest, WhatIsNoTarInAStoreIsOpenedAsEver) {
  EXPECT_EQ(dynamic_cast<const GrowingSource*>(
                begin_source(data_.path() + "/train-{0..3}.tar", {.cache_dir = ""}).get()),
            nullptr);
}

}  // namespace
}  // namespace stoker::testing
