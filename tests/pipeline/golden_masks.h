// The golden masks of pycocotools and torchvision (tests/golden/annotation/make_masks.py).
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>
#include <string>

#include "tests/decode/pixels.h"
#include "tests/pipeline/mask_request.h"

namespace stoker {

// Compares all answers of a file with ours. Returns their number.
inline int check_golden_masks(const std::string& name) {
  std::ifstream lines(std::string(STOKER_GOLDEN_DIR) + "/annotation/" + name);
  MaskRequests requests;
  int count = 0;
  for (std::string line, before; std::getline(lines, line);) {
    if (line[0] != '=') {
      before = line.rfind("picture", 0) == 0 ? line : before + "\n" + line;
      requests.take(line);
      continue;
    }
    const auto answer = requests.take(line.substr(19));  // "= ", the hash, " "
    if (!answer) throw std::invalid_argument("no answer to: " + line);
    EXPECT_EQ(fnv1a(answer->bytes), line.substr(2, 16)) << before << "\n" << line;
    ++count;
  }
  return count;
}

}  // namespace stoker
