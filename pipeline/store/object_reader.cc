#include "pipeline/store/object_reader.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "pipeline/store/hedge_rule.h"
#include "pipeline/store/request_tuner.h"
#include "pipeline/store/retry_policy.h"
#include "staging/mutex.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

// How often requests are looked at for being slow, and waiting retries for being due.
constexpr auto kTick = std::chrono::milliseconds(10);
constexpr auto kLookForCancel = std::chrono::milliseconds(50);

struct Range {
  const StoredObject* object;
  int64_t offset;
  std::span<uint8_t> out;
  ObjectReader::Done done;

  int failures = 0;
  Clock::time_point begun{};  // the first try
  std::string problem{};      // of the last one
  Clock::time_point due{};    // the next one, of a range that rests
  Clock::time_point asked{};  // the first request of this try
  // The request under way, and a second one of the same bytes. The second one writes into a buffer
  // of its own: the first one may write `out` at any time. 0: there is none. Where both are slow,
  // the older one makes room for another.
  HttpClient::Ticket first = 0, second = 0;
  Clock::time_point first_sent{}, second_sent{};
  std::vector<uint8_t> second_out{};

  int64_t length() const { return static_cast<int64_t>(out.size()); }
  bool is_sent() const { return first != 0 || second != 0; }
  // The last of its requests that are under way.
  Clock::time_point last_sent() const {
    if (first == 0) return second_sent;
    return second == 0 ? first_sent : std::max(first_sent, second_sent);
  }
};
using Ranges = std::vector<std::unique_ptr<Range>>;

std::exception_ptr store_error(const std::string& text) {
  return std::make_exception_ptr(StoreError(text));
}

double milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

}  // namespace

// Everything happens on the client's thread, so that a range needs no lock. Other threads leave
// ranges in the queues and post pump().
struct ObjectReader::Impl {
  Impl(std::shared_ptr<const ObjectStore> from, const StoreOptions& options);
  ~Impl();

  // Any thread.
  void ask(std::unique_ptr<Range> range, bool urgent);
  int room();
  StoreStats stats();

  // The client's thread.
  void post(void (Impl::*method)(), std::chrono::nanoseconds wait);
  void pump();
  std::unique_ptr<Range> next_range();
  void send(Range& range, bool is_second);
  void answered(Range& range, bool is_second, HttpAnswer answer);
  void cancel(HttpClient::Ticket ticket);
  void try_again(Range& range);
  void finish(Range& range, std::exception_ptr error);  // pump() follows
  std::unique_ptr<Range> take_under_way(const Range& range);
  void tick();
  void resume_rested();
  void ask_slow_again();
  void ask_again(Range& range, Clock::time_point now);
  void keep_ticking();
  void drop_all();

  void count_sent(bool is_second);
  void count_ended();
  void count_answer(const HttpAnswer& answer, AnswerKind kind);
  void count_range(const Range& range, bool is_second, const HttpAnswer& answer);
  std::exception_ptr used_up(const Range& range) const;

  const std::shared_ptr<const ObjectStore> store;
  const int tries;
  // A call by the client after the end of this object finds nullptr here.
  const std::shared_ptr<Impl*> self = std::make_shared<Impl*>(this);
  Ranges under_way, resting;  // the latter wait for their next try
  bool is_ticking = false;
  RetryBudget budget;
  HedgeRule hedges;
  std::mt19937_64 random{std::random_device{}()};

  std::function<void()> room_hook;

  Mutex mutex;
  std::deque<std::unique_ptr<Range>> urgent GUARDED_BY(mutex), patient GUARDED_BY(mutex);
  bool is_pump_posted GUARDED_BY(mutex) = false;
  int open_ranges GUARDED_BY(mutex) = 0;  // asked for and not finished
  RequestTuner tuner GUARDED_BY(mutex);
  RecentTimes times GUARDED_BY(mutex);
  StoreStats counts GUARDED_BY(mutex);
  Clock::duration busy GUARDED_BY(mutex){0};  // before busy_since
  Clock::time_point busy_since GUARDED_BY(mutex){};
};

ObjectReader::Impl::Impl(std::shared_ptr<const ObjectStore> from, const StoreOptions& options)
    : store(std::move(from)),
      tries(options.tries),
      tuner(options.requests, StoreOptions::kMaxRequests) {}

