// A bucket on Amazon S3 or a server that speaks its protocol (Amazon S3 API Reference). What a
// server teaches is kept: the bucket's region, and how far this machine's clock is off. Owner: the
// user. Threads: any.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/store/object_store.h"
#include "pipeline/store/retry_policy.h"
#include "pipeline/store/s3/answers.h"
#include "pipeline/store/s3/aws_settings.h"
#include "pipeline/store/s3/credentials.h"
#include "pipeline/store/url_text.h"
#include "staging/mutex.h"

namespace stoker {

class S3Store : public ObjectStore {
 public:
  // Waits for the first keys. Throws StoreError.
  S3Store(const std::string& bucket, const StoreOptions& options);

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

 private:
  using Query = std::vector<std::pair<std::string, std::string>>;

  struct Learnt {
    std::string region;
    std::chrono::seconds ahead{0};  // of the server's clock, seen from this machine's
    bool region_is_told = false;    // by the server
  };

  void set_endpoint(const AwsSettings& settings, const StoreOptions& options);
  Learnt learnt() const;
  std::string url_of(const std::string& key, const std::string& region) const;
  // Signs it, unless the store is read anonymously. `key` "" is the bucket.
  HttpRequest request(const std::string& method, const std::string& key, const Query& query) const;
  // `take` returns false to stop.
  void each_page(const std::string& prefix, const std::string& delimiter,
                 const std::function<bool(ListPage page)>& take) const;
  HttpAnswer ask(const std::function<HttpRequest()>& make,
                 const std::function<Judgement(const HttpAnswer& answer)>& judge) const;
  Judgement judge_list(const std::string& prefix, const HttpAnswer& answer, ListPage& page) const;
  // Judges an answer that is no success, and learns from it. `name`: what was asked for.
  Judgement judge_failure(const std::string& name, const HttpAnswer& answer) const;
  bool learn_region(const std::string& region) const;
  bool learn_clock(const HttpAnswer& answer) const;
  std::string explain(const std::string& name, const S3Error& error) const;

  const std::string bucket_, root_;
  std::string scheme_, host_, path_;  // of the endpoint; path_ does not end in "/"
  bool is_amazon_ = false;            // the host is made from the region
  bool bucket_in_path_ = false;
  std::string ca_file_;
  mutable Mutex mutex_;
  mutable Learnt learnt_ GUARDED_BY(mutex_);
  std::unique_ptr<Credentials> credentials_;  // none: anonymous
  // Destroyed before what its callbacks use.
  std::unique_ptr<HttpClient> client_;
  std::unique_ptr<StoreAsker> asker_;
};

}  // namespace stoker
