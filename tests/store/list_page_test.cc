// The XML of S3, and lists in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/files/xml.h"
#include "pipeline/store/s3/answers.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string list_error(const std::string& xml) {
  try {
    parse_list_page(xml);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

std::string list(const std::string& inside) {
  return "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3\">" + inside +
         "</ListBucketResult>";
}

TEST(Xml, TextEntitiesAndNames) {
  const XmlElement root = parse_xml(
      "<?xml version='1.0' encoding='UTF-8'?> <s:a b = '>' c=\"d\"> <b/><c >x &lt;&#233;&#x20AC;"
      "&#128512;&amp;&apos;&quot;&gt;</c ></s:a>\n");
  EXPECT_EQ(root.name, "a");
  ASSERT_EQ(root.children.size(), 2U);
  EXPECT_EQ(root.children[0].name, "b");
  EXPECT_EQ(root.child_text("c"), "x <\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80&'\">");
  EXPECT_EQ(root.child_text("d"), "");
}

TEST(Xml, WhatS3DoesNotWriteIsRefused) {
  std::string nested;
  for (int i = 0; i < 100; ++i) nested += "<a>";
  for (const std::string& bad :
       {std::string(), std::string("a"), std::string("<a>"), std::string("<a></b>"),
        std::string("<a></a><b/>"), std::string("<a>&b;</a>"), std::string("<a>&#0;</a>"),
        std::string("<a>&#x110000;</a>"), std::string("<a>&</a>"), std::string("<a b></a>"),
        std::string("<a b=c></a>"), std::string("<a b='></a>"), std::string("<a><![CDATA[x]]></a>"),
        std::string("<a><!-- x --></a>"), std::string("<!DOCTYPE html><html></html>"),
        std::string("<?xml <a></a>"), std::string("<a>&#;</a>"), std::string("<a>&#x;</a>"),
        nested}) {
    EXPECT_THROW(parse_xml(bad), std::runtime_error) << bad;
  }
}

TEST(ListPage, ObjectsFoldersAndTheNextPage) {
  const ListPage page = parse_list_page(
      list("<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
           "<NextContinuationToken>t&amp;/+=</NextContinuationToken>"
           "<Contents><Key>a+b%2B%C3%A9</Key><Size>17</Size><ETag>&quot;e&quot;</ETag></Contents>"
           "<Contents><Key>c</Key><Size>0</Size><ETag>bare</ETag></Contents>"
           "<Contents><Key>d</Key><Size>1</Size>"
           "<LastModified>1994-11-06T08:49:37.000Z</LastModified></Contents>"
           "<CommonPrefixes><Prefix>x+y/</Prefix></CommonPrefixes>"));
  ASSERT_EQ(page.objects.size(), 3U);
  EXPECT_EQ(page.objects[0].key, "a b+\xC3\xA9");
  EXPECT_EQ(page.objects[0].bytes, 17);
  EXPECT_EQ(page.objects[0].version, "\"e\"");
  EXPECT_EQ(page.objects[1].version, "\"bare\"");
  EXPECT_EQ(page.objects[2].version, "modified:Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_THAT(page.folders, ElementsAre("x y/"));
  EXPECT_FALSE(page.is_last);
  EXPECT_EQ(page.next, "t&/+=");
}

TEST(ListPage, KeysAreTakenAsTheyAreWithoutAnEncoding) {
  const ListPage page =
      parse_list_page(list("<Contents><Key>a+%41</Key><Size>1</Size></Contents>"));
  EXPECT_EQ(page.objects[0].key, "a+%41");
  EXPECT_EQ(page.objects[0].version, "unversioned");
  EXPECT_TRUE(page.is_last);
}

TEST(ListPage, WhatIsNoListIsRefused) {
  EXPECT_THAT(list_error("<html><body></body></html>"), HasSubstr("no list of S3"));
  EXPECT_THAT(list_error(list("<Contents><Size>1</Size></Contents>")), HasSubstr("no key"));
  EXPECT_THAT(list_error(list("<Contents><Key>a</Key></Contents>")), HasSubstr("no size"));
  EXPECT_THAT(list_error(list("<Contents><Key>a</Key><Size>-1</Size></Contents>")),
              HasSubstr("no size"));
  EXPECT_THAT(list_error(list("<EncodingType>base64</EncodingType>")), HasSubstr("EncodingType"));
  EXPECT_THAT(list_error(list("<EncodingType>url</EncodingType>"
                              "<Contents><Key>%4</Key><Size>1</Size></Contents>")),
              HasSubstr("percent-encoded"));
  EXPECT_THAT(list_error(list("<IsTruncated>true</IsTruncated>")),
              HasSubstr("NextContinuationToken"));
}

}  // namespace
}  // namespace stoker
