// The entry of libstoker_curl.so (curl_plugin.h), and what OpenSSL does.
#include <curl/curl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <stdexcept>

#include "pipeline/store/curl/client.h"
#include "pipeline/store/curl/curl_plugin.h"

namespace stoker {
namespace {

// curl_global_init() must run once, before everything else. It is never undone: who opened the
// plugin never closes it.
bool start_curl() {
  static const bool started = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return started;
}

std::unique_ptr<HttpClient> make_client(int connections) {
  if (!start_curl()) throw std::runtime_error("libcurl cannot be started");
  return std::make_unique<CurlClient>(connections);
}

void require_success(bool success) {
  if (!success) throw std::runtime_error("OpenSSL refuses SHA-256");
}

void sha256(std::span<const uint8_t> data, uint8_t* digest) {
  // EVP_sha256() is looked up again with every digest.
  static const EVP_MD* const method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  require_success(method != nullptr &&
                  EVP_Digest(data.data(), data.size(), digest, nullptr, method, nullptr) == 1);
}

void hmac_sha256(std::span<const uint8_t> key, std::span<const uint8_t> data, uint8_t* digest) {
  // OpenSSL takes no address for an empty key as "the key of before".
  const void* bytes = key.empty() ? static_cast<const void*>("") : key.data();
  require_success(HMAC(EVP_sha256(), bytes, static_cast<int>(key.size()), data.data(), data.size(),
                       digest, nullptr) != nullptr);
}

}  // namespace
}  // namespace stoker

extern "C" __attribute__((visibility("default"))) const stoker::CurlPlugin* stoker_curl_plugin() {
  using namespace stoker;
  static const CurlPlugin plugin{
      kCurlPluginVersion, STOKER_BUILD_STAMP, curl_version(), make_client, sha256, hmac_sha256};
  return &plugin;
}
