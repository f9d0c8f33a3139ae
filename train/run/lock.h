// The lock on a run's folder: a file `lock.json`, which the kernel has locked and which names its
// holder. The kernel's lock ends with the process, however the process ends, so the file of a dead
// process is no lock. The lock works between machines if the file system supports that: NFS does,
// unless it is mounted with nolock or local_lock. If a file system has no locks at all, only the
// file counts: a holder on this machine counts while its process is running, a holder on another
// machine always. Owner: TrainSetup, in process 0, for all processes. Threads: one at a time.
// Errors: std::runtime_error "FOLDER: in use by process N on HOST since ...", or with errno's text.
#pragma once

#include <cstdint>
#include <string>

namespace stoker {

// The holder of a lock, as in its file.
struct LockHolder {
  int64_t process = 0;  // 0: unknown
  std::string host;
  std::string since;  // "2026-11-22 10:00:00 UTC"
  // These and the process number identify a process uniquely, because process numbers are reused.
  std::string boot;         // id of the machine's boot
  int64_t start_ticks = 0;  // start of the process, since the boot
};

LockHolder this_process();
// Returns whether the holder may still be running; true for a holder on another machine.
bool may_live(const LockHolder& holder);

class RunLock {
 public:
  explicit RunLock(const std::string& folder);  // the folder exists
  ~RunLock();                                   // removes the file
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // Throws as the constructor does, but takes no lock. A folder that does not exist is free.
  static void require_free(const std::string& folder);

 private:
  const std::string path_;
  int handle_ = -1;
};

}  // namespace stoker
