#include "pipeline/source/format/tar_reader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string_view>

#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

constexpr int64_t kLargestNumber = std::numeric_limits<int64_t>::max();
constexpr const char* kCutShort =
    "the file ends without the two blocks of zeros that end a tar: it is probably half downloaded";

bool is_zero(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

// Returns the program that packed a file that begins like this, or nullptr.
const char* compressor_of(std::string_view start) {
  using std::string_view_literals::operator""sv;
  if (start.starts_with("\x1f\x8b"sv)) return "gzip";
  if (start.starts_with("\x28\xb5\x2f\xfd"sv)) return "zstd";
  if (start.starts_with("BZh"sv)) return "bzip2";
  if (start.starts_with("\xfd\x37zXZ\0"sv)) return "xz";
  return nullptr;
}

// Octal digits, spaces before them, and spaces or NULs behind; in a field of a header, which holds
// far less than 63 bits of them.
std::optional<int64_t> parse_octal(std::string_view text) {
  text = text.substr(std::min(text.find_first_not_of(' '), text.size()));
  const size_t digits = std::min(text.find_first_not_of("01234567"), text.size());
  constexpr std::string_view kAfter(" \0", 2);
  if (digits == 0 || text.find_first_not_of(kAfter, digits) != std::string_view::npos) return {};
  int64_t value = 0;
  for (const char digit : text.substr(0, digits)) {
    value = value << 3 | (digit - '0');
  }
  return value;
}

// GNU's form for what has too many octal digits: the first bit set, and then a binary number, the
// highest byte first.
std::optional<int64_t> parse_binary(std::string_view text) {
  if (text[0] != '\x80') return {};
  int64_t value = 0;
  for (const char byte : text.substr(1)) {
    if (value > kLargestNumber >> 8) return {};
    value = value << 8 | static_cast<uint8_t>(byte);
  }
  return value;
}

// Hard links, symbolic links, devices, folders and pipes: their size may say something, but no
// bytes of theirs follow.
bool has_data(char type) { return type < '1' || type > '6'; }

// The checksum that a header states, and the one that its bytes give.
struct CheckSum {
  std::optional<int64_t> stored;
  int64_t sum = 0;
  bool holds() const { return stored == sum; }
};

CheckSum check_sum_of(std::span<const uint8_t> header) {
  constexpr size_t kAt = 148, kLength = 8;
  int64_t sum = std::accumulate(header.begin(), header.end(), int64_t{0});
  // The field itself counts as spaces.
  for (size_t i = kAt; i < kAt + kLength; ++i) sum += int64_t{' '} - header[i];
  return {parse_octal(as_text(header).substr(kAt, kLength)), sum};
}

}  // namespace

bool is_tar_header(std::span<const uint8_t> block) {
  return as_text(block).substr(257, 5) == "ustar" && check_sum_of(block).holds();
}

TarReader::TarReader(BlobReader& blob) : blob_(blob) {
  if (blob.size() == 0) blob.fail(0, "the file is empty");
  const auto start = blob.read(0, std::min<int64_t>(blob.size(), 6), "the start");
  if (const char* program = compressor_of(as_text(start))) {
    blob.fail(0, std::string("compressed with ") + program +
                     ": unpack it; only plain tar can be read at random");
  }
}

bool TarReader::next(TarMember& member) {
  Extension extension;
  while (read_header(member)) {
    if (member.type == 'L') {
      measure(member, {});
      extension.name = read_text(member);
      // GNU tar counts the NUL after the name.
      extension.name->resize(std::min(extension.name->find('\0'), extension.name->size()));
    } else if (member.type == 'x') {
      measure(member, {});
      read_records(member, extension);
    } else if (member.type == 'g' || member.type == 'K') {
      measure(member, {});
    } else {
      if (extension.name) member.name = std::move(*extension.name);
      if (member.name.empty()) blob_.fail(member.header_at, "a member without a name");
      if (member.type == 'S' || extension.sparse) {
        blob_.fail(member.header_at, quoted_name(member.name) +
                                         " is a sparse file, whose bytes do not lie in one piece: "
                                         "make the tar without `tar --sparse`");
      }
      measure(member, extension.size);
      return true;
    }
  }
  if (extension.name || extension.size || extension.sparse) {
    blob_.fail(at_, "an extended header at the end, and no member after it");
  }
  check_end();
  return false;
}

// Reads the header at at_. Returns false if there is a block of zeros, which ends the members.
bool TarReader::read_header(TarMember& member) {
  if (blob_.size() - at_ < kTarBlock) blob_.fail(at_, kCutShort);
  const auto bytes = blob_.read(at_, kTarBlock, "a header");
  std::copy(bytes.begin(), bytes.end(), header_.begin());
  if (header_[0] == 0 && is_zero(header_)) return false;
  member.header_at = at_;
  member.name = field(0, 100);
  check_sum(member);
  // GNU's own format ("ustar  ") has times where POSIX has the first part of a long name.
  const bool is_posix = field(257, 6) == "ustar" && header_[262] == 0;
  if (is_posix && header_[345] != 0) member.name.insert(0, std::string(field(345, 155)) + "/");
  member.type = static_cast<char>(header_[156]);
  return true;
}

