// How much a process grows while something is done, as the system counts it: libraries' memory,
// too.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <fstream>
#include <span>
#include <string>

#include "decode/image_decoder.h"
#include "tests/decode/pixels.h"
#include "tests/support/sanitizers.h"

namespace stoker {

// A process may grow by this where hardly anything is decoded: pages of code, of stacks and of the
// allocator, and what AddressSanitizer keeps of freed memory.
inline constexpr int64_t kLittleGrowth = int64_t{kAddressSanitizer ? 48 : 12} << 20;

// Returns a value of /proc/self/status in bytes; -1 if there is none.
inline int64_t process_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1)) * 1024;
  }
  return -1;
}

// Calls `work` and returns how much the process grew at its peak; -1 if the system does not report
// it. Memory that earlier work freed is given back before, so that it is counted when it is taken.
template <class Work>
int64_t growth_during(const Work& work) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // reset the peak
  const int64_t before = process_bytes("VmRSS");
  work();
  const int64_t peak = process_bytes("VmHWM");
  return before < 0 || peak < 0 ? -1 : peak - before;
}

// The same for a picture that is decoded as a whole, to 224 x 224 pixels.
inline int64_t growth_of_decoding(std::span<const uint8_t> file, Size size, DecodeCode expected,
                                  const DecodeOptions& options = {}) {
  ImageDecoder decoder(options);
  Pixels out({224, 224});
  const CropSpec spec{{0, 0, size.width, size.height}, {224, 224}, {0, 0, 224, 224}};
  return growth_during([&] {
    const DecodeStatus status = decoder.decode(file, spec, out.view());
    EXPECT_EQ(status.code, expected) << status.message;
  });
}

}  // namespace stoker
