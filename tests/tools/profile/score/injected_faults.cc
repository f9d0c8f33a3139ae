#include "tests/tools/profile/score/injected_faults.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "pipeline/files/durable_file.h"
#include "pipeline/random/random_key.h"
#include "staging/stage_stats.h"
#include "tests/support/tar_maker.h"

namespace stoker {
namespace {

void sleep_s(double seconds) {
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// A stream of a host device whose copies sleep first.
class SlowCopyStream final : public Stream {
 public:
  SlowCopyStream(std::unique_ptr<Stream> inner, double copy_s)
      : inner_(std::move(inner)), copy_s_(copy_s) {}
  void copy(void* target, const void* source, size_t bytes, CopyKind kind) override {
    inner_->call([seconds = copy_s_] { sleep_s(seconds); });
    inner_->copy(target, source, bytes, kind);
  }
  void record(Event& event) override { inner_->record(event); }
  void wait(const Event& event) override { inner_->wait(event); }
  void call(std::function<void()> function) override { inner_->call(std::move(function)); }
  void synchronize() override { inner_->synchronize(); }

 private:
  const std::unique_ptr<Stream> inner_;
  const double copy_s_;
};

class SlowCopyDevice final : public Device {
 public:
  explicit SlowCopyDevice(double copy_s) : host_(make_host_device()), copy_s_(copy_s) {}
  const std::string& name() const override { return host_->name(); }
  bool host_accessible() const override { return false; }
  std::unique_ptr<Memory> allocate(size_t bytes, MemoryKind kind) override {
    return host_->allocate(bytes, kind);
  }
  std::unique_ptr<Stream> make_stream() override {
    return std::make_unique<SlowCopyStream>(host_->make_stream(), copy_s_);
  }
  std::unique_ptr<Event> make_event(bool timing) override { return host_->make_event(timing); }

 private:
  const std::unique_ptr<Device> host_;
  const double copy_s_;
};

}  // namespace

ReadStatus SlowSource::read(SampleId id, std::vector<uint8_t>& buffer,
                            std::span<const uint8_t>& bytes) const {
  const bool slow = RandomKey(7, 0, id).uniform(0) < slow_.slow_share;
  sleep_s(slow ? slow_.slow_latency_s : slow_.latency_s);
  if (slow_.images_per_second > 0) {
    int64_t until_ns = 0;
    {
      const MutexLock lock(mutex_);
      until_ns = std::max(steady_now_ns(), next_ns_);
      next_ns_ = until_ns + static_cast<int64_t>(1e9 / slow_.images_per_second);
    }
    sleep_s(static_cast<double>(until_ns - steady_now_ns()) * 1e-9);
  }
  return source_.read(id, buffer, bytes);
}

MixedSource::MixedSource(std::vector<std::vector<uint8_t>> usual,
                         std::vector<std::vector<uint8_t>> rare, int64_t period)
    : usual_(std::move(usual)), rare_(std::move(rare)), period_(period) {}

ReadStatus MixedSource::read(SampleId id, std::vector<uint8_t>&,
                             std::span<const uint8_t>& bytes) const {
  const bool is_rare = !rare_.empty() && id % period_ == 0;
  const auto& files = is_rare ? rare_ : usual_;
  bytes = files[static_cast<size_t>(id) % files.size()];
  return {};
}

StoredPictures::StoredPictures(const std::vector<std::vector<uint8_t>>& files, int samples) {
  constexpr int kPerShard = 500;
  for (int begin = 0; begin < samples; begin += kPerShard) {
    std::string tar;
    for (int i = begin; i < std::min(begin + kPerShard, samples); ++i) {
      const std::vector<uint8_t>& file = files[static_cast<size_t>(i) % files.size()];
      tar += tar_member(std::to_string(i) + ".cls", std::to_string(i % 2));
      tar += tar_member(std::to_string(i) + ".jpg", std::string(file.begin(), file.end()));
    }
    tar += tar_end();
    const std::string name = "train-" + std::to_string(begin / kPerShard) + ".tar";
    folder_.write(name, tar);
    server_.put("/" + name, {tar.begin(), tar.end()}, "\"1\"");
    bytes_ += std::ssize(tar);
  }
}

std::unique_ptr<Source> StoredPictures::open_on_disk() const {
  return open_source(folder_.path() + "/train-{0..15}.tar", {.cache_dir = ""});
}

std::unique_ptr<Source> StoredPictures::open_at(const SlowStore& slow,
                                                const std::string& cache) const {
  SourceOptions options{.cache_dir = ""};
  options.store.requests = slow.requests;
  options.store.read_ahead_bytes = bytes_ / 64;  // as of data that are larger than the memory
  if (slow.cached_share > 0) {
    options.store.cache = cache;
    options.store.cache_bytes =
        static_cast<int64_t>(slow.cached_share * static_cast<double>(bytes_));
  }
  return open_source(server_.url("/train-{0..15}.tar"), options);
}

std::unique_ptr<Source> StoredPictures::open_in_store(const SlowStore& slow) const {
  cache_ = std::make_unique<TempFolder>();
  server_.set_script({});
  if (slow.cached_share > 0 && slow.cache_is_filled) {
    const auto source = open_at(slow, cache_->path());
    std::vector<uint8_t> buffer;
    std::span<const uint8_t> bytes;
    for (SampleId id = 0; id < source->size(); ++id) source->read(id, buffer, bytes);
  }
  auto source = open_at(slow, cache_->path());
  server_.set_script([this, slow](const SeenRequest& request) -> Fault {
    if (slow.throttled_of > 0 && request.number % slow.throttled_of == 0) {
      return {.kind = Fault::Kind::status, .status = 503};
    }
    sleep_s(slow.answer_s);
    const auto range = request.headers.find("range");  // "bytes=FIRST-LAST"
    if (slow.bytes_per_second <= 0 || range == request.headers.end()) return {};
    const std::string& text = range->second;
    const auto length = static_cast<double>(std::stoll(text.substr(text.find('-') + 1)) -
                                            std::stoll(text.substr(text.find('=') + 1)) + 1);
    int64_t until_ns = 0;
    {
      const MutexLock lock(mutex_);
      next_ns_ = std::max(steady_now_ns(), next_ns_) +
                 static_cast<int64_t>(1e9 * length / slow.bytes_per_second);
      until_ns = next_ns_;
    }
    sleep_s(static_cast<double>(until_ns - steady_now_ns()) * 1e-9);
    return {};
  });
  return source;
}

std::unique_ptr<Device> make_slow_copy_device(double copy_s) {
  return std::make_unique<SlowCopyDevice>(copy_s);
}

NoisyNeighbours::NoisyNeighbours(int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      volatile bool forever = true;
      while (forever) {
      }
    }
    if (child > 0) processes_.push_back(child);
  }
}