ObjectReader::Impl::~Impl() {
  struct Ending {
    Mutex mutex;
    CondVar changed;
    bool ended GUARDED_BY(mutex) = false;
  } ending;
  store->client().after(std::chrono::nanoseconds(0), [this, &ending] {
    drop_all();
    const MutexLock lock(ending.mutex);
    ending.ended = true;
    ending.changed.notify_one();
  });
  MutexLock lock(ending.mutex);
  while (!ending.ended) ending.changed.wait(lock);
}

void ObjectReader::Impl::drop_all() {
  *self = nullptr;
  for (const auto& range : under_way) {
    store->client().cancel(range->first);
    store->client().cancel(range->second);
  }
}

void ObjectReader::Impl::post(void (Impl::*method)(), std::chrono::nanoseconds wait) {
  store->client().after(wait, [reader = self, method] {
    if (*reader != nullptr) ((*reader)->*method)();
  });
}

void ObjectReader::Impl::ask(std::unique_ptr<Range> range, bool is_urgent) {
  {
    const MutexLock lock(mutex);
    (is_urgent ? urgent : patient).push_back(std::move(range));
    ++open_ranges;
    if (is_pump_posted) return;
    is_pump_posted = true;
  }
  post(&Impl::pump, std::chrono::nanoseconds(0));
}

int ObjectReader::Impl::room() {
  const MutexLock lock(mutex);
  return std::max(0, tuner.wanted(Clock::now()) - open_ranges);
}

// Starts ranges until as many are under way as are wanted.
void ObjectReader::Impl::pump() {
  while (std::unique_ptr<Range> next = next_range()) {
    Range& range = *next;
    range.asked = range.first_sent = Clock::now();
    if (range.failures == 0) range.begun = range.asked;
    under_way.push_back(std::move(next));
    if (range.out.empty()) {  // there is no request for no bytes
      finish(range, nullptr);
      continue;
    }
    try {
      send(range, false);
      count_sent(false);
      hedges.note_first_request(range.asked);
    } catch (...) {  // it could not be signed, for example
      finish(range, std::current_exception());
    }
  }
  keep_ticking();
}

std::unique_ptr<Range> ObjectReader::Impl::next_range() {
  const MutexLock lock(mutex);
  auto& queue = urgent.empty() ? patient : urgent;
  if (queue.empty() || static_cast<int>(under_way.size()) >= tuner.wanted(Clock::now())) {
    is_pump_posted = false;
    return nullptr;
  }
  std::unique_ptr<Range> range = std::move(queue.front());
  queue.pop_front();
  return range;
}

void ObjectReader::Impl::send(Range& range, bool is_second) {
  HttpRequest request = store->range_request(*range.object, range.offset, range.length());
  if (is_second) range.second_out.resize(range.out.size());
  request.out = is_second ? std::span<uint8_t>(range.second_out) : range.out;
  (is_second ? range.second : range.first) =
      store->client().start(std::move(request), [this, &range, is_second](HttpAnswer answer) {
        answered(range, is_second, std::move(answer));
      });
}

void ObjectReader::Impl::answered(Range& range, bool is_second, HttpAnswer answer) {
  (is_second ? range.second : range.first) = 0;
  Judgement judgement = store->judge(*range.object, range.offset, range.length(), answer);
  if (judgement.kind == AnswerKind::fine && answer.received != range.length()) {
    judgement = {AnswerKind::again, "the answer has " + std::to_string(answer.received) +
                                        " bytes of " + std::to_string(range.length())};
  }
  count_ended();
  count_answer(answer, judgement.kind);
  const HttpClient::Ticket other = is_second ? range.first : range.second;
  switch (judgement.kind) {
    case AnswerKind::fine:
      cancel(other);
      if (is_second) std::memcpy(range.out.data(), range.second_out.data(), range.out.size());
      count_range(range, is_second, answer);
      finish(range, nullptr);
      break;
    case AnswerKind::changed:
    case AnswerKind::refused:
      cancel(other);
      finish(range, store_error(judgement.problem));
      break;
    case AnswerKind::again:
    case AnswerKind::throttled:
      range.problem = std::move(judgement.problem);
      if (other == 0) try_again(range);  // otherwise the other request may still succeed
      break;
  }
  pump();
}

void ObjectReader::Impl::cancel(HttpClient::Ticket ticket) {
  if (ticket == 0) return;
  store->client().cancel(ticket);
  count_ended();
}

