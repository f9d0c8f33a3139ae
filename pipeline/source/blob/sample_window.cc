#include "pipeline/source/blob/sample_window.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <list>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pipeline/source/blob/buffer_pool.h"
#include "pipeline/source/blob/coming_samples.h"
#include "pipeline/source/blob/sample_cache.h"
#include "staging/mutex.h"

namespace stoker {
namespace {

// A gap of at most so many bytes, as the headers between two members of a tar, is read with the
// samples beside it. A joined range stays short, so that its first sample does not wait long for
// its last.
constexpr int64_t kLargestGap = 8 << 10;
// Bytes are what a cache is there to spare. This is what lies between two images of a tar, and not
// a small image that the cache has.
constexpr int64_t kLargestGapWithCache = 2 << 10;
constexpr int64_t kLargestJoined = 2 << 20;
// Samples are asked for in bursts of this part of the window, so that those that lie near each
// other are seen together.
constexpr int64_t kBurst = 8;
// Samples that were taken stay for a while, in a part of the window: if a pair of rows is mixed and
// only the first sample was here, both are read again.
constexpr size_t kMaxTaken = 64;
constexpr int64_t kTakenPart = 8;
// Buffers that nobody uses are kept for the next samples: in a part like the window's, beside it.
constexpr int64_t kIdlePart = 8;
// Keeps the table of announced samples small where samples are tiny.
constexpr size_t kMaxAnnounced = 64 << 10;

}  // namespace

struct SampleWindow::Impl {
  enum class State : uint8_t { queued, sent, here, failed };

  // One range of one object, for one sample or several.
  struct Range {
    std::shared_ptr<const StoredObject> object;
    int64_t offset = 0, length = 0;
    State state = State::queued;
    int users = 0;         // announced and taken samples
    bool counted = false;  // in held_bytes
    BufferPool::Buffer bytes;
    std::exception_ptr error;
    int64_t end() const { return offset + length; }
  };
  using SharedRange = std::shared_ptr<Range>;

  // A sample in a range; `offset` is in the object. One that the cache has has no range.
  struct Sample {
    SharedRange range;
    int64_t offset = 0, length = 0;
    int follower = 0;
    std::span<const uint8_t> bytes() const {
      return {range->bytes.get() + (offset - range->offset), static_cast<size_t>(length)};
    }
  };

  struct Follower {
    int number = 0;
    // As many as fit into half of the window: what is needed later does not displace what is needed
    // first.
    ComingSamples coming;
    int64_t held_bytes = 0;  // of its samples
  };

  class Following final : public LookAhead {
   public:
    Following(Impl& impl, int number) : impl_(impl), number_(number) {}
    ~Following() override { impl_.leave(number_); }

   private:
    Impl& impl_;
    const int number_;
  };

  const StoredSamples samples;
  const int64_t most_bytes;
  const int most_requests;
  const std::unique_ptr<SampleCache> cache;  // or null
  BufferPool buffers;

  mutable Mutex mutex;
  CondVar changed;
  // By sample and the number of its announcement: a sample may be announced several times.
  std::map<std::pair<SampleId, int64_t>, Sample> announced GUARDED_BY(mutex);
  std::deque<std::pair<SampleId, Sample>> taken GUARDED_BY(mutex);  // the last ones
  // Samples that were read before their announcement; it will be passed over.
  std::unordered_map<SampleId, int> early GUARDED_BY(mutex);
  std::list<Follower> followers GUARDED_BY(mutex);
  std::deque<SharedRange> queue GUARDED_BY(mutex);  // in the order of need; some are sent already
  // Those of the queue, by object and offset.
  std::map<std::pair<const StoredObject*, int64_t>, SharedRange> queued GUARDED_BY(mutex);
  int64_t held_bytes GUARDED_BY(mutex) = 0;
  // Announced samples that the cache has. They take no memory, but one looks no further ahead
  // because of them.
  int64_t cached_bytes GUARDED_BY(mutex) = 0;
  int64_t taken_bytes GUARDED_BY(mutex) = 0;
  int64_t announcements GUARDED_BY(mutex) = 0;
  int followers_so_far GUARDED_BY(mutex) = 0;
  int waiting GUARDED_BY(mutex) = 0;  // threads in read()

  std::atomic<int64_t> cache_hits = 0, cache_misses = 0;

