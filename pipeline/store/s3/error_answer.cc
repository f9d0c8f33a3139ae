#include "pipeline/store/s3/error_answer.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "pipeline/store/s3/xml.h"

namespace stoker {
namespace {

struct Advice {
  std::string_view code, text;
};

constexpr std::string_view kWrongKeys = "are the keys those of this endpoint?";
constexpr std::array<Advice, 15> kAdvice = {{
    {"AccessDenied",
     "reading needs s3:GetObject and s3:ListBucket; without the right to list, a key that does not "
     "exist is refused, too"},
    {"AllAccessDisabled", "the bucket's owner has switched it off"},
    {"AccountProblem", "the account of the keys has a problem"},
    {"NoSuchBucket", "is the bucket's name right, and is it on this endpoint?"},
    {"NoSuchKey", "is the key right? Somebody may have deleted the object"},
    {"InvalidAccessKeyId", kWrongKeys},
    {"SignatureDoesNotMatch",
     "is the secret key right? A proxy that changes requests does this, too"},
    {"InvalidToken", "the session token does not belong to the keys"},
    {"ExpiredToken", "get new keys"},
    {"TokenRefreshRequired", "get new keys"},
    {"RequestTimeTooSkewed", "set this machine's clock"},
    {"InvalidObjectState", "the object is in an archive and must be restored first"},
    {"PermanentRedirect", "name the bucket's region, or the endpoint that has it"},
    {"AuthorizationHeaderMalformed", "name the bucket's region"},
    {"MethodNotAllowed", "is the endpoint one of S3?"},
}};

}  // namespace

bool is_web_page(const HttpAnswer& answer) {
  // An object may be a page; then S3's own headers come with it.
  for (const auto& header : answer.headers) {
    if (header.first.compare(0, 6, "x-amz-") == 0) return false;
  }
  if (answer.header("content-type").compare(0, 9, "text/html") == 0) return true;
  const size_t first = answer.body.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return false;
  std::string start = answer.body.substr(first, 14);
  std::transform(start.begin(), start.end(), start.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return start.compare(0, 14, "<!doctype html") == 0 || start.compare(0, 5, "<html") == 0;
}

S3Error read_s3_error(const HttpAnswer& answer) {
  S3Error error{.status = answer.status,
                .region = answer.header("x-amz-bucket-region"),
                .is_page = is_web_page(answer)};
  if (error.is_page) return error;
  try {
    const XmlElement root = parse_xml(answer.body);
    if (root.name != "Error") return error;
    error.code = root.child_text("Code");
    error.message = root.child_text("Message");
    if (error.region.empty()) error.region = root.child_text("Region");
  } catch (const std::runtime_error&) {
    // A load balancer's text, or none: the status says what there is to say.
  }
  return error;
}

std::string advice_for(const S3Error& error) {
  for (const Advice& advice : kAdvice) {
    if (advice.code == error.code) return std::string(advice.text);
  }
  return "";
}

}  // namespace stoker
