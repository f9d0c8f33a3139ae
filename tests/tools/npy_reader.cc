#include "tests/tools/npy_reader.h"

#include <regex>
#include <sstream>
#include <stdexcept>

#include "tests/tools/cli_harness.h"

namespace stoker {

NpyFile read_npy(const std::string& path) {
  const std::string file = read_text(path);
  if (file.size() < 10 || file.compare(0, 8, std::string("\x93NUMPY\x01\x00", 8)) != 0) {
    throw std::runtime_error(path + " is not a .npy file of version 1.0");
  }
  const size_t length = static_cast<uint8_t>(file[8]) + 256u * static_cast<uint8_t>(file[9]);
  const std::string head = file.substr(10, length);
  const std::regex pattern(
      R"(\{'descr': '([^']+)', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \} *\n)");
  std::smatch match;
  if ((10 + length) % 64 != 0 || !std::regex_match(head, match, pattern)) {
    throw std::runtime_error(path + " has the header " + head);
  }
  NpyFile result{match[1], {}, file.substr(10 + length)};
  size_t expected = std::stoul(result.descr.substr(2));
  std::string extents = match[2];
  for (char& c : extents) c = c == ',' ? ' ' : c;
  std::istringstream numbers(extents);
  for (int64_t extent; numbers >> extent;) {
    result.shape.push_back(extent);
    expected *= static_cast<size_t>(extent);
  }
  if (result.data.size() != expected) {
    throw std::runtime_error(path + " has " + std::to_string(result.data.size()) +
                             " bytes of data, not " + std::to_string(expected));
  }
  return result;
}

}  // namespace stoker
