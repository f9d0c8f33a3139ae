// Requests that a caller waits for: lists and what objects there are. They are tried again, as
// ranges are by ObjectReader. Threads: any but the client's.
#pragma once

#include <atomic>
#include <functional>

#include "pipeline/store/object_store.h"

namespace stoker {

class StoreAsker {
 public:
  // `tries`: how often a request is tried.
  StoreAsker(HttpClient& client, int tries) : client_(client), tries_(tries) {}

  // Makes a request, and judges its answer; makes another one until the answer is fine. Throws
  // StoreError with the judgement's problem.
  HttpAnswer ask(const std::function<HttpRequest()>& make,
                 const std::function<Judgement(const HttpAnswer& answer)>& judge) const;

 private:
  HttpClient& client_;
  const int tries_;
  mutable std::atomic<bool> was_answered_ = false;
};

}  // namespace stoker