void ObjectReader::Impl::try_again(Range& range) {
  if (++range.failures >= tries) {
    finish(range, used_up(range));
    return;
  }
  const Clock::time_point now = Clock::now();
  const double share = std::uniform_real_distribution<double>()(random);
  range.due = now + std::max(retry_wait(range.failures, share), budget.take(now));
  resting.push_back(take_under_way(range));
  const MutexLock lock(mutex);
  ++counts.retries;
}

void ObjectReader::Impl::finish(Range& range, std::exception_ptr error) {
  const std::unique_ptr<Range> finished = take_under_way(range);
  bool has_room = false;
  {
    const MutexLock lock(mutex);
    --open_ranges;
    if (error != nullptr) ++counts.failed;
    has_room = tuner.wanted(Clock::now()) > open_ranges;
    is_pump_posted = true;  // for what the callbacks ask for
  }
  finished->done(std::move(error));
  if (has_room && room_hook) room_hook();
}

std::unique_ptr<Range> ObjectReader::Impl::take_under_way(const Range& range) {
  const auto found = std::find_if(under_way.begin(), under_way.end(),
                                  [&range](const auto& other) { return other.get() == &range; });
  std::unique_ptr<Range> taken = std::move(*found);
  *found = std::move(under_way.back());
  under_way.pop_back();
  return taken;
}

void ObjectReader::Impl::tick() {
  is_ticking = false;
  resume_rested();
  ask_slow_again();
  pump();
}

void ObjectReader::Impl::resume_rested() {
  const Clock::time_point now = Clock::now();
  const auto due = std::partition(resting.begin(), resting.end(),
                                  [now](const auto& range) { return range->due > now; });
  const MutexLock lock(mutex);
  for (auto range = due; range != resting.end(); ++range) urgent.push_front(std::move(*range));
  resting.erase(due, resting.end());
}

void ObjectReader::Impl::ask_slow_again() {
  {
    const MutexLock lock(mutex);
    hedges.learn(times);
  }
  const Clock::time_point now = Clock::now();
  std::vector<Range*> slow;
  for (const auto& range : under_way) {
    const bool is_slow =
        range->is_sent() && now - range->last_sent() >= hedges.slow_after(range->length());
    if (is_slow) slow.push_back(range.get());
  }
  // Whoever has waited longest comes first: all others may wait for his bytes.
  std::sort(slow.begin(), slow.end(),
            [](const Range* one, const Range* other) { return one->asked < other->asked; });
  for (Range* range : slow) {
    if (!hedges.take_second_request(now)) return;
    ask_again(*range, now);
  }
}

void ObjectReader::Impl::ask_again(Range& range, Clock::time_point now) {
  const bool is_second =
      range.second == 0 || (range.first != 0 && range.second_sent < range.first_sent);
  HttpClient::Ticket& older = is_second ? range.second : range.first;
  cancel(older);
  older = 0;
  (is_second ? range.second_sent : range.first_sent) = now;
  try {
    send(range, is_second);
    count_sent(true);
  } catch (const std::exception&) {
    // It is not needed: the other request may still succeed.
  }
}

void ObjectReader::Impl::keep_ticking() {
  if (is_ticking || (under_way.empty() && resting.empty())) return;
  is_ticking = true;
  post(&Impl::tick, kTick);
}

void ObjectReader::Impl::count_sent(bool is_second) {
  const MutexLock lock(mutex);
  if (counts.requests_under_way++ == 0) busy_since = Clock::now();
  ++counts.requests;
  if (is_second) ++counts.second_requests;
}

void ObjectReader::Impl::count_ended() {
  const MutexLock lock(mutex);
  if (--counts.requests_under_way == 0) busy += Clock::now() - busy_since;
}

void ObjectReader::Impl::count_answer(const HttpAnswer& answer, AnswerKind kind) {
  const MutexLock lock(mutex);
  counts.bytes_carried += answer.carried;
  if (kind != AnswerKind::throttled) return;
  ++counts.throttled;
  tuner.note_throttled(Clock::now());
}

