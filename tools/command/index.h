// Makes a data set's seek indexes and shows a progress bar. Owner: the command. Threads: one;
// Ctrl-C and SIGTERM stop it cleanly. Throws what build_seek_indexes() throws.
#pragma once

#include <optional>
#include <string>

#include "pipeline/seek_index/build.h"

namespace stoker {

struct SeekIndexRun {
  std::optional<SeekIndexTotals> totals;  // nullopt: stopped, and nothing was written
  int signal = 0;                         // the signal that stopped it; 0: none
  double seconds = 0;
};

SeekIndexRun make_seek_indexes(const Source& source, const std::string& path, SeekStep step,
                               int workers);

}  // namespace stoker
