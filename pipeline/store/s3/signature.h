// Signs requests to S3 with AWS Signature Version 4 (AWS, "Create a signed AWS API request").
// libcurl has an option for it, which is wrong for keys with "=", "+" or a space and for lists with
// an encoded or an empty prefix (curl#11794, curl#13754). Threads: any.
#pragma once

#include <chrono>
#include <string>

#include "pipeline/store/http_client.h"

namespace stoker {

struct AwsKeys {
  std::string id;
  std::string secret;
  std::string token;  // of a session; "" for keys that do not expire
};

// Adds the headers x-amz-date, x-amz-content-sha256, x-amz-security-token and Authorization. The
// path of `request.url` is percent-encoded once, and its query has "name=value" pairs that are
// encoded, too: percent_encode() (url_text.h) makes both. Its headers x-amz-* are signed; it has
// none of the four.
void sign_request(const AwsKeys& keys, const std::string& region, std::chrono::sys_seconds now,
                  HttpRequest& request);

}  // namespace stoker
