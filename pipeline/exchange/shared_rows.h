// Blocks of rows that the processes of one machine decode once. The members of a share hand out the
// same steps in the same order; a block is some rows of one step and device. A ring of them, of so
// many steps, lies in shared memory, and each has a word: (step, state, owner, generation).
//
//   look() -> ours: decode the rows, then give()       -> done: the others read() them
//          -> busy: another member is at it; other blocks first, then look() again
//          -> alone: decode them, for oneself
//
// Nobody leads, and nobody waits for long: README.md says what becomes of members that die, stop or
// fall behind. A member gives rows only while another one is in reach (at most the ring's length
// from it), and in its first steps, for members that start a little later.
// Owner: SharedFiller. Threads: any; a member looks for each block with one thread at a time.
// Errors: those of ShareFile, in the constructor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "pipeline/exchange/share_file.h"
#include "staging/batch_layout.h"
#include "staging/mutex.h"

namespace stoker {

// Block `number` of a device's batch.
struct BlockPosition {
  Step step = 0;
  int device = 0;
  int number = 0;
};

// The blocks of so many steps, the last of which is followed by the first.
struct BlockRing {
  int steps = 1;
  int devices = 1;
  int blocks = 1;  // of a device's batch
  size_t size() const { return static_cast<size_t>(steps) * blocks_of_a_step(); }
  size_t index(const BlockPosition& position) const {
    return static_cast<size_t>(position.step % steps) * blocks_of_a_step() +
           static_cast<size_t>(position.device) * static_cast<size_t>(blocks) +
           static_cast<size_t>(position.number);
  }

 private:
  size_t blocks_of_a_step() const {
    return static_cast<size_t>(devices) * static_cast<size_t>(blocks);
  }
};

class SharedRows {
 public:
  struct Options {
    std::string name;
    std::string folder = "/dev/shm";
    uint64_t fingerprint = 0;  // of what the rows are, and of their blocks
    std::string facts;         // as in ShareFile
    int steps = 8;             // of the ring
    int devices = 1;
    int blocks = 1;          // of a device's batch
    size_t block_bytes = 0;  // at most
    Step first_step = 0;
    int64_t patience_ms = 1000;
    int64_t yield_ms = 0;  // 0: a block is everybody's
    double wait_s = 10;    // as in ShareOptions
  };
  enum class Found : uint8_t { done, ours, busy, alone };
  struct Look {
    Found found = Found::alone;
    uint64_t word = 0;  // for the calls that follow
  };
  struct Counts {
    int64_t taken_over = 0, corrupt = 0, waited_ns = 0;  // as in ShareStats
  };

  explicit SharedRows(const Options& options);
  SharedRows(const SharedRows&) = delete;
  SharedRows& operator=(const SharedRows&) = delete;

  // Waits before this member begins `step`, while that would write over a step that another one is
  // still at, or until `ends`.
  void wait_for_others(Step step, const std::function<bool()>& ends);
  // Says that this member has all rows before `step`.
  void set_position(Step step) {
    file_.set_position(step);
    file_.notify();
  }
  // Returns whether this member shall fetch the samples of a block: it is this member's, or nobody
  // else will decode it for this member. The answer changes as members come, go and get on.
  bool is_for_this(const BlockPosition& position) const;
  // Takes the block if it is free. `waited_ns`: for how long it has been busy for the caller.
  // `is_fetched`: the caller has its samples, so that it is not left to another member.
  Look look(const BlockPosition& position, int64_t waited_ns, bool is_fetched = false);
  // Copies a block that is done. Returns false if it is not, or no longer: look again.
  bool read(const BlockPosition& position, uint64_t word, std::span<std::byte> rows);
  // For a block that is ours. Each ends that. give() and decline() return false if another member
  // has taken it over.
  bool give(const BlockPosition& position, uint64_t word, std::span<const std::byte> rows);
  bool decline(const BlockPosition& position,
               uint64_t word);  // each member decodes these rows by itself
  void release(const BlockPosition& position, uint64_t word);  // nothing was done

  uint32_t changes() const { return file_.changes(); }
  void wait(uint32_t seen, int ms) { file_.wait(seen, ms); }
  void wake() { file_.notify(); }

  int64_t bytes() const;  // of shared memory
  Counts counts() const { return {taken_over_.load(), corrupt_.load(), waited_ns_.load()}; }

 private:
  struct Control;

  Control& control(const BlockPosition& position) const;
  uint64_t* rows_of(const BlockPosition& position) const;
  bool is_near(Step step) const {
    return file_.has_member(step - options_.steps, step + options_.steps);
  }
  bool has_company(Step step) const;
  uint32_t owner_of(const BlockPosition& position) const;
  bool leave(const BlockPosition& position, uint64_t word, uint64_t state);

  const Options options_;
  const BlockRing ring_;
  ShareFile file_;
  std::atomic<int64_t> taken_over_{0}, corrupt_{0}, waited_ns_{0};
  Mutex mutex_;
  // For wait_for_others(): how long it may wait, as it was at a time.
  int64_t wait_left_ns_ GUARDED_BY(mutex_), at_ns_ GUARDED_BY(mutex_);
};

}  // namespace stoker
