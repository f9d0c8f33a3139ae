#include "pipeline/exchange/share_file.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "staging/stage_stats.h"

namespace stoker {
namespace {

// The form of the file is part of its name: another version of stoker never reads it.
constexpr char kShareForm[] = "stoker-share1-";
constexpr uint64_t kReady = 0x3165726168736b73;
constexpr size_t kFactBytes = 16 << 10;
// A member that holds the lock makes the file, at most.
constexpr int kLockSeconds = 60, kLeaveSeconds = 1;
constexpr int64_t kFoundMs = 50, kLives = 4;

[[noreturn]] void fail_share(const std::string& path, const std::string& problem) {
  throw std::runtime_error("cannot share rows through " + path + ": " + problem);
}

class LockedFile {
 public:
  explicit LockedFile(int number) : number_(number) {}
  ~LockedFile() {
    if (number_ >= 0) close(number_);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  const int number_;
};

// A child that was forked while the lock was held keeps it as long as this process does not release
// it: whoever takes it releases it by itself.
class FileLock {
 public:
  FileLock(int file, int seconds) : file_(file) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (!(held_ = flock(file, LOCK_EX | LOCK_NB) == 0)) {
      if (std::chrono::steady_clock::now() > end) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  ~FileLock() {
    if (held_) flock(file_, LOCK_UN);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const { return held_; }

 private:
  const int file_;
  bool held_ = false;
};

std::string mega(uint64_t bytes) { return std::to_string((bytes + 999999) / 1000000) + " MB"; }

std::map<std::string, std::string> facts_in(const std::string& text) {
  std::map<std::string, std::string> facts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t end = std::min(line.find(": "), line.size());
    facts[line.substr(0, end)] = line.substr(std::min(end + 2, line.size()));
  }
  return facts;
}

std::string differences(const std::string& there, const std::string& here) {
  const auto theirs = facts_in(there);
  std::string text;
  for (const auto& [what, value] : facts_in(here)) {
    const auto found = theirs.find(what);
    const std::string other = found == theirs.end() ? "nothing" : found->second;
    if (other == value) continue;
    text += (text.empty() ? "" : "; ") + what + " is " + other + " there and " + value + " here";
  }
  return text.empty() ? "their fingerprints differ" : text;
}

}  // namespace

struct ShareFile::Head {
  std::atomic<uint64_t> ready;  // kReady when all of the file is there
  uint64_t fingerprint;
  uint64_t file_bytes;
  uint32_t last_serial;           // changed with the lock
  std::atomic<uint32_t> changes;  // a futex
  std::atomic<uint32_t> waiters;  // too many if one was killed: notify() then calls the kernel
  char facts[kFactBytes];
};

struct alignas(64) ShareFile::Member {
  std::atomic<uint32_t> serial;  // 0: nobody's; written last, cleared first
  std::atomic<pid_t> pid;
  std::atomic<uint64_t> start;
  std::atomic<int64_t> position;

