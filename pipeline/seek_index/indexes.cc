#include "pipeline/seek_index/indexes.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <stdexcept>

#include "decode/jpeg/seek_index.h"
#include "pipeline/source/file_stamp.h"

namespace stoker {
namespace {

std::string parent_folder(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

}  // namespace

SeekIndexes::SeekIndexes(const Source& source, const std::string& choice, bool comes_again)
    : source_(source) {
  if (choice == "off" || source.encoding() != SampleEncoding::image_file) return;
  const bool is_named = choice != "auto";
  path_ = is_named ? choice : auto_seek_index_path(source);
  if (path_.empty()) return;
  open_file(is_named);
  if (source.size() > kMaxRecordedSamples) return;
  // A file that lies beside the data, or that the user chose, is left as it is.
  if (!comes_again || is_named || path_ != default_seek_index_path(source)) return;
  try {
    recorded_ = std::make_unique<RecordedIndexes>(parent_folder(path_), source.size());
  } catch (const std::runtime_error&) {
    // Indexes save time and nothing else, so a cache that cannot be written is no problem.
  }
}

SeekIndexes::~SeekIndexes() {
  if (recorded() == 0) return;
  try {
    recorded_->save(source_, path_);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stoker: the seek indexes of this run are lost: %s\n", error.what());
  }
}

void SeekIndexes::open_file(bool is_named) {
  std::string problem;
  file_ = SeekIndexFile::open(path_, problem);
  if (file_) return;
  if (is_named && problem.empty())
    throw std::runtime_error("seek index: " + path_ + ": no such file");
  if (!problem.empty()) {
    std::fprintf(stderr,
                 "stoker: the seek index %s is not used: %s; `stoker index`, or "
                 "stoker.index() in Python, makes a new one\n",
                 path_.c_str(), problem.c_str());
  }
}

StoredIndex SeekIndexes::read(SampleId id, std::vector<uint8_t>& buffer) const {
  StoredIndex stored;
  if (recorded_) stored = recorded_->read(id, buffer);
  return stored.index.empty() && file_ ? file_->read(source_.name(id), buffer) : stored;
}

void SeekIndexes::record(SampleId id, std::span<const uint8_t> index) {
  if (is_full_ ||
      recorded_->add(id, {settled_stamp(source_.storage().stamp(id), begun_ns_), index}))
    return;
  const std::string reason = std::strerror(errno);
  if (is_full_.exchange(true)) return;
  std::fprintf(stderr, "stoker: no more seek indexes are recorded: cannot write in %s: %s\n",
               parent_folder(path_).c_str(), reason.c_str());
}

int64_t SeekIndexes::table_bytes() const {
  return (file_ ? file_->table_bytes() : 0) + (recorded_ ? recorded_->table_bytes() : 0);
}

int64_t SeekIndexes::largest_index_bytes() const {
  return std::max(file_ ? file_->largest_index_bytes() : 0,
                  recorded_ ? int64_t{kMaxRowIndexBytes + kStampBytes} : 0);
}

void SeekIndexes::note(SampleId id, const SeekUse& use) {
  if (use.used > 0) used_.fetch_add(use.used, std::memory_order_relaxed);
  if (use.unread_bytes > 0) {
    unread_bytes_.fetch_add(use.unread_bytes, std::memory_order_relaxed);
  }
  if (use.refused == 0 || refused_.fetch_add(use.refused, std::memory_order_relaxed) > 0) return;
  if (records()) return;  // the sample gets a new one
  std::fprintf(stderr,
               "stoker: the seek index %s does not fit %s (and maybe others), which changed since "
               "or whose entry is damaged; such files are read without it; `stoker index`, or "
               "stoker.index() in Python, makes it anew\n",
               path_.c_str(), source_.name(id).c_str());
}

}  // namespace stoker
