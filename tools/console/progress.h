// How far a long run is: a bar that redraws itself on a terminal, plain lines now and then in a
// pipe. Owner: the command. Threads: one at a time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace stoker {

class Progress {
 public:
  // `total` in the unit that update() counts. `out` is stderr where stdout carries data.
  explicit Progress(int64_t total, FILE* out = stderr);
  ~Progress();  // leaves the cursor on a fresh line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap when called often: draws at most ten times a second. `text` stands behind the bar.
  void update(int64_t done, const std::string& text);
  // True when update() would draw now: lets the caller skip making the text.
  bool due() const;
  // A line that stays, above the bar.
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
