#include "pipeline/store/s3/credentials.h"

#include <thread>
#include <utility>

#include "pipeline/store/object_store.h"
#include "pipeline/store/time_text.h"

namespace stoker {
namespace {

// As long before the end as AWS's tools; an instance has new keys five minutes before the old end.
constexpr std::chrono::minutes kRenewBefore{10};
// How often others are asked for then.
constexpr std::chrono::seconds kAskAgain{30};
// For so long after others came, a refusal may be of a request with the old ones.
constexpr std::chrono::seconds kJustChanged{60};
constexpr int kFirstTries = 3;

std::chrono::sys_seconds now_seconds() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

}  // namespace

bool keys_are_due(std::optional<std::chrono::sys_seconds> expire,
                  std::chrono::sys_seconds last_fetch, std::chrono::sys_seconds now) {
  return expire && *expire < now + kRenewBefore && now >= last_fetch + kAskAgain;
}

void Credentials::obtain(HttpClient& client) {
  for (int tried = 0;; ++tried) {
    {
      MutexLock lock(mutex_);
      while (is_fetching_) fetched_.wait(lock);
      const bool expired = has_expired_locked(now_seconds());
      if (!keys_.id.empty() && !expired) return;
      if (tried == kFirstTries) {
        if (keys_.id.empty()) {
          throw StoreError("there are no keys of AWS from " + source_->name() + ": " + problem_);
        }
        throw StoreError("the keys of AWS from " + source_->name() + " expired at " +
                         http_date(*expire_) + " and could not be renewed: " +
                         (problem_.empty() ? "the new ones have expired, too" : problem_));
      }
    }
    if (tried > 0) std::this_thread::sleep_for(std::chrono::milliseconds(200 * tried));
    fetch(client);
  }
}

AwsKeys Credentials::current(HttpClient& client) {
  bool due = false;
  {
    const MutexLock lock(mutex_);
    due = keys_are_due(expire_, last_fetch_, now_seconds());
  }
  if (due) fetch(client);
  const MutexLock lock(mutex_);
  return keys_;
}

bool Credentials::renew(HttpClient& client) {
  {
    const MutexLock lock(mutex_);
    if (is_fetching_ || now_seconds() < changed_ + kJustChanged) return true;
  }
  fetch(client);
  const MutexLock lock(mutex_);
  return is_fetching_ || now_seconds() < changed_ + kJustChanged;
}

void Credentials::fetch(HttpClient& client) {
  {
    const MutexLock lock(mutex_);
    if (is_fetching_) return;
    is_fetching_ = true;
    last_fetch_ = now_seconds();
  }
  source_->fetch(client, [this](FetchedKeys fetched) { take(std::move(fetched)); });
}

void Credentials::take(FetchedKeys fetched) {
  const MutexLock lock(mutex_);
  is_fetching_ = false;
  problem_ = std::move(fetched.problem);
  if (problem_.empty()) {
    const bool others = fetched.keys.id != keys_.id || fetched.keys.token != keys_.token;
    // The first ones were never others.
    if (others && !keys_.id.empty()) changed_ = now_seconds();
    keys_ = std::move(fetched.keys);
    expire_ = fetched.expire;
  }
  fetched_.notify_all();
}

std::string Credentials::description() const {
  const MutexLock lock(mutex_);
  std::string text = "the keys are from " + source_->name();
  if (expire_ && has_expired_locked(now_seconds())) text += ", expired at " + http_date(*expire_);
  if (!problem_.empty()) text += ", and could not be renewed: " + problem_;
  return text;
}

std::string Credentials::without_secrets(std::string text) const {
  const MutexLock lock(mutex_);
  for (const std::string* secret : {&keys_.secret, &keys_.token}) {
    if (secret->empty()) continue;
    for (size_t at = 0; (at = text.find(*secret, at)) != std::string::npos;) {
      text.replace(at, secret->size(), "...");
    }
  }
  return text;
}

}  // namespace stoker
