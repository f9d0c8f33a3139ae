#include "pipeline/exchange/process_mark.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace stoker {
namespace {

struct ProcessState {
  char state = '?';
  uint64_t start = 0;
};

// proc(5): the second field is a name in brackets, which may hold brackets and spaces itself. The
// state is the third field, the start the 22nd.
std::optional<ProcessState> state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream fields(text.substr(end + 1));
  ProcessState read;
  fields >> read.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> read.start;
  if (!fields) return {};
  return read;
}

}  // namespace

ProcessMark own_process_mark() {
  const auto state = state_of(getpid());
  if (!state) {
    throw std::runtime_error("cannot read /proc/" + std::to_string(getpid()) +
                             "/stat, by which processes that share rows know of each other");
  }
  return {getpid(), state->start};
}

Life life_of(const ProcessMark& process) {
  const auto state = state_of(process.pid);
  if (!state || state->start != process.start || state->state == 'Z' || state->state == 'X') {
    return Life::ended;
  }
  return state->state == 'T' || state->state == 't' ? Life::stopped : Life::runs;
}

std::string pid_namespace() {
  char link[64];
  const ssize_t length = readlink("/proc/self/ns/pid", link, sizeof(link));
  std::string digits;
  for (ssize_t i = 0; i < length; ++i) {
    if (link[i] >= '0' && link[i] <= '9') digits += link[i];
  }
  return digits.empty() ? "0" : digits;
}

}  // namespace stoker
