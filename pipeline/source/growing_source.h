// A source whose list of samples is still being made, by a thread of its own. Its first samples can
// be fed before the rest is known, in the order of the list (first_samples()); everything that
// depends on the whole list waits for it: size(), labels and names of samples that are not known
// yet, fingerprints, notes. When the list is complete, it is as any other source.
//
// Owner: the user. Threads: any; grow(), cannot_grow() and wants() are for whoever makes the list.
// Errors: those of making the list come from every call that waits for it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/source.h"

namespace stoker {

class GrowingSource final : public Source, private SampleStorage {
 public:
  // Makes the list, and returns the source of all samples. It may tell of the first ones on its
  // way. It ends early, by an exception, when go_on() returns false.
  using Open = std::function<std::unique_ptr<Source>(GrowingSource& self,
                                                     const std::function<bool()>& go_on)>;
  // The samples will be image files. `root` as Source::root(). `cancel` is called once, if the
  // list is no longer wanted: it ends what open() waits for.
  GrowingSource(std::string root, Open open, std::function<void()> cancel = nullptr);
  ~GrowingSource() override;  // ends the thread
  GrowingSource(const GrowingSource&) = delete;
  GrowingSource& operator=(const GrowingSource&) = delete;

  // Returns a source of the first samples, more than `more_than` of them, and all that were known a
  // moment ago. They have the numbers, names, labels and targets that they have in the whole. Waits
  // for them. Null if the list is complete, or nothing is final before it is, or making it failed:
  // then whoever uses this source waits for it. `go_on` is called now and then; if it returns
  // false, the result is null.
  std::shared_ptr<const Source> first_samples(int64_t more_than,
                                              const std::function<bool()>& go_on = nullptr) const;
  // Waits for at most `ms` milliseconds. Returns whether calls wait no longer.
  bool is_complete(int ms = 0) const;

  // Returns whether a source of the first `samples` is waited for.
  bool wants(int64_t samples) const;
  void grow(std::shared_ptr<const Source> first);
  // Labels or targets of samples depend on all of them.
  void cannot_grow();

  const SourceInfo& info() const override;
  int label(SampleId id) const override;
  std::string name(SampleId id) const override;
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override;
  void read_targets(SampleId id, std::span<const uint8_t> bytes, SampleTargets& out) const override;
  ReadStatus read_annotations(SampleId id, std::span<const uint8_t> bytes,
                              Annotations& out) const override;
  Size picture_size(SampleId id) const override;
  ReadStatus read_picture(SampleId id, size_t number, MayWait may_wait,
                          std::vector<uint8_t>& buffer,
                          std::span<const uint8_t>& bytes) const override;
  uint64_t labels_digest() const override;
  const SampleStorage& storage() const override { return *this; }
  // Does not wait.
  const std::string& root() const override;

 private:
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override;
  FileStamp stamp(SampleId id) const override;
  bool read_pieces(SampleId id, const FileStamp& stamp, std::span<const BytePiece> pieces,
                   MayWait may_wait) const override;
  std::unique_ptr<LookAhead> look_ahead(SampleSequence next) const override;
  void will_not_read(SampleId id) const override;
  int64_t look_ahead_bytes() const override;
  std::optional<StoreStats> store_stats() const override;
  std::optional<StoredBytes> stored_bytes() const override;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Opens as open_source(), but does not wait until an index of tar shards in a store is made: the
// result may be a GrowingSource. What cannot be found or chosen is thrown at once; what is wrong
// with a shard's content, when it is waited for.
std::unique_ptr<Source> begin_source(const std::string& path, const SourceOptions& options);

}  // namespace stoker
