// Signs requests to S3 with AWS Signature Version 4 (AWS, "Create a signed AWS API request").
// libcurl has an option for it, which signs what the URL happens to look like, and differently in
// its versions (../README.md). Threads: any.
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
