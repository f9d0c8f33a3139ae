// Data sets in a store: the same samples, labels, names and batches as on a disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "pipeline/cache/decoded_cache.h"
#include "pipeline/files/durable_file.h"
#include "pipeline/source/concat_source.h"
#include "pipeline/source/format/text_value.h"
#include "pipeline/source/growing_source.h"
#include "pipeline/source/look_ahead.h"
#include "pipeline/source/subset_source.h"
#include "pipeline/store/object_store.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/object_server.h"
#include "tests/support/same_annotations.h"
#include "tests/support/source_contents.h"
#include "tests/support/tar_maker.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int kStoredShards = 3, kStoredPerShard = 20;

class StoredSourceTest : public ::testing::Test {
 protected:
  StoredSourceTest() {
    std::string list = "path,label\n";
    for (int shard = 0; shard < kStoredShards; ++shard) {
      std::string tar;
      for (int i = 0; i < kStoredPerShard; ++i) {
        const int number = shard * kStoredPerShard + i;
        const auto jpeg = jpeg_file(40 + number, 60, static_cast<uint64_t>(number));
        const std::string bytes(jpeg.begin(), jpeg.end());
        const std::string key = std::to_string(number);
        tar += tar_member(key + ".cls", std::to_string(number % 4));
        tar += tar_member(key + ".jpg", bytes);
        data_.write("pictures/a b+" + key + ".jpg", bytes);
        list += "pictures/a b+" + key + ".jpg," + std::to_string(number % 4) + "\n";
      }
      data_.write("train-" + std::to_string(shard) + ".tar", tar + tar_end());
    }
    data_.write("list.csv", list);
    for (const auto& entry : fs::recursive_directory_iterator(data_.path())) {
      if (!entry.is_regular_file()) continue;
      std::string path = entry.path().string().substr(data_.path().size());
      const std::string bytes = read_whole_file(entry.path().string());
      if (const size_t space = path.find(' '); space != std::string::npos) {
        path.replace(space, 1, "%20");
      }
      if (const size_t plus = path.find('+'); plus != std::string::npos) {
        path.replace(plus, 1, "%2B");
      }
      server_.put(path, {bytes.begin(), bytes.end()}, "\"" + std::to_string(bytes.size()) + "\"");
    }
  }

  std::string address(const std::string& path) const { return server_.url("/" + path); }
  static std::unique_ptr<Source> open(const std::string& path) {
    return open_source(path, {.cache_dir = ""});
  }
  static LoaderOptions options(int workers) {
    return {.batch_size = 8, .seed = 7, .epochs = 2, .feed = {.workers = workers}, .digests = true};
  }
  static std::vector<Delivered> feed(const Source& source, int workers) {
    return Feed(source, crop_spec(), options(workers)).all();
  }

  const TempFolder data_;
  ObjectServer server_;
};

TEST_F(StoredSourceTest, ShardsHaveTheSameSamples) {
  const auto local = open(data_.path() + "/train-{0..2}.tar");
  const auto stored = open(address("train-{0..2}.tar"));
  EXPECT_EQ(names_of(*stored), names_of(*local));
  EXPECT_EQ(labels_of(*stored), labels_of(*local));
  EXPECT_EQ(stored->fingerprint(), local->fingerprint());
  EXPECT_EQ(stored->labels_digest(), local->labels_digest());
  for (SampleId id = 0; id < local->size(); ++id) {
    EXPECT_EQ(text_of(*stored, id), text_of(*local, id));
  }
  EXPECT_EQ(stored->root() + "/", address(""));
  EXPECT_TRUE(stored->storage().store_stats());
  EXPECT_FALSE(local->storage().store_stats());
}

