// A source of files in memory that fails on request: reads that fail, are slow, or return other
// bytes. Threads: change its behaviour before reading; const calls from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "pipeline/source.h"

namespace stoker {

class FakeSource final : public Source {
 public:
  // Sample i is files[i % files.size()], its label i % classes, its name "fake/<i>".
  FakeSource(std::vector<std::vector<uint8_t>> files, int64_t samples, int classes);

  void fail(SampleId id, const std::string& message = "read: Input/output error");
  void replace(SampleId id, std::vector<uint8_t> bytes);  // garbage, truncated, empty, ...
  void delay(SampleId id, std::chrono::microseconds time);
  void delay_all(std::chrono::microseconds time) { delay_all_ = time; }

  void cache(SampleId id) { cached_.insert(id); }  // read_cached() returns it, without any delay

  int64_t reads() const { return reads_; }                // all calls of read()
  int64_t tries() const { return tries_; }                // all calls of read_cached()
  int64_t cached_reads() const { return cached_reads_; }  // those that returned a sample
  int most_at_once() const { return most_at_once_; }      // the most concurrent reads

  int64_t size() const override { return samples_; }
  int label(SampleId id) const override {
    return static_cast<int>(id % static_cast<int64_t>(class_names_.size()));
  }
  std::string name(SampleId id) const override { return "fake/" + std::to_string(id); }
  const std::string& root() const override { return root_; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  SampleEncoding encoding() const override { return SampleEncoding::image_file; }
  Size raw_size() const override { return {}; }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override;
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override;
  uint64_t fingerprint() const override { return static_cast<uint64_t>(samples_); }

 private:
  ReadStatus give(SampleId id, std::vector<uint8_t>& buffer, std::span<const uint8_t>& bytes) const;

  const std::string root_;
  const std::vector<std::vector<uint8_t>> files_;
  const int64_t samples_;
  std::vector<std::string> class_names_;
  std::map<SampleId, std::string> failures_;
  std::map<SampleId, std::vector<uint8_t>> replaced_;
  std::map<SampleId, std::chrono::microseconds> delays_;
  std::chrono::microseconds delay_all_{0};
  std::set<SampleId> cached_;
  mutable std::atomic<int64_t> reads_ = 0, tries_ = 0, cached_reads_ = 0;
  mutable std::atomic<int> under_way_ = 0;
  mutable std::atomic<int> most_at_once_ = 0;
};

}  // namespace stoker
