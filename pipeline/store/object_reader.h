// Reads ranges of a store's objects, many at a time: tries failed requests again, asks slow ones
// for a second time, finds by measuring how many to have under way, and counts. Owner: whoever
// opened a data set. Threads: every method from any thread; `done` runs on the store's client's
// thread and must not wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>

#include "pipeline/store/object_store.h"
#include "pipeline/store/store_stats.h"

namespace stoker {

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
  // The same, and waits. Throws StoreError, also soon after `cancelled` has become true. REQUIRES:
  // not on the client's thread.
  void read_now(const StoredObject& object, int64_t offset, std::span<uint8_t> out,
                const std::atomic<bool>& cancelled);
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
