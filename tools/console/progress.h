// The progress of a long run: a bar that redraws itself on a terminal, or a plain line from time to
// time in a pipe. Owner: the command. Threads: one at a time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace stoker {

class Progress {
 public:
  // `total` has the unit that update() counts in. `out` is stderr where stdout carries data.
  explicit Progress(int64_t total, FILE* out = stderr);
  ~Progress();  // leaves the cursor on a fresh line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Draws the bar with `text` after it, at most ten times a second, so that frequent calls are
  // cheap.
  void update(int64_t done, const std::string& text);
  // Returns whether update() would draw now, so that the caller need not make the text.
  bool due() const;
  // Prints a line that stays, above the bar.
  void say(const std::string& line);

 private:
  void erase();

  const int64_t total_;
  FILE* const out_;
  const bool terminal_;
  const int64_t interval_ns_;
  int64_t next_ns_ = 0;
  bool drawn_ = false;
};

std::string format_duration(double seconds);  // "8 s", "3:07", "2:03:07"
std::string format_count(double count);       // "950", "12.3k", "1.2M"

}  // namespace stoker
