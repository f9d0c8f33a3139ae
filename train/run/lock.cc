#include "train/run/lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "pipeline/files/json_file.h"

namespace stoker {
namespace {

constexpr int kStartField = 20;  // of /proc/N/stat, counted from the one after the name
constexpr int kTries = 100;      // a try fails only if another process has just released its lock

std::string lock_path(const std::string& folder) { return folder + "/lock.json"; }

std::string this_host() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns the start time of a process, or 0 if there is no such process.
int64_t start_ticks(int64_t process) {
  const std::string stat = first_line(fmt::format("/proc/{}/stat", process));
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int i = 0; i < kStartField && fields; ++i) fields >> field;
  return std::strtoll(field.c_str(), nullptr, 10);
}

std::string holder_text(const LockHolder& holder) {
  const nlohmann::ordered_json json = {{"process", holder.process},
                                       {"host", holder.host},
                                       {"since", holder.since},
                                       {"boot", holder.boot},
                                       {"start_ticks", holder.start_ticks}};
  return json.dump(1) + "\n";
}

// Returns the holder in a lock file, with process 0 if the file is just being written.
LockHolder read_holder(const std::string& path) {
  try {
    return read_json_file<nlohmann::json>(path, [](const nlohmann::json& json) -> LockHolder {
      return {json.at("process"), json.at("host"), json.at("since"), json.at("boot"),
              json.at("start_ticks")};
    });
  } catch (const std::exception&) {
    return {};
  }
}

[[noreturn]] void refuse_folder(const std::string& folder) {
  const LockHolder holder = read_holder(lock_path(folder));
  if (holder.process == 0) throw std::runtime_error(folder + ": in use by another process");
  throw std::runtime_error(fmt::format("{}: in use by process {} on {} since {}", folder,
                                       holder.process, holder.host, holder.since));
}

[[noreturn]] void fail_to_lock(const std::string& what, const std::string& path) {
  throw std::runtime_error("cannot " + what + " " + path + ": " + std::strerror(errno));
}

bool has_no_locks(int error) {
  return error == ENOSYS || error == EOPNOTSUPP || error == ENOLCK || error == EINVAL;
}

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

bool is_same_file(int handle, const std::string& path) {
  struct stat ours {
  }, there{};
  return fstat(handle, &ours) == 0 && stat(path.c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

// Throws if the lock file names a holder that may be running. For file systems without locks.
void refuse_by_file(const std::string& folder, const std::string& path) {
  const LockHolder holder = read_holder(path);
  if (holder.process == 0 || !may_live(holder)) return;
  throw std::runtime_error(
      fmt::format("{}: in use by process {} on {} since {}; if it is gone, remove {}", folder,
                  holder.process, holder.host, holder.since, path));
}

}  // namespace

LockHolder this_process() {
  LockHolder holder;
  holder.process = getpid();
  holder.host = this_host();
  holder.since = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr)));
  holder.boot = first_line("/proc/sys/kernel/random/boot_id");
  holder.start_ticks = start_ticks(holder.process);
  return holder;
}

bool may_live(const LockHolder& holder) {
  const LockHolder own = this_process();
  if (holder.host != own.host) return true;
  return holder.boot == own.boot && start_ticks(holder.process) == holder.start_ticks;
}

RunLock::RunLock(const std::string& folder) : path_(lock_path(folder)) {
  for (int tries = 0; tries < kTries; ++tries) {
    handle_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0666);
    if (handle_ < 0) fail_to_lock("write", path_);
    struct flock lock = whole_file();
    try {
      if (fcntl(handle_, F_OFD_SETLK, &lock) != 0) {
        if (!has_no_locks(errno)) refuse_folder(folder);
        refuse_by_file(folder, path_);
      }
      // If the previous holder has removed the file meanwhile, this lock is on a deleted file.
      if (is_same_file(handle_, path_)) {
        const std::string text = holder_text(this_process());
        if (ftruncate(handle_, 0) != 0 ||
            pwrite(handle_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
          fail_to_lock("write", path_);
        }
        return;
      }
    } catch (...) {
      close(handle_);
      throw;
    }
    close(handle_);
  }
  throw std::runtime_error("cannot lock " + path_ + ": others take it and give it up all the time");
}

RunLock::~RunLock() {
  unlink(path_.c_str());  // before others can lock it
  close(handle_);
}

void RunLock::require_free(const std::string& folder) {
  const std::string path = lock_path(folder);
  const int handle = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (handle < 0) return;
  struct flock lock = whole_file();
  const int error = fcntl(handle, F_OFD_GETLK, &lock) == 0 ? 0 : errno;
  close(handle);
  if (error == 0 && lock.l_type != F_UNLCK) refuse_folder(folder);
  if (has_no_locks(error)) refuse_by_file(folder, path);
}

}  // namespace stoker
