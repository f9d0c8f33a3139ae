// Goes from member to member of a tar file and reads their headers only: POSIX ustar and its
// extended headers (IEEE Std 1003.1, "pax", Extended Description), and GNU's long names and sizes
// (GNU tar manual, "Basic Tar Format"). Owner: one scan. Threads: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/source/format/blob_reader.h"

namespace stoker {

struct TarMember {
  std::string name;  // as it stands in the file, without NUL, not empty; or a header's own name
  char type = 0;     // the header's typeflag: '0' or NUL is a file, '5' a folder
  int64_t header_at = 0;
  int64_t data_at = 0;
  int64_t size = 0;  // bytes at data_at, all of them inside the file; 0 for what has no data
};

constexpr int64_t kTarBlock = 512;
// Returns whether a block of so many bytes is a header of POSIX's or GNU's format, by its magic and
// its checksum.
bool is_tar_header(std::span<const uint8_t> block);

class TarReader {
 public:
  // Throws BlobError for an empty file and for a compressed one.
  explicit TarReader(BlobReader& blob);
  // Begins at the header of a member that is not the first one.
  TarReader(BlobReader& blob, int64_t header_at) : blob_(blob), at_(header_at) {}
  // Sets `member` to the next file, folder, link or other thing; the headers that only say
  // something about the next member are read on the way. Returns false after the last one, when
  // the end has been checked. Throws BlobError with the header's offset for what is damaged.
  bool next(TarMember& member);
  int64_t at() const { return at_; }  // where the next header is

 private:
  // Facts from extended headers about the member that follows.
  struct Extension {
    std::optional<std::string> name;
    std::optional<int64_t> size;
    bool sparse = false;
  };

  bool read_header(TarMember& member);
  void check_sum(const TarMember& member) const;
  void measure(TarMember& member, const std::optional<int64_t>& size);
  std::string read_text(const TarMember& member);
  void read_records(const TarMember& member, Extension& extension);
  void read_record(const TarMember& member, std::string_view record, Extension& extension) const;
  void check_end();
  std::string_view field(size_t at, size_t length) const;

  BlobReader& blob_;
  int64_t at_ = 0;                     // of the next header
  std::array<uint8_t, 512> header_{};  // read last
};

}  // namespace stoker
