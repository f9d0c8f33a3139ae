#include "pipeline/store/http_store.h"

#include <algorithm>

#include "pipeline/store/digest256.h"
#include "pipeline/store/environment.h"
#include "pipeline/store/range_answer.h"
#include "pipeline/store/url_text.h"

namespace stoker {
namespace {

constexpr int kMaxRedirections = 5;

bool is_redirection(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

std::string query_of(const std::string& url) {
  const size_t question = url.find('?');
  return question == std::string::npos ? "" : url.substr(question + 1);
}

// Whether a redirection's target may answer so because its signature has expired.
bool may_have_expired(int status) { return status == 400 || status == 401 || status == 403; }

}  // namespace

HttpStore::HttpStore(const StoreAddress& address, const StoreOptions& options)
    : root_(address.server),
      query_(address.query),
      targets_(address.targets),
      ca_file_(options.ca_file.empty() ? environment("AWS_CA_BUNDLE") : options.ca_file),
      client_(make_http_client(options.most_connections())),
      asker_(*client_, options.tries) {}

void HttpStore::scan(const std::string& prefix,
                     const std::function<bool(StoredObject object)>&) const {
  list_folder(prefix);
}

std::vector<StoredObject> HttpStore::list_folder(const std::string& prefix) const {
  throw StoreError(address_of(prefix) +
                   ": an HTTP server has no list of its files; name them, with braces where they "
                   "are numbered: https://host/data/train-{000..127}.tar");
}

bool HttpStore::stat(const std::string& key, StoredObject& out) const {
  const std::string name = address_of(key);
  const auto is_success = [](const HttpAnswer& answer) {
    return answer.status == 200 || answer.status == 206;
  };
  const auto is_gone = [](const HttpAnswer& answer) {
    return answer.status == 404 || answer.status == 410;
  };
  int redirections = 0;
  const auto judge_answer = [&](const HttpAnswer& answer) -> Judgement {
    if (is_redirection(answer.status) && ++redirections > kMaxRedirections) {
      return {AnswerKind::refused,
              name + ": it is redirected more than " + std::to_string(kMaxRedirections) + " times"};
    }
    if (is_gone(answer)) return {};
    if (!is_success(answer) && answer.status != 416) return judge_failure(key, answer);
    if (answer.complete) return {};
    return {AnswerKind::again, without_secrets(key, name + ": " + answer.problem)};
  };
  HttpAnswer answer = asker_.ask([&] { return request("HEAD", key); },
                                 [&](const HttpAnswer& got) -> Judgement {
                                   const bool is_refused =
                                       got.status >= 400 && got.status < 500 && got.status != 429;
                                   return is_refused ? Judgement{} : judge_answer(got);
                                 });
  if (is_gone(answer)) return false;
  if (!is_success(answer) || !describe_object(answer, out)) {
    // Some servers refuse HEAD, as do those that sign URLs for GET, or give it no length.
    uint8_t first = 0;  // a server without ranges sends all of the file
    answer = asker_.ask(
        [&] {
          HttpRequest made = request("GET", key);
          made.headers.emplace_back("Range", "bytes=0-0");
          made.out = {&first, 1};
          return made;
        },
        judge_answer);
    if (is_gone(answer)) return false;
    if (!describe_object(answer, out)) {
      throw StoreError(name + ": the server does not say how many bytes it has");
    }
  }
  out.key = key;
  return true;
}

HttpRequest HttpStore::range_request(const StoredObject& object, int64_t offset,
                                     int64_t length) const {
  HttpRequest made = request("GET", object.key);
  ask_for_range(object, offset, length, made);
  return made;
}

Judgement HttpStore::judge(const StoredObject& object, int64_t offset, int64_t length,
                           const HttpAnswer& answer) const {
  const std::string name = address_of(object.key);
  if (answer.status == 200 || answer.status == 206) {
    Judgement judgement = judge_range(name, object, offset, length, answer);
    judgement.problem = without_secrets(object.key, judgement.problem);
    return judgement;
  }
  if (answer.status == 412) return object_changed(name, "it has another version");
  if (answer.status == 416) return object_changed(name, "it has fewer bytes");
  return judge_failure(object.key, answer);
}

std::string HttpStore::own_url(const std::string& key) const {
  const auto found = targets_.find(key);
  if (found != targets_.end()) return root_ + found->second;
  std::string url = root_ + key;
  if (!query_.empty()) url.append("?").append(query_);
  return url;
}

std::string HttpStore::digest_of_queries() const {
  const auto has_query = [](const auto& target) { return query_of(target.second) != ""; };
  if (query_.empty() && std::none_of(targets_.begin(), targets_.end(), has_query)) return "";
  std::string text = "queries of " + root_ + '\0' + query_;
  for (const auto& [key, target] : targets_) text.append("\0", 1).append(target);
  std::string digest(" ");
  return digest.append(to_hex(sha256(bytes_of(text))));
}

std::optional<std::string> HttpStore::place_of(const std::string& key) const {
  const MutexLock lock(mutex_);
  const auto found = places_.find(key);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

HttpRequest HttpStore::request(const std::string& method, const std::string& key) const {
  const auto place = place_of(key);
  return {.method = method, .url = place.value_or(own_url(key)), .ca_file = ca_file_};
}

Judgement HttpStore::judge_failure(const std::string& key, const HttpAnswer& answer) const {
  const std::string name = address_of(key);
  if (answer.status == 0) {
    return {answer.hopeless ? AnswerKind::refused : AnswerKind::again,
            without_secrets(key, name + ": " + answer.problem)};
  }
  const std::string problem = name + ": status " + std::to_string(answer.status);
  if (is_redirection(answer.status)) return follow(key, answer);
  if (answer.status == 429 || answer.status == 503) return {AnswerKind::throttled, problem};
  if (answer.status >= 500 || answer.status == 408) return {AnswerKind::again, problem};
  if (may_have_expired(answer.status)) {
    const MutexLock lock(mutex_);
    if (places_.erase(key) > 0) return {AnswerKind::again, problem + " behind a redirection"};
  }
  if (answer.status == 404 || answer.status == 410) {
    return {AnswerKind::refused, problem + ": there is no such file"};
  }
  if (answer.status == 401 || answer.status == 403) {
    return {AnswerKind::refused,
            problem + (query_of(own_url(key)).empty() ? ": the server wants to know who asks"
                                                      : ": has the signed URL expired?")};
  }
  return {AnswerKind::refused, problem};
}

Judgement HttpStore::follow(const std::string& key, const HttpAnswer& answer) const {
  const std::string name = address_of(key);
  const auto place = place_of(key);
  const std::string from = place.value_or(own_url(key));
  const auto target = redirected_url(from, answer.header("location"));
  if (!target) return {AnswerKind::refused, name + ": it is redirected to no address of HTTP"};
  const auto is_safe = [](const std::string& url) { return url.compare(0, 8, "https://") == 0; };
  if (is_safe(from) && !is_safe(*target)) {
    return {AnswerKind::refused, name + ": it is redirected from https to http"};
  }
  const MutexLock lock(mutex_);
  places_[key] = *target;
  return {AnswerKind::again, name + ": it is redirected"};
}

std::string HttpStore::without_secrets(const std::string& key, std::string text) const {
  const std::string query = query_of(own_url(key));
  for (size_t at = 0; !query.empty() && (at = text.find(query, at)) != std::string::npos;) {
    text.replace(at, query.size(), "...");
  }
  return text;
}

}  // namespace stoker
