#include "tests/support/tar_maker.h"

#include <cstdio>

namespace stoker {
namespace {

// `digits` octal digits.
std::string octal(int64_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof(text), "%0*llo", digits, static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

std::string tar_header(const TarHeader& header) {
  std::string block(512, '\0');
  const auto put = [&block](size_t at, std::string_view text) {
    block.replace(at, text.size(), text);
  };
  put(0, header.name);
  put(100, "0000644");
  put(124, header.size_field.empty() ? octal(header.size, 11) : header.size_field);
  block[156] = header.type;
  put(257, header.magic);
  put(345, header.prefix);
  repair_tar_header(block, 0);
  return block;
}

void repair_tar_header(std::string& tar, size_t at) {
  tar.replace(at + 148, 8, 8, ' ');
  int64_t sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(tar[at + i]);
  tar.replace(at + 148, 7, octal(sum, 6) + std::string(1, '\0'));
}

std::string tar_data(std::string_view content) {
  std::string data(content);
  data.resize((content.size() + 511) / 512 * 512);
  return data;
}

std::string tar_member(const std::string& name, std::string_view content, char type) {
  TarHeader header{.name = name, .type = type, .size = static_cast<int64_t>(content.size())};
  return tar_header(header) + tar_data(content);
}

std::string tar_long_name(std::string_view name) {
  return tar_member("././@LongLink", std::string(name) + '\0', 'L');
}

std::string pax_record(std::string_view keyword, std::string_view value) {
  std::string rest(" ");
  rest.append(keyword).append("=").append(value).append("\n");
  // The length counts its own digits.
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

std::string pax_header(std::string_view records, char type) {
  return tar_member("PaxHeaders/x", records, type);
}

std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace stoker
