#include "pipeline/store/time_text.h"

#include <array>
#include <cstdio>

namespace stoker {
namespace {

using std::chrono::sys_days;
using std::chrono::sys_seconds;

constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// The digits of `text` from `at` on as a number; -1 if another character is among them.
int digits(std::string_view text, size_t at, size_t count) {
  int number = 0;
  for (size_t i = at; i < at + count; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return -1;
    number = number * 10 + (text[i] - '0');
  }
  return number;
}

std::optional<sys_seconds> make_time(int year, int month, int day, int hour, int minute,
                                     int second) {
  using namespace std::chrono;
  if (year < 0 || month < 1 || day < 1 || hour < 0 || minute < 0 || second < 0) return {};
  const year_month_day date{std::chrono::year(year), std::chrono::month(unsigned(month)),
                            std::chrono::day(unsigned(day))};
  // 60 is a leap second.
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return {};
  return sys_days(date) + hours(hour) + minutes(minute) + seconds(second);
}

struct CalendarTime {
  int year, month, day, hour, minute, second, weekday;  // weekday: 0 is Sunday
};

CalendarTime calendar(sys_seconds time) {
  using namespace std::chrono;
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  return {int(date.year()),
          int(unsigned(date.month())),
          int(unsigned(date.day())),
          int(clock.hours().count()),
          int(clock.minutes().count()),
          int(clock.seconds().count()),
          int(weekday(day).c_encoding())};
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

}  // namespace

std::optional<sys_seconds> parse_http_date(std::string_view text) {
  if (text.size() != 29 || text.substr(25) != " GMT") return {};
  for (size_t month = 0; month < kMonths.size(); ++month) {
    if (text.substr(8, 3) != kMonths[month]) continue;
    return make_time(digits(text, 12, 4), static_cast<int>(month) + 1, digits(text, 5, 2),
                     digits(text, 17, 2), digits(text, 20, 2), digits(text, 23, 2));
  }
  return {};
}

std::string http_date(sys_seconds time) {
  const CalendarTime t = calendar(time);
  return formatted("%s, %02d %s %04d %02d:%02d:%02d GMT", kDays[size_t(t.weekday)], t.day,
                   kMonths[size_t(t.month) - 1], t.year, t.hour, t.minute, t.second);
}

std::optional<sys_seconds> parse_iso_time(std::string_view text) {
  constexpr std::string_view kZero = "+00:00";
  if (text.size() > kZero.size() && text.substr(text.size() - kZero.size()) == kZero) {
    text.remove_suffix(kZero.size());
  } else if (!text.empty() && text.back() == 'Z') {
    text.remove_suffix(1);
  } else {
    return {};
  }
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[10] != 'T') return {};
  if (text[13] != ':' || text[16] != ':' || (text.size() > 19 && text[19] != '.')) return {};
  return make_time(digits(text, 0, 4), digits(text, 5, 2), digits(text, 8, 2), digits(text, 11, 2),
                   digits(text, 14, 2), digits(text, 17, 2));
}

std::string basic_time(sys_seconds time) {
  const CalendarTime t = calendar(time);
  return formatted("%04d%02d%02dT%02d%02d%02dZ", t.year, t.month, t.day, t.hour, t.minute,
                   t.second);
}

}  // namespace stoker
