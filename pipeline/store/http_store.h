// Objects on an HTTP server: each is a path. The server has no lists; its redirections are followed
// and kept, because they may lead to a place that only signs for some minutes. Owner: the user.
// Threads: any.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/store/object_store.h"
#include "pipeline/store/retry_policy.h"
#include "staging/mutex.h"

namespace stoker {

class HttpStore : public ObjectStore {
 public:
  // The address's query is added to every request of an object that has no target.
  HttpStore(const StoreAddress& address, const StoreOptions& options);

  const std::string& root() const override { return root_; }
  void scan(const std::string& prefix,
            const std::function<bool(StoredObject object)>& found) const override;
  std::vector<StoredObject> list_folder(const std::string& prefix) const override;
  bool stat(const std::string& key, StoredObject& out) const override;
  HttpRequest range_request(const StoredObject& object, int64_t offset,
                            int64_t length) const override;
  Judgement judge(const StoredObject& object, int64_t offset, int64_t length,
                  const HttpAnswer& answer) const override;
  HttpClient& client() const override { return *client_; }
  std::string digest_of_queries() const override;

 private:
  std::string own_url(const std::string& key) const;
  // Where redirections have led.
  std::optional<std::string> place_of(const std::string& key) const;
  HttpRequest request(const std::string& method, const std::string& key) const;
  // Judges an answer that is no success. It follows a redirection by "again".
  Judgement judge_failure(const std::string& key, const HttpAnswer& answer) const;
  Judgement follow(const std::string& key, const HttpAnswer& answer) const;
  std::string without_secrets(const std::string& key, std::string text) const;

  const std::string root_, query_;
  const ObjectTargets targets_;
  const std::string ca_file_;
  mutable Mutex mutex_;
  mutable std::map<std::string, std::string> places_ GUARDED_BY(mutex_);  // URLs by keys
  const std::unique_ptr<HttpClient> client_;
  const StoreAsker asker_;
};

}  // namespace stoker