  ObjectReader reader;  // last: its callbacks use all of the above until it is destroyed

  Impl(std::shared_ptr<const ObjectStore> store, const StoreOptions& options,
       StoredSamples all_samples)
      : samples(std::move(all_samples)),
        most_bytes(options.read_ahead_bytes),
        most_requests(options.requests > 0 ? options.requests : StoreOptions::kMaxRequests),
        cache(SampleCache::open(options, samples)),
        buffers(buffer_bytes()),
        reader(std::move(store), options) {
    reader.set_room_hook([this] { go_on(); });
  }

  // Buffers are up to an eighth larger than what is in them (buffer_pool.h).
  int64_t buffer_bytes() const { return most_bytes + most_bytes / 8 + most_bytes / kIdlePart; }

  // ---- Announcements

  // Announces what fits, and sends what may be sent.
  void go_on() {
    std::vector<SharedRange> to_send;
    const int room = reader.room();
    {
      const MutexLock lock(mutex);
      announce();
      while (std::ssize(to_send) < room && !queue.empty()) {
        SharedRange range = std::move(queue.front());
        queue.pop_front();
        if (range->state != State::queued || range->users == 0) continue;
        mark_sent(range);
        to_send.push_back(std::move(range));
      }
    }
    for (const SharedRange& range : to_send) send(range, false);
  }

  void announce() REQUIRES(mutex) {
    const bool is_low = most_bytes - held_bytes - cached_bytes >= most_bytes / kBurst;
    if (!is_low && waiting == 0) return;
    bool any = true;
    while (any && announced.size() < kMaxAnnounced) {
      any = false;
      // In turn, so that none waits for the others.
      for (Follower& follower : followers) any = announce_next(follower) || any;
    }
  }

  bool announce_next(Follower& follower) REQUIRES(mutex) {
    if (!has_room(follower)) return false;
    follower.coming.look_further(share() / 2, samples.locate);
    const ComingSamples::Sample* const next = follower.coming.front();
    if (next == nullptr || !has_room_beside(follower, next->address)) return false;
    const SharedRange range = announce_sample(follower, *next);
    if (range) announce_beside(follower, range);
    return true;
  }

  int64_t share() const REQUIRES(mutex) {
    return most_bytes / static_cast<int64_t>(followers.size());
  }

  bool has_room(const Follower& follower) const REQUIRES(mutex) {
    if (follower.held_bytes >= share()) return false;
    return held_bytes < most_bytes || follower.held_bytes == 0;
  }

  // Returns the sample's range; nullptr if it needs none.
  SharedRange announce_sample(Follower& follower, const ComingSamples::Sample& next)
      REQUIRES(mutex) {
    const auto [id, address] = follower.coming.take(next);
    if (const auto was_early = early.find(id); was_early != early.end()) {
      if (--was_early->second == 0) early.erase(was_early);
      return nullptr;
    }
    const std::pair key(id, announcements++);
    follower.held_bytes += address.length;
    Sample sample{nullptr, address.offset, address.length, follower.number};
    if (cache && cache->holds(id)) {
      cached_bytes += address.length;
    } else {
      sample.range = range_for(id, address);
      ++sample.range->users;
    }
    return announced.emplace(key, std::move(sample)).first->second.range;
  }

  // Returns the coming sample that lies beside a range, so near that both are asked for together;
  // nullptr: there is none.
  const ComingSamples::Sample* find_beside(const Follower& follower, const Range& range) const
      REQUIRES(mutex) {
    const StoredObject* const object = range.object.get();
    for (const ComingSamples::Sample* each : {follower.coming.first_from(object, range.end()),
                                              follower.coming.last_before(object, range.offset)}) {
      if (each == nullptr || !may_join(range, each->address)) continue;
      if (!(cache && cache->holds(each->id))) return each;
    }
    return nullptr;
  }

  // Makes a range of the queue longer by the coming samples that lie beside it. So those of a block
  // that will be read mixed with others (block_shuffled_order()) come in one range.
  void announce_beside(Follower& follower, const SharedRange& range) REQUIRES(mutex) {
    while (range->state == State::queued && has_room(follower)) {
      const ComingSamples::Sample* const beside = find_beside(follower, *range);
      if (beside == nullptr) return;
      announce_sample(follower, *beside);
    }
  }

