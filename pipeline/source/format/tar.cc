#include "pipeline/source/format/tar.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/files/digest.h"
#include "pipeline/source/format/known_names.h"
#include "pipeline/source/format/tar_objects.h"
#include "pipeline/source/format/tar_reader.h"
#include "pipeline/source/format/tar_targets.h"
#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

enum class TarLabel : uint8_t { by_itself, cls, txt, json, folder, none };

TarLabel label_kind(const BlobReader& blob, const FieldChoice& fields) {
  const std::string& choice = fields.label;
  if (choice.empty()) return TarLabel::by_itself;
  if (choice == "cls") return TarLabel::cls;
  if (choice == "txt") return TarLabel::txt;
  if (choice == "folder") return TarLabel::folder;
  if (fields.no_labels()) return TarLabel::none;
  if (choice.starts_with(kJsonPrefix) && choice.size() > kJsonPrefix.size()) return TarLabel::json;
  blob.fail(0, "a tar has no label field " + quoted_name(choice) +
                   ": `label_from` takes cls, txt, json:FIELD, folder or none");
}

// Returns the extension of the members that labels of this kind are read from, or "".
std::string_view label_extension(TarLabel kind) {
  if (kind == TarLabel::cls || kind == TarLabel::by_itself) return "cls";
  if (kind == TarLabel::txt) return "txt";
  if (kind == TarLabel::json) return "json";
  return "";
}

// Returns whether one of the parts of a path is "..".
bool goes_up(std::string_view path) {
  for (size_t at = path.find(".."); at != std::string_view::npos; at = path.find("..", at + 1)) {
    const bool begins = at == 0 || path[at - 1] == '/';
    if (begins && (at + 2 == path.size() || path[at + 2] == '/')) return true;
  }
  return false;
}

// Returns a path without "./" at its start. A slash more (".//a") must not make it absolute.
std::string_view without_dot(std::string_view path) {
  while (path.starts_with("./")) {
    path.remove_prefix(std::min(path.find_first_not_of('/', 1), path.size()));
  }
  return path;
}

// Returns the name of the folder that something is in, or "".
std::string_view folder_in(std::string_view path) {
  const size_t end = path.rfind('/');
  if (end == std::string_view::npos) return {};
  const std::string_view folders = path.substr(0, end);
  return folders.substr(folders.rfind('/') + 1);
}

// All keys of a shard, as digests: the keys themselves would need many times the memory.
class KeyList {
 public:
  void add(std::string_view key, int64_t at) { keys_.push_back({text_digest(key), at}); }
  // Throws BlobError for the first key that occurs a second time.
  void check(BlobReader& blob);

 private:
  struct Key {
    uint64_t digest;
    int64_t at;  // the header of its first member
  };
  std::vector<Key> keys_;
};

void KeyList::check(BlobReader& blob) {
  std::sort(keys_.begin(), keys_.end(), [](const Key& a, const Key& b) {
    return a.digest != b.digest ? a.digest < b.digest : a.at < b.at;
  });
  const Key* again = nullptr;
  for (size_t i = 1; i < keys_.size(); ++i) {
    const bool same = keys_[i].digest == keys_[i - 1].digest;
    if (same && (again == nullptr || keys_[i].at < again->at)) again = &keys_[i];
  }
  if (again == nullptr) return;
  // The names are in the file. A long one is in a header before this one, and is shown cut.
  const auto name = blob.read(again->at, 100, "a name");
  std::string_view text(reinterpret_cast<const char*>(name.data()), name.size());
  text = text.substr(0, text.find('\0'));
  blob.fail(again->at, "the key of " + quoted_name(text) + " is already at byte " +
                           std::to_string((again - 1)->at) +
                           ": the members of a sample must follow each other, and a key must not "
                           "occur twice");
}

std::vector<std::string> all_lower_case(std::vector<std::string> texts) {
  for (std::string& text : texts) text = lower_case(text);
  return texts;
}

class TarScan {
 public:
  TarScan(BlobReader& blob, const FieldChoice& fields, SampleSink& out)
      : blob_(blob),
        image_(lower_case(fields.image)),
        out_(out),
        label_kind_(label_kind(blob, fields)),
        json_field_(label_kind_ == TarLabel::json ? fields.label.substr(kJsonPrefix.size()) : ""),
        targets_(blob, fields),
        objects_(blob, fields.objects),
        other_images_(all_lower_case(fields.other_images)) {}

