#include "pipeline/source/concat_source.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <stdexcept>

#include "pipeline/annotation/annotations.h"
#include "pipeline/files/digest.h"
#include "pipeline/files/printable_name.h"
#include "pipeline/store/object_store.h"
#include "staging/mutex.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

std::string words_for(SampleEncoding encoding) {
  switch (encoding) {
    case SampleEncoding::image_file:
      return "image files";
    case SampleEncoding::raw_planar:
      return "raw planes";
    case SampleEncoding::raw_rgb:
      return "raw pixels";
  }
  return "?";
}

std::string words_for(Size size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height) + " pixels";
}

std::string words_for(std::span<const PictureInfo> pictures) {
  if (pictures.empty()) return "no further pictures";
  std::string text = "the pictures ";
  for (size_t i = 0; i < pictures.size(); ++i) {
    text += (i == 0 ? "" : ", ") + pictures[i].name + " (" + words_for(pictures[i].encoding) + ")";
  }
  return text;
}

std::string words_for(std::span<const TargetColumn> targets) {
  if (targets.empty()) return "no targets";
  std::string text = "the targets ";
  for (size_t i = 0; i < targets.size(); ++i) {
    text += (i == 0 ? "" : ", ") + targets[i].describe();
  }
  return text;
}

// Returns what a source has instead of what source 0 has, or "" if both have the same.
std::string difference(const Source& first, const Source& other) {
  const auto differ = [](const std::string& a, const std::string& b) { return b + ", not " + a; };
  if (other.encoding() != first.encoding()) {
    return differ(words_for(first.encoding()), words_for(other.encoding()));
  }
  if (other.raw_size() != first.raw_size()) {
    return differ(words_for(first.raw_size()), words_for(other.raw_size()));
  }
  const auto &names = first.class_names(), &others = other.class_names();
  if (others.size() != names.size()) {
    return differ(std::to_string(names.size()) + " classes",
                  std::to_string(others.size()) + " classes");
  }
  const auto [a, b] = std::mismatch(names.begin(), names.end(), others.begin());
  if (a != names.end()) {
    return differ(printable_name(*a),
                  "class " + std::to_string(a - names.begin()) + " " + printable_name(*b));
  }
  if (!std::ranges::equal(first.targets(), other.targets())) {
    return differ(words_for(first.targets()), words_for(other.targets()));
  }
  if (!std::ranges::equal(first.pictures(), other.pictures())) {
    return differ(words_for(first.pictures()), words_for(other.pictures()));
  }
  AnnotationInfo one = first.annotations(), another = other.annotations();
  one.digest = another.digest = 0;
  return one == another ? "" : differ(describe(one), describe(another));
}

// Returns the folders on the way to a root. No root counts as "/", which has every root inside it.
// An address in a store begins with its server or bucket.
std::vector<fs::path> path_parts(const std::string& root) {
  if (is_store_address(root)) {
    const size_t end = root.find('/', root.find("://") + 3);
    std::vector<fs::path> parts = {root.substr(0, end)};
    if (end == std::string::npos) return parts;
    const fs::path rest = root.substr(end + 1);
    parts.insert(parts.end(), rest.begin(), rest.end());
    return parts;
  }
  const fs::path path = fs::absolute(root + "/").lexically_normal().parent_path();
  return {path.begin(), path.end()};
}

fs::path joined_path(std::vector<fs::path>::const_iterator part,
                     std::vector<fs::path>::const_iterator end) {
  fs::path path;
  for (; part != end; ++part) path /= *part;
  return path;
}

// Returns the parts that both begin with.
std::vector<fs::path> common(const std::vector<fs::path>& a, const std::vector<fs::path>& b) {
  const auto size = static_cast<ptrdiff_t>(std::min(a.size(), b.size()));
  return {a.begin(), std::mismatch(a.begin(), a.begin() + size, b.begin()).first};
}

// Whether one root is equal to another or inside it.
bool roots_overlap(const std::vector<std::vector<fs::path>>& roots) {
  for (size_t i = 0; i < roots.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (common(roots[i], roots[j]).size() == std::min(roots[i].size(), roots[j].size())) {
        return true;
      }
    }
  }
  return false;
}

