#include "pipeline/feed/feed_graph.h"

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "pipeline/feed/read_ahead.h"
#include "staging/mutex.h"
#include "staging/threads.h"

namespace stoker {
namespace {

namespace flow = oneapi::tbb::flow;

// A worker and its slot in the arena. `gate` is an empty graph: a thread waits for it to execute
// the arena's tasks, and leaves the arena when it is released.
struct WorkerSlot {
  WorkerSlot(const RowFiller& filler, size_t of_worker) : worker(filler), number(of_worker) {}
  RowWorker worker;
  const size_t number;
  std::unique_ptr<flow::graph> gate;
};

thread_local WorkerSlot* my_slot = nullptr;

// A separate function because of ThreadSanitizer: it cannot see how TBB hands over a message, so
// the tests suppress its reports for this function, and for no other of ours.
[[gnu::noinline]] FillTicket copy_message(const FillTicket& message) { return message; }

// The worker threads. Keeps min(tasks, limit) of them in the arena; the others sleep.
class WorkerSlots {
 public:
  WorkerSlots(oneapi::tbb::task_arena& arena, RowFiller& filler, int workers, int spare)
      : stats_(filler.decode_stats()), limit_(workers), taken_(workers + spare) {
    for (size_t i = 0; i < taken_.size(); ++i) {
      WorkerSlot& slot = *slots_.emplace_back(std::make_unique<WorkerSlot>(filler, i));
      arena.execute([&] { slot.gate = std::make_unique<flow::graph>(); });
    }
    threads_ =
        start_threads("workers", std::ssize(slots_), [this, tracer = filler.tracer()](int64_t i) {
          if (tracer) tracer->name_thread("worker " + std::to_string(i));
          serve(*slots_[static_cast<size_t>(i)]);
        });
  }
  void close() {  // REQUIRES: no task is left
    {
      MutexLock lock(mutex_);
      closed_ = true;
      for (auto& slot : slots_) leave(*slot);
    }
    work_.notify_all();
    threads_.clear();
  }
  void limit(int64_t workers) {
    {
      MutexLock lock(mutex_);
      limit_.store(std::clamp<int64_t>(workers, 1, static_cast<int64_t>(slots_.size())));
    }
    work_.notify_all();
  }

  void task_comes() { tasks_.fetch_add(1); }  // before the task is put
  void task_is_there() {                      // after it was put
    if (!worker_is_wanted()) return;
    { MutexLock lock(mutex_); }  // now a thread is either before its check or asleep
    work_.notify_one();
  }
  // Makes everything before the put visible after this call. TBB's hand-over does so, too, but
  // ThreadSanitizer cannot see it.
  void task_begins() const { static_cast<void>(tasks_.load(std::memory_order_acquire)); }
  // Called by the thread that did the task. If there are now fewer tasks than threads, it leaves
  // the arena.
  void task_done() {
    const int64_t left = tasks_.fetch_sub(1) - 1;
    if (std::min(left, limit_.load()) >= in_arena_.load()) return;
    // The thread that destroys the graph also executes tasks.
    if (my_slot == nullptr) return;
    const MutexLock lock(mutex_);
    if (wanted() < in_arena_.load()) leave(*my_slot);
  }

 private:
  void leave(WorkerSlot& slot) REQUIRES(mutex_) {
    if (!taken_[slot.number]) return;
    taken_[slot.number] = false;
    in_arena_.fetch_sub(1);
    slot.gate->release_wait();
  }
  bool worker_is_wanted() const { return in_arena_.load() < wanted(); }
  int64_t wanted() const { return std::min(tasks_.load(), limit_.load()); }
  void serve(WorkerSlot& slot) {
    my_slot = &slot;
    for (;;) {
      {
        MutexLock lock(mutex_);
        const int64_t start = steady_now_ns();
        while (!closed_ && !worker_is_wanted()) work_.wait(lock);
        if (closed_) return;
        stats_.add_input_wait(steady_now_ns() - start);
        in_arena_.fetch_add(1);
        taken_[slot.number] = true;
        slot.gate->reserve_wait();
      }
      slot.gate->wait_for_all();
    }
  }

