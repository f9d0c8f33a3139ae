// Runs operations of decode/pixel as its standard input requests, so that scripts can compare them
// with other libraries. A request is a line
//   operation width height numbers...
// and then width * height * 3 bytes of RGB; the answer is as many bytes. With --time N it is a line
// instead: the CPU time of one run in microseconds, the median of N runs on fresh copies.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/colour_operations.h"

namespace stoker {
namespace {

// A line of the input and the pixels behind it.
struct ColourRequest {
  std::string name;
  Size size;
  std::vector<double> numbers;
  std::vector<uint8_t> pixels;
};

bool read_request(ColourRequest& request) {
  std::string line;
  if (!std::getline(std::cin, line)) return false;
  std::istringstream words(line);
  words >> request.name >> request.size.width >> request.size.height;
  request.numbers.clear();
  for (double number = 0; words >> number;) request.numbers.push_back(number);
  request.pixels.resize(static_cast<size_t>(request.size.width) * request.size.height * 3);
  std::cin.read(reinterpret_cast<char*>(request.pixels.data()),
                static_cast<std::streamsize>(request.pixels.size()));
  return static_cast<bool>(std::cin);
}

bool apply(const ColourRequest& request, std::vector<uint8_t>& pixels, ColourRoom& room) {
  const MutableImageView image{pixels.data(), request.size.width, request.size.height,
                               3 * request.size.width};
  return run_colour_operation(request.name, image, request.numbers, room);
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median_microseconds(const ColourRequest& request, ColourRoom& room, int runs) {
  // One run alone is near the clock's own cost.
  constexpr int kTogether = 20;
  std::vector<double> times;
  std::vector<uint8_t> pixels;
  for (int run_colours = 0; run_colours < runs; ++run_colours) {
    double seconds = 0;
    for (int i = 0; i < kTogether; ++i) {
      pixels = request.pixels;
      const double begin = cpu_seconds();
      apply(request, pixels, room);
      seconds += cpu_seconds() - begin;
    }
    times.push_back(1e6 * seconds / kTogether);
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[static_cast<size_t>(runs / 2)];
}

int run_colours(int timed_runs) {
  ColourRoom room;
  ColourRequest request;
  while (read_request(request)) {
    std::vector<uint8_t> result = request.pixels;
    if (!apply(request, result, room)) return 2;
    if (timed_runs > 0) {
      std::printf("%.3f\n", median_microseconds(request, room, timed_runs));
      std::fflush(stdout);
    } else {
      std::cout.write(reinterpret_cast<char*>(result.data()),
                      static_cast<std::streamsize>(result.size()));
      std::cout.flush();
    }
  }
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  if (argc == 1) return stoker::run_colours(0);
  if (argc == 3 && std::string(argv[1]) == "--time") return stoker::run_colours(std::atoi(argv[2]));
  std::fprintf(stderr, "usage: colour_rows [--time RUNS]\n");
  return 2;
}