  ProcessMark process() const { return {pid.load(), start.load()}; }
};

namespace {

constexpr size_t kSharePage = 4096;
constexpr size_t pages(size_t bytes) { return (bytes + kSharePage - 1) / kSharePage * kSharePage; }

std::string share_path(const ShareFile::Options& options) {
  return options.folder + "/" + kShareForm + std::to_string(geteuid()) + "-" + pid_namespace() +
         "-" + options.name;
}

void allocate_share(const std::string& path, int file, size_t bytes,
                    const ShareFile::Options& options) {
  int code = 0;
  do {
    code = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  } while (code == EINTR);
  if (code == 0) return;
  unlink(path.c_str());
  if (code != ENOSPC && code != EFBIG) fail_share(path, std::strerror(code));
  struct statvfs room {};
  const bool known = code == ENOSPC && statvfs(options.folder.c_str(), &room) == 0;
  const uint64_t free = known ? uint64_t{room.f_bavail} * room.f_frsize : 0;
  const size_t head = bytes - options.bytes, step = options.bytes / options.steps;
  const uint64_t fit = free > head ? (free - head) / step : 0;
  std::string text = "share=\"" + options.name + "\" of " + std::to_string(options.steps) +
                     " steps takes " + mega(bytes) + " of shared memory, and ";
  text += known ? options.folder + " has " + mega(free) + " free"
                : std::string("a file may not be so large: ") + std::strerror(code);
  text += fit > 0 ? "; " + std::to_string(fit) + " steps would fit" : "";
  fail_share(path, text + " (a container's is made larger by `docker run --shm-size`)");
}

}  // namespace

size_t ShareFile::head_bytes() { return pages(sizeof(Head)) + pages(sizeof(Member) * kMembers); }

ShareFile::ShareFile(const Options& options) : process_(getpid()), path_(share_path(options)) {
  while (!try_join(options)) {
  }
}

// Returns false if the file was left over or removed meanwhile: there will be another one.
bool ShareFile::try_join(const Options& options) {
  const LockedFile file(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) fail_share(path_, std::strerror(errno));
  const FileLock lock(file.number(), kLockSeconds);
  if (!lock.held()) {
    fail_share(path_, "another process has locked it for " + std::to_string(kLockSeconds) + " s");
  }
  struct stat status {};
  if (fstat(file.number(), &status) != 0) fail_share(path_, std::strerror(errno));
  if (status.st_nlink == 0) return false;
  if (status.st_uid != geteuid() || (status.st_mode & 077) != 0) {
    fail_share(path_, "it is not a file of this user alone");
  }
  const bool is_new = status.st_size == 0;
  mapped_bytes_ = is_new ? head_bytes() + options.bytes : static_cast<size_t>(status.st_size);
  if (is_new) allocate_share(path_, file.number(), mapped_bytes_, options);
  inode_ = status.st_ino;
  // A file that is left over is not used again, and not made shorter: a process may still have it.
  if (mapped_bytes_ < head_bytes()) {
    unlink(path_.c_str());
    return false;
  }
  map(file.number());
  try {
    if (is_new) begin(options);
    const int living = living_member();
    if (!is_new && living < 0) {
      unlink(path_.c_str());
      unmap();
      return false;
    }
    check(options, living);
    take_slot(options.position);
  } catch (...) {
    unmap();
    throw;
  }
  return true;
}

void ShareFile::map(int file) {
  void* const memory = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) fail_share(path_, std::strerror(errno));
  // A forked child has no part in it, and must not keep its memory.
  madvise(memory, mapped_bytes_, MADV_DONTFORK);
  auto* const base = static_cast<std::byte*>(memory);
  head_ = reinterpret_cast<Head*>(base);
  members_ = reinterpret_cast<Member*>(base + pages(sizeof(Head)));
  bytes_ = base + head_bytes();
}

void ShareFile::unmap() { munmap(head_, mapped_bytes_); }

// The file is zero.
void ShareFile::begin(const Options& options) {
  head_->fingerprint = options.fingerprint;
  head_->file_bytes = mapped_bytes_;
  std::memcpy(head_->facts, options.facts.data(), std::min(options.facts.size(), kFactBytes - 1));
  head_->ready.store(kReady);
}

// Returns the slot of a member that lives, or -1.
int ShareFile::living_member() const {
  if (head_->ready.load() != kReady) return -1;  // its maker was killed
  for (int i = 0; i < kMembers; ++i) {
    if (members_[i].serial.load() != 0 && life_in(i) != Life::ended) return i;
  }
  return -1;
}

void ShareFile::check(const Options& options, int living) const {
  if (head_->fingerprint == options.fingerprint &&
      head_->file_bytes == head_bytes() + options.bytes) {
    return;
  }
  const std::string there(head_->facts, strnlen(head_->facts, kFactBytes));
  fail_share(path_, "process " + std::to_string(members_[living].pid.load()) +
                        " shares other rows as \"" + options.name +
                        "\": " + differences(there, options.facts) +
                        "; give another name, or the same arguments");
}

void ShareFile::take_slot(int64_t position) {
  for (slot_ = 0; slot_ < kMembers; ++slot_) {
    if (members_[slot_].serial.load() == 0 || life_in(slot_) == Life::ended) break;
  }
  if (slot_ == kMembers) {
    fail_share(path_, "it has " + std::to_string(kMembers) + " members, which is the most");
  }
  const ProcessMark self = own_process_mark();
  const auto is_in_use = [this](uint32_t serial) {
    return std::any_of(members_, members_ + kMembers,
                       [&](const Member& each) { return each.serial.load() == serial; });
  };
  do {
    serial_ = head_->last_serial = head_->last_serial % (kSerials - 1) + 1;
  } while (is_in_use(serial_));
  Member& member = members_[slot_];
  member.serial.store(0);
  member.pid.store(self.pid);
  member.start.store(self.start);
  member.position.store(position);
  member.serial.store(serial_);
}

ShareFile::~ShareFile() {
  if (getpid() != process_) return;  // there it is not mapped
  members_[slot_].serial.store(0);
  notify();
  {
    const LockedFile file(open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    struct stat status {};
    if (file.is_open() && fstat(file.number(), &status) == 0 && status.st_ino == inode_) {
      // If the lock cannot be had, the file is left over, which the next member sees.
      const FileLock lock(file.number(), kLeaveSeconds);
      bool is_last = lock.held() && fstat(file.number(), &status) == 0 && status.st_nlink > 0;
      for (int i = 0; i < kMembers && is_last; ++i) {
        is_last = members_[i].serial.load() == 0 || life_of(members_[i].process()) == Life::ended;
      }
      if (is_last) unlink(path_.c_str());
    }
  }
  unmap();
}

void ShareFile::set_position(int64_t step) { members_[slot_].position.store(step); }

Life ShareFile::life_in(int slot) const {
  const Member& member = members_[slot];
  const int64_t serial = member.serial.load(), now = steady_now_ns() / 1000000;
  std::atomic<int64_t>& found = found_[static_cast<size_t>(slot)];
  const int64_t last = found.load(std::memory_order_relaxed);
  if (last / kLives % kSerials == serial && now - last / kLives / kSerials < kFoundMs) {
    return static_cast<Life>(last % kLives);
  }
  const Life life = life_of(member.process());
  found.store((now * kSerials + serial) * kLives + static_cast<int64_t>(life),
              std::memory_order_relaxed);
  return life;
}

bool ShareFile::runs(uint32_t serial) const {
  for (int i = 0; i < kMembers; ++i) {
    if (members_[i].serial.load(std::memory_order_acquire) != serial) continue;
    return life_in(i) == Life::runs;
  }
  return false;
}

bool ShareFile::has_member(int64_t first, int64_t last) const {
  for (int i = 0; i < kMembers; ++i) {
    if (i == slot_ || members_[i].serial.load(std::memory_order_acquire) == 0) continue;
    const int64_t position = members_[i].position.load(std::memory_order_relaxed);
    if (position >= first && position <= last && life_in(i) == Life::runs) return true;
  }
  return false;
}

uint32_t ShareFile::member_for(uint64_t number, int64_t first, int64_t last) const {
  std::array<uint32_t, kMembers> found{};
  size_t count = 0;
  for (int i = 0; i < kMembers; ++i) {
    const uint32_t serial = members_[i].serial.load(std::memory_order_acquire);
    const int64_t position = members_[i].position.load(std::memory_order_relaxed);
    if (serial == 0 || position < first || position > last) continue;
    if (i == slot_ || life_in(i) == Life::runs) found[count++] = serial;
  }
  return count == 0 ? serial_ : found[number % count];
}

void ShareFile::notify() {
  head_->changes.fetch_add(1);
  if (head_->waiters.load() == 0) return;
  syscall(SYS_futex, &head_->changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

uint32_t ShareFile::changes() const { return head_->changes.load(); }

void ShareFile::wait(uint32_t seen, int ms) {
  const timespec limit{ms / 1000, ms % 1000 * 1000000L};
  head_->waiters.fetch_add(1);
  syscall(SYS_futex, &head_->changes, FUTEX_WAIT, seen, &limit, nullptr, 0);
  head_->waiters.fetch_sub(1);
}

}  // namespace stoker
