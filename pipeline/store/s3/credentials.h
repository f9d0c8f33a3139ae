// The keys that requests are signed with, renewed in time. Owner: S3Store; it outlives the client
// that it fetches with. Threads: any.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/store/s3/key_source.h"
#include "staging/mutex.h"

namespace stoker {

// Returns whether keys are fetched again: from ten minutes before they expire on, and not more
// often than every half a minute.
bool keys_are_due(std::optional<std::chrono::sys_seconds> expire,
                  std::chrono::sys_seconds last_fetch, std::chrono::sys_seconds now);

class Credentials {
 public:
  explicit Credentials(std::unique_ptr<KeySource> source) : source_(std::move(source)) {}

  // Fetches keys, if there are none or they have expired, and waits for them. Throws StoreError.
  // REQUIRES: not on the client's thread.
  void obtain(HttpClient& client);
  // Returns the keys there are, and never waits. Begins to fetch others, if these expire soon.
  // REQUIRES: obtain() has returned once.
  AwsKeys current(HttpClient& client);
  // A server says that the keys have expired. Returns whether a request with others may be tried:
  // they have just been renewed, or are being fetched.
  bool renew(HttpClient& client);
  // For messages: where the keys come from, and why they could not be renewed, if that is so.
  std::string description() const;
  // Replaces every secret in a text of somebody else's.
  std::string without_secrets(std::string text) const;

 private:
  using Time = std::chrono::sys_seconds;

  // Begins to fetch, unless that is under way.
  void fetch(HttpClient& client);
  void take(FetchedKeys fetched);
  bool has_expired_locked(Time now) const REQUIRES(mutex_) { return expire_ && *expire_ <= now; }

  const std::unique_ptr<KeySource> source_;
  mutable Mutex mutex_;
  CondVar fetched_;
  AwsKeys keys_ GUARDED_BY(mutex_);  // without an id: there are none yet
  std::optional<Time> expire_ GUARDED_BY(mutex_);
  std::string problem_ GUARDED_BY(mutex_);  // of the last fetch
  bool is_fetching_ GUARDED_BY(mutex_) = false;
  Time last_fetch_ GUARDED_BY(mutex_){};
  Time changed_ GUARDED_BY(mutex_){};  // when the keys became others
};

}  // namespace stoker
