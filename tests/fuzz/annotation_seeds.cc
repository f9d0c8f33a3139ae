// Seeds for the parsers of annotations.
#include <span>

#include "pipeline/files/sealed_file.h"
#include "pipeline/source/annotated/annotation_table.h"
#include "pipeline/source/annotated/coco.h"
#include "pipeline/source/annotated/record_code.h"
#include "tests/decode/png_maker.h"
#include "tests/fuzz/fuzz_parts.h"
#include "tests/fuzz/seed_folder.h"
#include "tests/support/record_maker.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tfrecord_maker.h"

namespace stoker {
namespace {

constexpr const char* kCocoSeeds[] = {
    R"({"annotations": [{"segmentation": [[1, 2, 3.25, 2, 3, 4.5]], "area": 5.125, "iscrowd": 0,
        "image_id": 2, "bbox": [1, 2, 3.5, 4], "category_id": 3, "id": 9},
       {"id": 8, "segmentation": {"counts": [4, 20, 6], "size": [5, 6]}, "iscrowd": 1,
        "image_id": 1, "bbox": [0, 0, 6, 5], "category_id": 1, "x": [{}, null, "\\"]},
       {"id": 7, "segmentation": {"counts": "4d06", "size": [5, 6]}, "image_id": 1,
        "bbox": [0, 0, 1e-1, NaN], "category_id": 1}],
      "images": [{"id": 1, "file_name": "\u00e9\ud83d\ude00", "width": 6, "height": 5},
                 {"id": 2, "file_name": "a.jpg", "width": 64, "height": 48}],
      "categories": [{"id": 3, "name": "dog"}, {"id": 1, "name": "cat"}]})",
    R"({"images": [{"id": 1, "file_name": "a", "width": 9, "height": 9}],
      "categories": [{"id": 1, "name": "p", "keypoints": ["nose", "tail"]}],
      "annotations": [{"id": 5, "image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2],
                       "keypoints": [3, 4.5, 2, 0, 0, 0], "num_keypoints": 1}]})",
    R"({"images": [{"id": 1, "file_name": "a", "width": 9, "height": 9}],
      "categories": [{"id": 1, "name": "sky"}],
      "annotations": [{"segments_info": [{"id": 5, "category_id": 1, "area": 7,
                       "bbox": [0, 1, 2, 3], "iscrowd": 0}], "file_name": "p.png", "image_id": 1}]})"};

// The table and the other bytes of a kept set, without what seals them.
void add_set_seed(SeedFolder& seeds, const std::string& json) {
  const TempFolder folder;
  const std::string path = folder.path() + "/set";
  read_coco(supply_of(json)).finish_in(path, "key");
  std::string problem;
  const auto file = SealedFile::open(path, kAnnotationSetKind, problem);
  const std::span<const char> all = file->map();
  const std::string_view body(all.data() + sizeof(SealedHeader),
                              all.size() - sizeof(SealedHeader) - file->table().size());
  seeds.add("annotation_set_fuzz", join_fuzz_parts({"", file->table(), body}));
}

constexpr const char* kJsonSeeds[] = {
    R"([{"bbox": [1, 2, 3.5, 4], "category_id": 3, "id": 9, "area": 5.125, "iscrowd": 0,
         "segmentation": [[1, 2, 3.25, 2, 3, 4.5]], "x": [{}, null]},
        {"bbox": [0, 0, 1e-1, 2], "label": 1, "segmentation": {"counts": "4d06", "size": [5, 6]},
         "keypoints": [3, 4.5, 2, 0, 0, 0]}])",
    R"({"image": {"width": 6, "height": 5, "image_id": 4}, "annotations": {
        "bbox": [[1, 2, 3, 4], [0, 0, 1, 1]], "category": ["cat", "dog"], "category_id": [1, 2],
        "is_crowd": [true, 0], "segmentation": [{"counts": [4, 20, 6], "size": [5, 6]}, null]}})"};

// A record of TFRecord with an object whose mask is a PNG.
std::string record_with_mask() {
  const std::vector<uint8_t> png = make_png({.size = {6, 5}, .colours = 0}, 1);
  return make_record(
      make_example({{"image/encoded", bytes_feature({"x"})},
                    {"image/width", int64_feature({6})},
                    {"image/height", int64_feature({5})},
                    {"image/object/bbox/xmin", float_feature({0})},
                    {"image/object/bbox/ymin", float_feature({0.5})},
                    {"image/object/bbox/xmax", float_feature({1})},
                    {"image/object/bbox/ymax", float_feature({1})},
                    {"image/object/class/text", bytes_feature({"cat"})},
                    {"image/object/mask", bytes_feature({{png.begin(), png.end()}})}}));
}

void add_record_seeds(SeedFolder& seeds) {
  for (const char* json : kJsonSeeds) {
    seeds.add("record_objects_fuzz", join_fuzz_parts({"j", "-", json}));
    RecordEncoder encoder(BoxFormat::xywh);
    std::string piece, names;
    encoder.append({.json = json, .json_path = {}, .columns = {}, .problem = {}}, piece);
    for (const std::string& name : encoder.kinds().class_texts) names += name + " ";
    seeds.add("record_code_fuzz", join_fuzz_parts({"\2", names, piece}));
  }
  seeds.add("record_objects_fuzz", join_fuzz_parts({"t", "image/object", record_with_mask()}));
  const std::vector<MadeRecord> records = {
      {"a", {{{1, 2, 3, 4.5}, 3, 7, 2, false}, {{0, 0, 1, 2}, 1, 8, 0.25, true}}}, {"b", {}}};
  for (const MadeShards& made : made_records(records)) {
    const std::string letter = made.file == "x.tar"        ? "w"
                               : made.file == "x.tfrecord" ? "t"
                               : made.file == "x.parquet"  ? "p"
                                                           : "m";
    seeds.add("record_objects_fuzz", join_fuzz_parts({letter, made.objects, made.content}));
  }
}

}  // namespace

void add_annotation_seeds(SeedFolder& seeds) {
  for (const char* json : kCocoSeeds) seeds.add("coco_fuzz", json);
  add_set_seed(seeds, kCocoSeeds[0]);
  add_set_seed(seeds, kCocoSeeds[1]);
  add_record_seeds(seeds);
  seeds.add("voc_fuzz",
            "<?xml version=\"1.0\"?><annotation><size><width>9</width><height>8</height></size>"
            "<object><name>dog</name><difficult>1</difficult><bndbox><xmin>1</xmin><ymin>2.5</ymin>"
            "<xmax>3</xmax><ymax>4</ymax></bndbox></object><object><name>hat</name><bndbox>"
            "<xmin>1</xmin><ymin>1</ymin><xmax>1</xmax><ymax>1</ymax></bndbox></object>"
            "</annotation>");
  const std::string rows = "1 0.5 0.5 0.25 0.5\r\n0 0.1 0.2 0.3 0.2 0.3 0.9\n";
  for (const char* names :
       {"names: ['a b', c]\n", "names:\n  0: a\n  2: b # x\n", "names:\n- a\n"}) {
    seeds.add("yolo_fuzz", join_fuzz_parts({"", names, rows}));
  }
}

}  // namespace stoker
