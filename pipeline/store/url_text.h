// The text of URLs: percent-encoding, the parts of a URL, and where a redirection leads (RFC 3986).
// Functions of their arguments alone. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoker {

enum class Slash : uint8_t { keep, encode };
// Encodes every byte but letters, digits, "-", ".", "_" and "~", once: what S3's signatures want.
std::string percent_encode(std::string_view text, Slash slash);
// Encodes what must not be in a URL's path or query (white space, control characters, quotes, bytes
// above 0x7F), and leaves what is encoded already.
std::string encode_for_url(std::string_view text);
enum class Plus : uint8_t { keep, is_space };  // is_space: as forms and S3's listings write it
// Returns nothing if a "%" is not followed by two hexadecimal digits.
std::optional<std::string> percent_decode(std::string_view text, Plus plus);

struct UrlParts {
  std::string scheme;  // in small letters
  std::string host;    // with the port, if it is not the scheme's own: what the Host header has
  std::string path;    // begins with "/"
  std::string query;   // behind "?"
};
// Returns nothing for what is no URL of http or https, and for one with a user, a password or a
// fragment in it.
std::optional<UrlParts> split_url(std::string_view url);

// Returns where `location`, the header of a redirection, leads from `url`; nothing if it is no
// address of http or https.
std::optional<std::string> redirected_url(const std::string& url, const std::string& location);

// Returns a URL, or what should be one, for a message: without query, user and password, and
// printable.
std::string shown_url(const std::string& url);

}  // namespace stoker
