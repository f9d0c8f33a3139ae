// The two files of AWS's tools, and where keys are looked for.
#include "pipeline/store/s3/aws_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "pipeline/store/object_store.h"
#include "pipeline/store/s3/credentials.h"
#include "pipeline/store/s3/key_source.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class AwsSettingsTest : public ::testing::Test {
 protected:
  AwsSettingsTest() {
    for (const char* name :
         {"AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
          "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
          "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_EC2_METADATA_DISABLED"}) {
      unsetenv(name);
    }
    setenv("AWS_CONFIG_FILE", (folder_.path() + "/config").c_str(), 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", (folder_.path() + "/credentials").c_str(), 1);
  }

  static std::string error_of(const std::string& profile) {
    try {
      find_key_source(read_aws_settings(profile));
    } catch (const StoreError& error) {
      return error.what();
    }
    return "no error";
  }
  static std::string source_of(const std::string& profile = "") {
    return find_key_source(read_aws_settings(profile))->name();
  }

  TempFolder folder_;
};

TEST_F(AwsSettingsTest, ProfilesOfBothFiles) {
  folder_.write("credentials",
                "# text\n[default]\naws_access_key_id = A\naws_secret_access_key=B=C\n\n"
                "[other]\n; text\naws_access_key_id=D\r\n");
  folder_.write("config",
                "[default]\nregion = eu-1\n[profile  other ]\nregion=eu-2\nservices = mine\n"
                "s3 =\n  addressing_style = path\n  max_queue_size = 3\noutput=json\n"
                "[services mine]\ns3 =\n    endpoint_url = http://h:1\n"
                "sqs =\n    endpoint_url = http://h:2\n");
  const AwsSettings first = read_aws_settings("");
  EXPECT_EQ(first.profile, "default");
  EXPECT_EQ(first.of_credentials("aws_secret_access_key"), "B=C");
  EXPECT_EQ(first.of_config("region"), "eu-1");
  EXPECT_EQ(first.of_config("s3.addressing_style"), "");

  setenv("AWS_PROFILE", "other", 1);
  const AwsSettings second = read_aws_settings("");
  EXPECT_FALSE(second.profile_is_chosen);
  EXPECT_EQ(second.of_credentials("aws_access_key_id"), "D");
  EXPECT_EQ(second.of_config("region"), "eu-2");
  EXPECT_EQ(second.of_config("s3.addressing_style"), "path");
  EXPECT_EQ(second.of_config("output"), "json");
  EXPECT_EQ(second.endpoint_of_services, "http://h:1");
  EXPECT_EQ(read_aws_settings("default").of_config("region"), "eu-1");
}

TEST_F(AwsSettingsTest, ANamedProfileMustBeThere) {
  EXPECT_EQ(read_aws_settings("").profile, "default");  // there are no files at all
  EXPECT_THAT(error_of("mine"), AllOf(HasSubstr("'mine'"), HasSubstr(folder_.path() + "/config")));
  setenv("AWS_PROFILE", "mine", 1);
  EXPECT_THAT(error_of(""), HasSubstr("'mine'"));
}

TEST_F(AwsSettingsTest, ABrokenFileIsRefusedWithItsLineAndNotItsText) {
  for (const char* text : {"[default]\nswordfish\n", "[default\nx=swordfish\n", "swordfish=1\n",
                           "[default]\n  swordfish=1\n"}) {
    folder_.write("credentials", text);
    EXPECT_THAT(error_of(""), AllOf(HasSubstr("/credentials: line "), Not(HasSubstr("swordfish"))))
        << text;
  }
}

TEST_F(AwsSettingsTest, KeysAreLookedForInTheOrderOfAwsTools) {
  EXPECT_THAT(source_of(), HasSubstr("the instance's role"));
  setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/role", 1);
  EXPECT_THAT(source_of(), HasSubstr("container"));
  folder_.write("config", "[default]\naws_access_key_id=A\naws_secret_access_key=B\n[profile p]\n");
  EXPECT_EQ(source_of(), "the profile 'default'");
  setenv("AWS_ACCESS_KEY_ID", "E", 1);
  EXPECT_EQ(source_of(), "the environment");
  EXPECT_EQ(source_of("default"), "the profile 'default'");
  EXPECT_THAT(error_of("p"), HasSubstr("no aws_access_key_id"));
}

TEST_F(AwsSettingsTest, WhatIsNotSupportedIsRefused) {
  folder_.write("config", "[default]\ncredential_process = make-keys\n");
  EXPECT_THAT(error_of(""),
              AllOf(HasSubstr("credential_process"), HasSubstr("export-credentials")));
  folder_.write("config", "[profile sso]\nsso_session = s\n");
  EXPECT_THAT(error_of("sso"), HasSubstr("sso_session"));
  setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/token", 1);
  EXPECT_THAT(error_of(""), HasSubstr("AWS_WEB_IDENTITY_TOKEN_FILE"));
  unsetenv("AWS_WEB_IDENTITY_TOKEN_FILE");
  setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
  EXPECT_THAT(error_of(""), AllOf(HasSubstr("no keys"), HasSubstr("anonymously")));
  setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://10.0.0.1/role", 1);
  EXPECT_THAT(error_of(""), HasSubstr("not this machine"));
  for (const char* near : {"http://127.0.0.1:9/role", "http://[::1]:9/role", "https://10.0.0.1/"}) {
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", near, 1);
    EXPECT_THAT(source_of(), HasSubstr("container")) << near;
  }
}

TEST(Credentials, AreDueBeforeTheyExpireAndNotMoreOftenThanEveryHalfMinute) {
  using std::chrono::minutes;
  using std::chrono::seconds;
  const std::chrono::sys_seconds now{seconds(1'800'000'000)};
  EXPECT_FALSE(keys_are_due({}, {}, now));
  EXPECT_FALSE(keys_are_due(now + minutes(11), now - minutes(5), now));
  EXPECT_TRUE(keys_are_due(now + minutes(9), now - minutes(5), now));
  EXPECT_TRUE(keys_are_due(now + minutes(9), now - seconds(31), now));
  EXPECT_FALSE(keys_are_due(now + minutes(9), now - seconds(29), now));
  EXPECT_TRUE(keys_are_due(now - minutes(1), now - minutes(5), now));
}

}  // namespace
}  // namespace stoker
