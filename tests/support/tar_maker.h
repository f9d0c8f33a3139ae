// Writes tar files for tests, independent of what reads them: the parts are strings, which a test
// puts one behind the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoker {

struct TarHeader {
  std::string name{};    // at most 100 bytes
  std::string prefix{};  // at most 155 bytes
  char type = '0';
  int64_t size = 0;
  std::string size_field{};  // what stands there instead of the size's octal digits
  std::string magic{
      "ustar\0"
      "00",
      8};
};

// 512 bytes with a right checksum.
std::string tar_header(const TarHeader& header);
// Sets the checksum of the header at `at` to what its bytes give.
void repair_tar_header(std::string& tar, size_t at);
// The content, with zeros up to a whole number of blocks.
std::string tar_data(std::string_view content);
// A header and its data.
std::string tar_member(const std::string& name, std::string_view content, char type = '0');
// The headers before a member with a long name: GNU's 'L', and POSIX's 'x' with some records.
std::string tar_long_name(std::string_view name);
std::string pax_record(std::string_view keyword, std::string_view value);
std::string pax_header(std::string_view records, char type = 'x');
// Two blocks of zeros.
std::string tar_end();

}  // namespace stoker
