#include "pipeline/store/url_text.h"

#include <algorithm>
#include <cstdint>

#include "pipeline/files/printable_name.h"

namespace stoker {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_in(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

void append_encoded(std::string& text, char c) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  const auto byte = static_cast<uint8_t>(c);
  text += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return small;
}

// Returns `host`, or an empty text if it is no host, or has a port that is no number.
std::string without_default_port(std::string host, std::string_view scheme) {
  const size_t bracket = host.find(']');  // of an IPv6 address
  const size_t colon = host.find(':', bracket == std::string::npos ? 0 : bracket);
  if (colon == 0 || host.empty()) return "";
  if (colon == std::string::npos) return host;
  const std::string port = host.substr(colon + 1);
  const bool number =
      !port.empty() && port.size() <= 5 &&
      std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!number) return "";
  if (port == (scheme == "https" ? "443" : "80")) host.resize(colon);
  return host;
}

}  // namespace

std::string percent_encode(std::string_view text, Slash slash) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (is_letter_or_digit(c) || is_in(c, "-._~") || (c == '/' && slash == Slash::keep)) {
      encoded += c;
    } else {
      append_encoded(encoded, c);
    }
  }
  return encoded;
}

std::string encode_for_url(std::string_view text) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte <= 0x20 || byte >= 0x7F || is_in(c, "\"<>\\^`{|}")) {
      append_encoded(encoded, c);
    } else {
      encoded += c;
    }
  }
  return encoded;
}

std::optional<std::string> percent_decode(std::string_view text, Plus plus) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus == Plus::is_space) {
      decoded += ' ';
    } else if (text[i] == '%') {
      const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

std::optional<UrlParts> split_url(std::string_view url) {
  const size_t colon = url.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  UrlParts parts;
  parts.scheme = small_letters(url.substr(0, colon));
  if (parts.scheme != "http" && parts.scheme != "https") return std::nullopt;
  const std::string_view rest = url.substr(colon + 3);
  if (is_in('#', rest)) return std::nullopt;
  const size_t end = std::min(rest.find_first_of("/?"), rest.size());
  const std::string host = small_letters(rest.substr(0, end));
  const auto bad = [](char c) {
    return !is_letter_or_digit(c) && !is_in(c, "-._~:[]%");  // no "@", no white space
  };
  if (std::any_of(host.begin(), host.end(), bad)) return std::nullopt;
  parts.host = without_default_port(host, parts.scheme);
  if (parts.host.empty()) return std::nullopt;
  const size_t question = std::min(rest.find('?', end), rest.size());
  parts.path = question > end ? rest.substr(end, question - end) : std::string_view("/");
  if (question < rest.size()) parts.query = rest.substr(question + 1);
  return parts;
}

std::optional<std::string> redirected_url(const std::string& url, const std::string& location) {
  const auto from = split_url(url);
  if (!from || location.empty()) return std::nullopt;
  std::string target = encode_for_url(location.substr(0, location.find('#')));
  const std::string server = from->scheme + "://" + from->host;
  const size_t scheme_end = target.find("://");
  if (target.compare(0, 2, "//") == 0) {
    target.insert(0, from->scheme + ":");
  } else if (target[0] == '/') {
    target.insert(0, server);
  } else if (scheme_end == std::string::npos || scheme_end > target.find_first_of("/?")) {
    target.insert(0, server + from->path.substr(0, from->path.rfind('/') + 1));
  }
  if (!split_url(target)) return std::nullopt;
  return target;
}

std::string shown_url(const std::string& url) {
  std::string text = url.substr(0, url.find_first_of("?#"));
  if (split_url(text)) return printable_name(text);
  const size_t colon = text.find("://");
  const size_t host = colon == std::string::npos ? 0 : colon + 3;
  const size_t at = text.rfind('@');  // a key of AWS may have a slash
  if (at != std::string::npos && at >= host) text.replace(host, at - host, "...");
  return printable_name(text);
}

}  // namespace stoker
