// The XML of S3's answers: an error, and what to do about it; a page of a list. Functions of their
// arguments alone. Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/store/http_client.h"
#include "pipeline/store/object_store.h"

namespace stoker {

struct S3Error {
  int status = 0;
  std::string code{};     // "AccessDenied"; "" if the body is no error of S3
  std::string message{};  // the server's
  std::string region{};   // where the bucket is, if the server says so
  bool is_page = false;   // the body is HTML
};

S3Error read_s3_error(const HttpAnswer& answer);
// Whether an answer is a page for people, which no S3 server gives.
bool is_web_page(const HttpAnswer& answer);
// Returns what to do about an error with this code, "" if nobody knows.
std::string advice_for(const S3Error& error);

// One page of a list of objects, as ListObjectsV2 answers (Amazon S3 API Reference).
struct ListPage {
  std::vector<StoredObject> objects;
  std::vector<std::string> folders;  // common prefixes
  bool is_last = true;
  std::string next;  // the token of the next page, if it is not the last
};

// Throws std::runtime_error for what is no such answer.
ListPage parse_list_page(std::string_view xml);

}  // namespace stoker
