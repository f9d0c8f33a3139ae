// Answers of S3: std::runtime_error, or a list whose objects have a key, a size and a version; also
// taken as an error, and as a URL that a redirection leads to. Input: the answer.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "pipeline/store/s3/answers.h"
#include "pipeline/store/url_text.h"

namespace {

void check_list(const std::string& text) {
  stoker::ListPage page;
  try {
    page = stoker::parse_list_page(text);
  } catch (const std::runtime_error&) {
    return;
  }
  size_t bytes = page.next.size();
  for (const auto& object : page.objects) {
    if (object.key.empty() || object.bytes < 0 || object.version.empty()) std::abort();
    bytes += object.key.size();
  }
  for (const std::string& folder : page.folders) bytes += folder.size();
  // The parts of keys are in the answer.
  if (bytes > text.size()) std::abort();
}

void check_url(const std::string& text) {
  const auto target = stoker::redirected_url("https://host/a/b", text);
  if (!target) return;
  const auto parts = stoker::split_url(*target);
  if (!parts || parts->host.empty() || parts->path.empty() || parts->path[0] != '/') std::abort();
  for (const char c : *target) {
    if (c <= ' ' || c == 0x7F) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_list(text);
  const S3Error error = read_s3_error({.status = 403, .body = text});
  if (error.code.size() + error.message.size() + error.region.size() > size) std::abort();
  check_url(text);
  return 0;
}
