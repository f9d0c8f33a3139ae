// The interface of libstoker_curl.so, which has what needs libcurl and OpenSSL. One C entry,
// stoker_curl_plugin(), returns this table. It is opened when the first address of a store comes,
// so that only who has data in stores needs these libraries.
//
// Program and plugin must be from one build, because the table contains C++ types: `build`
// identifies it, and a plugin of another build is refused. Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "pipeline/store/http_client.h"

namespace stoker {

inline constexpr char kCurlPluginFile[] = "libstoker_curl.so";
inline constexpr char kCurlPluginEntry[] = "stoker_curl_plugin";
inline constexpr int kCurlPluginVersion = 1;  // of this table

struct CurlPlugin {
  int version = 0;                // kCurlPluginVersion; first in every version of the table
  const char* build = nullptr;    // STOKER_BUILD_STAMP of the plugin's build
  const char* library = nullptr;  // "libcurl/7.88.1 OpenSSL/3.0.19 nghttp2/1.52.0"
  // Throws std::runtime_error.
  std::unique_ptr<HttpClient> (*make_client)(int connections) = nullptr;
  // Both write 32 bytes.
  void (*sha256)(std::span<const uint8_t> data, uint8_t* digest) = nullptr;
  void (*hmac_sha256)(std::span<const uint8_t> key, std::span<const uint8_t> data,
                      uint8_t* digest) = nullptr;
};

using CurlPluginEntry = const CurlPlugin* (*)();

// Opens the plugin at the first call. Throws std::runtime_error with what to install.
const CurlPlugin& curl_plugin();

}  // namespace stoker