  // Whether there is room for what will be asked for together with a sample. It is waited for, so
  // that a range is not cut where the memory is full: room for as much comes at a time (kBurst).
  bool has_room_beside(const Follower& follower, const SampleAddress& address) const
      REQUIRES(mutex) {
    if (follower.held_bytes == 0) return true;
    Range range;
    range.object = address.object;
    range.offset = address.offset;
    range.length = address.length;
    const int64_t room = std::min(share() - follower.held_bytes, most_bytes - held_bytes);
    while (range.length <= share() / kBurst) {
      if (range.length > room) return false;
      const ComingSamples::Sample* const beside = find_beside(follower, range);
      if (beside == nullptr) return true;
      const int64_t end = std::max(range.end(), beside->address.offset + beside->address.length);
      range.offset = std::min(range.offset, beside->address.offset);
      range.length = end - range.offset;
    }
    return true;
  }

  // Returns a range that has the sample: one that is there, a longer one of the queue, or a new
  // one.
  SharedRange range_for(SampleId id, const SampleAddress& address) REQUIRES(mutex) {
    const auto same = find_announced(id);
    if (same != announced.end() && same->second.range &&
        same->second.range->state != State::failed) {
      return same->second.range;
    }
    if (SharedRange range = join(address)) return range;
    auto range = std::make_shared<Range>();
    range->object = address.object;
    range->offset = address.offset;
    count(*range, address.length);
    queued[{address.object.get(), address.offset}] = range;
    queue.push_back(range);
    return range;
  }

  SharedRange join(const SampleAddress& address) REQUIRES(mutex) {
    const auto behind = queued.lower_bound({address.object.get(), address.offset});
    SharedRange range;
    if (behind != queued.end()) range = extend(behind, address);
    if (!range && behind != queued.begin()) range = extend(std::prev(behind), address);
    return range;
  }

  // Whether the sample lies so near the range that both are asked for together.
  bool may_join(const Range& range, const SampleAddress& address) const {
    if (range.object != address.object) return false;
    const int64_t length = std::max(range.end(), address.offset + address.length) -
                           std::min(range.offset, address.offset);
    const int64_t more = length - range.length;
    const int64_t largest_gap = cache ? kLargestGapWithCache : kLargestGap;
    return more - address.length <= largest_gap && (more == 0 || length <= kLargestJoined);
  }

  // Makes a range of the queue longer if the sample lies near it, or returns nullptr.
  SharedRange extend(decltype(queued)::iterator at, const SampleAddress& address) REQUIRES(mutex) {
    SharedRange range = at->second;
    if (!may_join(*range, address)) return nullptr;
    const int64_t begin = std::min(range->offset, address.offset);
    const int64_t end = std::max(range->end(), address.offset + address.length);
    const int64_t more = end - begin - range->length;
    queued.erase(at);
    range->offset = begin;
    count(*range, more);
    queued[{range->object.get(), begin}] = range;
    return range;
  }

  void count(Range& range, int64_t more) REQUIRES(mutex) {
    range.length += more;
    range.counted = true;
    held_bytes += more;
  }

  void mark_sent(const SharedRange& range) REQUIRES(mutex) {
    range->state = State::sent;
    queued.erase({range->object.get(), range->offset});
    range->bytes = buffers.take(range->length);
  }

  // REQUIRES: mark_sent(), and no lock: the reader's callbacks take it.
  void send(const SharedRange& range, bool urgent) {
    reader.read(*range->object, range->offset,
                {range->bytes.get(), static_cast<size_t>(range->length)}, urgent,
                [this, range](const std::exception_ptr& error) {
                  {
                    const MutexLock lock(mutex);
                    range->error = error;
                    range->state = error ? State::failed : State::here;
                    if (waiting > 0) changed.notify_all();
                  }
                  go_on();
                });
  }

  void skip(SampleId id) {
    {
      const MutexLock lock(mutex);
      if (followers.empty()) return;
      const auto found = find_announced(id);
      if (found == announced.end()) {
        ++early[id];
        return;
      }
      uncount(found->second);
      release(found->second);
      announced.erase(found);
    }
    go_on();
  }

