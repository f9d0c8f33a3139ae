#include "pipeline/store/s3/s3_store.h"

#include <algorithm>
#include <stdexcept>

#include "pipeline/files/printable_name.h"
#include "pipeline/store/environment.h"
#include "pipeline/store/range_answer.h"
#include "pipeline/store/s3/key_source.h"
#include "pipeline/store/s3/signature.h"
#include "pipeline/store/time_text.h"

namespace stoker {
namespace {

using std::chrono::sys_seconds;

// S3 refuses a request whose time is 15 minutes off. What is less off was refused for another
// reason.
constexpr std::chrono::seconds kMinSkew{60};

std::string first_of(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts) {
    if (!text.empty()) return text;
  }
  return "";
}

sys_seconds now_here() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

bool is_amazons(const std::string& host) {
  return host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn");
}

std::string amazons_host(const std::string& region) {
  return "s3." + region + ".amazonaws.com" + (region.starts_with("cn-") ? ".cn" : "");
}

// A region becomes a part of a host's name.
bool is_region(const std::string& text) {
  return !text.empty() && text.size() < 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

}  // namespace

S3Store::S3Store(const std::string& bucket, const StoreOptions& options)
    : bucket_(bucket), root_("s3://" + bucket) {
  const AwsSettings settings = read_aws_settings(options.profile);
  {
    const MutexLock lock(mutex_);
    learnt_.region =
        first_of({options.region, environment("AWS_REGION"), environment("AWS_DEFAULT_REGION"),
                  settings.of_config("region"), "us-east-1"});
    if (!is_region(learnt_.region)) {
      throw StoreError(root_ + ": '" + printable_name(learnt_.region) + "' is no region");
    }
  }
  set_endpoint(settings, options);
  ca_file_ = first_of({options.ca_file, environment("AWS_CA_BUNDLE")});
  if (!options.anonymous) {
    try {
      credentials_ = std::make_unique<Credentials>(find_key_source(settings));
    } catch (const StoreError& error) {
      throw StoreError(root_ + ": " + error.what());
    }
  }
  client_ = make_http_client(options.most_connections());
  asker_ = std::make_unique<StoreAsker>(*client_, options.tries);
  if (credentials_) {
    try {
      credentials_->obtain(*client_);
    } catch (const StoreError& error) {
      throw StoreError(root_ + ": " + error.what());
    }
  }
}

void S3Store::set_endpoint(const AwsSettings& settings, const StoreOptions& options) {
  const std::string endpoint = first_of(
      {options.endpoint, environment("AWS_ENDPOINT_URL_S3"), environment("AWS_ENDPOINT_URL"),
       settings.endpoint_of_services, settings.of_config("endpoint_url")});
  if (endpoint.empty()) {
    is_amazon_ = true;
    scheme_ = "https";
  } else {
    const auto url = split_url(endpoint);
    if (!url || !url->query.empty()) {
      throw StoreError(root_ + ": the endpoint '" + shown_url(endpoint) +
                       "' is no URL like https://s3.example.org or http://127.0.0.1:9000");
    }
    scheme_ = url->scheme;
    host_ = url->host;
    path_ = url->path.substr(0, url->path.find_last_not_of('/') + 1);
  }
  if (options.style != StoreOptions::Style::automatic) {
    bucket_in_path_ = options.style == StoreOptions::Style::path;
  } else {
    const std::string& style = settings.of_config("s3.addressing_style");
    // The certificate *.s3.amazonaws.com does not hold for a bucket's name with a dot.
    const bool at_amazon = is_amazon_ || is_amazons(host_);
    bucket_in_path_ = style == "path" || (style != "virtual" &&
                                          (!at_amazon || bucket_.find('.') != std::string::npos));
  }
}

S3Store::Learnt S3Store::learnt() const {
  const MutexLock lock(mutex_);
  return learnt_;
}

std::string S3Store::url_of(const std::string& key, const std::string& region) const {
  const std::string host = is_amazon_ ? amazons_host(region) : host_;
  std::string url = scheme_ + "://";
  url += bucket_in_path_ ? host + path_ + "/" + bucket_ : bucket_ + "." + host + path_;
  if (key.empty()) return bucket_in_path_ ? url : url + "/";
  return url + "/" + percent_encode(key, Slash::keep);
}

HttpRequest S3Store::request(const std::string& method, const std::string& key,
                             const Query& query) const {
  const Learnt known = learnt();
  HttpRequest request{.method = method, .url = url_of(key, known.region)};
  char separator = '?';
  for (const auto& [name, value] : query) {
    request.url += separator + name + "=" + percent_encode(value, Slash::encode);
    separator = '&';
  }
  request.ca_file = ca_file_;
  if (credentials_) {
    sign_request(credentials_->current(*client_), known.region, now_here() + known.ahead, request);
  }
  return request;
}

HttpAnswer S3Store::ask(const std::function<HttpRequest()>& make,
                        const std::function<Judgement(const HttpAnswer& answer)>& judge) const {
  if (credentials_) credentials_->obtain(*client_);
  return asker_->ask(make, judge);
}

void S3Store::scan(const std::string& prefix,
                   const std::function<bool(StoredObject object)>& found) const {
  each_page(prefix, "", [&](ListPage page) {
    for (StoredObject& object : page.objects) {
      if (!object.key.starts_with(prefix)) {
        throw StoreError("the list of " + address_of(prefix) + " has " + address_of(object.key) +
                         ", which does not begin like that");
      }
      if (!found(std::move(object))) return false;
    }
    return true;
  });
}

std::vector<StoredObject> S3Store::list_folder(const std::string& prefix) const {
  std::vector<StoredObject> all;
  each_page(prefix, "/", [&](ListPage page) {
    for (StoredObject& object : page.objects) {
      // The folder's own mark, an empty object.
      if (object.key != prefix) all.push_back(std::move(object));
    }
    for (std::string& folder : page.folders) all.push_back({.key = std::move(folder)});
    return true;
  });
  sort_by_key(all);
  return all;
}

void S3Store::each_page(const std::string& prefix, const std::string& delimiter,
                        const std::function<bool(ListPage page)>& take) const {
  std::string token;
  while (true) {
    ListPage page;
    ask(
        [&] {
          Query query = {{"list-type", "2"}, {"encoding-type", "url"}, {"prefix", prefix}};
          if (!delimiter.empty()) query.emplace_back("delimiter", delimiter);
          if (!token.empty()) query.emplace_back("continuation-token", token);
          return request("GET", "", query);
        },
        [&](const HttpAnswer& answer) { return judge_list(prefix, answer, page); });
    const bool is_last = page.is_last;
    std::string next = std::move(page.next);
    if (!take(std::move(page)) || is_last) return;
    if (next == token) {
      throw StoreError("the list of " + address_of(prefix) + " gives the same page again");
    }
    token = std::move(next);
  }
}

Judgement S3Store::judge_list(const std::string& prefix, const HttpAnswer& answer,
                              ListPage& page) const {
  const std::string name = "the list of " + address_of(prefix);
  if (answer.status != 200) return judge_failure(name, answer);
  if (!answer.complete) return {AnswerKind::again, name + ": " + answer.problem};
  if (is_web_page(answer)) return judge_failure(name, answer);
  try {
    page = parse_list_page(answer.body);
  } catch (const std::runtime_error& error) {
    return {AnswerKind::refused, name + " on " + url_of("", learnt().region) + ": " + error.what() +
                                     "; does the endpoint speak S3's protocol?"};
  }
  return {};
}

bool S3Store::stat(const std::string& key, StoredObject& out) const {
  if (key.empty()) return false;  // that is the bucket
  const std::string name = address_of(key);
  const auto is_success = [](const HttpAnswer& answer) {
    return (answer.status == 200 || answer.status == 206) && !is_web_page(answer);
  };
  const auto judge_success = [&name](const HttpAnswer& answer) -> Judgement {
    if (answer.complete) return {};
    return {AnswerKind::again, name + ": " + answer.problem};
  };
  HttpAnswer answer = ask([&] { return request("HEAD", key, {}); },
                          [&](const HttpAnswer& got) -> Judgement {
                            if (is_success(got)) return judge_success(got);
                            const bool is_told = got.status != 0 && got.status < 500;
                            return is_told ? Judgement{} : judge_failure(name, got);
                          });
  if (!is_success(answer)) {
    // The answer to HEAD has no text that says what is wrong; that to GET has.
    bool is_there = true;
    uint8_t first = 0;  // a server without ranges sends all of the object
    answer = ask(
        [&] {
          HttpRequest made = request("GET", key, {});
          made.headers.emplace_back("Range", "bytes=0-0");
          made.out = {&first, 1};
          return made;
        },
        [&](const HttpAnswer& got) -> Judgement {
          if (is_success(got) || got.status == 416) return judge_success(got);
          is_there = read_s3_error(got).code != "NoSuchKey";
          return is_there ? judge_failure(name, got) : Judgement{};
        });
    if (!is_there) return false;
  }
  out.key = key;
  if (!describe_object(answer, out)) {
    throw StoreError(name + ": the server does not say how many bytes it has");
  }
  return true;
}

HttpRequest S3Store::range_request(const StoredObject& object, int64_t offset,
                                   int64_t length) const {
  HttpRequest made = request("GET", object.key, {});
  ask_for_range(object, offset, length, made);
  return made;
}

Judgement S3Store::judge(const StoredObject& object, int64_t offset, int64_t length,
                         const HttpAnswer& answer) const {
  const std::string name = address_of(object.key);
  if (answer.status == 200 || answer.status == 206) {
    return judge_range(name, object, offset, length, answer);
  }
  if (answer.status == 412) return object_changed(name, "it has another version");
  if (answer.status == 416) return object_changed(name, "it has fewer bytes");
  return judge_failure(name, answer);
}

Judgement S3Store::judge_failure(const std::string& name, const HttpAnswer& answer) const {
  if (answer.status == 0) {
    return {answer.hopeless ? AnswerKind::refused : AnswerKind::again,
            name + ": " + answer.problem};
  }
  const S3Error error = read_s3_error(answer);
  const std::string problem = explain(name, error);
  const std::string& code = error.code;
  if (answer.status == 429 || answer.status == 503 || code == "SlowDown") {
    return {AnswerKind::throttled, problem};
  }
  if (answer.status >= 500 || code == "RequestTimeout") return {AnswerKind::again, problem};
  // An answer that was cut short does not say what is wrong.
  if (!answer.complete && code.empty()) return {AnswerKind::again, problem};
  // A redirection is followed by another host's name, where that is made from the region.
  const bool is_redirected = is_amazon_ && (answer.status == 301 || answer.status == 307);
  const bool is_elsewhere = is_redirected || code == "AuthorizationHeaderMalformed" ||
                            code == "IllegalLocationConstraintException";
  if (is_elsewhere && learn_region(error.region)) return {AnswerKind::again, problem};
  if (code == "RequestTimeTooSkewed" && learn_clock(answer)) return {AnswerKind::again, problem};
  if ((code == "ExpiredToken" || code == "TokenRefreshRequired") && credentials_ &&
      credentials_->renew(*client_)) {
    return {AnswerKind::again, problem};
  }
  return {AnswerKind::refused, problem};
}

bool S3Store::learn_region(const std::string& region) const {
  if (!is_region(region)) return false;
  const MutexLock lock(mutex_);
  // Another request may have learnt it already: that one is tried again, too.
  if (!learnt_.region_is_told) {
    learnt_.region_is_told = true;
    learnt_.region = region;
  }
  return learnt_.region == region;
}

bool S3Store::learn_clock(const HttpAnswer& answer) const {
  const auto there = parse_http_date(answer.header("date"));
  if (!there) return false;
  const std::chrono::seconds ahead = *there - now_here();
  const MutexLock lock(mutex_);
  if (std::chrono::abs(ahead) < kMinSkew && learnt_.ahead == std::chrono::seconds(0)) return false;
  learnt_.ahead = ahead;
  return true;
}

std::string S3Store::explain(const std::string& name, const S3Error& error) const {
  const Learnt known = learnt();
  std::string text = name + ": ";
  if (error.is_page) {
    text += "a web page came instead of an answer of S3 (status " + std::to_string(error.status) +
            "): is the endpoint that of a console or of another program?";
  } else if (error.code.empty()) {
    text += "status " + std::to_string(error.status);
  } else {
    text += error.code + " (status " + std::to_string(error.status) + ")";
    if (!error.message.empty()) text += ", \"" + printable_name(error.message) + "\"";
  }
  const std::string advice = advice_for(error);
  if (!advice.empty()) text += ": " + advice;
  text += " [endpoint " + url_of("", known.region) + ", region " + known.region;
  if (!error.region.empty() && error.region != known.region) {
    text += "; the server says " + printable_name(error.region);
  }
  if (!credentials_) return text + "; anonymous]";
  return credentials_->without_secrets(text + "; " + credentials_->description() + "]");
}

}  // namespace stoker