// Deals the samples of one sequence to the sources that they are of.
class DealtSequence {
 public:
  DealtSequence(SampleSequence next, const std::vector<int64_t>& begins)
      : next_(std::move(next)), begins_(begins), dealt_(begins.size() - 1) {}

  NextSample next_of(size_t source, SampleId& id) {
    const MutexLock lock(mutex_);
    std::deque<SampleId>& own = dealt_[source].ids;
    while (own.empty()) {
      if (waiting_ >= kMaxWaiting) return NextSample::later;
      SampleId next = 0;
      if (const NextSample kind = next_(next); kind != NextSample::found) return kind;
      const auto behind = std::upper_bound(begins_.begin(), begins_.end(), next);
      const auto its = static_cast<size_t>(behind - begins_.begin()) - 1;
      if (!dealt_[its].wanted) continue;
      dealt_[its].ids.push_back(next - begins_[its]);
      ++waiting_;
    }
    id = own.front();
    own.pop_front();
    --waiting_;
    return NextSample::found;
  }

  // The source does not look ahead.
  void leave_out(size_t source) {
    const MutexLock lock(mutex_);
    waiting_ -= dealt_[source].ids.size();
    dealt_[source] = {{}, false};
  }

 private:
  // A source with few samples must not let those of the others pile up.
  static constexpr size_t kMaxWaiting = 64 << 10;
  struct Dealt {
    std::deque<SampleId> ids;
    bool wanted = true;
  };

  Mutex mutex_;
  const SampleSequence next_ GUARDED_BY(mutex_);
  const std::vector<int64_t>& begins_;
  std::vector<Dealt> dealt_ GUARDED_BY(mutex_);
  size_t waiting_ GUARDED_BY(mutex_) = 0;
};

struct SeveralLookAheads final : LookAhead {
  std::unique_ptr<DealtSequence> sequence;
  std::vector<std::unique_ptr<LookAhead>> of_sources;  // they use the sequence
};

}  // namespace

ConcatSource::ConcatSource(std::vector<const Source*> sources) : sources_(std::move(sources)) {
  if (sources_.empty()) throw std::invalid_argument("ConcatSource: no sources");
  begins_.push_back(0);
  std::vector<std::vector<fs::path>> roots;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const std::string what = difference(*sources_[0], *sources_[i]);
    if (!what.empty()) {
      throw std::invalid_argument("ConcatSource: source " + std::to_string(i) + " has " + what +
                                  " as source 0");
    }
    begins_.push_back(begins_.back() + sources_[i]->size());
    roots.push_back(path_parts(sources_[i]->root()));
    prefixes_.push_back(std::to_string(i) + "/");
  }
  info_ = sources_[0]->info();
  info_.size = begins_.back();
  if (sources_.size() == 1) {
    prefixes_ = {""};
  } else if (roots_overlap(roots)) {
    info_.root.clear();
  } else {
    std::vector<fs::path> all = roots[0];
    for (const auto& root : roots) all = common(all, root);
    const auto depth = static_cast<ptrdiff_t>(all.size());
    info_.root = joined_path(all.begin(), all.end()).string();
    for (size_t i = 0; i < roots.size(); ++i) {
      prefixes_[i] = joined_path(roots[i].begin() + depth, roots[i].end()).string() + "/";
    }
  }
  join_info();
}

void ConcatSource::join_info() {
  std::string text = "stoker concat", targets = "stoker concat; targets",
              annotations = "stoker concat; annotations";
  info_.notes.clear();
  info_.knows_labels = true;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const SourceInfo& each = sources_[i]->info();
    for (SourceNote note : each.notes) {
      note.name = prefixes_[i] + note.name;
      info_.notes.push_back(std::move(note));
    }
    text += "; " + std::to_string(each.size) + " samples " + hex64(each.fingerprint);
    targets += "; " + std::to_string(each.size) + " " + hex64(each.targets_digest);
    annotations += "; " + std::to_string(each.size) + " " + hex64(each.annotations.digest);
    info_.knows_labels = info_.knows_labels && each.knows_labels;
  }
  info_.fingerprint = text_digest(text);
  info_.targets_digest = info_.targets.empty() ? 0 : text_digest(targets);
  if (info_.annotations.any()) info_.annotations.digest = text_digest(annotations);
}