TEST_F(StoredSourceTest, RecordsHaveTheSameObjectsAndLabelImages) {
  std::string tar;
  for (int i = 0; i < 5; ++i) {
    const std::string key = std::to_string(i);
    tar += tar_member(key + ".json", R"([{"bbox": [1, 2, 3, )" + key + R"(], "label": )" +
                                         std::to_string(i - 1) + "}]");
    tar += tar_member(key + ".jpg", "picture " + key);
    tar += tar_member(key + ".png", "mask " + key);
  }
  tar += tar_end();
  const std::string path = data_.write("records.tar", tar);
  server_.put("/records.tar", {tar.begin(), tar.end()}, "\"1\"");
  const SourceOptions options{.objects_from = "json", .label_image_from = "png", .cache_dir = ""};
  const auto local = open_source(path, options);
  const auto stored = begin_source(address("records.tar"), options);
  EXPECT_EQ(stored->fingerprint(), local->fingerprint());
  EXPECT_EQ(stored->annotations(), local->annotations());
  Annotations ours, theirs;
  for (SampleId id = 0; id < local->size(); ++id) {
    const ReadStatus status = local->read_annotations(id, {}, ours);
    EXPECT_EQ(status.ok, id > 0);  // the first class is -1
    EXPECT_EQ(stored->read_annotations(id, {}, theirs).message, status.message);
    if (!status.ok) continue;
    EXPECT_EQ(describe(theirs), describe(ours));
    EXPECT_EQ(as_text(theirs.label_file), "mask " + std::to_string(id));
    EXPECT_EQ(text_of(*stored, id), "picture " + std::to_string(id));
  }
}

// Each picture is announced to the store, and fetched before it is read.
TEST_F(StoredSourceTest, PairsAreFedAsFromADisk) {
  const auto text = [](const std::vector<uint8_t>& file) {
    return std::string(file.begin(), file.end());
  };
  std::string tar;
  for (int i = 0; i < 40; ++i) {
    const std::string key = std::to_string(100 + i);
    const auto seed = static_cast<uint64_t>(i);
    tar += tar_member(key + ".jpg", text(jpeg_file(60 + i % 7, 50, seed)));
    if (i != 7) tar += tar_member(key + ".c.jpg", text(jpeg_file(60 + i % 7, 50, 100 + seed)));
  }
  tar += tar_end();
  const std::string path = data_.write("pairs.tar", tar);
  server_.put("/pairs.tar", {tar.begin(), tar.end()}, "\"1\"");
  const SourceOptions pairs{.pictures_from = {"c=c.jpg"}, .cache_dir = ""};
  const auto local = open_source(path, pairs), stored = begin_source(address("pairs.tar"), pairs);
  EXPECT_EQ(stored->fingerprint(), local->fingerprint());
  const AugmentSpec spec("pictures(same(random_crop(24) | flip), c=same(random_crop(24) | flip))");
  for (const int workers : {0, 2}) {
    Feed near(*local, spec, options(workers)), far(*stored, spec, options(workers));
    EXPECT_EQ(far.all(), near.all());
    EXPECT_EQ(far.loader().stats().bad_samples, 2);
  }
  std::vector<SampleId> order(40);
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<SampleId>(i);
  size_t next = 0;
  const auto ahead = stored->storage().look_ahead([&](SampleId& id) {
    if (next == order.size()) return NextSample::end;
    id = order[next++];
    return NextSample::found;
  });
  ASSERT_NE(ahead, nullptr);
  const int64_t before = stored->storage().store_stats()->requests;
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  for (const SampleId id : order) {
    EXPECT_TRUE(stored->read(id, buffer, bytes).ok);
    EXPECT_EQ(stored->read_picture(id, 0, MayWait::yes, buffer, bytes).ok, id != 7);
  }
  // Neighbours come together; alone they would be 79.
  EXPECT_LT(stored->storage().store_stats()->requests - before, 60);
}