  StageStats& stats_;
  std::vector<std::unique_ptr<WorkerSlot>> slots_;
  std::atomic<int64_t> tasks_{0};     // put or about to be put, not done
  std::atomic<int64_t> in_arena_{0};  // changed under mutex_
  std::atomic<int64_t> limit_;        // changed under mutex_; 1 to the number of slots
  Mutex mutex_;
  CondVar work_;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::vector<bool> taken_ GUARDED_BY(mutex_);  // by slot: its worker is in the arena
  std::vector<std::jthread> threads_;
};

// Looking for a file in memory that is not there costs a worker 10 to 30 us, because Linux begins
// to read it. After so many tickets without success, only one in kLookAgain is tried.
constexpr int kManyMisses = 16, kLookAgain = 32;

// Tiny rows share a ticket: raw ones cost 0.2-0.5 us each, tiny files some 10 us; a message up to
// 0.8 us. But the rows of the steps under way must be enough for all workers.
int choose_rows_per_ticket(const RowFiller& filler, int rows, int64_t rows_under_way, int workers) {
  const bool files = filler.source().encoding() == SampleEncoding::image_file;
  const int64_t bytes = files ? 32 << 10 : 1 << 20;
  const int64_t by_size =
      std::clamp<int64_t>(bytes / static_cast<int64_t>(filler.row_bytes()), 1, files ? 16 : 256);
  const int64_t by_workers = std::max<int64_t>(1, rows_under_way / (2 * workers));
  // Rows that are mixed with each other share a ticket: only its thread touches them.
  const int64_t together = filler.rows_together();
  const int64_t chosen = std::min<int64_t>({by_size, by_workers, rows});
  return static_cast<int>(std::max(chosen / together, int64_t{1}) * together);
}

int ticket_rows(const RowFiller& filler, const FeedGraphOptions& options, int rows, int64_t slabs) {
  const int wanted = options.exchange ? options.exchange->rows_per_ticket() : 0;
  if (wanted > 0) return wanted;
  return choose_rows_per_ticket(filler, rows, rows * slabs, options.workers);
}

}  // namespace

struct FeedGraph::Impl final : RowExchange::Feed {
  // A slab that is being filled. The driver writes it before it sends the first ticket.
  struct Filling {
    Slab* slab = nullptr;
    std::atomic<int> rows_left{0};
  };

  RowFiller& filler;
  const std::vector<PinnedRing*> rings;
  const FeedGraphOptions options;
  RowExchange* const exchange;  // or null
  const int depth;
  const int rows;  // per slab
  const int rows_per_ticket;
  std::vector<std::vector<Filling>> filling;  // [device][step % depth]
  std::atomic<bool> stopping{false};
  std::atomic<int> misses{0};  // tickets in a row whose files were not all in memory
  int64_t untried = 0;         // used by one thread at a time: tickets since misses are many
  std::unique_ptr<ReadAhead> read_ahead;  // null: the workers read
  oneapi::tbb::task_arena arena;
  std::unique_ptr<flow::graph> graph;
  std::unique_ptr<flow::function_node<FillTicket>> fill_node;
  std::unique_ptr<WorkerSlots> slots;
  std::vector<std::jthread> io_threads;
  std::jthread driver;

  Impl(RowFiller& filler_in, std::vector<PinnedRing*> rings_in, const FeedGraphOptions& options_in)
      : filler(filler_in),
        rings(std::move(rings_in)),
        options(options_in),
        exchange(options.exchange),
        depth(rings[0]->capacity()),
        rows(rings[0]->layout().shape().rows),
        rows_per_ticket(ticket_rows(filler, options, rows, depth * std::ssize(rings))),
        // Only our threads may execute tasks: the workers, and the thread that destroys the graph.
        arena(threads() + 1, threads() + 1) {
    for (size_t d = 0; d < rings.size(); ++d) filling.emplace_back(depth);
    if (options.io_threads > 0) {
      const size_t tickets = (rows + rows_per_ticket - 1) / rows_per_ticket;
      read_ahead =
          std::make_unique<ReadAhead>(filler, options.workers, options.io_threads, rows_per_ticket,
                                      tickets * depth * rings.size(), options.large_files);
    }
    arena.execute([this] { graph = std::make_unique<flow::graph>(); });
    fill_node = std::make_unique<flow::function_node<FillTicket>>(
        *graph, flow::unlimited,
        [this](const FillTicket& message) noexcept { fill(copy_message(message)); });
  }

  // Makes the threads. If it throws, the destructor ends those that are there.
  void start() {
    slots = std::make_unique<WorkerSlots>(arena, filler, options.workers, options.spare_workers);
    io_threads = start_threads("reading files", options.io_threads,
                               [this](int64_t i) { read_files(static_cast<int>(i)); });
    if (exchange) exchange->open(*this, rows_per_ticket);
    driver = start_thread("the feed", [this] { drive(); });
  }

