#include "pipeline/source/annotated/voc.h"

#include <gtest/gtest.h>

#include "tests/support/same_annotations.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

std::string voc_object(const std::string& name, const std::string& more = "") {
  return "<object><name>" + name + "</name><pose>Left</pose><truncated>1</truncated>" + more +
         "<bndbox><xmin>8</xmin><ymin>12.5</ymin><xmax> 352 </xmax><ymax>498</ymax></bndbox>"
         "<part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax>"
         "<ymax>2</ymax></bndbox></part></object>";
}

std::string voc_file(const std::string& objects) {
  return "<?xml version=\"1.0\"?>\n<annotation verified=\"yes\"><filename>1.jpg</filename>"
         "<size><width>353</width><height>500</height><depth>3</depth></size>" +
         objects + "</annotation>";
}

std::string voc_picture(const std::string& xml) {
  VocReader reader;
  reader.add("1", xml);
  Annotations found;
  const std::string problem = reader.finish().finish()->read(0, found);
  return problem.empty() ? describe(found) : problem;
}

TEST(Voc, ReadsFilesOfAFolder) {
  const TempFolder folder;
  folder.write("2008_1.xml", voc_file(voc_object("dog", "<difficult>1</difficult>") +
                                      voc_object("aeroplane", "<difficult>0</difficult>")));
  folder.write("more/2007_2.xml", voc_file(""));
  folder.write("else.txt", "x");
  const SharedAnnotations set = open_voc(folder.path());
  ASSERT_EQ(set->pictures(), 2);
  EXPECT_EQ(set->name(0), "2008_1");
  EXPECT_EQ(set->name(1), "more/2007_2");
  ASSERT_EQ(set->info().class_names.size(), 21);
  EXPECT_EQ(set->info().class_names[1], "aeroplane");
  EXPECT_EQ(set->info().class_names[20], "tvmonitor");
  Annotations found;
  EXPECT_EQ(set->read(0, found), "");
  EXPECT_EQ(describe(found),
            "353x500\n"
            "0: id 0 class 12 crowd box 8 12.5 352 498 area 167012\n"
            "1: id 1 class 1 box 8 12.5 352 498 area 167012\n");
  EXPECT_EQ(set->read(1, found), "");
  EXPECT_EQ(describe(found), "353x500\n");
}

TEST(Voc, OtherClassesAreSorted) {
  VocReader reader;
  reader.add("1", voc_file(voc_object("person") + voc_object("helmet")));
  reader.add("2", voc_file(voc_object("hat &amp; coat")));
  const SharedAnnotations set = reader.finish().finish();
  EXPECT_EQ(set->info().class_names,
            (std::vector<std::string>{"", "hat & coat", "helmet", "person"}));
  Annotations found;
  EXPECT_EQ(set->read(0, found), "");
  EXPECT_EQ(found.objects[0].label, 3);
  EXPECT_EQ(found.objects[1].label, 2);
}

TEST(Voc, SaysWhatIsWrong) {
  EXPECT_EQ(voc_picture("<annotation>"),
            "no XML as it is read here: the text ends inside of an element (byte 12 of 12)");
  EXPECT_EQ(voc_picture("<a></a>"), "no element <annotation>");
  EXPECT_EQ(voc_picture(voc_file("<object><name>dog</name></object>")),
            "object 0 (id 0): no bndbox");
  EXPECT_EQ(voc_picture(voc_file(voc_object("dog") + voc_object(" "))), "object 1 (id 1): no name");
  EXPECT_EQ(
      voc_picture(voc_file("<object><name>dog</name><bndbox><xmin>x</xmin></bndbox></object>")),
      "object 0 (id 0): xmin is 'x', and no number");
  EXPECT_EQ(voc_picture(voc_file("<object><name>dog</name><bndbox><xmin>5</xmin><ymin>1</ymin>"
                                 "<xmax>4</xmax><ymax>2</ymax></bndbox></object>")),
            "object 0 (id 0): the box has a negative width: (5, 1, 4, 2)");
  EXPECT_EQ(voc_picture("<annotation><size><width>-4</width></size></annotation>"),
            "width is '-4'");
}

}  // namespace
}  // namespace stoker
