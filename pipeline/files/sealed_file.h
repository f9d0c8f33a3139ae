// A file that is written once and replaced as a whole: the form of every table that is kept on a
// disk (lists of folders, indexes of shards, seek indexes, plans of convolutions). A reader finds
// the complete old or the complete new one, and finds out if it is damaged, cut short, of another
// version or of another kind. sealed_pieces.h is for pieces that come one by one.
//
//   header   SealedHeader
//   body     pieces that the table points to; kinds that want it seal each of them
//   table    up to the end of the file
//
// A seal finds accidents, not forgery: users check what they read. Errors: see each function.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/files/durable_file.h"
#include "pipeline/files/read_piece.h"

namespace stoker {

struct SealedKind {
  char magic[9];
  uint32_t version;
  uint64_t max_table_bytes;  // a larger table is not ours
};

struct SealedHeader {
  SealedHeader() = default;
  explicit SealedHeader(const SealedKind& kind);
  bool is_of(const SealedKind& kind) const;

  char magic[8] = {};
  uint32_t version = 0;
  uint32_t byte_order = 0x01020304;
  uint64_t count = 0;     // for the file's kind
  uint64_t table_at = 0;  // the table's offset
  uint64_t seal = 0;      // XXH3 of the table, seeded with XXH3 of the fields above
};
static_assert(sizeof(SealedHeader) == 40);

uint64_t seal_of_table(const SealedHeader& header, std::string_view table);

// Writes such a file through a ReplacedFile, whose errors it throws; an unfinished file is removed.
// Threads: one at a time.
class SealedWriter {
 public:
  // Makes the folder of `path`. `mode`: the file's permissions.
  SealedWriter(const std::string& path, const SealedKind& kind, int mode = 0600);
  SealedWriter(const SealedWriter&) = delete;
  SealedWriter& operator=(const SealedWriter&) = delete;

  // Where append() writes; after finish(), the end of the file.
  uint64_t end() const { return end_ + pending_.size(); }
  void append(const void* data, size_t bytes);
  void read_at(uint64_t offset, std::span<char> bytes);
  void write_at(uint64_t offset, std::string_view bytes);  // into what was appended
  // When this returns, the file is complete and in its place.
  void finish(uint64_t count, std::string_view table);

 private:
  void flush();

  ReplacedFile file_;
  SealedHeader header_;
  uint64_t end_ = sizeof(SealedHeader);
  std::vector<char> pending_;  // not yet written
};

// Reads one. Threads: const calls from any.
class SealedFile {
 public:
  // Returns nullptr on failure: `problem` has the reason, without the path; "" if there is no such
  // file. Never waits for a pipe.
  static std::unique_ptr<SealedFile> open(const std::string& path, const SealedKind& kind,
                                          std::string& problem);
  ~SealedFile();
  SealedFile(const SealedFile&) = delete;
  SealedFile& operator=(const SealedFile&) = delete;

  uint64_t count() const { return header_.count; }
  std::string_view table() const { return {table_.data(), table_.size()}; }
  int descriptor() const { return file_.get(); }  // to read pieces of the body
  // Maps the whole file, until this is destroyed. Empty: that failed.
  std::span<const char> map();

 private:
  explicit SealedFile(int descriptor) : file_(descriptor) {}
  std::string load(const SealedKind& kind);
  bool read(uint64_t offset, std::span<uint8_t> out) const;

  const Descriptor file_;
  SealedHeader header_;
  std::vector<char> table_;
  std::span<const char> mapping_;
};

}  // namespace stoker
