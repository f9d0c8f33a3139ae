#include "staging/error_text.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string_view>

namespace stoker {
namespace {

std::string mib(double bytes) { return std::to_string(static_cast<int64_t>(bytes / (1 << 20))); }

// Returns how many bytes a line of /proc/self/status says, which writes kB, or -1.
double status_bytes(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == key && status >> kilobytes) return kilobytes * 1024;
  }
  return -1;
}

// Returns "; this process has ...", and what to do.
std::string memory_advice() {
  std::string text;
  const double space = status_bytes("VmSize:"), resident = status_bytes("VmRSS:");
  if (space >= 0 && resident >= 0) {
    text = "; this process has " + mib(resident) + " MiB of memory and " + mib(space) +
           " MiB of address space";
  }
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    text += ", and may have " + mib(static_cast<double>(limit.rlim_cur)) + " MiB (ulimit -v)";
  }
  return text + "; allow more, or ask for smaller batches, fewer workers or fewer batches ahead";
}

// Returns the text behind "[json.exception.NAME.NUMBER] ".
std::string without_class(const std::string& what) {
  if (!what.starts_with("[json.exception.")) return what;
  const size_t end = what.find("] ");
  return end == std::string::npos ? what : what.substr(end + 2);
}

}  // namespace

OutOfMemory::OutOfMemory(const std::string& purpose, size_t bytes)
    : text_("out of memory: cannot have " + mib(static_cast<double>(bytes)) + " MiB for " +
            purpose + memory_advice()) {}

std::string error_text(const std::exception& error) {
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    const std::string path = file->path1().string();
    const std::string other = file->path2().empty() ? "" : " and " + file->path2().string();
    return "cannot use " + path + other + ": " + file->code().message();
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr &&
      dynamic_cast<const OutOfMemory*>(&error) == nullptr) {
    return "out of memory" + memory_advice();
  }
  return without_class(error.what());
}

std::string current_error_text() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error_text(error);
  } catch (...) {
    return "unknown error";
  }
}

}  // namespace stoker
