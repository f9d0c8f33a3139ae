#include "tools/console/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace stoker {
namespace {

constexpr int kProgressCells = 20;
constexpr int64_t kBarIntervalNs = 100'000'000;
constexpr int64_t kLineIntervalNs = 5'000'000'000;

int64_t progress_now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

size_t terminal_columns(FILE* out) {
  winsize size{};
  if (ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

Progress::Progress(int64_t total, FILE* out)
    : total_(std::max<int64_t>(total, 1)),
      out_(out),
      terminal_(isatty(fileno(out)) == 1),
      interval_ns_(terminal_ ? kBarIntervalNs : kLineIntervalNs) {
  // The first plain line comes after one interval, the first bar immediately.
  if (!terminal_) next_ns_ = progress_now_ns() + interval_ns_;
}

Progress::~Progress() { erase(); }

bool Progress::due() const { return progress_now_ns() >= next_ns_; }

void Progress::erase() {
  if (drawn_) std::fputs("\r\033[K", out_);
  drawn_ = false;
}

void Progress::update(int64_t done, const std::string& text) {
  if (!due()) return;
  next_ns_ = progress_now_ns() + interval_ns_;
  const double share =
      std::clamp(static_cast<double>(done) / static_cast<double>(total_), 0.0, 1.0);
  if (!terminal_) {
    std::fprintf(out_, "%s\n", fmt::format("{:3.0f}% {}", 100 * share, text).c_str());
    std::fflush(out_);
    return;
  }
  const int cells = static_cast<int>(share * kProgressCells);
  std::string line = fmt::format("[{:{}}] {:3.0f}% {}", std::string(cells, '#'), kProgressCells,
                                 100 * share, text);
  line.resize(std::min(line.size(), terminal_columns(out_) - 1));
  while (!line.empty() && static_cast<uint8_t>(line.back()) >= 0x80)
    line.pop_back();  // half of a UTF-8 character
  std::fprintf(out_, "\r\033[K%s", line.c_str());
  std::fflush(out_);
  drawn_ = true;
}

void Progress::say(const std::string& line) {
  erase();
  std::fprintf(out_, "%s\n", line.c_str());
  if (terminal_) next_ns_ = 0;
}

std::string format_duration(double seconds) {
  const auto total = static_cast<int64_t>(seconds + 0.5);
  if (total < 60) return fmt::format("{} s", total);
  if (total < 3600) return fmt::format("{}:{:02}", total / 60, total % 60);
  return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
}

std::string format_count(double count) {
  if (count < 1e4) return fmt::format("{:.0f}", count);
  if (count < 1e6) return fmt::format("{:.1f}k", count / 1e3);
  return fmt::format("{:.2f}M", count / 1e6);
}

}  // namespace stoker
