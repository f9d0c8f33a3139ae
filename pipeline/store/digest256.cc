#include "pipeline/store/digest256.h"

#include "pipeline/store/curl/curl_plugin.h"

namespace stoker {

Digest256 sha256(std::span<const uint8_t> data) {
  Digest256 digest{};
  curl_plugin().sha256(data, digest.data());
  return digest;
}

Digest256 hmac_sha256(std::span<const uint8_t> key, std::span<const uint8_t> data) {
  Digest256 digest{};
  curl_plugin().hmac_sha256(key, data, digest.data());
  return digest;
}

std::string to_hex(std::span<const uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace stoker
