#include "pipeline/store/retry_policy.h"

#include <algorithm>
#include <random>
#include <thread>

namespace stoker {
namespace {

// A server that has never answered is probably not there.
constexpr int kTriesOfUnknown = 3;

// Between 0 and 1, and another one for each program that was refused at the same time.
double random_share() {
  thread_local std::mt19937 random{std::random_device{}()};
  return std::uniform_real_distribution<double>()(random);
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
    if (!goes_on && (answer.status == 401 || answer.status == 403)) {
      throw StoreForbidden(judgement.problem);
    }
    if (!goes_on) throw StoreError(judgement.problem);
    const int most = was_answered_ ? tries_ : std::min(tries_, kTriesOfUnknown);
    if (tried >= most) {
      throw StoreError(judgement.problem + " (tried " + std::to_string(tried) + " times)");
    }
    std::this_thread::sleep_for(retry_wait(tried, random_share()));
  }
}

}  // namespace stoker
