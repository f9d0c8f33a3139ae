#include "pipeline/store/url_text.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(UrlText, EncodesAllButTheUnreserved) {
  EXPECT_EQ(percent_encode("aZ09-._~", Slash::encode), "aZ09-._~");
  EXPECT_EQ(percent_encode("a/b c+d=e%\xC3\xA9", Slash::keep), "a/b%20c%2Bd%3De%25%C3%A9");
  EXPECT_EQ(percent_encode("a/b", Slash::encode), "a%2Fb");
  EXPECT_EQ(percent_encode(std::string("\0\x7F", 2), Slash::keep), "%00%7F");
}

TEST(UrlText, DecodesWhatItEncodes) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(percent_decode(percent_encode(all, Slash::keep), Plus::keep), all);
  EXPECT_EQ(percent_decode("a+b%2b", Plus::is_space), "a b+");
  EXPECT_EQ(percent_decode("a+b", Plus::keep), "a+b");
  for (const char* bad : {"%", "%4", "a%4", "%4g", "%%41"}) {
    EXPECT_EQ(percent_decode(bad, Plus::keep), std::nullopt) << bad;
  }
}

TEST(UrlText, EncodingForAUrlLeavesWhatIsEncoded) {
  EXPECT_EQ(encode_for_url("/a b%20\xC3\xA9?x=1&y=\"2\""), "/a%20b%20%C3%A9?x=1&y=%222%22");
}

TEST(UrlText, PartsOfAUrl) {
  const auto url = split_url("HTTPS://Example.org:8443/a/b?c=d?e");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->scheme, "https");
  EXPECT_EQ(url->host, "example.org:8443");
  EXPECT_EQ(url->path, "/a/b");
  EXPECT_EQ(url->query, "c=d?e");
  EXPECT_EQ(split_url("http://h:80")->host, "h");
  EXPECT_EQ(split_url("http://h:80")->path, "/");
  EXPECT_EQ(split_url("http://h:443")->host, "h:443");
  EXPECT_EQ(split_url("https://[::1]:443/")->host, "[::1]");
  EXPECT_EQ(split_url("https://[::1]:9/")->host, "[::1]:9");
  EXPECT_EQ(split_url("http://h?a/b")->query, "a/b");
  for (const char* bad : {"", "h", "ftp://h/", "http://", "http:///a", "http://u@h/", "http://h:a/",
                          "http://h:/", "http://:9/", "http://h/#f", "http://h i/", "file:///a"}) {
    EXPECT_FALSE(split_url(bad)) << bad;
  }
}

TEST(UrlText, Redirections) {
  const std::string from = "https://h:1/a/b?q=1";
  EXPECT_EQ(redirected_url(from, "https://other/x?y=z"), "https://other/x?y=z");
  EXPECT_EQ(redirected_url(from, "//other/x"), "https://other/x");
  EXPECT_EQ(redirected_url(from, "/x"), "https://h:1/x");
  EXPECT_EQ(redirected_url(from, "x"), "https://h:1/a/x");
  EXPECT_EQ(redirected_url(from, "x?to=http://h"), "https://h:1/a/x?to=http://h");
  EXPECT_EQ(redirected_url(from, "/a b#part"), "https://h:1/a%20b");
  for (const char* bad : {"", "ftp://h/", "file:///etc/passwd", "https://u:p@h/"}) {
    EXPECT_EQ(redirected_url(from, bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace stoker