void ObjectReader::Impl::count_range(const Range& range, bool is_second, const HttpAnswer& answer) {
  budget.note_success();
  const Clock::time_point now = Clock::now();
  const auto total = now - range.asked;
  const auto wait = (is_second ? range.second_sent : range.first_sent) - range.asked;
  const auto first_byte = answer.first_byte + wait;
  const MutexLock lock(mutex);
  ++counts.ranges;
  counts.bytes += range.length();
  if (wait > wait.zero()) ++counts.second_requests_won;
  times.add(range.length(), first_byte, total);
  tuner.note_range(now, range.length(), total, static_cast<int>(under_way.size()));
}

StoreStats ObjectReader::Impl::stats() {
  const MutexLock lock(mutex);
  const Clock::time_point now = Clock::now();
  StoreStats stats = counts;
  stats.requests_wanted = tuner.wanted(now);
  stats.first_byte_ms_median = milliseconds(times.first_byte(0.5));
  stats.first_byte_ms_p99 = milliseconds(times.first_byte(0.99));
  stats.total_ms_median = milliseconds(times.total(0.5));
  stats.total_ms_p99 = milliseconds(times.total(0.99));
  const auto time = busy + (counts.requests_under_way > 0 ? now - busy_since : now - now);
  const double seconds = std::chrono::duration<double>(time).count();
  if (seconds > 0) {
    stats.bytes_per_second = static_cast<double>(counts.bytes) / seconds;
    stats.requests_per_second = static_cast<double>(counts.requests) / seconds;
  }
  return stats;
}

std::exception_ptr ObjectReader::Impl::used_up(const Range& range) const {
  // The store's text about an answer begins with the address.
  const std::string address = store->address_of(range.object->key) + ": ";
  const size_t skipped = range.problem.starts_with(address) ? address.size() : 0;
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f",
                std::chrono::duration<double>(Clock::now() - range.begun).count());
  return store_error(
      address + "its bytes from " + std::to_string(range.offset) + " to " +
      std::to_string(range.offset + range.length()) +
      " could not be read: " + std::to_string(range.failures) + " tries in " + seconds +
      " s, the last: " + range.problem.substr(skipped) +
      "; look whether the server is there and has no more work than it can do, or allow "
      "more tries");
}

ObjectReader::ObjectReader(std::shared_ptr<const ObjectStore> store, const StoreOptions& options)
    : impl_(std::make_unique<Impl>(std::move(store), options)) {}

ObjectReader::~ObjectReader() = default;

void ObjectReader::read(const StoredObject& object, int64_t offset, std::span<uint8_t> out,
                        bool urgent, Done done) {
  auto range = std::make_unique<Range>();
  range->object = &object;
  range->offset = offset;
  range->out = out;
  range->done = std::move(done);
  impl_->ask(std::move(range), urgent);
}

void ObjectReader::read_now(const StoredObject& object, int64_t offset, std::span<uint8_t> out,
                            const std::atomic<bool>& cancelled) {
  // A request that nobody waits for any more goes on, and fills memory of its own.
  struct Request {
    Request(const StoredObject& of, size_t length) : object(of), bytes(length) {}
    const StoredObject object;
    std::vector<uint8_t> bytes;
    Mutex mutex;
    CondVar came;
    bool ended GUARDED_BY(mutex) = false;
    std::exception_ptr error GUARDED_BY(mutex);
  };
  const auto request = std::make_shared<Request>(object, out.size());
  read(request->object, offset, request->bytes, true, [request](std::exception_ptr error) {
    const MutexLock lock(request->mutex);
    request->ended = true;
    request->error = std::move(error);
    request->came.notify_one();
  });
  MutexLock lock(request->mutex);
  while (!request->ended && !cancelled) {
    request->came.wait_until(lock, std::chrono::steady_clock::now() + kLookForCancel);
  }
  if (!request->ended) {
    throw StoreError(store().address_of(object.key) + ": it is no longer waited for");
  }
  // The error is this thread's alone: the other one may free the request later.
  if (request->error != nullptr) std::rethrow_exception(std::exchange(request->error, nullptr));
  std::ranges::copy(request->bytes, out.begin());
}

int ObjectReader::room() const { return impl_->room(); }

void ObjectReader::set_room_hook(std::function<void()> hook) { impl_->room_hook = std::move(hook); }

void ObjectReader::set_starving(bool starving) {
  const MutexLock lock(impl_->mutex);
  impl_->tuner.set_starving(starving);
}

StoreStats ObjectReader::stats() const { return impl_->stats(); }

const ObjectStore& ObjectReader::store() const { return *impl_->store; }

}  // namespace stoker
