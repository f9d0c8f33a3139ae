// Sizes in memory as text for messages and plans. Pure; any thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

namespace stoker {

inline std::string mebibytes(int64_t bytes) {  // "12.5 MiB"
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

// For traffic and disks: "12.35 GB", "980 bytes".
inline std::string decimal_bytes(double bytes) {
  constexpr const char* kUnits[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
  int unit = 0;
  for (; bytes >= 1000 && unit < 5; ++unit) bytes /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g %s", bytes, kUnits[unit]);
  return text;
}

inline std::string gibibytes(int64_t bytes) {  // "3.25 GiB"
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

struct MemoryLine {
  const char* what;
  int64_t bytes;
};

inline std::string describe_lines(std::span<const MemoryLine> lines) {
  std::string text;
  char buffer[160];
  for (const MemoryLine& line : lines) {
    std::snprintf(buffer, sizeof buffer, "%9.1f MiB  %s\n",
                  static_cast<double>(line.bytes) / (1 << 20), line.what);
    text += buffer;
  }
  return text;
}

}  // namespace stoker
