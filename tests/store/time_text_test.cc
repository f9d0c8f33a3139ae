#include "pipeline/store/time_text.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

sys_seconds at(int64_t count) { return sys_seconds(seconds(count)); }

TEST(TimeText, TheExampleOfTheStandard) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), at(784111777));
  EXPECT_EQ(http_date(at(784111777)), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(basic_time(at(784111777)), "19941106T084937Z");
}

TEST(TimeText, EveryDayOfYearsComesBack) {
  for (int64_t day = 0; day < 366 * 40; ++day) {
    const sys_seconds time = at(day * 86'400 + day % 86'400);
    EXPECT_EQ(parse_http_date(http_date(time)), time);
  }
}

TEST(TimeText, IsoTimes) {
  EXPECT_EQ(parse_iso_time("1994-11-06T08:49:37Z"), at(784111777));
  EXPECT_EQ(parse_iso_time("1994-11-06T08:49:37.999Z"), at(784111777));
  EXPECT_EQ(parse_iso_time("1994-11-06T08:49:37+00:00"), at(784111777));
}

TEST(TimeText, WhatIsNoTimeIsRefused) {
  for (const char* bad :
       {"", "Z", "Sun, 06 Nov 1994 08:49:37 CET", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun, 36 Nov 1994 08:49:37 GMT", "Sun, 06 Noo 1994 08:49:37 GMT"}) {
    EXPECT_FALSE(parse_http_date(bad)) << bad;
  }
  for (const char* bad : {"", "Z", "1994-11-06", "1994-11-06T08:49:37", "1994-11-06T08:49:37+01:00",
                          "1994-02-30T08:49:37Z", "1994-11-06T24:49:37Z", "1994-11-06T08:4x:37Z",
                          "1994-11-06T08.49.37Z"}) {
    EXPECT_FALSE(parse_iso_time(bad)) << bad;
  }
}

}  // namespace
}  // namespace stoker
