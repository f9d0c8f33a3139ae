#include "pipeline/store/range_answer.h"

#include <charconv>
#include <string_view>

#include "pipeline/files/printable_name.h"

namespace stoker {
namespace {

constexpr std::string_view kModified = "modified:";
// For a server that tells neither an ETag nor a time.

// The part of "bytes 0-99/1234" behind the slash, -1 if it is not there.
int64_t whole_bytes(const std::string& content_range) {
  const size_t slash = content_range.find('/');
  return slash == std::string::npos ? -1 : parse_bytes(content_range.substr(slash + 1));
}

// A weak ETag, W/"...", never fits an If-Match (RFC 9110, 8.8.3.2).
bool is_strong(const std::string& version) { return version.compare(0, 1, "\"") == 0; }
bool is_time(const std::string& version) {
  return version.compare(0, kModified.size(), kModified) == 0;
}

// The version that an answer tells, in the way that `object` has its own; "" if it does not.
std::string version_like(const StoredObject& object, const HttpAnswer& answer) {
  if (object.version == kUnversioned) return "";
  const std::string& told = answer.header(is_time(object.version) ? "last-modified" : "etag");
  if (told.empty()) return "";
  return is_time(object.version) ? version_of("", told) : version_of(told, "");
}

}  // namespace

std::string version_of(const HttpAnswer& answer) {
  return version_of(answer.header("etag"), answer.header("last-modified"));
}

std::string version_of(const std::string& etag, const std::string& last_modified) {
  const bool is_weak = etag.compare(0, 2, "W/") == 0;
  if (!etag.empty() && !(is_weak && !last_modified.empty())) {
    return is_weak || is_strong(etag) ? etag : "\"" + etag + "\"";
  }
  return last_modified.empty() ? kUnversioned : std::string(kModified) + last_modified;
}

int64_t parse_bytes(const std::string& text) {
  int64_t number = -1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end && number >= 0 ? number : -1;
}

bool describe_object(const HttpAnswer& answer, StoredObject& object) {
  const std::string& range = answer.header("content-range");
  object.bytes = range.empty() ? parse_bytes(answer.header("content-length")) : whole_bytes(range);
  object.version = version_of(answer);
  return object.bytes >= 0;
}

void ask_for_range(const StoredObject& object, int64_t offset, int64_t length,
                   HttpRequest& request) {
  request.headers.emplace_back(
      "Range", "bytes=" + std::to_string(offset) + "-" + std::to_string(offset + length - 1));
  if (is_strong(object.version)) {
    request.headers.emplace_back("If-Match", object.version);
  } else if (is_time(object.version)) {
    request.headers.emplace_back("If-Unmodified-Since", object.version.substr(kModified.size()));
  }
  request.skip_if_whole = offset;
}

Judgement judge_range(const std::string& name, const StoredObject& object, int64_t offset,
                      int64_t length, const HttpAnswer& answer) {
  // A server that does not know If-Match is found by what it answers.
  const std::string version = version_like(object, answer);
  if (!version.empty() && version != object.version) {
    return object_changed(name, "its version is " + version + " now, and was " + object.version);
  }
  const std::string& range = answer.header("content-range");
  // Some servers answer with a part and status 200, and tell it by this header only.
  const bool is_part = answer.status == 206 || !range.empty();
  const int64_t whole = is_part ? whole_bytes(range) : parse_bytes(answer.header("content-length"));
  if (whole >= 0 && whole != object.bytes) {
    const std::string sizes =
        std::to_string(whole) + " bytes now, and had " + std::to_string(object.bytes);
    // Bytes of one ETag are the same: it is the answer that is wrong. SeaweedFS 4.48 was seen to
    // answer with no byte while it had much to do.
    if (is_strong(object.version) && (whole == 0 || !version.empty())) {
      return {AnswerKind::again,
              name + ": the answer says that it has " + sizes + ", and names no other version"};
    }
    return object_changed(name, "it has " + sizes);
  }
  const std::string wanted =
      "bytes " + std::to_string(offset) + "-" + std::to_string(offset + length - 1) + "/";
  if (is_part && range.compare(0, wanted.size(), wanted) != 0) {
    return {AnswerKind::again, name + ": the answer is for \"" + printable_name(range) +
                                   "\", not for " + wanted.substr(0, wanted.size() - 1)};
  }
  if (!answer.complete || answer.received != length) {
    std::string problem = name + ": " + std::to_string(answer.received) + " of " +
                          std::to_string(length) + " bytes came";
    if (!answer.problem.empty()) problem += ": " + answer.problem;
    return {AnswerKind::again, problem};
  }
  return {};
}

Judgement object_changed(const std::string& name, const std::string& how) {
  return {AnswerKind::changed, name + " was changed while it is read: " + how +
                                   "; data must stay as they are during a run"};
}

}  // namespace stoker
