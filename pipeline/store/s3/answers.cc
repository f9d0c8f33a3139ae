#include "pipeline/store/s3/answers.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "pipeline/files/xml.h"
#include "pipeline/store/range_answer.h"
#include "pipeline/store/time_text.h"
#include "pipeline/store/url_text.h"

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

namespace {

std::string decoded(const std::string& text, bool is_encoded) {
  if (!is_encoded) return text;
  const auto plain = percent_decode(text, Plus::is_space);
  if (!plain) throw std::runtime_error("a key in the list is not percent-encoded as it says");
  return *plain;
}

StoredObject parse_object(const XmlElement& element, bool is_encoded) {
  StoredObject object;
  object.key = decoded(element.child_text("Key"), is_encoded);
  if (object.key.empty()) throw std::runtime_error("an object in the list has no key");
  object.bytes = parse_bytes(element.child_text("Size"));
  if (object.bytes < 0) throw std::runtime_error("an object in the list has no size");
  const auto time = parse_iso_time(element.child_text("LastModified"));
  object.version = version_of(element.child_text("ETag"), time ? http_date(*time) : "");
  return object;
}

}  // namespace

ListPage parse_list_page(std::string_view xml) {
  const XmlElement root = parse_xml(xml);
  if (root.name != "ListBucketResult") {
    throw std::runtime_error("no list of S3: the answer is <" + root.name + ">");
  }
  const std::string& encoding = root.child_text("EncodingType");
  if (!encoding.empty() && encoding != "url") {
    throw std::runtime_error("the list has an unknown EncodingType");
  }
  ListPage page;
  for (const XmlElement& child : root.children) {
    if (child.name == "Contents") {
      page.objects.push_back(parse_object(child, !encoding.empty()));
    } else if (child.name == "CommonPrefixes") {
      page.folders.push_back(decoded(child.child_text("Prefix"), !encoding.empty()));
    }
  }
  page.is_last = root.child_text("IsTruncated") != "true";
  page.next = root.child_text("NextContinuationToken");
  if (!page.is_last && page.next.empty()) {
    throw std::runtime_error("the list goes on, but has no NextContinuationToken");
  }
  return page;
}

}  // namespace stoker
