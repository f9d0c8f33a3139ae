#include "pipeline/store/http_client.h"

#include <optional>

#include "pipeline/store/curl/curl_plugin.h"
#include "staging/mutex.h"

namespace stoker {

HttpAnswer HttpClient::get(HttpRequest request) {
  struct Waiting {
    Mutex mutex;
    CondVar came;
    std::optional<HttpAnswer> answer GUARDED_BY(mutex);
  } waiting;
  start(std::move(request), [&waiting](HttpAnswer answer) {
    const MutexLock lock(waiting.mutex);
    waiting.answer = std::move(answer);
    waiting.came.notify_one();  // with the lock held: who waits destroys all of it
  });
  MutexLock lock(waiting.mutex);
  while (!waiting.answer) waiting.came.wait(lock);
  return *std::move(waiting.answer);
}

std::unique_ptr<HttpClient> make_http_client(int connections) {
  return curl_plugin().make_client(connections);
}

}  // namespace stoker
