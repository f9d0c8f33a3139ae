// Makes masks as its standard input requests (mask_request.h), so that scripts can compare stoker
// with other libraries. The answer to a request is a line with width, height, the number of bytes
// and the CPU time in microseconds, and the bytes. Environment: MASK_ROWS_REPEAT=N answers each N
// times and gives the average time.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iostream>

#include "tests/pipeline/mask_request.h"

namespace stoker {
namespace {

void answer_mask_requests(int repeat) {
  MaskRequests requests;
  for (std::string line; std::getline(std::cin, line);) {
    const std::clock_t begin = std::clock();
    std::optional<MaskRequests::Answer> answer = requests.take(line);
    if (!answer) continue;
    for (int i = 1; i < repeat; ++i) answer = requests.take(line);
    const double ticks = static_cast<double>(std::clock() - begin) / repeat;
    std::cout << answer->size.width << " " << answer->size.height << " " << answer->bytes.size()
              << " " << ticks * 1e6 / CLOCKS_PER_SEC << "\n";
    std::cout.write(reinterpret_cast<const char*>(answer->bytes.data()),
                    static_cast<std::streamsize>(answer->bytes.size()));
    std::cout.flush();
  }
}

}  // namespace
}  // namespace stoker

int main() {
  std::ios::sync_with_stdio(false);
  const char* repeat = std::getenv("MASK_ROWS_REPEAT");
  stoker::answer_mask_requests(repeat != nullptr ? std::max(1, std::atoi(repeat)) : 1);
}
