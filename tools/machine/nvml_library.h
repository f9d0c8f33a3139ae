// NVIDIA's management library (NVML), opened at run time: no header, no link, and nothing where
// there is no driver. Who uses it declares the calls that it wants. Starts no context on a device.
// Owner: who looks. Threads: one at a time.
#pragma once

#include <string>

namespace stoker {

inline constexpr int kNvmlSuccess = 0;

class NvmlLibrary {
 public:
  explicit NvmlLibrary(const std::string& file = "libnvidia-ml.so.1");
  ~NvmlLibrary();  // ends what start() began; the library stays, as the driver does
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  // Sets `function` to what has the name; false if there is none.
  template <typename Function>
  bool find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }
  // Initialises it; `found`: all calls that are wanted are there. False: why_not() has the reason.
  bool start(bool found);
  const std::string& why_not() const { return why_not_; }

 private:
  void* symbol(const char* name) const;

  const std::string file_;
  void* const handle_;
  bool started_ = false;
  std::string why_not_;
};

}  // namespace stoker
