#include "tools/option/store_option_group.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string_view>

#include "pipeline/source.h"
#include "pipeline/store/object_store.h"
#include "tools/option/parser.h"

namespace stoker {
namespace {

using Style = StoreOptions::Style;
const std::map<std::string, Style> kStyles = {
    {"auto", Style::automatic}, {"path", Style::path}, {"host", Style::host}};
constexpr const char* kStoreOptions[] = {"--store-endpoint", "--store-region",    "--store-profile",
                                         "--store-style",    "--store-anonymous", "--store-ca",
                                         "--store-requests", "--store-memory",    "--store-tries"};
constexpr const char* kCacheNames[] = {"--cache", "--cache-size"};
constexpr int64_t kMebibyte = 1 << 20;
constexpr std::string_view kDecoded = "decoded", kDecodedIn = "decoded:";

bool is_decoded(const std::string& cache) {
  return cache == kDecoded || cache.starts_with(kDecodedIn);
}

}  // namespace

StoreOptions StoreOptionGroup::store() const {
  StoreOptions store = options;
  store.style = kStyles.at(style);
  store.read_ahead_bytes = mebibytes * kMebibyte;
  check_cache();
  if (cache.empty() || is_decoded(cache)) return store;
  store.cache = cache;
  store.cache_bytes = parse_size(cache_size);
  return store;
}

StoreOptions StoreOptionGroup::store_for(const std::string& path) const {
  check_cache();
  return is_store_address(path) ? store() : StoreOptions{};
}

std::optional<DecodedCacheOptions> StoreOptionGroup::decoded() const {
  check_cache();
  if (!is_decoded(cache)) return std::nullopt;
  return DecodedCacheOptions{cache == kDecoded ? "" : cache.substr(kDecodedIn.size()),
                             parse_size(cache_size)};
}

void StoreOptionGroup::check_cache() const {
  if (cache.empty() && !cache_size.empty()) {
    throw std::invalid_argument("--cache-size: needs --cache, a folder or `decoded`");
  }
  if (!cache.empty() && cache_size.empty()) {
    throw std::invalid_argument("--cache: needs --cache-size, as 500G");
  }
  if (cache == kDecodedIn) {
    throw std::invalid_argument("--cache: decoded: needs a folder behind the colon");
  }
  if (is_decoded(cache) && !feeds) {
    throw std::invalid_argument("--cache: " + cache +
                                " keeps decoded pictures of what train, eval, profile and dump "
                                "feed, and nothing here (a folder of that name is ./" +
                                cache + ")");
  }
}

int64_t parse_size(const std::string& text) {
  constexpr std::string_view kUnits = "KMGT";
  constexpr double kMax = 1e18;
  double size = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, size);
  const size_t unit = rest == end ? std::string_view::npos : kUnits.find(*rest);
  const bool has_unit = rest + 1 == end && unit != std::string_view::npos;
  if (has_unit) size *= std::pow(1000.0, static_cast<double>(unit + 1));
  if (error != std::errc() || (rest != end && !has_unit) || !(size >= 1 && size <= kMax)) {
    throw std::invalid_argument("--cache-size: " + text +
                                " is no size; write bytes, or 200M, 500G, 1.5T");
  }
  return static_cast<int64_t>(size);
}

void StoreOptionGroup::check_used(const std::vector<std::string>& paths) const {
  check_cache();
  if (app == nullptr || std::ranges::any_of(paths, is_store_address)) return;
  const std::string why = shown_path(paths.front()) + " is no address in a store (s3://, https://)";
  for (const char* name : kStoreOptions) refuse_if_given(*app, {name}, why);
  if (is_decoded(cache)) return;
  for (const char* name : kCacheNames) {
    refuse_if_given(*app, {name}, why + ", and only --cache decoded is for other data");
  }
}

std::string written_path(const std::string& path) {
  if (!is_store_address(path)) return std::filesystem::absolute(local_path(path)).string();
  return parse_address(path).kind == StoreAddress::Kind::http ? path.substr(0, path.find('?'))
                                                              : path;
}

std::string written_cache(const std::string& cache) {
  if (cache == kDecoded) return cache;
  const size_t prefix = is_decoded(cache) ? kDecodedIn.size() : 0;
  return cache.substr(0, prefix) + written_path(cache.substr(prefix));
}

void add_store_options(CLI::App& app, StoreOptionGroup& group) {
  StoreOptions& options = group.options;
  group.app = &app;
  app.add_option("--store-endpoint", options.endpoint,
                 "Server of s3:// addresses, as http://127.0.0.1:8333 (default: that of the AWS "
                 "settings, else Amazon's)");
  app.add_option("--store-region", options.region,
                 "Region of the bucket (default: that of the AWS settings)");
  app.add_option("--store-profile", options.profile,
                 "Profile in the AWS settings that has the keys (default: $AWS_PROFILE)");
  app.add_option("--store-style", group.style,
                 "Whether the bucket's name is in the path or in the host's name. auto: in the "
                 "path at an endpoint of one's own")
      ->check(CLI::IsMember(&kStyles));
  app.add_flag("--store-anonymous", options.anonymous, "Do not sign requests: a public bucket");
  app.add_option("--store-ca", options.ca_file,
                 "File of certificates to trust instead of the system's")
      ->check(CLI::ExistingFile);
  app.add_option("--store-requests", options.requests,
                 "Requests to a store that are under way at once. 0 finds the number by measuring")
      ->check(CLI::Range(0, StoreOptions::kMaxRequests));
  app.add_option("--store-memory", group.mebibytes,
                 "MiB of a store's samples that are fetched before they are read")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  app.add_option("--store-tries", options.tries,
                 "How often a request is tried before the run ends with an error")
      ->check(CLI::Range(1, 1000));
  app.add_option("--cache", group.cache,
                 "What is kept of a fixed part of the samples. A folder on a disk of this machine "
                 "keeps a store's files between epochs and runs, so that they leave the store "
                 "once. decoded keeps decoded pictures in memory, and decoded:FOLDER on a disk, of "
                 "any data, where the rows show the same of each image in every epoch (evaluation, "
                 "a random crop with padding) or images are small; other recipes are refused. "
                 "Processes may share a folder. A full disk makes it smaller");
  app.add_option("--cache-size", group.cache_size,
                 "The most bytes in --cache for each data set that is opened, and each recipe of "
                 "decoded pictures, as 200M, 500G or 1.5T (powers of 1000)");
}

}  // namespace stoker
