#include "pipeline/source/sample_checker.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/annotated/check_annotations.h"

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
  const bool is_file = source_.encoding() == SampleEncoding::image_file;
  if (is_file && (is_damaged(id, bytes, finding) || is_misannotated(id, bytes, finding))) {
    return true;
  }
  return is_unpaired(id, finding);
}

// Whether one of its further pictures is not there, or damaged.
bool SampleChecker::is_unpaired(SampleId id, Finding& finding) {
  for (size_t i = 0; i < source_.pictures().size(); ++i) {
    const PictureInfo& picture = source_.pictures()[i];
    const std::string which = "picture '" + picture.name + "': ";
    std::span<const uint8_t> bytes;
    const ReadStatus read = source_.read_picture(id, i, MayWait::yes, buffer_, bytes);
    if (!read.ok) finding = {id, "unreadable", -1, which + read.message};
    const bool is_file = picture.encoding == SampleEncoding::image_file;
    const bool is_bad = !read.ok || (is_file && is_damaged(id, bytes, finding));
    if (is_bad && read.ok) finding.message = which + finding.message;
    if (is_bad) return true;
  }
  return false;
}

bool SampleChecker::is_misannotated(SampleId id, std::span<const uint8_t> bytes, Finding& finding) {
  if (!source_.annotations().any()) return false;
  const ReadStatus read = source_.read_annotations(id, bytes, annotations_);
  ImageInfo info;
  decoder_.info(bytes, info);
  const std::string problem = read.ok ? annotation_oddity(info.size) : read.message;
  if (!problem.empty()) finding = {id, "annotation", -1, problem};
  return !problem.empty();
}

std::string SampleChecker::annotation_oddity(Size picture) {
  const auto differs = [&](const char* what, Size size) {
    return std::string(what) + " of " + std::to_string(size.width) + " x " +
           std::to_string(size.height) + " pixels, the picture has " +
           std::to_string(picture.width) + " x " + std::to_string(picture.height);
  };
  if (annotations_.size != Size{} && annotations_.size != picture) {
    return differs("it is of a picture", annotations_.size);
  }
  const AnnotationInfo& info = source_.annotations();
  if (info.label_image) {
    const std::string problem =
        read_label_image(annotations_.label_file, info.label_bytes, max_pixels_, labels_);
    if (!problem.empty()) return "label image: " + problem;
    if (labels_.size != picture) return differs("the label image is", labels_.size);
  }
  return oddity_in_picture(annotations_, picture);
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
