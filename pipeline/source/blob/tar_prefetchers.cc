#include "pipeline/source/blob/tar_prefetchers.h"

#include <algorithm>

#include "pipeline/source/format/known_names.h"
#include "pipeline/source/format/tar_reader.h"
#include "staging/threads.h"

namespace stoker {
namespace {

// A search for a header reads so much first, then twice as much, and ends after so much.
constexpr int64_t kFirstPrefetch = 64 << 10, kLongestSearch = 1 << 20;
// Members that are no images and not larger are read too: the scan may want their content.
constexpr int64_t kSmallMember = 16 << 10;

struct NotWanted {};

bool is_image(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot != std::string::npos && is_shard_image_extension(name.substr(dot));
}

}  // namespace

TarPrefetchers::TarPrefetchers(std::vector<PrefetchedTar> tars, const Options& options)
    : tars_(std::move(tars)), options_(options), progress_(tars_.size()) {
  int64_t parts = 0;
  for (const PrefetchedTar& tar : tars_) parts += tar.bytes / options_.part_bytes + 1;
  const auto count = std::min<int64_t>(parts, options_.prefetchers);
  threads_ = start_threads("reading tar headers", count, [this](int64_t) { work(); });
}

TarPrefetchers::~TarPrefetchers() { stop(); }

void TarPrefetchers::stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  room_.notify_all();
  for (const auto& [position, part] : parts_) part->changed.notify_all();
}

int64_t TarPrefetchers::read(size_t tar, int64_t offset, int64_t least, std::span<uint8_t> out) {
  {
    MutexLock lock(mutex_);
    const Position position{tar, offset / options_.part_bytes};
    if (position.part > progress_[tar].scanned) pass(tar, position.part);
    if (const auto found = parts_.find(position); found != parts_.end()) {
      const std::shared_ptr<Part> part = found->second;
      while (!part->done && part->position <= offset && !stopped_) part->changed.wait(lock);
      const int64_t bytes = copy(*part, offset, out);
      if (bytes >= least) return bytes;
    }
  }
  return tars_[tar].read_at(offset, least, out);
}

void TarPrefetchers::end(size_t tar) {
  const MutexLock lock(mutex_);
  pass(tar, tars_[tar].bytes / options_.part_bytes + 1);
}

// The scan of a tar has come to a part: those before it are dropped.
void TarPrefetchers::pass(size_t tar, int64_t part) {
  progress_[tar].scanned = part;
  const auto begin = parts_.lower_bound({tar, 0}), end = parts_.lower_bound({tar, part});
  for (auto it = begin; it != end; ++it) {
    Part& passed = *it->second;
    passed.dropped = true;
    memory_ -= passed.done ? passed.piece_bytes : options_.part_bytes;
  }
  if (begin == end) return;
  parts_.erase(begin, end);
  room_.notify_all();
}

// Returns the bytes from `offset` on that are there, at most as many as `out` has.
int64_t TarPrefetchers::copy(const Part& part, int64_t offset, std::span<uint8_t> out) {
  int64_t copied = 0;
  auto piece = part.pieces.upper_bound(offset);
  if (piece == part.pieces.begin()) return 0;
  for (--piece; piece != part.pieces.end() && copied < std::ssize(out); ++piece) {
    const auto& [at, bytes] = *piece;
    const int64_t skip = offset + copied - at;
    if (skip < 0) break;
    const int64_t count = std::min(std::ssize(bytes) - skip, std::ssize(out) - copied);
    if (count <= 0) continue;
    std::copy_n(bytes.begin() + skip, count, out.begin() + copied);
    copied += count;
  }
  return copied;
}

void TarPrefetchers::work() {
  Position position;
  while (const std::shared_ptr<Part> part = take(position)) {
    try {
      prefetch(position, *part);
    } catch (const NotWanted&) {
    } catch (const std::exception&) {
      // The scan will meet it, if it comes by there.
    }
    finish(*part);
  }
}