size_t ConcatSource::source_of(SampleId id) const {
  return static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), id) -
                             begins_.begin()) -
         1;
}

int ConcatSource::label(SampleId id) const {
  const size_t source = source_of(id);
  return sources_[source]->label(id - begins_[source]);
}

std::string ConcatSource::name(SampleId id) const {
  const size_t source = source_of(id);
  return prefixes_[source] + sources_[source]->name(id - begins_[source]);
}

ReadStatus ConcatSource::read(SampleId id, std::vector<uint8_t>& buffer,
                              std::span<const uint8_t>& bytes) const {
  const size_t source = source_of(id);
  return sources_[source]->read(id - begins_[source], buffer, bytes);
}

bool ConcatSource::read_cached(SampleId id, std::vector<uint8_t>& buffer,
                               std::span<const uint8_t>& bytes) const {
  const size_t source = source_of(id);
  return sources_[source]->storage().read_cached(id - begins_[source], buffer, bytes);
}

FileStamp ConcatSource::stamp(SampleId id) const {
  const size_t source = source_of(id);
  return sources_[source]->storage().stamp(id - begins_[source]);
}

bool ConcatSource::read_pieces(SampleId id, const FileStamp& stamp,
                               std::span<const BytePiece> pieces, MayWait may_wait) const {
  const size_t source = source_of(id);
  return sources_[source]->storage().read_pieces(id - begins_[source], stamp, pieces, may_wait);
}

std::unique_ptr<LookAhead> ConcatSource::look_ahead(SampleSequence next) const {
  auto all = std::make_unique<SeveralLookAheads>();
  all->sequence = std::make_unique<DealtSequence>(std::move(next), begins_);
  for (size_t i = 0; i < sources_.size(); ++i) {
    auto one = sources_[i]->storage().look_ahead(
        [sequence = all->sequence.get(), i](SampleId& id) { return sequence->next_of(i, id); });
    if (!one) all->sequence->leave_out(i);
    if (one) all->of_sources.push_back(std::move(one));
  }
  if (all->of_sources.empty()) return nullptr;
  return all;
}

void ConcatSource::will_not_read(SampleId id) const {
  const size_t source = source_of(id);
  sources_[source]->storage().will_not_read(id - begins_[source]);
}

int64_t ConcatSource::look_ahead_bytes() const {
  int64_t bytes = 0;
  for (const Source* source : sources_) bytes += source->storage().look_ahead_bytes();
  return bytes;
}

// Counts are added; what was measured is that of the source with the most bytes.
std::optional<StoreStats> ConcatSource::store_stats() const {
  std::optional<StoreStats> all;
  for (const Source* source : sources_) {
    if (const auto one = source->storage().store_stats()) all = all ? joined(*all, *one) : *one;
  }
  return all;
}

std::optional<StoredBytes> ConcatSource::stored_bytes() const {
  std::optional<StoredBytes> all;
  for (const Source* source : sources_) {
    if (const auto one = source->storage().stored_bytes()) all = all ? joined(*all, *one) : *one;
  }
  return all;
}

void ConcatSource::read_targets(SampleId id, std::span<const uint8_t> bytes,
                                SampleTargets& out) const {
  const size_t source = source_of(id);
  sources_[source]->read_targets(id - begins_[source], bytes, out);
}

Size ConcatSource::picture_size(SampleId id) const {
  const size_t source = source_of(id);
  return sources_[source]->picture_size(id - begins_[source]);
}

ReadStatus ConcatSource::read_annotations(SampleId id, std::span<const uint8_t> bytes,
                                          Annotations& out) const {
  const size_t source = source_of(id);
  return sources_[source]->read_annotations(id - begins_[source], bytes, out);
}

ReadStatus ConcatSource::read_picture(SampleId id, size_t number, MayWait may_wait,
                                      std::vector<uint8_t>& buffer,
                                      std::span<const uint8_t>& bytes) const {
  const size_t source = source_of(id);
  return sources_[source]->read_picture(id - begins_[source], number, may_wait, buffer, bytes);
}

}  // namespace stoker
