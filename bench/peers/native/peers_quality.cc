// Compares two files of samples (participant.h: `rows PATH`): peers_quality ROWS REFERENCE
// BYTES_PER_ROW. Prints one line of JSON: the mean absolute difference and that of the worst image
// in grey levels, and the PSNR in dB (null if the files are the same).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": could not be opened");
  return {std::istreambuf_iterator<char>(file), {}};
}

nlohmann::json compare(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b, size_t row) {
  if (a.size() != b.size() || a.empty() || a.size() % row != 0) {
    throw std::runtime_error("files of " + std::to_string(a.size()) + " and " +
                             std::to_string(b.size()) + " bytes with rows of " +
                             std::to_string(row));
  }
  double sum = 0, squares = 0, worst = 0;
  for (size_t begin = 0; begin < a.size(); begin += row) {
    double image = 0;
    for (size_t i = begin; i < begin + row; ++i) {
      const double d = std::abs(a[i] - b[i]);
      image += d;
      squares += d * d;
    }
    sum += image;
    worst = std::max(worst, image / static_cast<double>(row));
  }
  const double n = static_cast<double>(a.size());
  nlohmann::json result = {{"mean", sum / n}, {"worst", worst}, {"psnr", nullptr}};
  if (squares > 0) result["psnr"] = 10 * std::log10(255.0 * 255.0 * n / squares);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: peers_quality ROWS REFERENCE BYTES_PER_ROW\n");
    return 2;
  }
  try {
    const size_t row = std::max<size_t>(1, std::strtoull(argv[3], nullptr, 10));
    std::cout << compare(read_file(argv[1]), read_file(argv[2]), row) << "\n";
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peers_quality: %s\n", error.what());
    return 1;
  }
  return 0;
}
