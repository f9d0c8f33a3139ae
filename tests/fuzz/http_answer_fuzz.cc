// The head of an answer that is read without libcurl: refused, or it has a status, names in small
// letters, and a length, or none. Input: the head's lines.
#include <cstdlib>
#include <string_view>

#include "pipeline/store/http_client.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view lines(reinterpret_cast<const char*>(data), size);
  stoker::HttpAnswer answer;
  if (!answer.take_head(lines)) return 0;
  if (answer.status < 100 || answer.status > 999 || answer.plain_length() < -1) std::abort();
  size_t bytes = 0;
  for (const auto& [name, value] : answer.headers) {
    bytes += name.size() + value.size();
    if (name.empty() || name.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ:") != name.npos) {
      std::abort();
    }
  }
  if (bytes > size) std::abort();
  return 0;
}
