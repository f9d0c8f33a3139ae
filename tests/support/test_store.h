// A store for tests of what reads ranges: objects of an ObjectServer, without a signature, and the
// plainest judge. Threads: any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/store/object_store.h"
#include "tests/support/object_server.h"

namespace stoker {

class TestStore final : public ObjectStore {
 public:
  explicit TestStore(const ObjectServer& server, int connections = 300)
      : server_(server), client_(make_http_client(connections)) {}

  const std::string& root() const override { return root_; }
  void scan(const std::string&, const std::function<bool(StoredObject)>&) const override {}
  std::vector<StoredObject> list_folder(const std::string&) const override { return {}; }
  bool stat(const std::string&, StoredObject&) const override { return false; }

  HttpRequest range_request(const StoredObject& object, int64_t offset,
                            int64_t length) const override {
    if (object.key == "/unsigned") throw StoreError("the keys have expired");
    return {.url = server_.url(object.key),
            .headers = {{"Range", range_text(offset, length)}, {"If-Match", object.version}},
            .skip_if_whole = offset};
  }

  Judgement judge(const StoredObject& object, int64_t offset, int64_t length,
                  const HttpAnswer& answer) const override {
    const std::string name = address_of(object.key);
    if (answer.status == 503) return {AnswerKind::throttled, name + ": slow down"};
    if (answer.status == 0 || answer.status >= 500) {
      return {AnswerKind::again, name + ": " + std::to_string(answer.status) + answer.problem};
    }
    if (answer.status == 412) return {AnswerKind::changed, name + " has changed"};
    if (answer.status >= 400) return {AnswerKind::refused, name + ": " + answer.body};
    if (answer.header("etag") != object.version)
      return {AnswerKind::changed, name + " has changed"};
    const std::string& range = answer.header("content-range");
    if (answer.status == 206 &&
        !("bytes=" + range.substr(6)).starts_with(range_text(offset, length) + "/")) {
      return {AnswerKind::again, name + ": another range, " + range};
    }
    if (!answer.complete) return {AnswerKind::again, name + ": " + answer.problem};
    return {};
  }
  HttpClient& client() const override { return *client_; }

 private:
  static std::string range_text(int64_t offset, int64_t length) {
    return "bytes=" + std::to_string(offset) + "-" + std::to_string(offset + length - 1);
  }

  const ObjectServer& server_;
  const std::string root_ = "test://server";
  const std::unique_ptr<HttpClient> client_;
};

}  // namespace stoker