  void run() {
    TarReader reader(blob_);
    TarMember member;
    while (reader.next(member)) take(member);
    finish_key();
    keys_.check(blob_);
    if (samples_ > 0) objects_.finish_all(first_extensions_);
    if (samples_ > 0 || first_extensions_.empty()) return;
    blob_.fail(0,
               "no key has an image (" +
                   (image_.empty() ? "jpg, jpeg, png, webp, bmp, tif, tiff" : quoted_name(image_)) +
                   "); the first key has " + first_extensions_ +
                   ": say which is the image with `image_from`, an extension");
  }

 private:
  // A member of the current key that is used.
  struct Part {
    bool found = false;
    std::string name;
    int64_t data_at = 0, size = 0;
  };

  void take(const TarMember& member);
  void check_name(const TarMember& member) const;
  bool is_image(std::string_view extension) const;
  void begin_key(std::string_view key, int64_t header_at);
  void take_part(const TarMember& member, std::string_view name, const std::string& extension);
  void set(Part& part, const TarMember& member, std::string_view name);
  void read_label(const TarMember& member);
  void note_extension(const std::string& extension);
  void finish_key();
  void choose_label();
  BlobLabel label();
  [[noreturn]] void fail_label(const std::string& reason) const;
  std::string set_from_content(BlobLabel& label);
  std::string set_from_json(BlobLabel& label);

  BlobReader& blob_;
  const std::string image_;  // "": any that is_shard_image_extension() knows
  SampleSink& out_;
  TarLabel label_kind_;
  const std::string json_field_;
  TarTargets targets_;
  TarObjects objects_;
  const std::vector<std::string> other_images_;  // extensions that no image has
  KeyList keys_;
  int64_t samples_ = 0;
  // Extensions of the current key and of the first one, for messages: ".cls, .jpg".
  std::string extensions_, first_extensions_;
  // The current key: "" before the first.
  std::string key_;
  int64_t key_at_ = 0;
  Part image_part_, label_part_;
  std::string label_text_;  // the content of label_part_
  nlohmann::json json_;     // holds the text of a label
};

void TarScan::take(const TarMember& member) {
  check_name(member);
  const std::string_view name = without_dot(member.name);
  const size_t base_at = name.rfind('/') + 1;
  const std::string_view base = name.substr(base_at);
  if (member.type == '5' || base.empty()) return;
  if (base.starts_with('.') || base.starts_with("__")) return;
  if (member.type == '1' || member.type == '2') return out_.leave_out("a link", name);
  if (member.type != '0' && member.type != '\0' && member.type != '7') {
    return out_.leave_out("not a file", name);
  }
  const size_t dot = base.find('.');
  if (dot == std::string_view::npos) return out_.leave_out("a name without an extension", name);
  const std::string_view key = name.substr(0, base_at + dot);
  if (key != key_) {
    finish_key();
    begin_key(key, member.header_at);
  }
  take_part(member, name, lower_case(base.substr(dot + 1)));
}

void TarScan::check_name(const TarMember& member) const {
  if (member.name[0] == '/') {
    blob_.fail(member.header_at, "an absolute name: " + quoted_name(member.name));
  }
  if (goes_up(member.name)) {
    blob_.fail(member.header_at, "a name that leaves its folder: " + quoted_name(member.name));
  }
}

void TarScan::begin_key(std::string_view key, int64_t header_at) {
  key_ = key;
  key_at_ = header_at;
  image_part_.found = label_part_.found = false;
  targets_.begin_key();
  objects_.begin_key();
  extensions_.clear();
}

bool TarScan::is_image(std::string_view extension) const {
  if (!image_.empty()) return extension == image_;
  if (std::ranges::find(other_images_, extension) != other_images_.end()) return false;
  return is_shard_image_extension(std::string(".").append(extension));
}

void TarScan::take_part(const TarMember& member, std::string_view name,
                        const std::string& extension) {
  if (samples_ == 0) note_extension(extension);
  if (is_image(extension)) set(image_part_, member, name);
  targets_.take(member, name, extension);
  objects_.take(member, name, extension);
  const std::string_view wanted = label_extension(label_kind_);
  if (wanted.empty() || extension != wanted) return;
  set(label_part_, member, name);
  read_label(member);
}

