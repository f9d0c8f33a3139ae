// Addresses of stores, as users write them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/store/object_store.h"

namespace stoker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string address_error(const std::string& address) {
  try {
    parse_address(address);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(StoreAddress, IsToldFromAPath) {
  for (const char* address : {"s3://b", "http://h", "https://h/x"}) {
    EXPECT_TRUE(is_store_address(address)) << address;
  }
  for (const char* path : {"", "/data", "s3", "s3:/b", "file:///data", "S3://b", "a/s3://b"}) {
    EXPECT_FALSE(is_store_address(path)) << path;
  }
}

TEST(StoreAddress, KeysOfS3AreTakenAsTheyAre) {
  const StoreAddress address = parse_address("s3://my-bucket/a b%20?c#d//e/");
  EXPECT_EQ(address.kind, StoreAddress::Kind::s3);
  EXPECT_EQ(address.server, "my-bucket");
  EXPECT_EQ(address.key, "a b%20?c#d//e/");
  EXPECT_EQ(address.query, "");
  EXPECT_EQ(parse_address("s3://b").key, "");
  EXPECT_EQ(parse_address("s3://b/").key, "");
}

TEST(StoreAddress, UrlsKeepTheirEncodingAndTheirQuery) {
  const StoreAddress address = parse_address("https://Host:443/a b%2Fc.tar?sig=x/y&z");
  EXPECT_EQ(address.kind, StoreAddress::Kind::http);
  EXPECT_EQ(address.server, "https://host");
  EXPECT_EQ(address.key, "/a%20b%2Fc.tar");
  EXPECT_EQ(address.query, "sig=x/y&z");
  EXPECT_EQ(parse_address("http://h:80").key, "/");
}

TEST(StoreAddress, IsShownWithoutWhatMayBeASecret) {
  for (const char* same : {"/data/a?b#c@d", "a:b", "s3://bucket/train-?@{0..9}#.tar", "http://h/x",
                           "https://h:8/a@b/c.tar"}) {
    EXPECT_EQ(shown_path(same), same);
    EXPECT_EQ(shown_word(same), same);
  }
  EXPECT_EQ(shown_path("https://h/x.tar?sig=k"), "https://h/x.tar");
  EXPECT_EQ(shown_path("http://me:key@h/x{0..3}.tar?sig=k"), "http://...@h/x{0..3}.tar");
  EXPECT_EQ(shown_path("http://me:k/ey@h/x.tar"), "http://...@h/x.tar");
  EXPECT_EQ(shown_path("s3://AK:k/ey@bucket/x"), "s3://...@bucket/x");
  EXPECT_EQ(shown_path("HTTPS://h/x?sig=k"), "HTTPS://h/x");
  EXPECT_EQ(shown_word("--data=https://h/x.tar?sig=k"), "--data=https://h/x.tar?...");
  EXPECT_EQ(shown_word("https://h/x.tar?a=http://k"), "https://h/x.tar?...");
  EXPECT_EQ(shown_word("--store-endpoint=http://me:k=y@h"), "--store-endpoint=http://...@h");
}

TEST(StoreAddress, WhereAnObjectIsHasItsQuery) {
  EXPECT_EQ(target_of(parse_address("https://h/a b.tar?sig=k")), "/a%20b.tar?sig=k");
  EXPECT_EQ(target_of(parse_address("https://h/a.tar")), "/a.tar");
}

TEST(StoreAddress, WrongOnesAreRefusedWithAnExample) {
  EXPECT_THAT(address_error("/data"), HasSubstr("s3://bucket/train/"));
  EXPECT_THAT(address_error("s3://"), HasSubstr("no bucket"));
  EXPECT_THAT(address_error("s3:///key"), HasSubstr("no bucket"));
  EXPECT_THAT(address_error("s3://../key"), HasSubstr("bucket's name"));
  EXPECT_THAT(address_error("s3://arn:aws:s3:x/key"), HasSubstr("access points"));
  EXPECT_THAT(address_error("s3://b/" + std::string(1025, 'k')), HasSubstr("1024"));
  EXPECT_EQ(address_error("s3://b/" + std::string(1024, 'k')), "no error");
  EXPECT_THAT(address_error("https://h/a#b"), HasSubstr("%23"));
  EXPECT_THAT(address_error("https:///a"), HasSubstr("https://host/data"));
}

TEST(StoreAddress, ErrorsShowNoSecret) {
  EXPECT_THAT(address_error("https://user:hunter2@h/a?sig=swordfish"),
              AllOf(HasSubstr("password"), Not(HasSubstr("hunter2")), Not(HasSubstr("swordfish"))));
  EXPECT_THAT(address_error("https://h:x/a?sig=swordfish"),
              AllOf(HasSubstr("port"), Not(HasSubstr("swordfish"))));
  EXPECT_THAT(address_error("https://h/a?sig=swordfish#"), Not(HasSubstr("swordfish")));
  EXPECT_THAT(address_error("s3://AKID:sword/fish@bucket/x"),
              AllOf(HasSubstr("bucket/x"), Not(HasSubstr("sword")), Not(HasSubstr("AKID"))));
}

}  // namespace
}  // namespace stoker
