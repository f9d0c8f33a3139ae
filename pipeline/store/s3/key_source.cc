#include "pipeline/store/s3/key_source.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "pipeline/files/durable_file.h"
#include "pipeline/store/environment.h"
#include "pipeline/store/object_store.h"
#include "pipeline/store/time_text.h"
#include "pipeline/store/url_text.h"

namespace stoker {
namespace {

using KeysDone = std::function<void(FetchedKeys)>;

constexpr const char* kWithoutKeys =
    "`aws configure export-credentials --format env` prints keys for the environment; without keys "
    "public data can be read anonymously";

FetchedKeys no_keys(std::string problem) { return {.problem = std::move(problem)}; }

std::string answer_problem(const std::string& who, const HttpAnswer& answer) {
  if (answer.status == 0 || !answer.complete) return answer.problem;
  return who + " answers with status " + std::to_string(answer.status);
}

// Reads the JSON that the endpoints of containers and instances answer with.
FetchedKeys keys_of_json(const std::string& who, const HttpAnswer& answer) {
  if (answer.status != 200 || !answer.complete) return no_keys(answer_problem(who, answer));
  const auto json = nlohmann::json::parse(answer.body, nullptr, false);
  if (!json.is_object()) return no_keys(who + " answers with no JSON object");
  const auto text = [&json](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const std::string code = text("Code");
  if (!code.empty() && code != "Success") return no_keys(who + " answers with the code " + code);
  FetchedKeys fetched{.keys = {text("AccessKeyId"), text("SecretAccessKey"), text("Token")}};
  if (fetched.keys.id.empty() || fetched.keys.secret.empty()) {
    return no_keys(who + " answers without AccessKeyId or SecretAccessKey");
  }
  const std::string expiration = text("Expiration");
  fetched.expire = parse_iso_time(expiration);
  if (!expiration.empty() && !fetched.expire) {
    return no_keys(who + " answers with an Expiration that is no time");
  }
  return fetched;
}

FetchedKeys keys_of_environment() {
  FetchedKeys fetched{.keys = {environment("AWS_ACCESS_KEY_ID"),
                               environment("AWS_SECRET_ACCESS_KEY"),
                               environment("AWS_SESSION_TOKEN")}};
  if (fetched.keys.secret.empty()) {
    return no_keys("AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not");
  }
  const std::string expiration = environment("AWS_CREDENTIAL_EXPIRATION");
  fetched.expire = parse_iso_time(expiration);
  if (!expiration.empty() && !fetched.expire) {
    return no_keys("AWS_CREDENTIAL_EXPIRATION is no time");
  }
  return fetched;
}

class EnvironmentKeys : public KeySource {
 public:
  const std::string& name() const override { return name_; }
  void fetch(HttpClient&, KeysDone done) override { done(keys_of_environment()); }

 private:
  const std::string name_ = "the environment";
};

// The credentials file goes before the config file. They are read again at each fetch: somebody may
// renew what is in them.
class ProfileKeys : public KeySource {
 public:
  explicit ProfileKeys(const std::string& profile)
      : profile_(profile), name_("the profile '" + profile + "'") {}
  const std::string& name() const override { return name_; }
  void fetch(HttpClient&, KeysDone done) override { done(read()); }

 private:
  FetchedKeys read() const {
    try {
      const AwsSettings settings = read_aws_settings(profile_);
      const bool in_credentials = !settings.of_credentials("aws_access_key_id").empty();
      const auto value = [&](const char* name) {
        return in_credentials ? settings.of_credentials(name) : settings.of_config(name);
      };
      FetchedKeys fetched{.keys = {value("aws_access_key_id"), value("aws_secret_access_key"),
                                   value("aws_session_token")}};
      if (!fetched.keys.id.empty() && !fetched.keys.secret.empty()) return fetched;
      return no_keys("there is no aws_access_key_id or no aws_secret_access_key");
    } catch (const StoreError& error) {
      return no_keys(error.what());
    }
  }

  const std::string profile_, name_;
};

// AWS SDKs and Tools Reference Guide, "Container credential provider".
class ContainerKeys : public KeySource {
 public:
  ContainerKeys() : url_(address()) {}
  const std::string& name() const override { return name_; }
  void fetch(HttpClient& client, KeysDone done) override {
    HttpRequest request{.url = url_};
    request.connect_timeout = std::chrono::seconds(2);
    request.stall_timeout = std::chrono::seconds(5);
    std::string token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    const std::string file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    try {
      if (!file.empty()) token = read_whole_file(file);  // somebody renews it
    } catch (const std::runtime_error& error) {
      return done(no_keys(error.what()));
    }
    token = token.substr(0, token.find_last_not_of("\r\n") + 1);
    if (token.find_first_of("\r\n") != std::string::npos) {
      return done(no_keys("the token for " + name_ + " has more than one line"));
    }
    if (!token.empty()) request.headers.emplace_back("Authorization", token);
    client.start(std::move(request), [done = std::move(done)](const HttpAnswer& answer) {
      done(keys_of_json("it", answer));
    });
  }

 private:
  static std::string address() {
    const std::string relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    if (!relative.empty()) return "http://169.254.170.2" + relative;
    const std::string full = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    const auto url = split_url(full);
    if (!url) throw StoreError("AWS_CONTAINER_CREDENTIALS_FULL_URI is no URL of http or https");
    // The token would go over the network in the clear; these are the machine's own addresses, and
    // those of the agents of ECS and EKS.
    const std::string host =
        url->host.substr(0, url->host[0] == '[' ? url->host.find(']') + 1 : url->host.find(':'));
    constexpr std::array<const char*, 6> kNear = {
        "localhost", "127.0.0.1", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    for (const char* near : kNear) {
      if (host == near) return full;
    }
    if (url->scheme == "https") return full;
    throw StoreError(
        "AWS_CONTAINER_CREDENTIALS_FULL_URI is http, and its host is not this machine");
  }

  const std::string url_;
  const std::string name_ = "the container's endpoint for credentials";
};

// The instance metadata service, version 2 (EC2 User Guide, "Use the Instance Metadata Service"): a
// token, the name of the role, the role's keys.
class InstanceKeys : public KeySource {
 public:
  explicit InstanceKeys(const std::string& profile)
      : name_("the instance's role (there are none in the environment and in the profile '" +
              profile + "')") {}
  const std::string& name() const override { return name_; }
  void fetch(HttpClient& client, KeysDone done) override {
    HttpRequest request = ask("/latest/api/token");
    request.method = "PUT";
    request.headers = {{"x-aws-ec2-metadata-token-ttl-seconds", "21600"}};
    client.start(std::move(request), [this, &client, done](const HttpAnswer& answer) {
      if (answer.status != 200 || !answer.complete) {
        return done(no_keys(answer_problem("the metadata service", answer)));
      }
      find_role(client, answer.body, done);
    });
  }

 private:
  void find_role(HttpClient& client, const std::string& token, const KeysDone& done) {
    HttpRequest request = ask(kRoles);
    request.headers = {{"x-aws-ec2-metadata-token", token}};
    client.start(std::move(request), [this, &client, token, done](const HttpAnswer& answer) {
      if (answer.status == 404) return done(no_keys("the instance has no role"));
      const std::string role = answer.body.substr(0, answer.body.find('\n'));
      if (answer.status != 200 || !answer.complete || role.empty()) {
        return done(no_keys(answer_problem("the metadata service", answer)));
      }
      HttpRequest next = ask(kRoles + percent_encode(role, Slash::encode));
      next.headers = {{"x-aws-ec2-metadata-token", token}};
      client.start(std::move(next), [done](const HttpAnswer& keys) {
        done(keys_of_json("the metadata service", keys));
      });
    });
  }

  HttpRequest ask(const std::string& path) const {
    HttpRequest request{.url = server_ + path};
    // Outside of EC2 nobody is at this address.
    request.connect_timeout = std::chrono::seconds(1);
    request.stall_timeout = std::chrono::seconds(2);
    return request;
  }

  static std::string server() {
    std::string url = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    if (url.empty()) return "http://169.254.169.254";
    while (url.back() == '/') url.pop_back();
    return url;
  }

  static inline const std::string kRoles = "/latest/meta-data/iam/security-credentials/";
  const std::string server_ = server();
  const std::string name_;
};

// Refuses what AWS's tools would do before they ask the container or the instance.
void refuse_unsupported(const AwsSettings& settings) {
  for (const char* name : {"role_arn", "sso_session", "sso_start_url", "credential_process",
                           "credential_source", "web_identity_token_file", "login_session"}) {
    if (settings.of_config(name).empty() && settings.of_credentials(name).empty()) continue;
    throw StoreError("the profile '" + settings.profile + "' has " + name +
                     ", which is not supported: " + kWithoutKeys);
  }
}

}  // namespace

std::unique_ptr<KeySource> find_key_source(const AwsSettings& settings) {
  if (!settings.profile_is_chosen && !environment("AWS_ACCESS_KEY_ID").empty()) {
    return std::make_unique<EnvironmentKeys>();
  }
  refuse_unsupported(settings);
  if (!settings.profile_is_chosen && !environment("AWS_WEB_IDENTITY_TOKEN_FILE").empty()) {
    throw StoreError(std::string("AWS_WEB_IDENTITY_TOKEN_FILE is set, which is not supported: ") +
                     kWithoutKeys);
  }
  if (!settings.of_credentials("aws_access_key_id").empty() ||
      !settings.of_config("aws_access_key_id").empty()) {
    return std::make_unique<ProfileKeys>(settings.profile);
  }
  if (settings.profile_is_chosen) {
    throw StoreError("the profile '" + settings.profile + "' has no aws_access_key_id");
  }
  if (!environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").empty() ||
      !environment("AWS_CONTAINER_CREDENTIALS_FULL_URI").empty()) {
    return std::make_unique<ContainerKeys>();
  }
  if (environment("AWS_EC2_METADATA_DISABLED") != "true") {
    return std::make_unique<InstanceKeys>(settings.profile);
  }
  throw StoreError(std::string("there are no keys of AWS: not in the environment "
                               "(AWS_ACCESS_KEY_ID), not in the profile '") +
                   settings.profile + "'; " + kWithoutKeys);
}

}  // namespace stoker
