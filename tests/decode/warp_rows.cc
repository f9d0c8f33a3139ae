// Transforms pictures as its standard input requests, so that scripts can compare stoker with other
// libraries. A line is
//   picture WIDTH HEIGHT     then WIDTH * HEIGHT * 3 bytes: the picture of the requests that follow
// or a request (warp_request.h). The answer to a request is a line with width, height and the CPU
// time in microseconds, and the pixels. Environment: WARP_ROWS_REPEAT=N answers each N times and
// gives the average time.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <sstream>
#include <string>

#include "tests/decode/warp_request.h"

namespace stoker {
namespace {

void run_warps(int repeat) {
  WarpPicture picture({1, 1});
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    const std::istringstream::pos_type numbers_begin = words.tellg();
    WarpNumbers numbers(words);
    if (name == "picture") {
      picture = WarpPicture(numbers.size());
      std::cin.read(picture.chars(), picture.count());
      continue;
    }
    WarpPicture answer({1, 1});
    const std::clock_t begin = std::clock();
    for (int i = 0; i < repeat; ++i) {
      words.clear();
      words.seekg(numbers_begin);
      answer = answer_to_warp(name, picture, numbers);
    }
    const double ticks = static_cast<double>(std::clock() - begin) / repeat;
    std::cout << answer.size().width << " " << answer.size().height << " "
              << ticks * 1e6 / CLOCKS_PER_SEC << "\n";
    std::cout.write(answer.chars(), answer.count());
    std::cout.flush();
  }
}

}  // namespace
}  // namespace stoker

int main() {
  std::ios::sync_with_stdio(false);
  const char* repeat = std::getenv("WARP_ROWS_REPEAT");
  stoker::run_warps(repeat != nullptr ? std::max(1, std::atoi(repeat)) : 1);
}
