#include "pipeline/files/sealed_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "pipeline/files/digest.h"

namespace stoker {
namespace {

constexpr size_t kSealedPendingBytes = size_t{1} << 20;

}  // namespace

SealedHeader::SealedHeader(const SealedKind& kind) : version(kind.version) {
  std::memcpy(magic, kind.magic, sizeof magic);
}

bool SealedHeader::is_of(const SealedKind& kind) const {
  return std::memcmp(magic, kind.magic, sizeof magic) == 0 && version == kind.version &&
         byte_order == SealedHeader().byte_order;
}

uint64_t seal_of_table(const SealedHeader& header, std::string_view table) {
  return text_digest(
      table, text_digest({reinterpret_cast<const char*>(&header), offsetof(SealedHeader, seal)}));
}

SealedWriter::SealedWriter(const std::string& path, const SealedKind& kind, int mode)
    : file_(path, mode), header_(kind) {}

void SealedWriter::append(const void* data, size_t bytes) {
  const char* first = static_cast<const char*>(data);
  pending_.insert(pending_.end(), first, first + bytes);
  if (pending_.size() >= kSealedPendingBytes) flush();
}

void SealedWriter::flush() {
  file_.write_at(end_, {pending_.data(), pending_.size()});
  end_ += pending_.size();
  pending_.clear();
}

void SealedWriter::read_at(uint64_t offset, std::span<char> bytes) {
  flush();
  file_.read_at(offset, bytes);
}

void SealedWriter::write_at(uint64_t offset, std::string_view bytes) {
  flush();
  file_.write_at(offset, bytes);
}

void SealedWriter::finish(uint64_t count, std::string_view table) {
  flush();
  header_.count = count;
  header_.table_at = end_;
  header_.seal = seal_of_table(header_, table);
  file_.write_at(end_, table);
  end_ += table.size();
  file_.write_at(0, {reinterpret_cast<const char*>(&header_), sizeof header_});
  file_.finish();
}

std::unique_ptr<SealedFile> SealedFile::open(const std::string& path, const SealedKind& kind,
                                             std::string& problem) {
  problem.clear();
  // Without O_NONBLOCK a pipe would block the reader.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    if (errno != ENOENT && errno != ENOTDIR) problem = std::strerror(errno);
    return nullptr;
  }
  std::unique_ptr<SealedFile> file(new SealedFile(descriptor));
  problem = file->load(kind);
  return problem.empty() ? std::move(file) : nullptr;
}

SealedFile::~SealedFile() {
  if (!mapping_.empty()) munmap(const_cast<char*>(mapping_.data()), mapping_.size());
}

// Returns what is wrong, or "".
std::string SealedFile::load(const SealedKind& kind) {
  constexpr char kDamaged[] = "it is damaged, or another kind of file";
  struct stat status;
  if (fstat(file_.get(), &status) != 0) return std::strerror(errno);
  if (!S_ISREG(status.st_mode)) return "not a regular file";
  if (!read(0, {reinterpret_cast<uint8_t*>(&header_), sizeof header_})) return kDamaged;
  if (!header_.is_of(kind)) {
    const bool is_ours = std::memcmp(header_.magic, kind.magic, sizeof header_.magic) == 0;
    if (!is_ours || header_.version == kind.version) return kDamaged;
    return header_.version < kind.version ? "it is of an older version of stoker"
                                          : "it is of a newer version of stoker, or damaged";
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  if (header_.table_at < sizeof header_ || header_.table_at > size ||
      size - header_.table_at > kind.max_table_bytes) {
    return kDamaged;
  }
  table_.resize(size - header_.table_at);
  const bool is_read =
      read(header_.table_at, {reinterpret_cast<uint8_t*>(table_.data()), table_.size()});
  return is_read && seal_of_table(header_, table()) == header_.seal ? "" : kDamaged;
}

bool SealedFile::read(uint64_t offset, std::span<uint8_t> out) const {
  return read_piece(file_.get(), static_cast<int64_t>(offset), out) == std::ssize(out);
}

std::span<const char> SealedFile::map() {
  if (!mapping_.empty()) return mapping_;
  const size_t bytes = header_.table_at + table_.size();
  void* const memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file_.get(), 0);
  if (memory != MAP_FAILED) mapping_ = {static_cast<const char*>(memory), bytes};
  return mapping_;
}

}  // namespace stoker