std::shared_ptr<TarPrefetchers::Part> TarPrefetchers::take(Position& position) {
  MutexLock lock(mutex_);
  while (!stopped_ && skip_to_a_part()) {
    if (memory_ + options_.part_bytes > options_.memory_bytes) {
      room_.wait(lock);
      continue;
    }
    memory_ += options_.part_bytes;
    position = next_;
    ++next_.part;
    auto part = std::make_shared<Part>();
    part->position = position.part * options_.part_bytes;
    return parts_[position] = std::move(part);
  }
  return nullptr;
}

bool TarPrefetchers::skip_to_a_part() {
  while (next_.tar < tars_.size()) {
    const Progress& progress = progress_[next_.tar];
    next_.part = std::max(next_.part, progress.scanned + 1);
    const bool is_inside = next_.part * options_.part_bytes < tars_[next_.tar].bytes;
    if (is_inside && progress.is_worth_it()) return true;
    next_ = {next_.tar + 1, 0};
  }
  return false;
}

void TarPrefetchers::prefetch(const Position& position, Part& part) {
  const PrefetchedTar& tar = tars_[position.tar];
  const int64_t begin = position.part * options_.part_bytes, end = begin + options_.part_bytes;
  const int64_t first = begin == 0 ? 0 : find_header(position, part);
  if (first < 0) return;
  BlobReader blob(tar.name, tar.bytes, [&](int64_t offset, int64_t least, std::span<uint8_t> out) {
    return read_for(position, part, offset, least, out);
  });
  TarReader reader(blob, first);
  TarMember member;
  while (reader.at() < end) {
    set_position(part, reader.at());
    if (!reader.next(member)) return;
    if (member.size <= kSmallMember && !is_image(member.name)) {
      blob.read(member.data_at, member.size, "a member");
    }
  }
}

// Returns the offset of the first header in a part, or -1.
int64_t TarPrefetchers::find_header(const Position& position, Part& part) {
  const PrefetchedTar& tar = tars_[position.tar];
  const int64_t begin = position.part * options_.part_bytes;
  const int64_t end = std::min({begin + kLongestSearch, begin + options_.part_bytes, tar.bytes});
  int64_t found = -1, at = begin;
  std::vector<uint8_t> piece;
  while (found < 0 && end - at >= kTarBlock) {
    check_wanted(part);
    piece.resize(static_cast<size_t>(std::min(std::max(kFirstPrefetch, at - begin), end - at)));
    tar.read_at(at, std::ssize(piece), piece);
    for (int64_t k = 0; found < 0 && k + kTarBlock <= std::ssize(piece); k += kTarBlock) {
      if (is_tar_header(std::span(piece).subspan(static_cast<size_t>(k), kTarBlock))) {
        found = at + k;
      }
    }
    at += std::ssize(piece);
  }
  const MutexLock lock(mutex_);
  ++(found < 0 ? progress_[position.tar].not_found : progress_[position.tar].found);
  return found;
}

int64_t TarPrefetchers::read_for(const Position& position, Part& part, int64_t offset,
                                 int64_t least, std::span<uint8_t> out) {
  check_wanted(part);
  // One part's pieces never come to more than the part, which is what they may take.
  const int64_t left = options_.part_bytes - part.piece_bytes;
  if (left < least) throw NotWanted();
  const auto wanted = out.first(static_cast<size_t>(std::min(left, std::ssize(out))));
  const int64_t bytes = tars_[position.tar].read_at(offset, least, wanted);
  const MutexLock lock(mutex_);
  part.pieces[offset].assign(out.begin(), out.begin() + bytes);
  part.piece_bytes += bytes;
  return bytes;
}

void TarPrefetchers::check_wanted(const Part& part) {
  const MutexLock lock(mutex_);
  if (stopped_ || part.dropped) throw NotWanted();
}

void TarPrefetchers::set_position(Part& part, int64_t offset) {
  const MutexLock lock(mutex_);
  part.position = offset;
  part.changed.notify_all();
}

void TarPrefetchers::finish(Part& part) {
  const MutexLock lock(mutex_);
  part.done = true;
  part.changed.notify_all();
  if (part.dropped) return;
  memory_ -= options_.part_bytes - part.piece_bytes;
  room_.notify_all();
}

}  // namespace stoker
