// Where the keys of AWS come from, in the order of AWS's tools: the environment, the profile in
// their files, the endpoint of a container, the instance's role. Owner: Credentials. Threads: one
// fetch() at a time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/store/http_client.h"
#include "pipeline/store/s3/aws_settings.h"
#include "pipeline/store/s3/signature.h"

namespace stoker {

struct FetchedKeys {
  AwsKeys keys{};
  std::optional<std::chrono::sys_seconds> expire{};  // nothing: never, or nobody knows
  std::string problem{};                             // why there are none; "" if there are
};

class KeySource {
 public:
  virtual ~KeySource() = default;
  // For messages: "the environment".
  virtual const std::string& name() const = 0;
  // Calls `done` once, at once or on the client's thread, unless the client is destroyed before.
  virtual void fetch(HttpClient& client, std::function<void(FetchedKeys)> done) = 0;
};

// Throws StoreError for settings that ask for what is not supported (assumed roles, single sign-on,
// keys from a program).
std::unique_ptr<KeySource> find_key_source(const AwsSettings& settings);

}  // namespace stoker