void TarScan::note_extension(const std::string& extension) {
  constexpr size_t kEnough = 200;
  if (extensions_.size() > kEnough) return;
  extensions_ += (extensions_.empty() ? "" : ", ") + quoted_name("." + extension);
}

void TarScan::set(Part& part, const TarMember& member, std::string_view name) {
  if (part.found) {
    const std::string both = quoted_name(part.name) + " and " + quoted_name(name);
    const bool may_choose = &part == &image_part_ && image_.empty();
    blob_.fail(member.header_at,
               may_choose ? both + " are two images of one key: say which with `image_from`"
                          : both + " are one key's, and have one extension");
  }
  part.found = true;
  part.name = name;
  part.data_at = member.data_at;
  part.size = member.size;
}

// The label is read where it stands, not when its key ends: by then a shard in which it comes
// before the image would have to go back for it.
void TarScan::read_label(const TarMember& member) {
  if (member.size > kLongestText) {
    blob_.fail(member.header_at, "the label " + quoted_name(label_part_.name) + " has " +
                                     std::to_string(member.size) + " bytes; at most " +
                                     std::to_string(kLongestText));
  }
  const auto bytes = blob_.read(member.data_at, member.size, "a label");
  label_text_.assign(bytes.begin(), bytes.end());
}

void TarScan::finish_key() {
  if (key_.empty()) return;
  keys_.add(key_, key_at_);
  if (first_extensions_.empty()) first_extensions_ = extensions_;
  if (!image_part_.found) return out_.leave_out("a key without an image", key_);
  if (label_kind_ == TarLabel::by_itself) choose_label();
  FoundSample sample;
  sample.offset = image_part_.data_at;
  sample.length = image_part_.size;
  sample.name = image_part_.name;
  sample.label = label();
  sample.targets = targets_.finish(image_part_.name, key_at_);
  sample.objects = objects_.finish();
  out_.add(sample);
  ++samples_;
}

// The first sample decides for all of the shard.
void TarScan::choose_label() {
  if (label_part_.found) {
    label_kind_ = TarLabel::cls;
  } else if (!folder_in(key_).empty()) {
    label_kind_ = TarLabel::folder;
  } else {
    blob_.fail(key_at_, "the first sample, " + quoted_name(image_part_.name) +
                            ", has no .cls and is in no folder; it has " + extensions_ +
                            ": say what the label is with `label_from`: cls, txt, json:FIELD, "
                            "folder or none");
  }
}

BlobLabel TarScan::label() {
  BlobLabel label;
  if (label_kind_ == TarLabel::none) return label;
  if (label_kind_ == TarLabel::folder) {
    label = folder_in(key_);
    if (folder_in(key_).empty()) fail_label("it is in no folder");
    return label;
  }
  if (!label_part_.found) {
    fail_label("its key has no ." + std::string(label_extension(label_kind_)));
  }
  const std::string problem = set_from_content(label);
  if (!problem.empty()) {
    blob_.fail(label_part_.data_at,
               "the label in " + quoted_name(label_part_.name) + " " + problem);
  }
  return label;
}

void TarScan::fail_label(const std::string& reason) const {
  blob_.fail(key_at_, quoted_name(image_part_.name) + " has no label: " + reason);
}

// Returns "" or what is wrong.
std::string TarScan::set_from_content(BlobLabel& label) {
  if (label_kind_ == TarLabel::json) return set_from_json(label);
  const std::string_view text = trimmed(label_text_);
  const auto number = label_kind_ == TarLabel::cls ? parse_integer(text) : std::nullopt;
  if (!number) return set_text_label(text, label);
  label = *number;
  return "";
}

std::string TarScan::set_from_json(BlobLabel& label) {
  json_ = nlohmann::json::parse(label_text_, nullptr, false);
  if (json_.is_discarded()) return "cannot be read: that is no JSON";
  const nlohmann::json* const value = find_json_field(json_, json_field_);
  if (value == nullptr) return "is not there: no field " + quoted_name(json_field_);
  return set_json_label(*value, label);
}

}  // namespace

void scan_tar(BlobReader& blob, const FieldChoice& fields, SampleSink& out) {
  TarScan(blob, fields, out).run();
}

}  // namespace stoker