  void leave(int number) {
    {
      const MutexLock lock(mutex);
      for (auto it = announced.begin(); it != announced.end();) {
        if (it->second.follower == number) {
          release(it->second);
          it = announced.erase(it);
        } else {
          ++it;
        }
      }
      followers.remove_if([&](const Follower& follower) { return follower.number == number; });
      if (followers.empty()) {
        early.clear();
        while (!taken.empty()) drop_taken();
      }
    }
    go_on();
  }

  // ---- Reading

  bool read(SampleId id, MayWait may_wait,
            const std::function<bool(std::span<const uint8_t>)>& use) {
    bool is_used = false;
    if (cache && read_cached(id, may_wait, use, is_used)) return is_used;
    Sample sample;
    bool is_again = false;
    {
      MutexLock lock(mutex);
      const auto found = find_announced(id);
      if (found != announced.end()) {
        if (may_wait == MayWait::no && !is_at_hand(id, found->second)) return false;
        sample = take(found);
      } else if (find_taken(id, sample)) {
        is_again = true;
      } else if (may_wait == MayWait::yes && !followers.empty()) {
        ++early[id];
      }
    }
    if (!sample.range && may_wait == MayWait::no) return false;
    if (!sample.range) sample = unannounced(id);
    if (!sample.range) return false;
    wait_for(sample.range);
    is_used = use(sample.bytes());
    if (cache && !is_again) {
      ++cache_misses;
      cache->keep(id, sample.bytes());
    }
    go_on();
    return is_used;
  }

  // Returns false if the cache does not have the sample.
  bool read_cached(SampleId id, MayWait may_wait,
                   const std::function<bool(std::span<const uint8_t>)>& use, bool& is_used) {
    std::unique_ptr<uint8_t[]> buffer;
    const std::span<const uint8_t> bytes = cache->read(id, may_wait, buffer);
    if (bytes.empty()) return false;
    {
      const MutexLock lock(mutex);
      Sample sample;
      const auto found = find_announced(id);
      const bool is_again = found == announced.end() && find_taken(id, sample);
      if (found != announced.end()) {
        drop_range(found->second);
        take(found);
      } else if (!is_again && !followers.empty()) {
        ++early[id];
      }
      if (!is_again) ++cache_hits;
    }
    is_used = use(bytes);
    go_on();
    return true;
  }

  // Whether a read takes no longer than a copy: it would, if the sample were to be written to the
  // cache.
  bool is_at_hand(SampleId id, const Sample& sample) const REQUIRES(mutex) {
    return sample.range && sample.range->state == State::here && !(cache && cache->wants(id));
  }

  // Another process has written a sample to the cache since it was announced here.
  void drop_range(Sample& sample) REQUIRES(mutex) {
    if (!sample.range) return;
    release(sample);
    sample.range = nullptr;
    cached_bytes += sample.length;
  }

  decltype(announced)::iterator find_announced(SampleId id) REQUIRES(mutex) {
    const auto found = announced.lower_bound({id, 0});
    return found != announced.end() && found->first.first == id ? found : announced.end();
  }

  // The sample stays in `taken`, and so does what is held of its range.
  Sample take(decltype(announced)::iterator at) REQUIRES(mutex) {
    const Sample sample = at->second;
    uncount(sample);
    taken.emplace_back(at->first.first, sample);
    if (sample.range) {
      taken_bytes += sample.range->length;
    } else {
      cached_bytes -= sample.length;
    }
    announced.erase(at);
    while (taken.size() > kMaxTaken || taken_bytes > most_bytes / kTakenPart) drop_taken();
    return sample;
  }

  void uncount(const Sample& sample) REQUIRES(mutex) {
    for (Follower& follower : followers) {
      if (follower.number == sample.follower) follower.held_bytes -= sample.length;
    }
  }

  void drop_taken() REQUIRES(mutex) {
    const SharedRange oldest = taken.front().second.range;
    taken.pop_front();
    if (!oldest) return;
    taken_bytes -= oldest->length;
    release(oldest);
  }

  bool find_taken(SampleId id, Sample& sample) REQUIRES(mutex) {
    const auto found = std::find_if(taken.rbegin(), taken.rend(),
                                    [&](const auto& entry) { return entry.first == id; });
    if (found == taken.rend()) return false;
    if (found->second.range && found->second.range->state != State::here) return false;
    sample = found->second;
    return true;
  }

