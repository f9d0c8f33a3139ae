#include "tools/profile/feed_model.h"

#include <algorithm>
#include <deque>
#include <queue>
#include <random>

namespace stoker {
namespace {

// ReadAhead has this many buffers per worker, and one per I/O thread.
constexpr int kBuffersPerWorker = 3;

class Simulation {
 public:
  Simulation(const FeedModel& model, int start, int steps, uint64_t seed)
      : model_(model),
        start_(start),
        steps_(start + steps),
        random_(seed),
        idle_io_(model.io_threads),
        idle_workers_(model.workers),
        buffers_(kBuffersPerWorker * model.workers + model.io_threads),
        rows_left_(steps_, model.rows),
        free_slots_(std::max(model.slots, 1)) {}

  // Runs until the last step is done.
  ModelledRun run() {
    begin_slabs();
    advance();
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      happen(event);
      advance();
    }
    const int counted = steps_ - start_;
    ModelledRun result;
    result.step_s = (now_ - start_time_) / counted;
    result.samples_per_second = model_.rows / result.step_s;
    result.input_wait_s = input_wait_ / counted;
    result.copy_wait_s = copy_wait_ / counted;
    return result;
  }

 private:
  enum class Kind : uint8_t { read, filled, filled_from_buffer, copied, given_back, step_done };
  struct Event {
    double time;
    Kind kind;
    int step;
    bool operator>(const Event& other) const { return time > other.time; }
  };

  double draw(const std::vector<double>& values) { return values[random_() % values.size()]; }
  void later(double seconds, Kind kind, int step) { events_.push({now_ + seconds, kind, step}); }

  // Queues the rows of each slab as soon as the ring has room for it.
  void begin_slabs() {
    for (; begun_ < steps_ && begun_ < released_ + model_.ring_depth; ++begun_) {
      for (int row = 0; row < model_.rows; ++row) {
        if (model_.io_threads > 0 && !is_cached()) {
          to_read_.push_back(begun_);
        } else {
          to_fill_.push_back({begun_, false});
        }
      }
    }
  }

  bool is_cached() {
    if (model_.cached_share <= 0) return false;
    return std::uniform_real_distribution<>()(random_) < model_.cached_share;
  }

  void happen(const Event& event) {
    switch (event.kind) {
      case Kind::read:
        ++idle_io_;
        to_fill_.push_back({event.step, true});
        break;
      case Kind::filled_from_buffer:
        ++buffers_;
        [[fallthrough]];
      case Kind::filled:
        ++idle_workers_;
        --rows_left_[event.step];
        break;
      case Kind::copied:
        copying_ = false;
        copied_ = event.step + 1;
        release_slab();
        break;
      case Kind::given_back:
        if (copies()) {
          ++free_slots_;
        } else {
          release_slab();
        }
        break;
      case Kind::step_done:
        busy_ = false;
        ++done_;
        asked_ = now_;
        if (done_ > start_) break;
        start_time_ = now_;
        input_wait_ = copy_wait_ = 0;
    }
  }

  bool copies() const { return model_.slots > 0 || !model_.zero_copy; }
  bool filled(int step) const { return step < steps_ && rows_left_[step] == 0; }
  void release_slab() {
    ++released_;
    begin_slabs();
  }

  void advance() {
    start_reads();
    start_fills();
    start_copy();
    start_step();
  }

  void start_reads() {
    for (; !to_read_.empty() && idle_io_ > 0 && buffers_ > 0; to_read_.pop_front()) {
      --idle_io_;
      --buffers_;
      later(draw(model_.read_s), Kind::read, to_read_.front());
    }
  }

  void start_fills() {
    const bool reads = model_.io_threads == 0 && !model_.read_s.empty();
    for (; !to_fill_.empty() && idle_workers_ > 0; to_fill_.pop_front()) {
      --idle_workers_;
      const auto [step, in_buffer] = to_fill_.front();
      const double read_s = reads ? draw(model_.read_s) : 0;
      const double speed =
          std::min(model_.cpu_speed, model_.cores / (model_.workers - idle_workers_));
      later(read_s + draw(model_.fill_cpu_s) / speed,
            in_buffer ? Kind::filled_from_buffer : Kind::filled, step);
    }
  }

  void start_copy() {
    if (!copies()) return;
    // Without slots the copy begins when the consumer asks for the batch, and delays it.
    if (model_.slots == 0 && (busy_ || copied_ > done_)) return;
    if (copying_ || !filled(copied_) || free_slots_ == 0) return;
    copying_ = true;
    --free_slots_;
    later(draw(model_.copy_s), Kind::copied, copied_);
  }

  void start_step() {
    if (busy_ || done_ == steps_) return;
    // The wait before this moment was for input.
    if (filled(done_) && filled_at_ < done_) {
      filled_at_ = done_;
      input_wait_ += now_ - asked_;
      asked_ = now_;
    }
    if (copies() ? copied_ <= done_ : !filled(done_)) return;
    copy_wait_ += now_ - asked_;
    busy_ = true;
    const double hold_s = draw(model_.hold_s);
    later(hold_s, Kind::given_back, done_);
    later(hold_s + draw(model_.rest_s), Kind::step_done, done_);
  }

  const FeedModel& model_;
  const int start_;  // the first step that counts
  const int steps_;
  std::mt19937_64 random_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  double now_ = 0, start_time_ = 0, asked_ = 0, input_wait_ = 0, copy_wait_ = 0;
  int idle_io_, idle_workers_, buffers_;
  std::vector<int> rows_left_;
  struct FilledNext {
    int step;
    bool in_buffer;  // an I/O thread has read it
  };
  std::deque<int> to_read_;  // rows, as their step numbers
  std::deque<FilledNext> to_fill_;
  int begun_ = 0, released_ = 0, copied_ = 0, done_ = 0, filled_at_ = -1;
  int free_slots_;
  bool copying_ = false, busy_ = false;
};

}  // namespace

ModelledRun run_model(const FeedModel& model, int steps, uint64_t seed) {
  const int warm_up = model.ring_depth + model.slots + 2;
  return Simulation(model, warm_up, steps, seed).run();
}

}  // namespace stoker
