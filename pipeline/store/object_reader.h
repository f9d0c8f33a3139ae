// Reads ranges of a store's objects, many at a time: tries failed requests again, asks slow ones
// for a second time, finds by measuring how many to have under way, and counts. Owner: whoever
// opened a data set. Threads: every method from any thread; `done` runs on the store's client's
// thread and must not wait.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>

#include "pipeline/store/object_store.h"

namespace stoker {

struct StoreStats {
  int64_t requests = 0;       // sent, with retries and second requests
  int64_t ranges = 0;         // read in full
  int64_t bytes = 0;          // of these ranges
  int64_t bytes_carried = 0;  // over the network, with what was thrown away
  int64_t retries = 0;
  int64_t throttled = 0;            // answers 503 Slow Down and 429
  int64_t second_requests = 0;      // of slow ones
  int64_t second_requests_won = 0;  // that came first
  int64_t failed = 0;
  int requests_wanted = 0;  // under way at once: what measuring has found, or the option
  int requests_under_way = 0;
  // Of the last ranges (a few hundred): from the request to the first byte, and to the last.
  double first_byte_ms_median = 0, first_byte_ms_p99 = 0, total_ms_median = 0, total_ms_p99 = 0;
  double bytes_per_second = 0;     // over the time in which at least one request was under way
  double requests_per_second = 0;  // the same
};

class ObjectReader {
 public:
  ObjectReader(std::shared_ptr<const ObjectStore> store, const StoreOptions& options);
  ~ObjectReader();  // cancels what is under way; `done` is not called for it
  ObjectReader(const ObjectReader&) = delete;
  ObjectReader& operator=(const ObjectReader&) = delete;

  // nullptr, or a StoreError.
  using Done = std::function<void(std::exception_ptr error)>;
  // Fills `out` with the object's bytes from `offset` on, then calls `done`. `object` and `out`
  // stay valid until then. Ranges that are more than `room()` wait here; `urgent` ones go first.
  void read(const StoredObject& object, int64_t offset, std::span<uint8_t> out, bool urgent,
            Done done);
  // The same, and waits. Throws StoreError. REQUIRES: not on the client's thread.
  void read_now(const StoredObject& object, int64_t offset, std::span<uint8_t> out);
  // How many ranges may be asked for now without waiting for those under way.
  int room() const;
  // Called on the client's thread whenever there is room again. Set it before the first read().
  void set_room_hook(std::function<void()> hook);
  // Tells whether somebody waits for bytes: only then is it worth to have more under way.
  void set_starving(bool starving);
  StoreStats stats() const;
  const ObjectStore& store() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
