#include "tools/option/store_option_group.h"

#include <filesystem>
#include <map>
#include <stdexcept>

#include "pipeline/store/object_store.h"
#include "tools/command/command.h"

namespace stoker {
namespace {

using Style = StoreOptions::Style;
const std::map<std::string, Style> kStyles = {
    {"auto", Style::automatic}, {"path", Style::path}, {"host", Style::host}};
constexpr const char* kNames[] = {"--store-endpoint", "--store-region",    "--store-profile",
                                  "--store-style",    "--store-anonymous", "--store-ca",
                                  "--store-requests", "--store-memory",    "--store-tries"};
constexpr int64_t kMebibyte = 1 << 20;

}  // namespace

StoreOptions StoreOptionGroup::store() const {
  StoreOptions store = options;
  store.style = kStyles.at(style);
  store.read_ahead_bytes = mebibytes * kMebibyte;
  return store;
}

void StoreOptionGroup::check_used(const std::string& path) const {
  if (app == nullptr || is_store_address(path)) return;
  for (const char* name : kNames) {
    refuse_if_given(*app, {name}, path + " is no address in a store (s3://, https://)");
  }
}

std::string written_path(const std::string& path) {
  if (!is_store_address(path)) return std::filesystem::absolute(path).string();
  return parse_address(path).kind == StoreAddress::Kind::http ? path.substr(0, path.find('?'))
                                                              : path;
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
      ->check(CLI::Range(0, StoreOptions::kMostRequests));
  app.add_option("--store-memory", group.mebibytes,
                 "MiB of a store's samples that are fetched before they are read")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  app.add_option("--store-tries", options.tries,
                 "How often a request is tried before the run ends with an error")
      ->check(CLI::Range(1, 1000));
}

}  // namespace stoker
