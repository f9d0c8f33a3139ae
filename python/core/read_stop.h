// Ends reads that wait for a program's own code, which may take for ever. Such a read calls
// check_read() now and then.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "pipeline/source.h"

namespace stoker::python {

// How long a read waits between two calls of check_read().
inline constexpr auto kReadPoll = std::chrono::milliseconds(50);

// Throws std::runtime_error if the feed that this thread reads for was closed. In a read for no
// feed, as by source[17].data, it lets Python handle signals, and throws what a handler raises.
void check_read();

// Returns whether this thread reads for a feed now.
bool reads_for_feed();

// The same source for a feed: when `stop` becomes true, its reads end. The result keeps the source;
// `stop` outlives it.
std::shared_ptr<const Source> stoppable(std::shared_ptr<const Source> source,
                                        const std::atomic<bool>& stop);

}  // namespace stoker::python
