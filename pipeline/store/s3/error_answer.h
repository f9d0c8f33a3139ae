// Errors of S3's answers: their error's XML, and what to do about it. Functions
// of their arguments alone. Threads: any.
#pragma once

#include <string>

#include "pipeline/store/http_client.h"

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

}  // namespace stoker
