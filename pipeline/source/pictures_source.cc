#include "pipeline/source/pictures_source.h"

#include <algorithm>
#include <deque>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/files/printable_name.h"
#include "pipeline/store/object_store.h"
#include "staging/mutex.h"

namespace stoker {
namespace {

bool is_picture_word(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && is_letter(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

SampleId id_in(const NamedPictures& pictures, SampleId id) {
  return pictures.ids.empty() ? id : pictures.ids[static_cast<size_t>(id)];
}

PictureInfo info_of(const NamedPictures& pictures, int64_t samples) {
  const Source& source = *pictures.source;
  check_picture_name(pictures.name);
  const int64_t given = pictures.ids.empty() ? source.size() : std::ssize(pictures.ids);
  if (given != samples) {
    throw std::invalid_argument(std::to_string(given) + " pictures '" + pictures.name + "' for " +
                                std::to_string(samples) + " samples");
  }
  if (!source.pictures().empty()) {
    throw std::invalid_argument("the pictures '" + pictures.name +
                                "' have further pictures themselves");
  }
  return {pictures.name, source.encoding(), source.raw_size()};
}

std::string text_of(const NamedPictures& pictures) {
  std::string text = "; picture " + pictures.name + " " + hex64(pictures.source->fingerprint());
  if (pictures.ids.empty()) return text;
  const std::string_view ids(reinterpret_cast<const char*>(pictures.ids.data()),
                             pictures.ids.size() * sizeof(SampleId));
  return text + " samples " + hex64(text_digest(std::string(ids)));
}

// Gives several sources the same samples, each at its own pace.
class RepeatedSequence {
 public:
  RepeatedSequence(SampleSequence next, size_t sources)
      : next_(std::move(next)), repeated_(sources) {}

  NextSample next_of(size_t source, SampleId& id) {
    const MutexLock lock(mutex_);
    if (repeated_[source].ids.empty()) {
      const auto is_full = [](const Repeated& each) { return each.ids.size() >= kMostWaiting; };
      if (std::ranges::any_of(repeated_, is_full)) return NextSample::later;
      SampleId next = 0;
      if (const NextSample kind = next_(next); kind != NextSample::found) return kind;
      for (Repeated& each : repeated_) {
        if (each.wanted) each.ids.push_back(next);
      }
    }
    id = repeated_[source].ids.front();
    repeated_[source].ids.pop_front();
    return NextSample::found;
  }

  // The source does not look ahead.
  void leave_out(size_t source) {
    const MutexLock lock(mutex_);
    repeated_[source] = {{}, false};
  }

 private:
  // A source that is far ahead must not let those of the others pile up.
  static constexpr size_t kMostWaiting = 64 << 10;
  struct Repeated {
    std::deque<SampleId> ids;
    bool wanted = true;
  };

  Mutex mutex_;
  const SampleSequence next_ GUARDED_BY(mutex_);
  std::vector<Repeated> repeated_ GUARDED_BY(mutex_);
};

struct PictureLookAheads final : LookAhead {
  std::unique_ptr<RepeatedSequence> sequence;
  std::vector<std::unique_ptr<LookAhead>> of_sources;  // they use the sequence
};

}  // namespace

void check_picture_name(const std::string& name) {
  if (is_picture_word(name) && name != "image") return;
  throw std::invalid_argument("no picture can be called '" + printable_name(name) +
                              "': names are words of letters, digits and '_', and 'image' is the "
                              "sample's own picture");
}

PicturesSource::PicturesSource(std::shared_ptr<const Source> source,
                               std::vector<NamedPictures> pictures,
                               const std::vector<SourceNote>& notes)
    : ForwardingSource(*source),
      owned_(std::move(source)),
      pictures_(std::move(pictures)),
      info_(source_.info()) {
  std::string text = "source " + hex64(source_.fingerprint());
  for (const NamedPictures& each : pictures_) {
    const auto is_same = [&](const PictureInfo& other) { return other.name == each.name; };
    if (std::ranges::any_of(info_.pictures, is_same)) {
      throw std::invalid_argument("the samples have two pictures '" + each.name + "'");
    }
    info_.pictures.push_back(info_of(each, source_.size()));
    text += text_of(each);
  }
  info_.notes.insert(info_.notes.end(), notes.begin(), notes.end());
  info_.fingerprint = text_digest(text);
}

ReadStatus PicturesSource::read_picture(SampleId id, size_t number, MayWait may_wait,
                                        std::vector<uint8_t>& buffer,
                                        std::span<const uint8_t>& bytes) const {
  const size_t inner = source_.pictures().size();
  if (number < inner) return source_.read_picture(id, number, may_wait, buffer, bytes);
  const NamedPictures& pictures = pictures_[number - inner];
  const SampleId other = id_in(pictures, id);
  if (other < 0) return {false, "there is none"};
  if (may_wait == MayWait::yes) return pictures.source->read(other, buffer, bytes);
  return {pictures.source->storage().read_cached(other, buffer, bytes), "not in memory"};
}

std::unique_ptr<LookAhead> PicturesSource::look_ahead(SampleSequence next) const {
  auto all = std::make_unique<PictureLookAheads>();
  all->sequence = std::make_unique<RepeatedSequence>(std::move(next), 1 + pictures_.size());
  for (size_t i = 0; i <= pictures_.size(); ++i) {
    const NamedPictures* const pictures = i == 0 ? nullptr : &pictures_[i - 1];
    const Source& source = pictures ? *pictures->source : source_;
    auto one = source.storage().look_ahead([=, sequence = all->sequence.get()](SampleId& id) {
      NextSample kind = sequence->next_of(i, id);
      while (pictures && kind == NextSample::found) {
        id = id_in(*pictures, id);
        if (id >= 0) break;
        kind = sequence->next_of(i, id);
      }
      return kind;
    });
    if (!one) all->sequence->leave_out(i);
    if (one) all->of_sources.push_back(std::move(one));
  }
  if (all->of_sources.empty()) return nullptr;
  return all;
}

void PicturesSource::will_not_read(SampleId id) const {
  source_.storage().will_not_read(id);
  for (const NamedPictures& each : pictures_) {
    if (const SampleId other = id_in(each, id); other >= 0) {
      each.source->storage().will_not_read(other);
    }
  }
}

int64_t PicturesSource::look_ahead_bytes() const {
  int64_t bytes = source_.storage().look_ahead_bytes();
  for (const NamedPictures& each : pictures_) bytes += each.source->storage().look_ahead_bytes();
  return bytes;
}

// Counts are added; what was measured is that of the source with the most bytes.
std::optional<StoreStats> PicturesSource::store_stats() const {
  std::optional<StoreStats> all = source_.storage().store_stats();
  for (const NamedPictures& each : pictures_) {
    if (const auto one = each.source->storage().store_stats())
      all = all ? joined(*all, *one) : *one;
  }
  return all;
}

std::optional<StoredBytes> PicturesSource::stored_bytes() const {
  std::optional<StoredBytes> all = source_.storage().stored_bytes();
  for (const NamedPictures& each : pictures_) {
    if (const auto one = each.source->storage().stored_bytes()) {
      all = all ? joined(*all, *one) : *one;
    }
  }
  return all;
}

}  // namespace stoker
