// The judgement of answers to ranges, without a server.
#include "pipeline/store/range_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

using Headers = std::vector<std::pair<std::string, std::string>>;

HttpAnswer answer_of(int status, Headers headers, int64_t received) {
  return {.status = status, .complete = true, .headers = std::move(headers), .received = received};
}

const StoredObject kObject = {.key = "k", .bytes = 1000, .version = "\"v\""};

AnswerKind kind_of(const HttpAnswer& answer, const StoredObject& object = kObject) {
  return judge_range("s3://b/k", object, 10, 50, answer).kind;
}

TEST(RangeAnswer, AsksForThisVersionOnly) {
  HttpRequest request;
  ask_for_range(kObject, 10, 50, request);
  EXPECT_THAT(request.headers,
              ElementsAre(Pair("Range", "bytes=10-59"), Pair("If-Match", "\"v\"")));
  EXPECT_EQ(request.skip_if_whole, 10);
  request.headers.clear();
  ask_for_range({.key = "k", .bytes = 9, .version = "modified:T"}, 0, 1, request);
  EXPECT_THAT(request.headers,
              ElementsAre(Pair("Range", "bytes=0-0"), Pair("If-Unmodified-Since", "T")));
  request.headers.clear();
  ask_for_range({.key = "k", .bytes = 9, .version = "W/\"v\""}, 0, 1, request);
  EXPECT_THAT(request.headers, ElementsAre(Pair("Range", "bytes=0-0")));
}

TEST(RangeAnswer, VersionsOfHeaders) {
  EXPECT_EQ(version_of("\"v\"", "T"), "\"v\"");
  EXPECT_EQ(version_of("v", "T"), "\"v\"");
  EXPECT_EQ(version_of("W/\"v\"", "T"), "modified:T");
  EXPECT_EQ(version_of("W/\"v\"", ""), "W/\"v\"");
  EXPECT_EQ(version_of("", "T"), "modified:T");
  EXPECT_EQ(version_of("", ""), "unversioned");
}

TEST(RangeAnswer, WhatIsComplete) {
  EXPECT_EQ(kind_of(answer_of(206, {{"content-range", "bytes 10-59/1000"}, {"etag", "\"v\""}}, 50)),
            AnswerKind::fine);
  EXPECT_EQ(kind_of(answer_of(206, {{"content-range", "bytes 10-59/*"}}, 50)), AnswerKind::fine);
  // All of it, and a part with the wrong status.
  EXPECT_EQ(kind_of(answer_of(200, {{"content-length", "1000"}}, 50)), AnswerKind::fine);
  EXPECT_EQ(kind_of(answer_of(
                200, {{"content-length", "50"}, {"content-range", "bytes 10-59/1000"}}, 50)),
            AnswerKind::fine);
}

TEST(RangeAnswer, WhatIsTriedAgain) {
  EXPECT_EQ(kind_of(answer_of(206, {{"content-range", "bytes 10-59/1000"}}, 49)),
            AnswerKind::again);
  EXPECT_EQ(kind_of(answer_of(206, {{"content-range", "bytes 11-60/1000"}}, 50)),
            AnswerKind::again);
  EXPECT_EQ(kind_of(answer_of(206, {{"content-range", "bytes 10-590/1000"}}, 50)),
            AnswerKind::again);
  EXPECT_EQ(kind_of(answer_of(206, {}, 50)), AnswerKind::again);
  HttpAnswer cut = answer_of(206, {{"content-range", "bytes 10-59/1000"}}, 50);
  cut.complete = false;
  EXPECT_EQ(kind_of(cut), AnswerKind::again);
  // Another length with the same ETag, and nothing of an object that has bytes.
  const Judgement longer =
      judge_range("s3://b/k", kObject, 10, 50,
                  answer_of(206, {{"content-range", "bytes 10-59/1001"}, {"etag", "\"v\""}}, 50));
  EXPECT_EQ(longer.kind, AnswerKind::again);
  EXPECT_THAT(longer.problem, HasSubstr("1001 bytes now, and had 1000"));
  EXPECT_EQ(kind_of(answer_of(200, {{"content-length", "0"}}, 0)), AnswerKind::again);
}

TEST(RangeAnswer, WhatHasChanged) {
  const Judgement other =
      judge_range("s3://b/k", kObject, 10, 50,
                  answer_of(206, {{"content-range", "bytes 10-59/1000"}, {"etag", "\"w\""}}, 50));
  EXPECT_EQ(other.kind, AnswerKind::changed);
  EXPECT_THAT(other.problem, HasSubstr("s3://b/k was changed"));
  EXPECT_EQ(kind_of(answer_of(206, {{"content-range", "bytes 10-59/1001"}}, 50)),
            AnswerKind::changed);
  EXPECT_EQ(kind_of(answer_of(200, {{"content-length", "999"}}, 50)), AnswerKind::changed);
  // A file may be written twice within a second, and a server may know nothing of versions.
  for (const std::string version : {"modified:T", "unversioned"}) {
    const StoredObject written = {.key = "k", .bytes = 1000, .version = version};
    EXPECT_EQ(
        kind_of(answer_of(206, {{"content-range", "bytes 10-59/1001"}, {"last-modified", "T"}}, 50),
                written),
        AnswerKind::changed);
    EXPECT_EQ(kind_of(answer_of(200, {{"content-length", "0"}}, 0), written), AnswerKind::changed);
  }
  const StoredObject timed = {.key = "k", .bytes = 1000, .version = "modified:T"};
  EXPECT_EQ(
      kind_of(answer_of(206, {{"content-range", "bytes 10-59/1000"}, {"last-modified", "U"}}, 50),
              timed),
      AnswerKind::changed);
  // An ETag says nothing to who knows the time only.
  EXPECT_EQ(kind_of(answer_of(206, {{"content-range", "bytes 10-59/1000"}, {"etag", "\"w\""}}, 50),
                    timed),
            AnswerKind::fine);
}

TEST(RangeAnswer, WhatAnObjectIs) {
  StoredObject object;
  EXPECT_TRUE(
      describe_object(answer_of(200, {{"content-length", "7"}, {"etag", "\"v\""}}, 0), object));
  EXPECT_EQ(object.bytes, 7);
  EXPECT_TRUE(describe_object(
      answer_of(206, {{"content-length", "1"}, {"content-range", "bytes 0-0/7000000000"}}, 1),
      object));
  EXPECT_EQ(object.bytes, 7'000'000'000);
  EXPECT_TRUE(describe_object(answer_of(416, {{"content-range", "bytes */0"}}, 0), object));
  EXPECT_EQ(object.bytes, 0);
  EXPECT_FALSE(describe_object(answer_of(200, {}, 0), object));
  EXPECT_FALSE(describe_object(answer_of(206, {{"content-range", "bytes 0-0/*"}}, 1), object));
  EXPECT_FALSE(describe_object(answer_of(200, {{"content-length", "-5"}}, 0), object));
}

}  // namespace
}  // namespace stoker
