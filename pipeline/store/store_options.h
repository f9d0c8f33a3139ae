// How to reach a store, and how much to ask of it at a time. Values.
#pragma once

#include <cstdint>
#include <string>

namespace stoker {

struct StoreOptions {
  // "": $AWS_ENDPOINT_URL_S3, $AWS_ENDPOINT_URL, the profile's endpoint_url, or Amazon's.
  std::string endpoint{};
  std::string region{};   // "": $AWS_REGION, $AWS_DEFAULT_REGION, the profile's, or us-east-1
  std::string profile{};  // "": $AWS_PROFILE, or "default"
  // Whether the bucket is in the path (https://host/bucket/key) and not in the host's name; unset:
  // if there is an endpoint other than Amazon's.
  enum class Style : uint8_t { automatic, path, host } style = Style::automatic;
  bool anonymous = false;  // do not sign
  std::string ca_file{};   // certificates to trust instead of the system's; "": $AWS_CA_BUNDLE
  // Requests under way at once; 0: found by measuring, up to kMaxRequests.
  int requests = 0;
  static constexpr int kMaxRequests = 256;
  // Connections: for these requests, for second ones of slow ranges, and for lists.
  int most_connections() const { return (requests > 0 ? requests : kMaxRequests) + 16; }
  // Bytes that are asked for or wait to be used, for each opened data set.
  int64_t read_ahead_bytes = int64_t{256} << 20;
  // How often a request is tried before the run ends with an error.
  int tries = 10;
  // A folder on a disk of this machine that keeps a fixed part of the samples between epochs and
  // runs, and the most bytes of them for each opened data set (pipeline/source/blob/README.md). One
  // without the other is refused.
  std::string cache{};
  int64_t cache_bytes = 0;
};

}  // namespace stoker