// Returns a text that ends at its NUL or with the field.
std::string_view TarReader::field(size_t at, size_t length) const {
  const std::string_view text = as_text(header_).substr(at, length);
  return text.substr(0, text.find('\0'));
}

void TarReader::check_sum(const TarMember& member) const {
  const auto [stored, sum] = check_sum_of(header_);
  if (stored == sum) return;
  const std::string what = at_ == 0 ? "this is no tar file, or it is damaged: the header of "
                                    : "the header is damaged: that of ";
  blob_.fail(at_, what + quoted_name(member.name) + " has the checksum " +
                      (stored ? std::to_string(*stored) : "'?'") + ", and its bytes give " +
                      std::to_string(sum));
}

// Finds the member's data and the next header; `size` is what an extended header said.
void TarReader::measure(TarMember& member, const std::optional<int64_t>& size) {
  member.data_at = at_ + kTarBlock;
  member.size = 0;
  if (has_data(member.type)) {
    const std::string_view text = as_text(header_).substr(124, 12);
    const bool is_binary = (header_[124] & 0x80) != 0;
    const auto bytes = size ? size : is_binary ? parse_binary(text) : parse_octal(text);
    if (!bytes) {
      blob_.fail(at_, "the size of " + quoted_name(member.name) + " is " + quoted_name(text) +
                          ", and no octal number");
    }
    member.size = *bytes;
  }
  const int64_t rest = blob_.size() - member.data_at;
  if (member.size > rest) {
    blob_.fail(at_, quoted_name(member.name) + " has " + std::to_string(member.size) +
                        " bytes, and after its header the file has " + std::to_string(rest) +
                        ": it is probably half downloaded");
  }
  const int64_t padding = (kTarBlock - member.size % kTarBlock) % kTarBlock;
  if (padding > rest - member.size) blob_.fail(member.data_at + member.size, kCutShort);
  at_ = member.data_at + member.size + padding;
}

std::string TarReader::read_text(const TarMember& member) {
  if (member.size > kLongestText) {
    blob_.fail(member.header_at, "an extended header of " + std::to_string(member.size) +
                                     " bytes; at most " + std::to_string(kLongestText));
  }
  return std::string(as_text(blob_.read(member.data_at, member.size, "an extended header")));
}

// An extended header is a list of "LENGTH KEYWORD=VALUE\n", where the length counts the whole.
void TarReader::read_records(const TarMember& member, Extension& extension) {
  const std::string text = read_text(member);
  for (std::string_view rest = text; !rest.empty();) {
    const size_t digits = std::min(rest.find(' '), rest.size());
    const auto length = parse_integer(rest.substr(0, digits));
    if (!length || *length < 1 || *length > std::ssize(rest) ||
        rest[static_cast<size_t>(*length) - 1] != '\n') {
      const auto at = static_cast<int64_t>(text.size() - rest.size());
      blob_.fail(member.data_at + at, "a record of an extended header has a wrong length");
    }
    const auto bytes = static_cast<size_t>(*length);
    read_record(member, rest.substr(digits + 1, bytes - digits - 2), extension);
    rest.remove_prefix(bytes);
  }
}

void TarReader::read_record(const TarMember& member, std::string_view record,
                            Extension& extension) const {
  const size_t equals = std::min(record.find('='), record.size());
  const std::string_view keyword = record.substr(0, equals);
  const std::string_view value = record.substr(std::min(equals + 1, record.size()));
  if (keyword == "path") {
    if (value.find('\0') != std::string_view::npos) {
      blob_.fail(member.header_at, "a name with a NUL byte: " + quoted_name(value));
    }
    extension.name = value;
  } else if (keyword == "size") {
    extension.size = parse_integer(value);
    if (!extension.size || *extension.size < 0) {
      blob_.fail(member.header_at, "a size that is no number: " + quoted_name(value));
    }
  } else if (keyword.starts_with("GNU.sparse.")) {
    extension.sparse = true;
  }
}

// Two blocks of zeros end a tar, and programs add more of them.
void TarReader::check_end() {
  if (blob_.size() - at_ < 2 * kTarBlock) blob_.fail(at_, kCutShort);
  constexpr int64_t kPiece = 64 << 10;
  for (int64_t at = at_; at < blob_.size(); at += kPiece) {
    const auto bytes = blob_.read(at, std::min(kPiece, blob_.size() - at), "the end");
    if (is_zero(bytes)) continue;
    const auto other = std::find_if(bytes.begin(), bytes.end(), [](uint8_t b) { return b != 0; });
    blob_.fail(at + (other - bytes.begin()),
               "data after the zeros at byte " + std::to_string(at_) +
                   " that end the tar; files that were joined must be unpacked and packed again");
  }
}

}  // namespace stoker
