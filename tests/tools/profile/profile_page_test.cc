// The page of a profile contains its JSON, whatever its text, and loads nothing from elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/profile/report.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

constexpr std::string_view kBegin = R"(<script type="application/json" id="profile">)";

// Returns what a browser takes as the data: from the script's begin to the first "</script".
std::string data_in(const std::string& page) {
  const size_t begin = page.find(kBegin) + kBegin.size();
  return page.substr(begin, page.find("</script", begin) - begin);
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(ProfilePage, HoldsTheJson) {
  const Json json = {{"verdict", {{"limit", "decode"}, {"waiting_share", 0.25}}},
                     {"warm_up", {{"steps", 9}}}};
  const std::string page = profile_page(json);
  EXPECT_THAT(page, ::testing::StartsWith("<!doctype html>"));
  EXPECT_EQ(Json::parse(data_in(page)), json);
  EXPECT_THAT(page, Not(HasSubstr("__STOKER_PROFILE_JSON__")));
}

TEST(ProfilePage, NoNameBreaksOut) {
  const std::string name =
      "a</script><script>alert(1)</script><!-- <script> \xe2\x80\xa8\xe2\x80\xa9 \"'\\.jpg";
  const Json json = {{"slowest_files", {{{"name", name}}}}};
  const std::string page = profile_page(json);
  EXPECT_EQ(Json::parse(data_in(page)), json);
  EXPECT_EQ(count(page, "<script"), count(profile_page(Json::object()), "<script"));
  EXPECT_THAT(page, Not(HasSubstr("\xe2\x80\xa8")));
}

TEST(ProfilePage, NamesThatAreNotUtf8AreShownAsFarAsTheyAre) {
  const Json json = {{"slowest_files", {{{"name", "caf\xe9.jpg"}}}}};
  EXPECT_EQ(Json::parse(data_in(profile_page(json)))["slowest_files"][0]["name"],
            "caf\xef\xbf\xbd.jpg");
}

TEST(ProfilePage, AsksNobody) {
  const std::string page = profile_page(Json::object());
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("href=")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
  EXPECT_THAT(page, Not(HasSubstr("url(")));
}

}  // namespace
}  // namespace stoker
