// Apart from http_client.cc, because the plugin needs it, too.
#include <algorithm>
#include <charconv>

#include "pipeline/store/http_client.h"

namespace stoker {
namespace {

char small_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view without_blanks(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

}  // namespace

const std::string& HttpAnswer::header(const std::string& name) const {
  static const std::string kNone;
  for (const auto& field : headers) {
    if (field.first == name) return field.second;
  }
  return kNone;
}

bool HttpAnswer::take_line(std::string_view line) {
  if (line.starts_with("HTTP/")) {  // of the answer, or of "100 Continue" before it
    headers.clear();
    const std::string_view number =
        without_blanks(line.substr(std::min(line.find(' '), line.size())));
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), status);
    return error == std::errc() && end == number.data() + 3 && status >= 100 &&
           line.starts_with("HTTP/1.1 ");
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  std::string name(without_blanks(line.substr(0, colon)));
  std::transform(name.begin(), name.end(), name.begin(), small_letter);
  const bool is_exact = colon > 0 && name.size() == colon;
  headers.emplace_back(std::move(name), without_blanks(line.substr(colon + 1)));
  return is_exact;
}

bool HttpAnswer::take_head(std::string_view lines) {
  for (bool is_first = true; !lines.empty(); is_first = false) {
    const size_t end = lines.find("\r\n");
    if (end == lines.npos || lines.starts_with("HTTP/") != is_first) return false;
    if (!take_line(lines.substr(0, end))) return false;
    lines.remove_prefix(end + 2);
  }
  return status != 0;
}

int64_t HttpAnswer::plain_length() const {
  int64_t length = -1;
  for (const auto& [name, value] : headers) {
    if (name == "transfer-encoding") return -1;
    if (name != "content-length") continue;
    const char* const end = value.data() + value.size();
    // A second one may say something else.
    if (length != -1 || value.empty() || value[0] < '0' || value[0] > '9') return -1;
    const auto [last, error] = std::from_chars(value.data(), end, length);
    if (error != std::errc() || last != end) return -1;
  }
  // These have no body, whatever their length says.
  return status < 200 || status == 204 || status == 304 ? -1 : length;
}

}  // namespace stoker
