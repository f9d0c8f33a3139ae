// Decides when to report that a wait takes long: after 5 seconds, and then each time the wait has
// doubled. A value of the waiting thread, created when the wait begins.
#pragma once

#include <chrono>

namespace stoker {

class LateNotice {
 public:
  bool due() {
    if (waited() < next_) return false;
    next_ *= 2;
    return true;
  }
  std::chrono::seconds waited() const {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() -
                                                            begin_);
  }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::seconds next_{5};
};

}  // namespace stoker
