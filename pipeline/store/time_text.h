// Times as HTTP, S3 and the JSON of credentials write them. All are UTC, to the second. Functions
// of their arguments alone. Threads: any.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace stoker {

// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, 5.6.7, which servers must write). Nothing: it is none.
std::optional<std::chrono::sys_seconds> parse_http_date(std::string_view text);
std::string http_date(std::chrono::sys_seconds time);
// "2009-10-12T17:50:30.000Z", also without the fraction, which is dropped, and with "+00:00" for
// "Z" (RFC 3339).
std::optional<std::chrono::sys_seconds> parse_iso_time(std::string_view text);
// "20130524T000000Z", as signatures have it.
std::string basic_time(std::chrono::sys_seconds time);

}  // namespace stoker
