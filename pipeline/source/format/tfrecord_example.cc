#include "pipeline/source/format/tfrecord_example.h"

#include <algorithm>

#include "pipeline/source/format/number_bytes.h"
#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

using Bytes = std::span<const uint8_t>;

// ---- Protobuf's wire format

enum class WireType : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct WireField {
  uint64_t number = 0;
  WireType type = WireType::varint;
  uint64_t value = 0;  // of a varint
  Bytes bytes;         // of bytes and fixed32

  bool is_bytes(uint64_t of) const { return number == of && type == WireType::bytes; }
};

// Goes through the fields of one message.
class MessageReader {
 public:
  MessageReader(const ExampleRecord& record, Bytes message) : record_(record), rest_(message) {}

  bool at_end() const { return rest_.empty(); }

  uint64_t varint() {
    const uint8_t* const begin = rest_.data();
    uint64_t value = 0;
    for (size_t i = 0; i < rest_.size() && i < 10; ++i) {
      value |= uint64_t{rest_[i] & 0x7fu} << (7 * i);
      if (rest_[i] < 0x80) {
        rest_ = rest_.subspan(i + 1);
        return value;
      }
    }
    fail(begin, rest_.size() < 10 ? "a number is cut" : "a number has more than 10 bytes");
  }

  WireField next() {
    const uint8_t* const begin = rest_.data();
    const uint64_t tag = varint();
    WireField field{tag >> 3, static_cast<WireType>(tag & 7), 0, {}};
    if (field.number == 0) fail(begin, "a field has the number 0");
    switch (field.type) {
      case WireType::varint:
        field.value = varint();
        return field;
      case WireType::fixed64:
        take(8, begin);
        return field;
      case WireType::bytes:
        field.bytes = take(varint(), begin);
        return field;
      case WireType::fixed32:
        field.bytes = take(4, begin);
        return field;
    }
    fail(begin, "wire type " + std::to_string(tag & 7) + " is not used there");
  }

 private:
  [[noreturn]] void fail(const uint8_t* at, const std::string& reason) const {
    record_.fail(record_.offset_of(at), "is no tf.train.Example: " + reason);
  }
  Bytes take(uint64_t length, const uint8_t* field) {
    if (length > rest_.size()) {
      fail(field, "a field of " + std::to_string(length) + " bytes is longer than the " +
                      std::to_string(rest_.size()) + " that are left of its message");
    }
    const Bytes taken = rest_.first(static_cast<size_t>(length));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

  const ExampleRecord& record_;
  Bytes rest_;
};

// ---- tf.train.Example

void add_values(const ExampleRecord& record, Bytes list, ExampleFeature& feature) {
  MessageReader reader(record, list);
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (field.number != 1) continue;
    if (feature.kind == FeatureKind::bytes && field.type == WireType::bytes) {
      feature.bytes = field.bytes;
      ++feature.values;
    } else if (feature.kind == FeatureKind::int64 && field.type == WireType::varint) {
      feature.number = static_cast<int64_t>(field.value);
      ++feature.values;
    } else if (feature.kind == FeatureKind::int64 && field.type == WireType::bytes) {
      MessageReader packed(record, field.bytes);
      for (; !packed.at_end(); ++feature.values) {
        feature.number = static_cast<int64_t>(packed.varint());
      }
    }
  }
}

// Adds to `feature` what `message` says. As protobuf has it, another list of the same kind is
// appended, and one of another kind takes the place of what was there.
void merge_feature(const ExampleRecord& record, Bytes message, ExampleFeature& feature) {
  MessageReader reader(record, message);
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (field.type != WireType::bytes || field.number > 3) continue;
    const auto kind = static_cast<FeatureKind>(field.number);
    if (feature.kind != kind) feature = {kind, 0, {}, 0};
    if (kind != FeatureKind::floats) add_values(record, field.bytes, feature);
  }
}

ExampleEntry read_key(const ExampleRecord& record, Bytes message) {
  ExampleEntry entry{"", message};
  MessageReader reader(record, message);
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (field.is_bytes(1)) entry.key = as_text(field.bytes);
  }
  return entry;
}

// Goes through the lists of a feature as merge_feature() does, and keeps all their numbers.
class NumberReader {
 public:
  NumberReader(const ExampleRecord& record, FoundTarget& out) : record_(record), out_(out) {}

  void add_feature(Bytes message) {
    MessageReader reader(record_, message);
    while (!reader.at_end()) {
      const WireField field = reader.next();
      if (field.type != WireType::bytes || field.number > 3) continue;
      const auto kind = static_cast<FeatureKind>(field.number);
      if (kind != kind_) out_.clear();
      kind_ = kind;
      add_list(field.bytes);
    }
  }

