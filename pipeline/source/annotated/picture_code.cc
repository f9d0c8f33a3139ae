#include "pipeline/source/annotated/picture_code.h"

#include <stdexcept>

#include "pipeline/files/durable_file.h"
#include "pipeline/source/annotated/annotation_code.h"
#include "pipeline/source/annotated/check_annotations.h"

namespace stoker {
namespace {

std::string read_label_file(const std::string& path, Annotations& out) {
  try {
    const std::string bytes = read_whole_file(path);
    out.label_buffer.assign(bytes.begin(), bytes.end());
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  out.label_file = out.label_buffer;
  return "";
}

// Reads what comes before the objects.
struct PictureHead {
  explicit PictureHead(CodeReader& in)
      : problem(in.get_text()), label_file(in.get_text()), picture_id(in.get_whole()) {
    size.width = static_cast<int>(in.get_whole());
    size.height = static_cast<int>(in.get_whole());
  }
  std::string problem, label_file;
  int64_t picture_id;
  Size size;
};

}  // namespace

void append_picture(const AnnotationInfo& info, const PictureAnnotations& picture,
                    std::string& out) {
  const Annotations& from = *picture.annotations;
  CodeWriter writer(out);
  writer.put_text(picture.problem);
  writer.put_text(picture.label_file);
  writer.put_whole(from.picture_id);
  writer.put_whole(from.size.width);
  writer.put_whole(from.size.height);
  writer.put_count(from.objects.size());
  for (size_t i = 0; i < from.objects.size(); ++i) put_object(info, from, i, writer);
}

std::optional<std::string> read_picture(const AnnotationInfo& info, std::string_view bytes,
                                        const std::string& label_root, Annotations& out) {
  out.clear();
  CodeReader in(bytes);
  auto [problem, label_file, picture_id, size] = PictureHead(in);
  out.picture_id = picture_id;
  out.size = size;
  for (uint64_t left = in.get_length(); left > 0 && in.ok(); --left) get_object(info, in, out);
  if (!in.ok() || !in.at_end()) {
    out.clear();
    return std::nullopt;
  }
  if (problem.empty()) problem = annotation_problem(info, out);
  if (!problem.empty() || label_file.empty()) return problem;
  return read_label_file(label_root.empty() ? label_file : label_root + "/" + label_file, out);
}

Size read_picture_size(std::string_view bytes) {
  CodeReader in(bytes);
  const PictureHead head(in);
  return in.ok() ? head.size : Size{};
}

}  // namespace stoker
