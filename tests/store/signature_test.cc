#include "pipeline/store/s3/signature.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stoker {
namespace {

using std::chrono::sys_days;
using std::chrono::sys_seconds;

// The keys and the time of the examples in the Amazon S3 API Reference, "Signature Calculations for
// the Authorization Header".
const AwsKeys kKeys = {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
const sys_seconds kTime = sys_days(std::chrono::year(2013) / 5 / 24);

std::string value(const HttpRequest& request, const std::string& name) {
  const auto found = std::find_if(request.headers.begin(), request.headers.end(),
                                  [&](const auto& header) { return header.first == name; });
  return found == request.headers.end() ? "no " + name : found->second;
}

std::string signature(const HttpRequest& request) {
  const std::string text = value(request, "Authorization");
  return text.substr(text.find("Signature=") + 10);
}

HttpRequest signed_get(const std::string& url, const AwsKeys& keys = kKeys) {
  HttpRequest request{.url = url};
  sign_request(keys, "us-east-1", kTime, request);
  return request;
}

TEST(Signature, IsThatOfAmazonsExamples) {
  EXPECT_EQ(signature(signed_get("https://examplebucket.s3.amazonaws.com/?lifecycle=")),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(signature(signed_get("https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J")),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(Signature, NamesWhatIsSigned) {
  const HttpRequest request =
      signed_get("https://host/key", {.id = "ID", .secret = "s", .token = "T"});
  EXPECT_EQ(value(request, "x-amz-date"), "20130524T000000Z");
  EXPECT_EQ(value(request, "x-amz-security-token"), "T");
  EXPECT_EQ(value(request, "x-amz-content-sha256"),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const std::string text = value(request, "Authorization");
  EXPECT_EQ(text.substr(0, text.find(", Signature=")),
            "AWS4-HMAC-SHA256 Credential=ID/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token");
}

TEST(Signature, OrderOfTheQueryAndThePortOfTheSchemeDoNotMatter) {
  EXPECT_EQ(signature(signed_get("https://host/?b=1&a=2&a=1")),
            signature(signed_get("https://HOST:443/?a=1&a=2&b=1")));
  EXPECT_NE(signature(signed_get("https://host/?a=1")),
            signature(signed_get("https://host:8443/?a=1")));
  EXPECT_EQ(signature(signed_get("https://host/?a")), signature(signed_get("https://host/?a=")));
}

}  // namespace
}  // namespace stoker
