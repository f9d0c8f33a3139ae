// Prefetchers read a tar's headers before its scan: whatever they do, a scan finds what it finds
// without them, and asks the store less itself.
#include "pipeline/source/blob/tar_prefetchers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>

#include "pipeline/source/format/tar.h"
#include "tests/support/collected_samples.h"
#include "tests/support/tar_maker.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

constexpr int64_t kMiB = 1 << 20;

std::string number_text(int64_t number) { return std::to_string(number); }

std::string scan_text(BlobReader& blob, const FieldChoice& fields) {
  CollectedSamples found;
  std::string text = thrown_by<BlobError>([&] { scan_tar(blob, fields, found); });
  for (const auto& sample : found.samples) {
    text += "\n" + sample.name + " " + sample.label + " " + number_text(sample.found.offset) + "+" +
            number_text(sample.found.length);
  }
  for (const std::string& left_out : found.left_out) text += "\n" + left_out;
  return text;
}

std::string scan_alone(const std::string& tar, const FieldChoice& fields = {}) {
  BlobReader blob("a.tar", {reinterpret_cast<const uint8_t*>(tar.data()), tar.size()});
  return scan_text(blob, fields);
}

// A tar behind a network: counts who reads what.
class FarTar {
 public:
  explicit FarTar(std::string bytes) : bytes_(std::move(bytes)) {}

  // Prefetchers wait here before each read; the scan's thread does not.
  std::function<void(int64_t offset)> before_prefetch = [](int64_t) {};
  std::atomic<int64_t> prefetch_reads = 0, scan_reads = 0, scan_bytes = 0;

