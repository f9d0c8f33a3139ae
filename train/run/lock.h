// A run's folder while one process writes it: a file `lock.json` in it that the kernel has locked,
// and that says who holds it. The kernel's lock ends with the process, however that ends, so the
// file of a dead process is no lock. The lock holds between machines where the file system carries
// locks between them: NFS does, unless it is mounted with nolock or local_lock. Where a file system
// has no locks at all the file alone counts: its process, as long as that lives on this machine,
// and every process of another machine. Owner: TrainSetup, in process 0, for all. Threads: one at a
// time. Errors: std::runtime_error "FOLDER: in use by process N on HOST since ...", or with errno's
// text.
#pragma once

#include <cstdint>
#include <string>

namespace stoker {

// Who holds a lock, as its file says.
struct LockHolder {
  int64_t process = 0;  // 0: it does not say
  std::string host;
  std::string since;  // "2026-11-22 10:00:00 UTC"
  // With the number of the process these make it one of a kind: numbers are used again.
  std::string boot;         // of the machine
  int64_t start_ticks = 0;  // when the process began, since then
};

LockHolder this_process();
// May it still run? True for one of another machine: nobody knows.
bool may_live(const LockHolder& holder);

class RunLock {
 public:
  explicit RunLock(const std::string& folder);  // which exists
  ~RunLock();                                   // the file goes
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // Throws as the constructor would, and takes nothing. A folder that is not there is free.
  static void require_free(const std::string& folder);

 private:
  const std::string path_;
  int handle_ = -1;
};

}  // namespace stoker
