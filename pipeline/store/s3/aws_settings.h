// The settings of the AWS tools, from the environment and from their two files (AWS SDKs and Tools
// Reference Guide, "Shared config and credentials files"): of one profile. Threads: any, while
// nobody changes the environment.
#pragma once

#include <map>
#include <string>

namespace stoker {

struct AwsSettings {
  std::string profile;             // its name
  bool profile_is_chosen = false;  // by an option: its keys go before those of the environment
  // The settings of the profile in ~/.aws/credentials and ~/.aws/config
  // ($AWS_SHARED_CREDENTIALS_FILE and $AWS_CONFIG_FILE). A setting inside of another, such as
  // endpoint_url of "s3 =", has the name "s3.endpoint_url".
  std::map<std::string, std::string> credentials, config;
  std::string endpoint_of_services;  // of the section that the profile's `services` names

  // Both return "" if there is no such setting.
  const std::string& of_credentials(const std::string& name) const;
  const std::string& of_config(const std::string& name) const;
};

// Reads both files. Throws StoreError for a file that cannot be read or has a line that is no
// setting, and for a profile that was named but is in neither.
AwsSettings read_aws_settings(const std::string& profile_option);

}  // namespace stoker
