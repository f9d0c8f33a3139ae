// SHA-256 and HMAC-SHA256 (FIPS 180-4, RFC 2104), which requests are signed with. OpenSSL computes
// them, in the plugin libstoker_curl.so. Threads: any. All but to_hex() throw std::runtime_error if
// the plugin cannot be opened (make_http_client() says the same).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stoker {

using Digest256 = std::array<uint8_t, 32>;

Digest256 sha256(std::span<const uint8_t> data);
Digest256 hmac_sha256(std::span<const uint8_t> key, std::span<const uint8_t> data);
// Returns two small letters or digits for each byte.
std::string to_hex(std::span<const uint8_t> bytes);

// The bytes of a text, for these functions.
inline std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace stoker
