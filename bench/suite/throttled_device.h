// Host devices whose copies take the time that the links of a machine would take: threads, streams,
// events and bytes are real, and only the bandwidth is that of another machine. A copy sleeps until
// the slowest link of its route could have carried it, behind and beside the copies of others. Such
// a device says that the host cannot read its memory, so that batches are staged as for a GPU.
//
// Owner: the bench; the links outlive the devices, and those outlive what they made. Threads: any.
// Errors: std::invalid_argument for a GPU that the machine has not.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "bench/suite/link_machine.h"
#include "staging/device.h"
#include "staging/mutex.h"
#include "tools/emulate/accelerator.h"

namespace stoker {

class ThrottledLinks {
 public:
  // Both outlive it.
  explicit ThrottledLinks(const LinkMachine& machine, Clock& clock = steady_clock());

  // Copies over the route, in pieces that share links with other copies in turn. Blocks until the
  // last piece has crossed the route.
  void copy(void* target, const void* source, size_t bytes, const Route& route);
  // Returns the time at which a piece that is there at `begin` has crossed the route, behind all
  // earlier pieces on each of its links.
  double send(const Route& route, double bytes, double begin);
  // Returns the bytes that have crossed a link so far.
  double sent(const LinkUse& use) const;

  // Which GPU's memory an address is of; -1: the host's.
  void add_memory(const std::byte* data, size_t bytes, int gpu);
  void remove_memory(const std::byte* data);
  int gpu_of(const void* address) const;

  const LinkMachine& machine() const { return machine_; }

 private:
  struct Lane {  // a link in one direction, or the host's memory
    double per_second = 0;
    double free_at = 0;  // seconds of the clock
    double sent = 0;
  };
  struct Range {
    const std::byte* end;
    int gpu;
  };

  const LinkMachine& machine_;
  Clock& clock_;
  mutable Mutex mutex_;
  std::vector<Lane> lanes_ GUARDED_BY(mutex_);  // down and up of each link, then the memory
  std::map<const std::byte*, Range> memory_ GUARDED_BY(mutex_);
};

// Makes the device of the machine's GPU `gpu`, "cpu:GPU" by name.
std::unique_ptr<Device> make_throttled_device(ThrottledLinks& links, int gpu);

}  // namespace stoker