  ~Impl() override {
    stop(nullptr);
    if (driver.joinable()) driver.join();
    if (exchange) {
      for (const RowRange& range : exchange->close()) {
        take_off(filling[range.device][range.step % depth],
                 filler.position(range.step, range.device), range.rows);
      }
    }
    if (read_ahead) read_ahead->close();
    io_threads.clear();
    graph->wait_for_all();
    // They stay where they are until their threads have ended: ThreadSanitizer cannot see that TBB
    // has waited for what the threads did.
    if (slots) slots->close();
  }

  int threads() const { return options.workers + options.spare_workers; }

  Filling& filling_of(const FillTicket& ticket) {
    return filling[ticket.device][ticket.step % depth];
  }

  // The driver sends one slab per device and step, as soon as the ring has room.
  void drive() {
    if (filler.tracer()) filler.tracer()->name_thread("driver");
    for (Step step = options.first_step; step < options.end_step; ++step) {
      for (size_t device = 0; device < rings.size(); ++device) {
        if (!wait_free(step, static_cast<int>(device))) return;
        if (exchange && device == 0) {
          exchange->wait_for_others(step, [this] { return stopping.load(); });
        }
        send(step, static_cast<int>(device));
      }
    }
  }

  // Returns true if a worker should look for a ticket's files in memory.
  bool is_worth_a_try() {
    return misses.load(std::memory_order_relaxed) < kManyMisses || ++untried % kLookAgain == 0;
  }

  bool wait_free(Step step, int device) {
    const SpanTimer timer(filler.tracer(), SpanKind::room_wait, step, device);
    return rings[device]->wait_free(step);
  }

  void send(Step step, int device) {
    Filling& slab = filling[device][step % depth];
    slab.slab = &rings[device]->begin(step);
    slab.rows_left.store(rows, std::memory_order_relaxed);
    if (exchange && exchange->put({step, device, 0, rows})) return;
    for (int row = 0; row < rows; row += rows_per_ticket) {
      begin({step, device, row, std::min(rows_per_ticket, rows - row)});
    }
  }

  void begin(const FillTicket& ticket) {
    if (!read_ahead || is_worth_a_try() || !read_ahead->submit(ticket)) put(ticket);
  }

  // RowExchange::Feed. A ticket without rows asks for the first ones that nobody has begun.
  void ask_here(int times) noexcept override {
    for (int i = 0; i < times; ++i) begin({});
  }
  void store(const RowRange& range, const Slab& made,
             const std::vector<BadSample>& bad) noexcept override {
    Filling& slab = filling[range.device][range.step % depth];
    const BatchPosition position = filler.position(range.step, range.device);
    try {
      filler.take(*slab.slab, position, range.first_row, range.rows, made, bad);
    } catch (...) {
      stop(std::current_exception());
    }
    take_off(slab, position, range.rows);
  }
  void fail(std::exception_ptr error) noexcept override { stop(std::move(error)); }
  double local_rows_per_s() const override {
    const StageSnapshot decoded = filler.decode_stats().snapshot();
    const StageSnapshot cached = filler.reader().cached_stats().snapshot();
    const int64_t busy_ns = decoded.service_ns + cached.service_ns;
    if (busy_ns == 0) return 0;
    return 1e9 * options.workers * static_cast<double>(decoded.items) /
           static_cast<double>(busy_ns);
  }

  void read_files(int index) {
    if (filler.tracer()) filler.tracer()->name_thread("I/O thread " + std::to_string(index));
    FillTicket ticket;
    while (read_ahead->next(ticket)) {
      const RowExchange::Turn turn = exchange ? exchange->turn(ticket) : RowExchange::Turn::ours;
      const bool is_ours = turn == RowExchange::Turn::ours;
      if (!is_ours && ticket.unit >= 0) {
        read_ahead->give_back(ticket.unit);
        ticket.unit = FillTicket::kNotRead;
      }
      try {
        if (is_ours && ticket.unit >= 0 && !read_ahead->read(ticket, *filling_of(ticket).slab)) {
          read_ahead->give_back(ticket.unit);
          ticket.unit = FillTicket::kWorkerReads;
        }
      } catch (...) {
        stop(std::current_exception());
      }
      if (is_ours || turn == RowExchange::Turn::done) put(ticket);
    }
  }

  void put(const FillTicket& ticket) override {
    slots->task_comes();
    fill_node->try_put(ticket);
    slots->task_is_there();
  }

  void fill(FillTicket ticket) noexcept {
    slots->task_begins();
    if (ticket.rows > 0 || exchange->turn(ticket) == RowExchange::Turn::ours) fill_found(ticket);
    slots->task_done();
  }

