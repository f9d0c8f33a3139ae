// A run's status as text; on a terminal it is redrawn in place, otherwise a line is printed every
// few seconds. Owner: the command. Threads: one at a time.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "tools/live/status.h"

namespace stoker {

std::vector<std::string> live_lines(const LiveStatus& status);  // a screenful
std::string live_line(const LiveStatus& status);                // the same in one line

class LiveView {
 public:
  explicit LiveView(FILE* out);
  ~LiveView();  // leaves what was drawn last on the screen
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  void show(const LiveStatus& status);
  void say(const std::string& line);  // prints a line that stays, above what is redrawn

 private:
  void erase();

  FILE* const out_;
  const bool terminal_;
  int drawn_ = 0;         // lines above the cursor that are redrawn
  double next_line_ = 0;  // LiveStatus::running_seconds; without a terminal
};

}  // namespace stoker