NoisyNeighbours::~NoisyNeighbours() {
  for (const pid_t process : processes_) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
}

FewerCores::FewerCores(int count) : before_(sizeof(cpu_set_t)) {
  cpu_set_t all;
  sched_getaffinity(0, sizeof all, &all);
  std::memcpy(before_.data(), &all, sizeof all);
  cpu_set_t kept;
  CPU_ZERO(&kept);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&kept) < count; ++core) {
    if (CPU_ISSET(core, &all)) CPU_SET(core, &kept);
  }
  if (count > 0) sched_setaffinity(0, sizeof kept, &kept);
}

FewerCores::~FewerCores() {
  sched_setaffinity(0, before_.size(), reinterpret_cast<const cpu_set_t*>(before_.data()));
}

CpuQuota::CpuQuota(double cores) {
  constexpr int kPeriodUs = 100'000;
  if (cores <= 0) return;
  group_ = "/sys/fs/cgroup/cpu/profile_score_" + std::to_string(getpid());
  std::filesystem::create_directory(group_);
  const auto write = [&](const std::string& file, int64_t value) {
    std::ofstream out(group_ + "/" + file);
    if (!(out << value << std::flush)) {
      throw std::runtime_error(group_ + "/" + file + ": cannot be written");
    }
  };
  write("cpu.cfs_period_us", kPeriodUs);
  write("cpu.cfs_quota_us", static_cast<int64_t>(cores * kPeriodUs));
  write("tasks", gettid());
}

CpuQuota::~CpuQuota() {
  if (group_.empty()) return;
  std::ofstream("/sys/fs/cgroup/cpu/tasks") << gettid() << std::flush;
  rmdir(group_.c_str());
}

}  // namespace stoker
