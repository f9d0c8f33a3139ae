#include "pipeline/source/sample_checker.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "pipeline/files/printable_name.h"

namespace stoker {
namespace {

// Larger images are decoded by scan lines into a small picture, so that a worker's memory stays
// small for any file.
constexpr int64_t kWholePixels = 16'000'000;
constexpr int kSmallSide = 256;

}  // namespace

bool SampleChecker::is_unreadable(SampleId id, std::span<const uint8_t>& bytes, Finding& finding) {
  const ReadStatus read = source_.read(id, buffer_, bytes);
  if (!read.ok) finding = {id, "unreadable", -1, read.message};
  return !read.ok;
}

bool SampleChecker::is_damaged(SampleId id, std::span<const uint8_t> bytes, Finding& finding) {
  const DecodeStatus status = decode_whole(bytes);
  if (!status.ok()) finding = {id, to_string(status.code), status.byte_offset, status.message};
  return !status.ok();
}

bool SampleChecker::is_bad(SampleId id, Finding& finding) {
  std::span<const uint8_t> bytes;
  if (is_unreadable(id, bytes, finding)) return true;
  return source_.encoding() == SampleEncoding::image_file && is_damaged(id, bytes, finding);
}

DecodeStatus SampleChecker::decode_whole(std::span<const uint8_t> bytes) {
  ImageInfo info;
  DecodeStatus status = decoder_.info(bytes, info);
  if (!status.ok()) return status;
  const auto [width, height] = info.size;
  Size out = info.size;
  if (int64_t{width} * height > kWholePixels) {
    out = {std::min(width, kSmallSide), std::min(height, kSmallSide)};
  }
  pixels_.resize(static_cast<size_t>(out.width) * out.height * 3);
  const CropSpec whole{{0, 0, width, height}, out, {0, 0, out.width, out.height}};
  return decoder_.decode(bytes, whole,
                         {pixels_.data(), out.width, out.height, ptrdiff_t{3} * out.width});
}

namespace {

std::string finding_path(const Source& source, const std::string& name) {
  // A list may name its files by absolute paths.
  if (source.root().empty() || name.starts_with('/')) return name;
  return valid_text(source.root()) + "/" + name;
}

}  // namespace

nlohmann::ordered_json to_json(const Source& source, const Finding& finding) {
  const std::string name = source.name(finding.id);
  return {{"sample_id", finding.id},
          {"name", name},
          {"path", finding_path(source, name)},
          {"label", source.label(finding.id)},
          {"reason", finding.reason},
          {"byte_offset", finding.byte_offset},
          {"message", finding.message}};
}

nlohmann::ordered_json to_json(const Source& source, const SourceNote& note) {
  return {{"reason", note.reason},
          {"files", note.files},
          {"name", note.name},
          {"path", finding_path(source, note.name)},
          {"message", note.message}};
}

std::string to_jsonl(const nlohmann::ordered_json& row) {
  // Names and messages may have bytes that are not UTF-8, which JSON cannot represent.
  return row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string to_jsonl(const Source& source, const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += to_jsonl(to_json(source, finding));
  return text;
}

}  // namespace stoker
