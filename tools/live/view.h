// A run's status as text, and on a terminal: redrawn in place. Without a terminal a line now and
// then. Owner: the command. Threads: one at a time.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "tools/live/status.h"

namespace stoker {

std::vector<std::string> live_lines(const LiveStatus& status);  // a screenful
std::string live_line(const LiveStatus& status);                // the same in one

class LiveView {
 public:
  explicit LiveView(FILE* out);
  ~LiveView();  // what was drawn last stays, the cursor below it
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  void show(const LiveStatus& status);
  void say(const std::string& line);  // a line that stays, above what is redrawn

 private:
  void erase();

  FILE* const out_;
  const bool terminal_;
  int drawn_ = 0;         // lines below which the cursor is
  double next_line_ = 0;  // LiveStatus::running_seconds; without a terminal
};

}  // namespace stoker
