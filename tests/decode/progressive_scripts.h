// The scans of progressive files: those that encoders write, unusual ones, and random ones. All are
// complete: they bring every bit of every coefficient.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/decode/jpeg_recoder.h"

namespace stoker {

struct ScanScript {
  std::string name;
  std::vector<ScanOfBits> scans;
};

// Returns the scans that libjpeg writes by default, and so Pillow, for 1 or 3 components.
std::vector<ScanOfBits> libjpegs_scans(int components);

// Returns these and others.
std::vector<ScanScript> usual_scripts(int components);
ScanScript random_script(int components, std::mt19937& random);

}  // namespace stoker