 private:
  void add_list(Bytes list) {
    MessageReader reader(record_, list);
    while (!reader.at_end()) {
      const WireField field = reader.next();
      if (field.number != 1) continue;
      if (kind_ == FeatureKind::int64) add_integers(field);
      if (kind_ == FeatureKind::floats) add_floats(field);
    }
  }

  void add_integers(const WireField& field) {
    out_.type = TargetType::int64;
    if (field.type == WireType::varint) out_.add(static_cast<int64_t>(field.value));
    if (field.type != WireType::bytes) return;
    MessageReader packed(record_, field.bytes);
    while (!packed.at_end()) out_.add(static_cast<int64_t>(packed.varint()));
  }

  void add_floats(const WireField& field) {
    const bool has_floats = field.type == WireType::bytes || field.type == WireType::fixed32;
    if (!has_floats) return;
    const size_t rest = field.bytes.size() % sizeof(float);
    if (rest != 0) {
      record_.fail(record_.offset_of(field.bytes.data()), "has a list of floats of " +
                                                              std::to_string(field.bytes.size()) +
                                                              " bytes, which is no multiple of 4");
    }
    append_numbers(NumberForm::float32, field.bytes, out_);
  }

  const ExampleRecord& record_;
  FoundTarget& out_;
  FeatureKind kind_ = FeatureKind::none;
};

}  // namespace

void read_entries(const ExampleRecord& record, std::vector<ExampleEntry>& entries) {
  entries.clear();
  MessageReader example(record, record.data);
  while (!example.at_end()) {
    const WireField features = example.next();
    if (!features.is_bytes(1)) continue;
    MessageReader map(record, features.bytes);
    while (!map.at_end()) {
      const WireField entry = map.next();
      if (entry.is_bytes(1)) entries.push_back(read_key(record, entry.bytes));
    }
  }
}

const ExampleEntry* find_entry(const std::vector<ExampleEntry>& entries, std::string_view key) {
  const auto found = std::find_if(entries.rbegin(), entries.rend(),
                                  [&](const ExampleEntry& e) { return e.key == key; });
  return found == entries.rend() ? nullptr : &*found;
}

ExampleFeature read_feature(const ExampleRecord& record, const ExampleEntry& entry) {
  ExampleFeature feature;
  MessageReader reader(record, entry.message);
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (field.is_bytes(2)) merge_feature(record, field.bytes, feature);
  }
  return feature;
}

std::string list_keys(const std::vector<ExampleEntry>& entries) {
  constexpr size_t kMax = 12;
  if (entries.empty()) return "it has no keys";
  std::string text = "its keys are ";
  for (size_t i = 0; i < std::min(entries.size(), kMax); ++i) {
    text += (i == 0 ? "" : ", ") + quoted_name(entries[i].key);
  }
  if (entries.size() > kMax) text += " and " + std::to_string(entries.size() - kMax) + " more";
  return text;
}

std::string describe(const ExampleFeature& feature) {
  const std::string count = std::to_string(feature.values);
  switch (feature.kind) {
    case FeatureKind::none:
      return "nothing";
    case FeatureKind::bytes:
      return count + " bytes values";
    case FeatureKind::floats:
      return "float values";
    case FeatureKind::int64:
      return count + " int64 values";
  }
  return "";
}

void read_texts(const ExampleRecord& record, const ExampleEntry& entry,
                std::vector<std::string_view>& out) {
  out.clear();
  MessageReader reader(record, entry.message);
  while (!reader.at_end()) {
    const WireField value = reader.next();
    if (!value.is_bytes(2)) continue;
    MessageReader lists(record, value.bytes);
    while (!lists.at_end()) {
      const WireField list = lists.next();
      if (!list.is_bytes(static_cast<uint64_t>(FeatureKind::bytes))) continue;
      MessageReader texts(record, list.bytes);
      while (!texts.at_end()) {
        const WireField text = texts.next();
        if (text.is_bytes(1)) out.push_back(as_text(text.bytes));
      }
    }
  }
}

void read_numbers(const ExampleRecord& record, const ExampleEntry& entry, FoundTarget& out) {
  out.clear();
  NumberReader numbers(record, out);
  MessageReader reader(record, entry.message);
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (field.is_bytes(2)) numbers.add_feature(field.bytes);
  }
  out.make_list();
}

}  // namespace stoker
