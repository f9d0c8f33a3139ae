#include "tools/console/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string_view>

namespace stoker {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGUSR1};

struct {
  void (*ask)(void*) = nullptr;
  void* context = nullptr;
  std::string_view answer;
  std::atomic<int> signal{0};
  std::array<struct sigaction, kSignals.size()> before{};
} g_interrupt;
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void handle_signal(int number) {
  int none = 0;
  if (!g_interrupt.signal.compare_exchange_strong(none, number)) _exit(128 + number);
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, g_interrupt.answer.data(), g_interrupt.answer.size());
  g_interrupt.ask(g_interrupt.context);
}

}  // namespace

Interrupt::Interrupt(void (*ask)(void* context), void* context, std::string_view answer) {
  if (g_interrupt.ask != nullptr) std::abort();
  g_interrupt.context = context;
  g_interrupt.answer = answer;
  g_interrupt.signal = 0;
  g_interrupt.ask = ask;
  struct sigaction action {};
  action.sa_handler = handle_signal;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &action, &g_interrupt.before[i]);
  }
}

Interrupt::~Interrupt() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &g_interrupt.before[i], nullptr);
  }
  g_interrupt.ask = nullptr;
}

int Interrupt::signal() const { return g_interrupt.signal; }

}  // namespace stoker
