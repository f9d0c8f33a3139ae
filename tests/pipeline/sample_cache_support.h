// Shared by the tests of SampleCache: a data set on a server, whose bytes anybody can compute.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/random/permutation.h"
#include "pipeline/source/blob/sample_cache.h"
#include "pipeline/source/blob/sample_window.h"

namespace stoker {

// Samples of 2,100 to 6,100 bytes, one behind the other in a few objects: too large to be read
// through for the sake of their neighbours. The version is part of
// the bytes.
class CachedData {
 public:
  static constexpr int64_t kSamples = 3'000, kObjects = 4, kPerObject = kSamples / kObjects;

  explicit CachedData(const std::string& server, int version = 1)
      : server_(server), version_(version) {
    for (int64_t id = 0; id < kSamples; ++id) {
      if (id % kPerObject == 0) ends_.push_back(0);
      offsets_.push_back(ends_.back());
      ends_.back() += length(id);
      bytes_ += length(id);
    }
    for (int64_t i = 0; i < kObjects; ++i) {
      objects_.push_back(std::make_shared<const StoredObject>(
          StoredObject{path(i), ends_[static_cast<size_t>(i)], etag()}));
    }
  }

  static std::string path(int64_t object) { return "/part" + std::to_string(object); }
  std::string etag() const { return "\"v" + std::to_string(version_) + "\""; }
  int64_t bytes() const { return bytes_; }
  static int64_t length(SampleId id) { return 2'100 + (id * 7'919) % 4'001; }

  std::vector<uint8_t> content(int64_t object) const {
    return made(object, 0, ends_[static_cast<size_t>(object)]);
  }
  std::vector<uint8_t> sample(SampleId id) const {
    return made(id / kPerObject, offsets_[static_cast<size_t>(id)], length(id));
  }

  StoredSamples samples() const {
    return {.root = server_,
            .count = kSamples,
            .locate =
                [this](SampleId id) {
                  return SampleAddress{objects_[static_cast<size_t>(id / kPerObject)],
                                       offsets_[static_cast<size_t>(id)], length(id)};
                },
            .bytes_of = [](SampleId id) { return length(id); }};
  }
  std::shared_ptr<const ObjectStore> store(const StoreOptions& options) const {
    return open_store(parse_address(server_ + "/"), options);
  }
  std::unique_ptr<SampleWindow> window(const StoreOptions& options) const {
    return std::make_unique<SampleWindow>(store(options), options, samples());
  }

  // Reads a sample as a feed does: at first without waiting.
  void read(SampleWindow& window, SampleId id) const {
    const std::vector<uint8_t> wanted = sample(id);
    const auto use = [&](std::span<const uint8_t> bytes) {
      return std::ranges::equal(bytes, wanted);
    };
    if (!window.read(id, MayWait::no, use)) {
      EXPECT_TRUE(window.read(id, MayWait::yes, use)) << "sample " << id;
    }
  }
  // Reads every sample once in each epoch, in another order, and announces all.
  void read_epochs(SampleWindow& window, int64_t epochs, uint64_t seed = 0) const {
    const auto sample_at = [seed](int64_t step) {
      const auto epoch = static_cast<uint64_t>(step / kSamples);
      return Permutation(kSamples, {seed * 77 + epoch + 1, 0x9E3779B97F4A7C15}).at(step % kSamples);
    };
    const auto ahead = window.look_ahead(
        [next = int64_t{0}, end = epochs * kSamples, sample_at](SampleId& id) mutable {
          if (next == end) return NextSample::end;
          id = sample_at(next++);
          return NextSample::found;
        });
    for (int64_t step = 0; step < epochs * kSamples; ++step) read(window, sample_at(step));
  }

  // How many samples the cache has; those that it gives are right.
  int64_t right_samples(const SampleCache& cache) const {
    int64_t count = 0;
    std::unique_ptr<uint8_t[]> buffer;
    for (SampleId id = 0; id < kSamples; ++id) {
      const auto bytes = cache.read(id, MayWait::yes, buffer);
      if (bytes.empty()) continue;
      ++count;
      EXPECT_TRUE(std::ranges::equal(bytes, sample(id))) << id;
    }
    return count;
  }

 private:
  std::vector<uint8_t> made(int64_t object, int64_t offset, int64_t length) const {
    std::vector<uint8_t> bytes(static_cast<size_t>(length));
    for (size_t i = 0; i < bytes.size(); ++i) {
      const int64_t at = offset + static_cast<int64_t>(i);
      bytes[i] = static_cast<uint8_t>(at * 7 + at / 251 + at / 65'027 + object * 31 + version_);
    }
    return bytes;
  }

  const std::string server_;
  const int version_;
  int64_t bytes_ = 0;
  std::vector<int64_t> offsets_, ends_;
  std::vector<std::shared_ptr<const StoredObject>> objects_;
};

}  // namespace stoker
