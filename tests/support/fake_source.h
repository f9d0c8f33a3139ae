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

class FakeSource final : public Source, private SampleStorage {
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

  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override {
    return static_cast<int>(id % static_cast<int64_t>(info_.class_names.size()));
  }
  std::string name(SampleId id) const override { return "fake/" + std::to_string(id); }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override;
  const SampleStorage& storage() const override { return *this; }

 private:
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override;
  ReadStatus give(SampleId id, std::vector<uint8_t>& buffer, std::span<const uint8_t>& bytes) const;

  SourceInfo info_;
  const std::vector<std::vector<uint8_t>> files_;
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