// A tar of several parts, whose headers are read by several threads.
TEST_F(StoredSourceTest, ALargeTarIsIndexedByItsHeaders) {
  constexpr int kSamples = 240;
  std::string tar;
  for (int i = 0; i < kSamples; ++i) {
    std::string image(60'000, '\0');
    for (size_t k = 0; k < image.size(); ++k) image[k] = static_cast<char>(k * 7919 >> 5);
    tar += tar_member(std::to_string(i) + ".cls", std::to_string(i % 4));
    tar += tar_member(std::to_string(i) + ".jpg", image);
  }
  tar += tar_end();
  const std::string path = data_.write("large.tar", tar);
  server_.put("/large.tar", {tar.begin(), tar.end()}, "\"1\"");
  const auto local = open(path);
  const int64_t before = server_.requests();
  const auto stored = open(address("large.tar"));
  EXPECT_EQ(stored->fingerprint(), local->fingerprint());
  EXPECT_EQ(names_of(*stored), names_of(*local));
  // One for each sample, and some to see the object and to find the first header of each part.
  EXPECT_LE(server_.requests() - before, kSamples + 30);
}

TEST_F(StoredSourceTest, AListNamesObjectsBesideIt) {
  const auto local = open(data_.path() + "/list.csv");
  const auto stored = open(address("list.csv"));
  EXPECT_EQ(names_of(*stored), names_of(*local));
  EXPECT_EQ(labels_of(*stored), labels_of(*local));
  EXPECT_EQ(text_of(*stored, 7), text_of(*local, 7));
  EXPECT_EQ(feed(*stored, 2), feed(*local, 2));
}

TEST_F(StoredSourceTest, AnEmptyObjectIsABadSampleAndNotAnError) {
  server_.put("/empty.jpg", {}, "\"0\"");
  const std::string list = "path,label\nempty.jpg,0\n";
  server_.put("/empty.csv", {list.begin(), list.end()}, "\"1\"");
  const auto stored = open(address("empty.csv"));
  EXPECT_EQ(text_of(*stored, 0), "");
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  EXPECT_TRUE(stored->read(0, buffer, bytes).ok);
  EXPECT_TRUE(bytes.empty());
}

TEST_F(StoredSourceTest, AFeedGivesTheSameBatches) {
  const auto local = open(data_.path() + "/train-{0..2}.tar");
  const std::vector<Delivered> expected = feed(*local, 1);
  for (const int workers : {0, 1, 3}) {
    const auto stored = open(address("train-{0..2}.tar"));
    EXPECT_EQ(feed(*stored, workers), expected) << workers;
    EXPECT_GT(stored->storage().store_stats()->ranges, 0);
  }
}

TEST_F(StoredSourceTest, AFeedOverFaultsGivesTheSameBatches) {
  const auto local = open(data_.path() + "/train-{0..2}.tar");
  const auto stored = open(address("train-{0..2}.tar"));
  server_.set_script([](const SeenRequest& request) {
    constexpr Fault::Kind kKinds[] = {Fault::Kind::status, Fault::Kind::reset, Fault::Kind::cut,
                                      Fault::Kind::wrong_range, Fault::Kind::close};
    return request.number % 3 == 0 ? Fault{.kind = kKinds[request.number / 3 % 5]} : Fault{};
  });
  EXPECT_EQ(feed(*stored, 2), feed(*local, 2));
  EXPECT_GT(stored->storage().store_stats()->retries, 0);
}

TEST_F(StoredSourceTest, AViewAnnouncesItsOwnSamples) {
  const auto local = open(data_.path() + "/train-{0..2}.tar");
  const auto stored = open(address("train-{0..2}.tar"));
  const std::vector<SampleId> ids = {50, 3, 17, 18, 19, 20, 41, 2};
  EXPECT_EQ(feed(SubsetSource(*stored, ids), 2), feed(SubsetSource(*local, ids), 2));
  const auto few = [](const Source& source) { return SubsetSource(source, 8); };
  const SubsetSource local_part = few(*local), stored_part = few(*stored);
  const ConcatSource locals({local.get(), &local_part}), storeds({stored.get(), &stored_part});
  EXPECT_EQ(feed(storeds, 2).front().rows.front().pixels,
            feed(locals, 2).front().rows.front().pixels);
  EXPECT_GT(storeds.storage().look_ahead_bytes(), 0);
}

TEST_F(StoredSourceTest, ReadingInOrderJoinsSamples) {
  const auto stored = open(address("train-{0..2}.tar"));
  const int64_t before = server_.requests();
  const auto look_ahead = look_ahead_in_order(*stored);
  for (SampleId id = 0; id < stored->size(); ++id) text_of(*stored, id);
  EXPECT_EQ(server_.requests() - before, kStoredShards);
}

TEST_F(StoredSourceTest, AnObjectThatChangesEndsTheFeed) {
  const auto stored = open(address("train-{0..2}.tar"));
  server_.put("/train-1.tar", std::vector<uint8_t>(200'000, 1), "\"new\"");
  EXPECT_THAT(thrown_by<StoreError>([&] { feed(*stored, 2); }),
              AllOf(HasSubstr(address("train-1.tar")), HasSubstr("changed")));
}

// A cache for half of the bytes, which the first feed fills and the second one begins with.
TEST_F(StoredSourceTest, ACacheChangesNoBatch) {
  const auto feed = [](const Source& source, int workers) {
    LoaderOptions whole = options(workers);
    whole.batch_size = 10;  // fills every batch: no sample is repeated
    return Feed(source, crop_spec(), whole).all();
  };
  for (const char* path : {"train-{0..2}.tar", "list.csv"}) {
    const auto local = open(data_.path() + "/" + path);
    const std::vector<Delivered> expected = feed(*local, 1);
    const TempFolder folder;
    const auto open_cached = [&] {
      const int64_t half = open(address(path))->storage().stored_bytes()->bytes / 2;
      return open_source(
          address(path),
          {.cache_dir = "",
           .store = {.read_ahead_bytes = 1 << 20, .cache = folder.path(), .cache_bytes = half}});
    };
    for (const int workers : {3, 0, 1}) {
      const auto stored = open_cached();
      const StoredBytes sizes = *stored->storage().stored_bytes();
      EXPECT_EQ(sizes.samples, local->size());
      EXPECT_NEAR(sizes.share(), 0.5, 0.03);
      EXPECT_EQ(sizes.kept_bytes, workers == 3 ? 0 : sizes.cache_bytes);
      EXPECT_EQ(feed(*stored, workers), expected) << path << ", " << workers << " workers";
      const StoreStats stats = *stored->storage().store_stats();
      EXPECT_EQ(stats.cache_hits + stats.cache_misses, 2 * sizes.samples);
      // So few samples come again while others of the epoch before are still under way.
      if (workers == 3) {
        EXPECT_LE(stats.cache_hits, sizes.cache_samples);
      } else {
        EXPECT_EQ(stats.cache_hits, 2 * sizes.cache_samples);
      }
    }
  }
}

// Pictures that a cache has are not asked for.
TEST_F(StoredSourceTest, DecodedPicturesLeaveTheStoreOnce) {
  const AugmentSpec spec("resize_center_crop(short=30) | flip", {24, 24});
  constexpr int64_t kPlace = 128 + 3 * 24 * 24, kSamples = kStoredShards * kStoredPerShard;
  const auto rows = [&](const Source& source, const std::shared_ptr<DecodedCache>& cache,
                        int workers, LoaderStats& stats) {
    LoaderOptions whole = options(workers);
    whole.batch_size = 10;
    whole.epochs = 4;
    whole.feed.cache = cache;
    Feed feed(source, spec, whole);
    std::vector<Delivered> all = feed.all();
    stats = feed.loader().stats();
    return all;
  };
  LoaderStats stats;
  for (const char* path : {"train-{0..2}.tar", "list.csv"}) {
    const std::vector<Delivered> expected =
        rows(*open(data_.path() + "/" + path), nullptr, 0, stats);
    for (const int workers : {0, 3}) {
      for (const int64_t places : {kSamples, kSamples / 2}) {
        const auto cache = std::make_shared<DecodedCache>(DecodedCacheOptions{"", places * kPlace});
        const auto stored =
            open_source(address(path), {.cache_dir = "", .store = {.read_ahead_bytes = 1 << 20}});
        // So few samples that the epochs are asked for before the first picture is kept.
        EXPECT_EQ(rows(*stored, cache, workers, stats), expected) << path;
        EXPECT_EQ(stats.cache->kept, places);
        const int64_t bytes = stored->storage().store_stats()->bytes;
        const int64_t all = stored->storage().stored_bytes()->bytes;
        // Another Loader: it looks at a few samples, and asks for those that have no place.
        EXPECT_EQ(rows(*stored, cache, workers, stats), expected) << path;
        EXPECT_EQ(stats.cache->hits, 4 * places);
        const int64_t more = stored->storage().store_stats()->bytes - bytes;
        EXPECT_LE(more, places == kSamples ? all / 4 : 3 * all);
      }
    }
  }
}

// A sample that was asked for is read, also if another feed has kept it meanwhile: or its bytes
// would fill the memory for what is fetched before.
TEST_F(StoredSourceTest, FeedsThatFillOneDecodedCacheGoOn) {
  const AugmentSpec spec("resize_center_crop(short=30)", {24, 24});
  const auto stored = open_source(address("train-{0..2}.tar"),
                                  {.cache_dir = "", .store = {.read_ahead_bytes = 1 << 20}});
  const auto cache = std::make_shared<DecodedCache>(DecodedCacheOptions{"", 1 << 30});
  LoaderOptions several = options(0);
  several.batch_size = 10;
  several.epochs = 5;
  const std::vector<Delivered> expected = Feed(*stored, spec, several).all();
  several.feed.cache = cache;
  Feed first(*stored, spec, several), second(*stored, spec, several);
  std::vector<Delivered> of_first, of_second;
  Delivered batch;
  while (first.next(batch)) {
    of_first.push_back(batch);
    if (second.next(batch)) of_second.push_back(batch);
  }
  EXPECT_EQ(of_first, expected);
  EXPECT_EQ(of_second, expected);
  // The second one was told of its samples before the first one kept them.
  EXPECT_LT(second.loader().stats().cache->hits, 5 * kStoredShards * kStoredPerShard);
}

TEST_F(StoredSourceTest, ViewsShowWhatIsInTheStore) {
  const auto one = open(address("train-0.tar"));
  const auto two = open(address("train-{1..2}.tar"));
  const ConcatSource all({one.get(), two.get()});
  const StoredBytes sizes = *SubsetSource(all, 5).storage().stored_bytes();
  EXPECT_EQ(sizes.samples, kStoredShards * kStoredPerShard);
  EXPECT_EQ(sizes.bytes,
            one->storage().stored_bytes()->bytes + two->storage().stored_bytes()->bytes);
  EXPECT_FALSE(open(data_.path() + "/list.csv")->storage().stored_bytes());
}

TEST_F(StoredSourceTest, WhatIsMissingIsNamed) {
  const auto error_of = [](const std::string& path) -> std::string {
    return thrown_by<std::exception>([&] { open(path); });
  };
  EXPECT_EQ(error_of(address("train-{1..4}.tar")),
            address("train-3.tar") + ": no such file; 2 of 4 are missing");
  EXPECT_THAT(error_of(address("folder")), HasSubstr("has no list"));
  const std::string list = "path,label\nx.jpg,1\n";
  server_.put("/short.csv", {list.begin(), list.end()}, "\"1\"");
  EXPECT_THAT(error_of(address("short.csv")), HasSubstr(address("x.jpg")));
}

TEST_F(StoredSourceTest, AForkedProcessSaysSo) {
  auto stored = open(address("train-{0..2}.tar"));
  EXPECT_EXIT(
      {
        try {
          text_of(*stored, 0);
        } catch (const StoreError& error) {
          std::fprintf(stderr, "%s", error.what());
        }
        stored.reset();  // does not wait for a thread that is not there
        std::_Exit(3);
      },
      ::testing::ExitedWithCode(3), "before this process was forked");
}

TEST(LocalAddress, AFileAddressIsAPath) {
  const TempFolder folder;
  folder.write("cat/1.jpg", "1");
  EXPECT_EQ(open_source("file://" + folder.path(), Split::all)->root(), folder.path());
  EXPECT_THROW(open_source("file://host/data", Split::all), std::runtime_error);
}

TEST(LocalAddress, SchemesThatAreUnknownAreRefusedWithWhatToWrite) {
  const auto error_of = [](const std::string& address) {
    return problem_of([&] { open_source(address, Split::all); });
  };
  for (const auto& [address, text] :
       {std::pair("gs://bucket/x.tar", "AWS_ENDPOINT_URL_S3=https://storage.googleapis.com"),
        std::pair("hf://datasets/x", "stoker.huggingface()"),
        std::pair("az://container/x", "https://ACCOUNT.blob.core.windows.net"),
        std::pair("HTTPS://host/x.tar?sig=swordfish", "HTTPS://host/x.tar: there is no HTTPS://"),
        std::pair("ftp://me:swordfish@host/x.tar",
                  "addresses are s3://, https://, http:// and file:///")}) {
    EXPECT_THAT(error_of(address), HasSubstr(text));
    EXPECT_THAT(error_of(address), ::testing::Not(HasSubstr("swordfish")));
  }
  // A path may have such letters.
  const TempFolder folder;
  const std::string odd = folder.path() + "/a://b";
  EXPECT_EQ(local_path(odd), odd);
}

}  // namespace
}  // namespace stoker::testing
