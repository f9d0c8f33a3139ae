#include <algorithm>
#include <stdexcept>

#include "pipeline/store/object_store.h"
#include "pipeline/store/url_text.h"

namespace stoker {
namespace {

bool begins_with(const std::string& text, std::string_view start) {
  return text.compare(0, start.size(), start) == 0;
}

StoreAddress parse_s3(const std::string& address) {
  const auto fail = [&](const char* why) {
    throw std::invalid_argument(shown_url(address) + ": " + why +
                                "; an address is like s3://bucket/train/");
  };
  StoreAddress parsed;
  const std::string rest = address.substr(5);
  const size_t slash = std::min(rest.find('/'), rest.size());
  parsed.server = rest.substr(0, slash);
  if (slash < rest.size()) parsed.key = rest.substr(slash + 1);
  if (parsed.server.empty()) fail("there is no bucket");
  const auto bad = [](char c) {
    return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '-' || c == '_' || c == '.');
  };
  if (parsed.server.size() > 255 || parsed.server.front() == '.' ||
      std::any_of(parsed.server.begin(), parsed.server.end(), bad)) {
    fail(
        "the bucket's name has letters, digits, '-', '_' and '.' (access points are not "
        "supported)");
  }
  if (parsed.key.size() > 1024) fail("the key is longer than S3's 1024 bytes");
  return parsed;
}

StoreAddress parse_http(const std::string& address) {
  const auto fail = [&](const char* why) {
    throw std::invalid_argument(shown_url(address) + ": " + why +
                                "; an address is like https://host/data/train-000.tar");
  };
  if (address.find('#') != std::string::npos) fail("'#' is written %23 in a URL");
  const size_t host = address.find("://") + 3;
  if (address.substr(host, address.find_first_of("/?", host) - host).find('@') !=
      std::string::npos) {
    fail("a user and a password in an address are not supported");
  }
  const auto url = split_url(address);
  if (!url) fail("the host or the port is wrong");
  StoreAddress parsed;
  parsed.kind = StoreAddress::Kind::http;
  parsed.server = url->scheme + "://" + url->host;
  parsed.key = encode_for_url(url->path);
  parsed.query = encode_for_url(url->query);
  return parsed;
}

}  // namespace

bool is_store_address(const std::string& path) {
  return begins_with(path, "s3://") || begins_with(path, "http://") ||
         begins_with(path, "https://");
}

StoreAddress parse_address(const std::string& address) {
  if (begins_with(address, "s3://")) return parse_s3(address);
  if (is_store_address(address)) return parse_http(address);
  throw std::invalid_argument(shown_url(address) +
                              " is no address of a store, like s3://bucket/train/ or "
                              "https://host/data/train-000.tar");
}

std::string target_of(const StoreAddress& address) {
  std::string target = address.key;
  if (!address.query.empty()) target.append("?").append(address.query);
  return target;
}

std::string shown_path(const std::string& path) {
  if (path.find("://") == std::string::npos) return path;
  // In a key of S3 "?", "#" and "@" stand for themselves.
  const bool is_key =
      begins_with(path, "s3://") &&
      path.substr(5, path.find('/', 5) - 5).find_first_of(":@") == std::string::npos;
  return is_key ? path : shown_url(path);
}

std::string shown_word(const std::string& word) {
  const size_t colon = word.find("://");
  if (colon == std::string::npos) return word;
  const size_t begin = word.find_last_of("=", colon) + 1;  // --data=https://...
  const std::string address = word.substr(begin), shown = shown_path(address);
  if (shown == address) return word;
  return word.substr(0, begin) + shown + (address.find('?') == std::string::npos ? "" : "?...");
}

}  // namespace stoker