  void fill_found(const FillTicket& ticket) noexcept {
    Filling& slab = filling_of(ticket);
    int done = ticket.rows;
    if (!stopping.load(std::memory_order_relaxed)) {
      try {
        RowWorker& worker = my_slot->worker;  // the thread that ends the feed has none
        done = exchange ? exchange->fill(ticket, worker, *slab.slab, *this)
                        : fill_rows(ticket, worker);
      } catch (...) {
        stop(std::current_exception());
      }
    } else if (exchange) {
      exchange->release(ticket);
    }
    if (ticket.unit >= 0) read_ahead->give_back(ticket.unit);
    // If nothing was done, the slab may belong to another step by now.
    if (done > 0) take_off(slab, filler.position(ticket.step, ticket.device), done);
  }

  void take_off(Filling& slab, const BatchPosition& position, int rows_done) {
    if (slab.rows_left.fetch_sub(rows_done, std::memory_order_acq_rel) > rows_done) return;
    if (!stopping.load(std::memory_order_relaxed)) filler.finish(*slab.slab, position);
    // It is told before the commit: after that, the slab's next step may be complete before this
    // thread goes on.
    if (exchange) exchange->batch_is_complete(position);
    rings[position.device]->commit(position.batch);
    const SpanTimer mark(filler.tracer(), SpanKind::commit, position.step, position.device);
  }

  // The rows that are not done come back when they are read.
  int fill_rows(const FillTicket& ticket, RowWorker& worker) override {
    Slab& slab = *filling_of(ticket).slab;
    const BatchPosition position = filler.position(ticket.step, ticket.device);
    if (ticket.unit >= 0) {
      filler.fill(worker, slab, position, ticket.first_row, read_ahead->samples(ticket));
    } else if (!read_ahead || ticket.unit == FillTicket::kWorkerReads) {
      filler.fill(worker, slab, position, ticket.first_row, ticket.rows);
    } else {
      const int done = filler.fill_cached(worker, slab, position, ticket.first_row, ticket.rows);
      note_hit(done == ticket.rows);
      const FillTicket rest{ticket.step, ticket.device, ticket.first_row + done,
                            ticket.rows - done};
      // If the feed was stopped, submit() refuses the rest, and these rows are left out.
      if (rest.rows > 0 && read_ahead->submit(rest)) return done;
    }
    return ticket.rows;
  }

  bool read(const FillTicket& ticket) override { return read_ahead->submit(ticket); }

  bool fill_made(const FillTicket& ticket, RowWorker& worker, Slab& made,
                 const BatchPosition& position) override {
    if (ticket.unit >= 0) {
      filler.fill(worker, made, position, 0, read_ahead->samples(ticket));
      return true;
    }
    if (!read_ahead || ticket.unit == FillTicket::kWorkerReads) {
      filler.fill(worker, made, position, 0, ticket.rows);
      return true;
    }
    const bool is_hit = filler.fill_cached(worker, made, position, 0, ticket.rows) == ticket.rows;
    note_hit(is_hit);
    return is_hit;
  }

  void note_hit(bool hit) {
    if (!hit) {
      misses.fetch_add(1, std::memory_order_relaxed);
      // Written rarely, because all workers read it.
    } else if (misses.load(std::memory_order_relaxed) > 0) {
      misses.store(0, std::memory_order_relaxed);
    }
  }

  void stop(std::exception_ptr error) noexcept {
    // The rings come first: a slab that was left out must never be taken for a filled one.
    for (PinnedRing* ring : rings) ring->stop(error);
    stopping.store(true);
    if (exchange) exchange->stop();
    if (read_ahead) read_ahead->abandon();
  }
};

FeedGraph::FeedGraph(RowFiller& filler, std::vector<PinnedRing*> rings,
                     const FeedGraphOptions& options)
    : impl_(std::make_unique<Impl>(filler, std::move(rings), options)) {
  impl_->start();
}
FeedGraph::~FeedGraph() = default;
void FeedGraph::stop(std::exception_ptr error) noexcept { impl_->stop(std::move(error)); }
void FeedGraph::limit_workers(int workers) noexcept { impl_->slots->limit(workers); }
int64_t FeedGraph::file_bytes(const RowFiller& filler, const FeedGraphOptions& options, int rows,
                              int64_t slabs) {
  if (options.io_threads == 0) return 0;
  const int64_t files = 1 + std::ssize(filler.source().pictures());
  const int64_t indexes = ticket_rows(filler, options, rows, slabs) *
                          filler.reader().seek_indexes().largest_index_bytes();
  return ReadAhead::units_for(options.workers, options.io_threads) *
         (files * int64_t{kKeptFileBytes} + indexes);
}

}  // namespace stoker
