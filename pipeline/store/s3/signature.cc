#include "pipeline/store/s3/signature.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "pipeline/store/digest256.h"
#include "pipeline/store/time_text.h"
#include "pipeline/store/url_text.h"

namespace stoker {
namespace {

std::string hex_digest(const std::string& text) { return to_hex(sha256(bytes_of(text))); }

// Sorts the pairs of a query by their names, then by their values; each gets its "=".
std::string canonical_query(const std::string& query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (size_t at = 0; at < query.size();) {
    const size_t end = std::min(query.find('&', at), query.size());
    const std::string pair = query.substr(at, end - at);
    const size_t equals = std::min(pair.find('='), pair.size());
    pairs.emplace_back(pair.substr(0, equals), pair.substr(std::min(equals + 1, pair.size())));
    at = end + 1;
  }
  std::sort(pairs.begin(), pairs.end());
  std::string text;
  for (const auto& [name, value] : pairs) {
    if (!text.empty()) text += '&';
    text += name + "=" + value;
  }
  return text;
}

// A secret that only signs requests of one day, in one region, to S3. Most requests need that of
// the one before.
const Digest256& signing_key(const std::string& secret, const std::string& day,
                             const std::string& region) {
  struct Known {
    std::string secret, day, region;
    Digest256 key{};
  };
  thread_local Known known;
  if (known.secret == secret && known.day == day && known.region == region) return known.key;
  Digest256 key = hmac_sha256(bytes_of("AWS4" + secret), bytes_of(day));
  for (const std::string& part : {region, std::string("s3"), std::string("aws4_request")}) {
    key = hmac_sha256(key, bytes_of(part));
  }
  known = {secret, day, region, key};
  return known.key;
}

}  // namespace

void sign_request(const AwsKeys& keys, const std::string& region, std::chrono::sys_seconds now,
                  HttpRequest& request) {
  const auto url = split_url(request.url);
  if (!url) throw std::invalid_argument("sign_request: no URL of http or https");
  const std::string time = basic_time(now);
  const std::string day = time.substr(0, 8);
  const std::string payload = hex_digest(request.body);
  request.headers.emplace_back("x-amz-date", time);
  request.headers.emplace_back("x-amz-content-sha256", payload);
  if (!keys.token.empty()) request.headers.emplace_back("x-amz-security-token", keys.token);

  std::vector<std::pair<std::string, std::string>> to_sign = {{"host", url->host}};
  for (const auto& header : request.headers) {
    if (header.first.compare(0, 6, "x-amz-") == 0) to_sign.push_back(header);
  }
  std::sort(to_sign.begin(), to_sign.end());
  std::string lines, names;
  for (const auto& [name, value] : to_sign) {
    lines += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }

  const std::string canonical = request.method + "\n" + url->path + "\n" +
                                canonical_query(url->query) + "\n" + lines + "\n" + names + "\n" +
                                payload;
  const std::string scope = day + "/" + region + "/s3/aws4_request";
  const std::string text =
      "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + hex_digest(canonical);
  const Digest256 signature = hmac_sha256(signing_key(keys.secret, day, region), bytes_of(text));
  request.headers.emplace_back("Authorization", "AWS4-HMAC-SHA256 Credential=" + keys.id + "/" +
                                                    scope + ", SignedHeaders=" + names +
                                                    ", Signature=" + to_hex(signature));
}

}  // namespace stoker
