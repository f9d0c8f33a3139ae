// A reader of simple XML, as S3 answers with it and VOC's files are: elements, text, the five named
// entities and numbered ones. Attributes are skipped. It refuses the rest: document types, CDATA,
// comments, processing instructions behind the first line, anything that is not closed. Threads:
// any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker {

struct XmlElement {
  std::string name;  // without the prefix of a name space
  std::string text;  // of this element itself, without its children's; only if it has none
  std::vector<XmlElement> children;

  // Returns the text of the first child of this name, "" if there is none.
  const std::string& child_text(std::string_view child) const;
};

// Returns the root element. Throws std::runtime_error with the reason and the place in bytes.
XmlElement parse_xml(std::string_view text);

}  // namespace stoker
