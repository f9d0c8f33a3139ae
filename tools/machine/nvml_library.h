// NVIDIA's management library (NVML), opened at run time: there is no header and no link
// dependency, and without a driver it does not work. A user declares the functions that it needs.
// Creates no context on a device. Threads: one at a time.
#pragma once

#include <string>

namespace stoker {

inline constexpr int kNvmlSuccess = 0;
inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";  // part of the driver

class NvmlLibrary {
 public:
  explicit NvmlLibrary(const std::string& file = kNvmlLibrary);
  ~NvmlLibrary();  // shuts down what start() began; the library stays loaded
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  // Sets `function` to the symbol of this name; returns false if there is none.
  template <typename Function>
  bool find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }
  // Initialises the library; `found`: all functions that are needed exist. Returns false if that
  // fails; why_not() has the reason.
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
