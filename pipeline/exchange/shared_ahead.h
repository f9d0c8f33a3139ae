// Which samples of shared rows a member of the share fetches before they are read: those of its own
// blocks (SharedRows::is_for_this()), and of those that it reads for another reason, because their
// member was late, say. For sources in a store, each of whose samples shall leave it once.
//
//   next() -> a block to announce        FeedSequence, in the order in which rows are needed
//   will_read()                          whoever is about to read a block: it is announced now, if
//   it
//                                        was not, since every read is of an announced sample
//   was_taken() -> its samples were announced, and will not be read
//
// Owner: SharedFiller. Threads: any.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "pipeline/exchange/shared_rows.h"
#include "pipeline/source.h"
#include "staging/mutex.h"

namespace stoker {

class SharedAhead {
 public:
  struct Options {
    BlockRing ring;  // of no fewer steps than are under way at a time
    Step first_step = 0;
    Step end_step = 0;
  };

  SharedAhead(const SharedRows& rows, const Options& options);
  SharedAhead(const SharedAhead&) = delete;
  SharedAhead& operator=(const SharedAhead&) = delete;

  // Sets `position` to the next block whose samples are to be fetched here.
  NextSample next(BlockPosition& position);
  bool is_announced(const BlockPosition& position) const;
  void will_read(const BlockPosition& position);
  // The block's rows are there, from another member. Returns whether its samples were announced.
  bool was_taken(const BlockPosition& position);
  // Says that all rows before `step` are there.
  void set_position(Step step);

 private:
  enum class State : uint8_t { open, announced, taken };
  struct Block {
    Step step = -1;
    State state = State::open;
  };

  // A block that is under way.
  Block& block(const BlockPosition& position) REQUIRES(mutex_);
  void advance() REQUIRES(mutex_);

  const SharedRows& rows_;
  const Options options_;
  mutable Mutex mutex_;
  std::vector<Block> blocks_ GUARDED_BY(mutex_);
  std::deque<BlockPosition> late_ GUARDED_BY(mutex_);  // read without an announcement
  BlockPosition cursor_ GUARDED_BY(mutex_);  // what next() looks at next, but for late ones
  Step position_ GUARDED_BY(mutex_);
};

}  // namespace stoker