  void release(const Sample& sample) REQUIRES(mutex) {
    if (sample.range) {
      release(sample.range);
    } else {
      cached_bytes -= sample.length;
    }
  }

  void release(const SharedRange& range) REQUIRES(mutex) {
    if (--range->users > 0 || !range->counted) return;
    held_bytes -= range->length;
    if (range->state == State::queued) queued.erase({range->object.get(), range->offset});
  }

  // A range of its own, which is not counted: whoever reads holds one at a time.
  Sample unannounced(SampleId id) {
    const SampleAddress address = samples.locate(id);
    if (!address.object) return {};
    const auto range = std::make_shared<Range>();
    range->object = address.object;
    range->offset = address.offset;
    range->length = address.length;
    return {range, address.offset, address.length, 0};
  }

  void wait_for(const SharedRange& range) {
    bool is_mine = false;
    {
      const MutexLock lock(mutex);
      if (range->state == State::queued) {
        mark_sent(range);
        is_mine = true;
      }
    }
    if (is_mine) send(range, true);
    MutexLock lock(mutex);
    if (range->state == State::sent) {
      if (waiting++ == 0) reader.set_starving(true);
      while (range->state == State::sent) changed.wait(lock);
      if (--waiting == 0) reader.set_starving(false);
    }
    if (range->error) std::rethrow_exception(range->error);
  }
};

SampleWindow::SampleWindow(std::shared_ptr<const ObjectStore> store, const StoreOptions& options,
                           StoredSamples samples)
    : process_(getpid()),
      impl_(std::make_unique<Impl>(std::move(store), options, std::move(samples))) {}

SampleWindow::~SampleWindow() {
  if (getpid() != process_) static_cast<void>(impl_.release());
}

void SampleWindow::check_process() const {
  if (getpid() == process_) return;
  throw StoreError(impl_->reader.store().root() +
                   ": the data were opened before this process was forked; open them in it, or "
                   "start processes by spawn");
}

std::unique_ptr<LookAhead> SampleWindow::look_ahead(SampleSequence next) {
  check_process();
  int number = 0;
  {
    const MutexLock lock(impl_->mutex);
    number = ++impl_->followers_so_far;
    impl_->followers.push_back({number, ComingSamples(std::move(next))});
  }
  impl_->go_on();
  return std::make_unique<Impl::Following>(*impl_, number);
}

void SampleWindow::skip(SampleId id) {
  check_process();
  impl_->skip(id);
}

bool SampleWindow::read(SampleId id, MayWait may_wait,
                        const std::function<bool(std::span<const uint8_t> bytes)>& use) {
  check_process();
  return impl_->read(id, may_wait, use);
}

bool SampleWindow::read_pieces(SampleId id, MayWait may_wait, std::span<const BytePiece> pieces) {
  return read(id, may_wait, [&](std::span<const uint8_t> stored) {
    return std::all_of(pieces.begin(), pieces.end(), [&](const BytePiece& piece) {
      if (piece.offset < 0 || std::ssize(piece.out) > std::ssize(stored) - piece.offset) {
        return false;
      }
      const auto from = stored.subspan(static_cast<size_t>(piece.offset), piece.out.size());
      std::copy(from.begin(), from.end(), piece.out.begin());
      return true;
    });
  });
}

int64_t SampleWindow::bytes() const {
  return impl_->buffer_bytes() + impl_->most_requests * HttpClient::kBufferBytes +
         (impl_->cache ? impl_->cache->memory_bytes() : 0);
}

StoreStats SampleWindow::stats() const {
  StoreStats stats = impl_->reader.stats();
  stats.requests_most = impl_->most_requests;
  stats.window_bytes = impl_->most_bytes;
  if (!impl_->cache) return stats;
  stats.has_cache = true;
  stats.cache_hits = impl_->cache_hits;
  stats.cache_misses = impl_->cache_misses;
  stats.cache_kept_bytes = impl_->cache->kept_bytes();
  stats.cache_problem = impl_->cache->problem();
  return stats;
}

StoredBytes SampleWindow::stored_bytes() const {
  if (impl_->cache) return impl_->cache->sizes();
  StoredBytes sizes{.samples = impl_->samples.count};
  for (SampleId id = 0; id < sizes.samples; ++id) sizes.bytes += impl_->samples.bytes_of(id);
  return sizes;
}

}  // namespace stoker
