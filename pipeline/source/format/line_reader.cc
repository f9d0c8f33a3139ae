#include "pipeline/source/format/line_reader.h"

#include <algorithm>

#include "pipeline/source/format/text_value.h"

namespace stoker {
LineReader::LineReader(BlobReader& blob, LineQuotes quotes) : blob_(blob), quotes_(quotes) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (blob.size() == 0) blob.fail(0, "the file is empty");
  const auto start = blob.read(0, std::min(blob.size(), std::ssize(kMark)), "the start");
  if (as_text(start) == kMark) next_at_ = std::ssize(kMark);
}

bool LineReader::next(std::string_view& line) {
  if (next_at_ >= blob_.size()) return false;
  at_ = next_at_;
  number_ = next_number_;
  bool open = false;
  const int64_t end = find_line(line, open);
  const int64_t rest = blob_.size() - at_;
  const bool is_whole = end < std::ssize(line) || end == rest;
  line = line.substr(0, static_cast<size_t>(end));
  next_number_ = number_ + 1 + std::count(line.begin(), line.end(), '\n');
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (!is_whole || std::ssize(line) > kLongestText) {
    fail("more than " + std::to_string(kLongestText) + " bytes" +
         (open ? "; is there a quote that is not closed?" : ""));
  }
  if (open) fail("a quote is not closed");
  next_at_ = at_ + std::min(end + 1, rest);
  return true;
}

// Sets `text` to a piece of the blob from at_ on, large enough for the line unless that is too
// long, and returns where the line ends in it.
int64_t LineReader::find_line(std::string_view& text, bool& open) {
  constexpr int64_t kFirstPiece = 4 << 10, kLargestLinePiece = kLongestText + 2;
  const int64_t most = std::min(kLargestLinePiece, blob_.size() - at_);
  for (int64_t wanted = kFirstPiece;; wanted *= 2) {
    text = as_text(blob_.read(at_, std::min(wanted, most), "a line"));
    const size_t end = std::min(find_end(text, open), text.size());
    if (end < text.size() || std::ssize(text) == most) return static_cast<int64_t>(end);
  }
}

// Returns where the line at the start of `text` ends, or npos; then `open` says whether a field in
// quotes goes on.
size_t LineReader::find_end(std::string_view text, bool& open) const {
  if (quotes_ == LineQuotes::none) return text.find('\n');
  bool in_quoted_field = false, at_field = true;
  open = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      in_quoted_field = in_quoted_field || at_field;
      // A doubled quote closes the field and opens it again.
      if (in_quoted_field) open = !open;
    } else if (!open && text[i] == '\n') {
      return i;
    } else if (!open && text[i] == ',') {
      in_quoted_field = false;
    }
    at_field = !open && text[i] == ',';
  }
  return std::string_view::npos;
}

void LineReader::fail(const std::string& reason) const {
  blob_.fail(at_, "line " + std::to_string(number_) + ": " + reason);
}

}  // namespace stoker
