#include "tests/support/record_maker.h"

#include <bit>
#include <functional>

#include "tests/support/mds_maker.h"
#include "tests/support/parquet_maker.h"
#include "tests/support/tar_maker.h"
#include "tests/support/tfrecord_maker.h"

namespace stoker {
namespace {

using Objects = std::vector<MadeObject>;
constexpr float kWidth = 64, kHeight = 32;

std::string digits(double value) {
  std::string text = std::to_string(value);
  return text.substr(0, text.find_last_not_of('0') + 2);
}

std::string box_text(const MadeObject& object) {
  const auto& [x, y, width, height] = object.box;
  return "[" + digits(x) + ", " + digits(y) + ", " + digits(width) + ", " + digits(height) + "]";
}

std::string joined(const Objects& objects,
                   const std::function<std::string(const MadeObject&)>& text) {
  std::string all;
  for (const MadeObject& object : objects) all += (all.empty() ? "" : ", ") + text(object);
  return "[" + all + "]";
}

std::string without_one_number(std::string json) {
  const size_t box = json.find('[', json.find("\"bbox\": ["));
  const size_t inner = json[box + 1] == '[' ? box + 1 : box;
  const size_t end = json.find(']', inner);
  return json.erase(json.rfind(',', end), end - json.rfind(',', end));
}

std::string name_of(size_t record) { return "s/" + std::to_string(record); }

MadeShards tar_of(const std::string& name, const std::string& field,
                  const std::vector<MadeRecord>& records, int broken,
                  const std::function<std::string(const Objects&)>& json) {
  const std::string extension = field.substr(0, field.find(':'));
  std::string tar;
  for (size_t i = 0; i < records.size(); ++i) {
    std::string text = json(records[i].objects);
    if (static_cast<int>(i) == broken) text = without_one_number(text);
    // The members of a key may come in any order.
    const std::string member = tar_member(name_of(i) + "." + extension, text);
    const std::string image = tar_member(name_of(i) + ".jpg", records[i].image);
    tar += i % 2 == 0 ? image + member : member + image;
  }
  return {name, "x.tar", field, tar + tar_end()};
}

MadeShards tfrecord_of(const std::vector<MadeRecord>& records, int broken) {
  std::string file;
  for (size_t i = 0; i < records.size(); ++i) {
    std::array<std::vector<float>, 4> sides;
    std::vector<float> areas;
    std::vector<int64_t> labels, crowds;
    for (const MadeObject& object : records[i].objects) {
      const auto& [x, y, width, height] = object.box;
      const double right = static_cast<int>(i) == broken ? x - 1 : x + width;
      sides[0].push_back(static_cast<float>(x) / kWidth);
      sides[1].push_back(static_cast<float>(y) / kHeight);
      sides[2].push_back(static_cast<float>(right) / kWidth);
      sides[3].push_back(static_cast<float>(y + height) / kHeight);
      areas.push_back(static_cast<float>(object.area));
      labels.push_back(object.label);
      crowds.push_back(object.is_crowd ? 1 : 0);
    }
    file += make_record(make_example({{"image/encoded", bytes_feature({records[i].image})},
                                      {"image/width", int64_feature({64})},
                                      {"image/height", int64_feature({32})},
                                      {"image/object/bbox/xmin", float_feature(sides[0])},
                                      {"image/object/bbox/ymin", float_feature(sides[1])},
                                      {"image/object/bbox/xmax", float_feature(sides[2])},
                                      {"image/object/bbox/ymax", float_feature(sides[3])},
                                      {"image/object/area", float_feature(areas)},
                                      {"image/object/is_crowd", int64_feature(crowds)},
                                      {"image/object/class/label", int64_feature(labels)}}));
  }
  return {"TFRecord", "x.tfrecord", "image/object", file};
}

MadeShards mds_json_of(const std::vector<MadeRecord>& records, int broken) {
  const std::vector<MadeMdsColumn> columns = {{"image", "jpeg"}, {"objects", "json"}};
  std::vector<std::string> samples;
  for (size_t i = 0; i < records.size(); ++i) {
    std::string text = json_lists(records[i].objects);
    if (static_cast<int>(i) == broken) text = without_one_number(text);
    samples.push_back(mds_sample(columns, {records[i].image, text}));
  }
  return {"MdsJson", "shard.00000.mds", "objects", mds_shard(mds_settings(columns), samples)};
}

std::string doubles_of(double value) { return mds_number(std::bit_cast<uint64_t>(value), 8); }

// An array that says its shape in bytes of 16 bits, as NDArray of the package streaming may.
std::string mds_array(std::vector<uint64_t> shape, const std::string& numbers) {
  std::string text(1, static_cast<char>(shape.size() << 2 | 1));
  for (const uint64_t extent : shape) text += mds_number(extent, 2);
  return text + numbers;
}

// Arrays without numbers cannot be written: such a record has one that says so, which is refused.
MadeShards mds_arrays_of(const std::vector<MadeRecord>& records, int broken) {
  const std::vector<MadeMdsColumn> columns = {
      {"image", "jpeg"},       {"bbox", "ndarray:float64"}, {"kind", "ndarray"},
      {"id", "ndarray:int64"}, {"area", "ndarray:float64"}, {"crowd", "ndarray:uint8"}};
  std::vector<std::string> samples;
  for (size_t i = 0; i < records.size(); ++i) {
    std::string boxes, kinds, ids, areas, crowds;
    const uint64_t count = records[i].objects.size();
    const uint64_t sides = static_cast<int>(i) == broken ? 2 : 4;
    for (const MadeObject& object : records[i].objects) {
      for (const double side : object.box) boxes += doubles_of(side);
      kinds += mds_number(static_cast<uint64_t>(object.label), 4);
      ids += mds_number(static_cast<uint64_t>(object.id), 8);
      areas += doubles_of(object.area);
      crowds += mds_number(object.is_crowd ? 1 : 0, 1);
    }
    constexpr char kInt32 = 33;
    samples.push_back(
        mds_sample(columns, {records[i].image, mds_array({count * 4 / sides, sides}, boxes),
                             kInt32 + mds_array({count}, kinds), mds_array({count}, ids),
                             mds_array({count}, areas), mds_array({count}, crowds)}));
  }
  return {"MdsArrays", "shard.00000.mds", "bbox,labels=kind,id,area,iscrowd=crowd",
          mds_shard(mds_settings(columns), samples)};
}

// The columns of a struct of lists, of a list of structs, or of lists of their own.
MadeShards parquet_objects(const std::string& name, const std::string& field,
                           const std::vector<std::string>& before,
                           const std::vector<std::string>& behind,
                           const std::vector<MadeRecord>& records, int broken, bool is_dictionary) {
  const auto column = [&](const char* word, int type) {
    MadeColumn made{.names = before, .type = type, .dictionary = is_dictionary};
    made.names.emplace_back(word);
    made.names.insert(made.names.end(), behind.begin(), behind.end());
    for (size_t i = 0; i < made.names.size(); ++i) {
      if (made.names[i] == "list") made.repeated_at.push_back(i);
    }
    return made;
  };
  MadeColumn images{.names = {"image", "bytes"}};
  MadeColumn boxes = column("bbox", kMadeFloat), labels = column("category", kMadeInt64),
             ids = column("id", kMadeInt64), areas = column("area", kMadeDouble),
             crowds = column("iscrowd", kMadeBoolean);
  boxes.names.insert(boxes.names.end(), {"list", "element"});
  boxes.repeated_at.push_back(boxes.names.size() - 2);
  boxes.inner = 4;
  if (is_dictionary) crowds.dictionary = false;
  for (size_t i = 0; i < records.size(); ++i) {
    images.values.push_back(plain_bytes(records[i].image));
    for (MadeColumn* each : {&boxes, &labels, &ids, &areas, &crowds}) each->lists.emplace_back();
    for (const MadeObject& object : records[i].objects) {
      for (const double side : object.box) {
        boxes.lists.back().emplace_back(
            mds_number(std::bit_cast<uint32_t>(static_cast<float>(side)), 4));
      }
      labels.lists.back().emplace_back(plain_int64(static_cast<uint64_t>(object.label)));
      ids.lists.back().emplace_back(plain_int64(static_cast<uint64_t>(object.id)));
      areas.lists.back().emplace_back(doubles_of(object.area));
      crowds.lists.back().emplace_back(std::string(1, object.is_crowd ? '\1' : '\0'));
    }
    if (static_cast<int>(i) == broken) boxes.lists.back().pop_back();
  }
  MadeParquet made{.columns = {images, boxes, labels, ids, areas, crowds}, .rows_per_page = 2};
  return {name, "x.parquet", field, made.bytes()};
}

}  // namespace

std::string json_list(const Objects& objects) {
  return joined(objects, [](const MadeObject& object) {
    return R"({"id": )" + std::to_string(object.id) + R"(, "image_id": 1, "bbox": )" +
           box_text(object) + R"(, "category_id": )" + std::to_string(object.label) +
           R"(, "area": )" + digits(object.area) + R"(, "iscrowd": )" +
           (object.is_crowd ? "1" : "0") + R"(, "score": [{"a": null}]})";
  });
}

std::string json_lists(const Objects& objects) {
  const auto list = [&](const char* field, const auto& text) {
    return "\"" + std::string(field) + "\": " + joined(objects, text);
  };
  return "{" + list("bbox", box_text) + ", " +
         list("category", [](const MadeObject& object) { return std::to_string(object.label); }) +
         ", " + list("id", [](const MadeObject& object) { return std::to_string(object.id); }) +
         ", " + list("area", [](const MadeObject& object) { return digits(object.area); }) + ", " +
         list("iscrowd",
              [](const MadeObject& object) { return object.is_crowd ? "true" : "false"; }) +
         ", \"note\": [\"x\"]}";
}

std::vector<MadeShards> made_records(const std::vector<MadeRecord>& records, int broken) {
  const auto inside = [](const char* before, const char* behind, auto json) {
    return [=](const Objects& objects) { return before + json(objects) + behind; };
  };
  return {
      tar_of("TarList", "json", records, broken, json_list),
      tar_of("TarLists", "objects.json", records, broken, json_lists),
      tar_of("TarAnnotations", "json", records, broken,
             inside(R"({"image": {"file_name": "x", "width": 64, "height": 32}, "annotations": )",
                    "}", json_list)),
      tar_of("TarObjects", "json", records, broken,
             inside(R"({"objects": )", R"(, "width": 64, "height": 32, "image_id": "x"})",
                    json_lists)),
      tar_of("TarField", "json:a.b", records, broken,
             inside(R"({"bbox": 7, "a": {"c": [], "b": )", "}}", json_list)),
      tfrecord_of(records, broken),
      mds_json_of(records, broken),
      mds_arrays_of(records, broken),
      parquet_objects("ParquetStruct", "objects", {"objects"}, {"list", "element"}, records, broken,
                      false),
      parquet_objects("ParquetList", "objects", {"objects", "list", "element"}, {}, records, broken,
                      true),
      parquet_objects("ParquetColumns", "bbox,category,id,area,iscrowd", {}, {"list", "element"},
                      records, broken, false),
  };
}

}  // namespace stoker