  PrefetchedTar prefetched() {
    return {"a.tar", std::ssize(bytes_),
            [this](int64_t offset, int64_t least, std::span<uint8_t> out) {
              return read(offset, least, out);
            }};
  }
  std::string scan(TarPrefetchers& prefetchers, size_t tar, const FieldChoice& fields = {}) {
    scan_thread_ = std::this_thread::get_id();
    BlobReader blob("a.tar", std::ssize(bytes_),
                    [&](int64_t offset, int64_t least, std::span<uint8_t> out) {
                      return prefetchers.read(tar, offset, least, out);
                    });
    std::string text = scan_text(blob, fields);
    prefetchers.end(tar);
    return text;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  int64_t read(int64_t offset, int64_t least, std::span<uint8_t> out) {
    if (std::this_thread::get_id() == scan_thread_) {
      ++scan_reads;
      scan_bytes += std::ssize(out);
    } else {
      before_prefetch(offset);
      ++prefetch_reads;
    }
    EXPECT_LE(least, std::ssize(out));
    EXPECT_LE(offset + std::ssize(out), std::ssize(bytes_));
    std::copy_n(bytes_.begin() + offset, out.size(), out.begin());
    return std::ssize(out);
  }

  const std::string bytes_;
  std::atomic<std::thread::id> scan_thread_;
};

std::string with_prefetchers(const std::string& bytes, const TarPrefetchers::Options& options,
                             const FieldChoice& fields = {}) {
  FarTar tar(bytes);
  TarPrefetchers prefetchers({tar.prefetched()}, options);
  return tar.scan(prefetchers, 0, fields);
}

std::string random_text(std::mt19937& random, size_t bytes) {
  std::string text(bytes, '\0');
  for (char& byte : text) byte = static_cast<char>(random());
  return text;
}

// A member of each kind that a tar may have, of random sizes.
std::string random_tar(std::mt19937& random, int samples) {
  const auto upto = [&](size_t most) { return random() % (most + 1); };
  std::string tar;
  for (int i = 0; i < samples; ++i) {
    std::string key = "n" + number_text(i % 3) + "/" + number_text(i);
    if (upto(9) == 0) key += std::string(150, 'x');
    const bool is_long = key.size() > 90;
    const auto member = [&](const std::string& name, const std::string& content) {
      if (!is_long) return tar_member(name, content);
      const std::string rest = tar_member(name.substr(0, 99), content);
      return (upto(1) == 0 ? tar_long_name(name) : pax_header(pax_record("path", name))) + rest;
    };
    if (upto(4) == 0) tar += tar_member("n0/", "", '5');
    const std::string label = member(key + ".cls", number_text(i % 7));
    const bool is_first = upto(1) == 0;
    if (is_first) tar += label;
    // Reads of an image, of a tar that is none of ours, and of nothing.
    std::string content = random_text(random, upto(30'000));
    if (upto(4) == 0) {
      content = tar_member("other.jpg", random_text(random, upto(2'000))) +
                tar_member("other.cls", "1") + (upto(1) == 0 ? tar_end() : "") + content;
    }
    tar += member(key + ".jpg", content);
    if (!is_first) tar += label;
    if (upto(3) == 0) tar += member(key + ".json", std::string(upto(40'000), ' ') + "{\"a\": 1}");
  }
  return tar + tar_end();
}

TEST(TarPrefetchers, AScanFindsWhatItFindsAlone) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    std::string tar = random_tar(random, 1 + static_cast<int>(random() % 60));
    switch (seed % 5) {
      case 1:  // damaged somewhere
        tar[random() % tar.size()] ^= 1;
        break;
      case 2:  // cut short
        tar.resize(random() % tar.size());
        break;
      case 3:  // another program's blocks of zeros
        tar += std::string(512 * (random() % 300), '\0');
        break;
      default:
        break;
    }
    if (tar.empty()) continue;
    for (const FieldChoice& fields : {FieldChoice{}, FieldChoice{"", "json:a"}}) {
      const std::string expected = scan_alone(tar, fields);
      for (const int64_t part : {512L, 4096L, 65536L, 4 * kMiB}) {
        const TarPrefetchers::Options options{
            .prefetchers = 1 + static_cast<int>(random() % 5),
            .part_bytes = part,
            .memory_bytes = part * (1 + static_cast<int64_t>(random() % 4))};
        EXPECT_EQ(with_prefetchers(tar, options, fields), expected) << seed << " " << part;
      }
    }
  }
}

TEST(TarPrefetchers, OldHeadersWithoutAMagicAreTheScansOwn) {
  std::string tar;
  for (int i = 0; i < 100; ++i) {
    const std::string content(20'000, 'i');
    TarHeader header{.name = "n/" + number_text(i) + ".jpg",
                     .size = std::ssize(content),
                     .magic = std::string(8, '\0')};
    tar += tar_header(header) + tar_data(content);
  }
  tar += tar_end();
  EXPECT_EQ(with_prefetchers(tar, {.prefetchers = 3, .part_bytes = 65536}), scan_alone(tar));
}

std::string plain_tar(int samples, size_t bytes) {
  std::mt19937 random(5);
  std::string tar;
  for (int i = 0; i < samples; ++i) {
    tar += tar_member(number_text(i) + ".jpg", random_text(random, bytes)) +
           tar_member(number_text(i) + ".cls", number_text(i % 10));
  }
  return tar + tar_end();
}

// Counts threads that have come, and holds them until all have.
class Gate {
 public:
  explicit Gate(size_t threads) : threads_(threads) {}
  void pass() {
    std::unique_lock lock(mutex_);
    came_.insert(std::this_thread::get_id());
    changed_.notify_all();
    changed_.wait(lock, [&] { return came_.size() >= threads_; });
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return came_.size() >= threads_; });
  }

 private:
  const size_t threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::thread::id> came_;
};

// Every part is a prefetcher's before the scan begins: then it asks for nothing.
TEST(TarPrefetchers, TheScanAsksForNothingThatPrefetchersHaveRead) {
  FarTar tar(plain_tar(200, 50'000));
  constexpr int64_t kPart = kMiB;
  const auto parts = static_cast<int>(std::ssize(tar.bytes()) / kPart + 1);
  ASSERT_GE(parts, 10);
  Gate gate(static_cast<size_t>(parts));
  tar.before_prefetch = [&](int64_t) { gate.pass(); };
  TarPrefetchers prefetchers({tar.prefetched()}, {.prefetchers = parts, .part_bytes = kPart});
  gate.wait();
  EXPECT_EQ(tar.scan(prefetchers, 0), scan_alone(tar.bytes()));
  EXPECT_EQ(tar.scan_reads, 0);
  // One for each sample, and one or two to find the first header of a part.
  EXPECT_LE(tar.prefetch_reads, 200 + 3 * parts);
}

TEST(TarPrefetchers, MembersWithoutGapsAreReadOnce) {
  FarTar tar(plain_tar(3000, 300));
  constexpr int64_t kPart = kMiB;
  const auto parts = static_cast<int>(std::ssize(tar.bytes()) / kPart + 1);
  Gate gate(static_cast<size_t>(parts));
  tar.before_prefetch = [&](int64_t) { gate.pass(); };
  TarPrefetchers prefetchers({tar.prefetched()}, {.prefetchers = parts, .part_bytes = kPart});
  gate.wait();
  EXPECT_EQ(tar.scan(prefetchers, 0), scan_alone(tar.bytes()));
  // Where the memory of a part ends, the scan reads the rest of it itself.
  EXPECT_LT(tar.scan_bytes, std::ssize(tar.bytes()) / 2) << tar.scan_reads;
  EXPECT_LE(tar.prefetch_reads, 12 * parts);
}

TEST(TarPrefetchers, NoMoreIsReadAheadThanTheMemoryHolds) {
  // Parts that are being read have all of their memory.
  constexpr int64_t kPart = 65536;
  FarTar tar(plain_tar(100, 50'000));
  std::atomic<int64_t> most = 0, under_way = 0;
  tar.before_prefetch = [&](int64_t) {
    const int64_t now = ++under_way;
    for (int64_t seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::yield();
    --under_way;
  };
  TarPrefetchers prefetchers({tar.prefetched()},
                             {.prefetchers = 8, .part_bytes = kPart, .memory_bytes = 2 * kPart});
  EXPECT_EQ(tar.scan(prefetchers, 0), scan_alone(tar.bytes()));
  EXPECT_LE(most, 2);
}

// One prefetcher goes through the parts in their order: when it is at the second tar, it has done
// with the first.
TEST(TarPrefetchers, LargeMembersAreNotSearchedThrough) {
  FarTar tar(plain_tar(12, 5 * kMiB)), next(plain_tar(1, 100));
  Gate comes(1);
  next.before_prefetch = [&](int64_t) { comes.pass(); };
  TarPrefetchers prefetchers({tar.prefetched(), next.prefetched()},
                             {.prefetchers = 1, .part_bytes = kMiB});
  comes.wait();
  // Two searches in vain, of five pieces each, and the headers that are there by chance.
  EXPECT_LE(tar.prefetch_reads, 30);
  EXPECT_EQ(tar.scan(prefetchers, 0), scan_alone(tar.bytes()));
}

TEST(TarPrefetchers, ErrorsOfPrefetchersAreNotTheScans) {
  FarTar tar(plain_tar(100, 50'000));
  std::atomic<int> reads = 0;
  tar.before_prefetch = [&](int64_t) {
    if (++reads % 3 == 0) throw std::runtime_error("no answer");
  };
  TarPrefetchers prefetchers({tar.prefetched()}, {.prefetchers = 4, .part_bytes = 256 << 10});
  EXPECT_EQ(tar.scan(prefetchers, 0), scan_alone(tar.bytes()));
}

// A scan whose part is a prefetcher's, which hangs, goes on when everything is stopped.
TEST(TarPrefetchers, StopWakesAScanThatWaits) {
  FarTar tar(plain_tar(20, 50'000));
  Gate comes(1), goes(2);
  tar.before_prefetch = [&](int64_t) {
    comes.pass();
    goes.pass();
  };
  auto prefetchers = std::make_unique<TarPrefetchers>(std::vector{tar.prefetched()},
                                                      TarPrefetchers::Options{.prefetchers = 1});
  comes.wait();
  std::string found;
  std::thread scan([&] { found = tar.scan(*prefetchers, 0); });
  prefetchers->stop();
  scan.join();
  EXPECT_EQ(found, scan_alone(tar.bytes()));
  EXPECT_GT(tar.scan_reads, 0);
  goes.pass();
}

// Tars one after the other, each with a scan of its own, and more parts than memory.
TEST(TarPrefetchers, ManyTarsSharePrefetchersAndMemory) {
  std::vector<std::unique_ptr<FarTar>> tars;
  std::vector<PrefetchedTar> prefetched;
  for (int i = 0; i < 12; ++i) {
    std::mt19937 random(100 + static_cast<unsigned>(i));
    tars.push_back(std::make_unique<FarTar>(random_tar(random, 40)));
    prefetched.push_back(tars.back()->prefetched());
  }
  TarPrefetchers prefetchers(prefetched,
                             {.prefetchers = 4, .part_bytes = 65536, .memory_bytes = 5 * 65536});
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (size_t tar = next++; tar < tars.size(); tar = next++) {
        EXPECT_EQ(tars[tar]->scan(prefetchers, tar), scan_alone(tars[tar]->bytes())) << tar;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace stoker
