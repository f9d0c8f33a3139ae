#include "pipeline/store/ask_store.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace stoker {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstWait{100}, kLongestWait{5'000};
// A server that has never answered is probably not there.
constexpr int kTriesOfUnknown = 3;

// Half of it varies, so that many programs that were refused together do not come again together.
milliseconds wait_before(int tried) {
  const milliseconds most = std::min(kLongestWait, kFirstWait * (1 << std::min(tried, 10)));
  const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count() / 1000;
  return most / 2 + milliseconds(ticks % (most.count() / 2));
}

}  // namespace

HttpAnswer StoreAsker::ask(const std::function<HttpRequest()>& make,
                           const std::function<Judgement(const HttpAnswer& answer)>& judge) const {
  for (int tried = 1;; ++tried) {
    HttpAnswer answer = client_.get(make());
    if (answer.status != 0) was_answered_ = true;
    const Judgement judgement = judge(answer);
    if (judgement.kind == AnswerKind::fine) return answer;
    const bool goes_on =
        judgement.kind == AnswerKind::again || judgement.kind == AnswerKind::throttled;
    if (!goes_on) throw StoreError(judgement.problem);
    const int most = was_answered_ ? tries_ : std::min(tries_, kTriesOfUnknown);
    if (tried >= most) {
      throw StoreError(judgement.problem + " (tried " + std::to_string(tried) + " times)");
    }
    std::this_thread::sleep_for(wait_before(tried - 1));
  }
}

}  // namespace stoker
