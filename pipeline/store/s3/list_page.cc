#include "pipeline/store/s3/list_page.h"

#include <stdexcept>

#include "pipeline/store/range_answer.h"
#include "pipeline/store/s3/xml.h"
#include "pipeline/store/time_text.h"
#include "pipeline/store/url_text.h"

namespace stoker {
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
