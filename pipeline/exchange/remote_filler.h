// Fills rows for a feed in another process, which hands them out: the far side of RemoteRows. It
// keeps no state of the feed: any rows of any step may be asked for, again and in any order, and
// are the same bytes as the feed itself would fill. Owner: the user; the source outlives it.
// Threads: any; several fill() at once share its threads. Errors: the constructor throws what
// Loader's throws for the same arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/exchange/row_message.h"
#include "pipeline/loader_types.h"
#include "pipeline/row/device_edits.h"
#include "pipeline/source.h"

namespace stoker {

struct RemoteFillerOptions {
  int threads = 1;      // that read and decode, >= 1: the caller of fill(), and others
  int devices = 1;      // of the feed's process
  DeviceEdits edits{};  // what the feed leaves to its devices
};

class RemoteFiller {
 public:
  // `loader`: the feed's; what concerns its memory, its threads and its end plays no part.
  RemoteFiller(const Source& source, const AugmentSpec& augment, const LoaderOptions& loader,
               const RemoteFillerOptions& options);
  ~RemoteFiller();  // REQUIRES: no fill() is under way
  RemoteFiller(const RemoteFiller&) = delete;
  RemoteFiller& operator=(const RemoteFiller&) = delete;

  uint64_t fingerprint() const;  // RemoteRows::fingerprint() of the feed
  size_t message_bytes(int rows) const;
  // Fills rows, and returns what is to be delivered with them (pack_bad_samples()). Throws
  // std::invalid_argument if the feed has no such rows or the message has not message_bytes();
  // std::bad_alloc.
  std::vector<uint8_t> fill(const RowRange& range, std::span<std::byte> message);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
