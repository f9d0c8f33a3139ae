// stoker's reader of ranges as a participant: store_ranges_bench ADDRESS BYTES COUNT REQUESTS. A
// round reads COUNT ranges of BYTES from the object at ADDRESS, REQUESTS at a time, each into
// memory that was used before.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <vector>

#include "bench/peers/native/participant.h"
#include "bench/report/program.h"
#include "pipeline/store/object_reader.h"
#include "staging/mutex.h"

namespace stoker::peers {
namespace {

class RangesParticipant final : public Participant {
 public:
  RangesParticipant(const std::string& address, int64_t bytes, int64_t count, int requests)
      : count_(count), options_{.requests = requests} {
    const size_t slash = address.rfind('/');
    const std::shared_ptr<const ObjectStore> store =
        open_store(parse_address(address.substr(0, slash + 1)), options_);
    if (!store->stat(address.substr(slash + 1), object_)) throw std::runtime_error(address);
    reader_ = std::make_unique<ObjectReader>(store, options_);
    for (int i = 0; i < requests; ++i) buffers_.emplace_back(static_cast<size_t>(bytes));
  }

  std::string version() const override { return ""; }

  int64_t run(int, int rounds) override {
    const int64_t all = count_ * rounds;
    MutexLock lock(mutex_);
    next_ = ended_ = 0;
    for (auto& buffer : buffers_) read(buffer, all);
    while (ended_ < all && !error_) changed_.wait(lock);
    if (error_) std::rethrow_exception(error_);
    return all;
  }

  int64_t write_rows(const std::string&) override { throw std::runtime_error("there are no rows"); }

 private:
  void read(std::vector<uint8_t>& buffer, int64_t all) REQUIRES(mutex_) {
    if (next_ == all) return;
    const auto places = object_.bytes / std::ssize(buffer);
    const int64_t offset = next_++ % places * std::ssize(buffer);
    reader_->read(object_, offset, buffer, false,
                  [this, &buffer, all](const std::exception_ptr& error) {
                    const MutexLock lock(mutex_);
                    if (error) error_ = error;
                    if (++ended_ == all || error_) changed_.notify_one();
                    if (!error_) read(buffer, all);
                  });
  }

  const int64_t count_;
  const StoreOptions options_;
  StoredObject object_;
  std::vector<std::vector<uint8_t>> buffers_;
  Mutex mutex_;
  CondVar changed_;
  int64_t next_ GUARDED_BY(mutex_) = 0, ended_ GUARDED_BY(mutex_) = 0;
  std::exception_ptr error_ GUARDED_BY(mutex_);
  std::unique_ptr<ObjectReader> reader_;  // the last one: its ranges use the others
};

int run(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: store_ranges_bench ADDRESS BYTES COUNT REQUESTS\n");
    return 2;
  }
  RangesParticipant ranges(argv[1], std::atoll(argv[2]), std::atoll(argv[3]), std::atoi(argv[4]));
  serve(ranges);
  return 0;
}

}  // namespace
}  // namespace stoker::peers

int main(int argc, char** argv) {
  return stoker::run_program("store_ranges_bench", stoker::peers::run, argc, argv);
}
