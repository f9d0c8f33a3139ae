// Seeds for the parsers of files other than images: sources, receipts, checkpoints.
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "pipeline/receipt/receipt.h"
#include "pipeline/seek_index/file.h"
#include "pipeline/source/blob/index_writer.h"
#include "pipeline/source/folder_index.h"
#include "tests/fuzz/fuzz_parts.h"
#include "tests/fuzz/seed_folder.h"
#include "tests/support/mds_maker.h"
#include "tests/support/parquet_maker.h"
#include "tests/support/snappy_maker.h"
#include "tests/support/tar_maker.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tfrecord_maker.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/json.h"
#include "train/checkpoint/safetensors.h"
#include "train/cuda/plan_choices.h"

namespace stoker {
namespace {

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class Record>
std::string_view bytes_of(const std::vector<Record>& records) {
  return {reinterpret_cast<const char*>(records.data()), records.size() * sizeof(Record)};
}

FolderIndex make_index(int classes, int files) {
  FolderIndex index;
  const auto put = [&index](const std::string& text) {
    const uint64_t at = index.text.size();
    index.text.insert(index.text.end(), text.c_str(), text.c_str() + text.size() + 1);
    return at;
  };
  for (int c = 0; c < classes; ++c) {
    index.class_names.push_back("class" + std::to_string(c));
    index.folders.push_back({put(index.class_names.back()), index.size(), c});
    for (int f = 0; f < files; ++f) index.names.push_back(put(std::to_string(f) + ".jpg"));
  }
  return index;
}

nlohmann::ordered_json receipt_json(int64_t first_step, size_t steps, size_t rows) {
  return {{"stoker", "1"},
          {"fingerprint", "0123456789abcdef"},
          {"seed", 1},
          {"global_batch", 4},
          {"rank", 0},
          {"world", 1},
          {"steps_per_epoch", 3},
          {"policies", {{"pixels", "exact"}}},
          {"options", {{"workers", "2"}}},
          {"libraries", {{"libjpeg-turbo", "2.1.5"}}},
          {"first_step", first_step},
          {"next_step", first_step + static_cast<int64_t>(steps)},
          {"rows_kept", rows},
          {"epochs", nlohmann::ordered_json::array()}};
}

std::string npy_seed(const std::string& descr, const std::string& shape, size_t bytes) {
  std::string header = "{'descr': '";
  header.append(descr).append("', 'fortran_order': False, 'shape': ").append(shape).append(", }");
  std::string file("\x93NUMPY\1\0", 8);
  file += static_cast<char>(header.size());
  file += '\0';
  return file.append(header).append(bytes, '\x3c');
}

// A column of lists, or of lists of lists, of nine rows, packed as `like` is.
MadeColumn list_seed(bool is_nested, const MadeColumn& like) {
  MadeColumn lists{.names = {"x", "list", "element"}, .type = kMadeInt32, .repeated_at = {1}};
  if (is_nested) {
    lists.names = {"x", "list", "element", "list", "element"};
    lists.repeated_at = {1, 3};
    lists.inner = 2;
  }
  for (int row = 0; row < 9; ++row) {
    lists.lists.emplace_back();
    for (int i = 0; i < 4; ++i) lists.lists.back().emplace_back(plain_int32(row * i));
  }
  lists.codec = like.codec;
  lists.dictionary = like.dictionary;
  lists.optional = like.optional;
  return lists;
}

}  // namespace

void add_cifar_seeds(SeedFolder& seeds) {
  for (const size_t label_bytes : {1, 2}) {
    const size_t record = label_bytes + 3072;
    std::string records(2 * record, '\x55');
    for (size_t i = 0; i < 2 * label_bytes; ++i) {
      records[i / label_bytes * record + i % label_bytes] = static_cast<char>(3 * i);
    }
    std::string names;
    for (int i = 0; i < (label_bytes == 1 ? 10 : 100); ++i) names += std::to_string(i) + "\n";
    const std::string layout = label_bytes == 1 ? "" : "x";
    seeds.add("cifar_source_fuzz", join_fuzz_parts({layout, names, records}));
    seeds.add("cifar_source_fuzz", join_fuzz_parts({layout, names, records.substr(1)}));
  }
}

void add_tfrecord_seeds(SeedFolder& seeds) {
  const std::string image = bytes_feature({"pixels"});
  const std::string numbered =
      make_record(make_example({{"image/encoded", image},
                                {"image/class/label", int64_feature({7})},
                                {"image/class/text", bytes_feature({"cat"})},
                                {"image/object/bbox/xmin", float_feature({0.5, 0.25})}}));
  const std::string named =
      make_record(make_example({{"image", image}, {"label", int64_feature({-1}, false)}}));
  seeds.add("tfrecord_fuzz", join_fuzz_parts({"", "", numbered + numbered}));
  seeds.add("tfrecord_fuzz", join_fuzz_parts({"", "image/class/text", numbered}));
  seeds.add("tfrecord_fuzz", join_fuzz_parts({"image", "none", named + named}));
  const std::string listed = make_record(make_example(
      {{"image", image}, {"label", int64_feature({1, 2, 300})}, {"x", float_feature({0.5, -1})}}));
  seeds.add("tfrecord_fuzz", join_fuzz_parts({"", "none,label,x", listed + listed}));
  seeds.add("tfrecord_fuzz", join_fuzz_parts({"", ",image/object/bbox/xmin", numbered + numbered}));
  seeds.add("tfrecord_fuzz", join_fuzz_parts({"", ",label", named + named}));
  seeds.add("tfrecord_fuzz", join_fuzz_parts({"", "", named.substr(0, named.size() - 1)}));
}

void add_mds_seeds(SeedFolder& seeds) {
  const std::vector<std::vector<MadeMdsColumn>> layouts = {
      {{"image", "jpeg"}, {"label", "int", 8}},
      {{"class", "str_int"}, {"x", "bytes"}},
      {{"image", "png"}, {"y", "uint16", 2}},
      {{"jpg", "jpeg"}, {"label", "str"}},
      {{"x", "jpeg"}, {"y", "ndarray:int16:2,2", 8}},
      {{"x", "jpeg"}, {"y", "float16", 2}},
      {{"x", "jpeg"}, {"y", "str_float"}}};
  const std::string index = mds_index({{"./a.mds", 5, "a.mds.zstd"}, {"b.mds", 5}});
  for (const std::vector<MadeMdsColumn>& columns : layouts) {
    std::vector<std::string> samples;
    for (int i = 1; i <= 3; ++i) {
      std::vector<std::string> values;
      for (const MadeMdsColumn& column : columns) {
        values.emplace_back(static_cast<size_t>(column.size == 0 ? i : column.size), '1');
      }
      samples.push_back(mds_sample(columns, values));
    }
    const std::string shard = mds_shard(mds_settings(columns), samples);
    seeds.add("mds_fuzz", join_fuzz_parts({"", "", shard}));
    seeds.add("mds_fuzz", join_fuzz_parts({columns[1].name, index, shard}));
    seeds.add("mds_fuzz", join_fuzz_parts({"," + columns[1].name, "", shard}));
  }
}

void add_index_seeds(SeedFolder& seeds) {
  const TempFolder folder;
  for (int classes = 0; classes < 4; ++classes) {
    ScannedFolder scanned{make_index(classes, 1 + classes), {}, 0};
    const std::string path = folder.path() + "/index";
    if (!save_index(path, {"/", {""}, {""}}, scanned)) continue;
    seeds.add("index_cache_fuzz", file_text(path));
  }
}

void add_blob_index_seeds(SeedFolder& seeds) {
  const TempFolder folder;
  const std::string path = folder.path() + "/index";
  for (const bool named : {false, true}) {
    BlobIndexWriter writer(path);
    const std::vector<BlobEntry> entries = {
        {.place = 512 << 8, .length = 100, .label = 1, .first = 0},
        {.place = 1536 << 8, .length = 90, .label = 0, .first = named ? 6u : 0u}};
    const std::string_view names = named ? std::string_view("a.jpg\0b.jpg\0", 12) : "";
    std::vector<TargetColumn> columns = {{"x", TargetType::uint8, {2, 2}},
                                         {"y", TargetType::int32},
                                         {"c", TargetType::text, {}, true}};
    if (!named) columns.clear();
    const std::vector<std::byte> targets(named ? 16 : 0, std::byte{7});
    const std::vector<uint64_t> ends = {3, 5};
    const IndexedPieces objects = named ? IndexedPieces{"12345", ends} : IndexedPieces{};
    const std::vector<uint64_t> text_ends = {2, 4 | kVaryingProblem};
    const IndexedPieces texts = named ? IndexedPieces{{"a\0no", 4}, text_ends} : IndexedPieces{};
    writer.add(0, 0, entries, names, targets, objects, texts);
    writer.add(1, 0, entries, names, targets, objects, texts);
    writer.finish({.key = "key",
                   .blobs = {"a.tar", "b.tar"},
                   .stamps = {{4096, 1}, {4096, 2}},
                   .segments = {},
                   .class_names = {"cat", "dog"},
                   .notes = {{"left_out", 1, "a.tar/c", "1 entry is left out (a link)"}},
                   .targets = columns,
                   .annotations = {.objects = named}},
                  {});
    seeds.add("blob_index_fuzz", file_text(path));
  }
}

void add_list_seeds(SeedFolder& seeds) {
  const auto add = [&](char form, char fields, const std::string& text) {
    seeds.add("list_fuzz", std::string{form, fields} + text);
  };
  add(0, 0, "\xef\xbb\xbfid,path,label\r\n1,\"a,\"\"b\n.jpg\",7\r\n2,c.jpg,8\r\n");
  add(0, 0, "a.jpg,cat\nb.jpg,007");
  add(0, 1, "a.jpg\nb.jpg\n");
  add(0, 3, "a,b\n1.jpg,2\n");
  add(1, 0, "file\ttarget\nx/1.jpg\t-5\nx/\"2.jpg\t6\n");
  add(2, 0, "{\"path\":\"a\\u00e4.jpg\",\"label\":3}\n\n{\"label\":4,\"path\":\"b\"}\n");
  add(3, 3, "{\"a\":\"1.jpg\",\"b\":\"cat\",\"c\":[{}]}");
  add(0, 4, "a,b,c,d\n1.jpg,2,1 0.5;-inf,7\n2.jpg,2,1 2 nan,8\n");
  add(1, 5, "path\tc\n1.jpg\t1e300 2\n");
  add(2, 4, R"({"a":"1.jpg","b":1,"c":[[1,true],[0.5,-3]],"d":7})");
}

void add_list_page_seeds(SeedFolder& seeds) {
  const std::string objects =
      "<Contents><Key>a+b%2B</Key><Size>17</Size><ETag>&quot;e&#x20AC;&quot;</ETag></Contents>"
      "<Contents><Key>c</Key><Size>0</Size><LastModified>1994-11-06T08:49:37.000Z</LastModified>"
      "</Contents><CommonPrefixes><Prefix>x+y/</Prefix></CommonPrefixes>";
  for (const char* head : {"<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
                           "<NextContinuationToken>t&amp;</NextContinuationToken>",
                           ""}) {
    seeds.add("list_page_fuzz", "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns='s3'>" +
                                    (head + objects) + "</ListBucketResult>");
  }
  seeds.add("list_page_fuzz",
            "<Error><Code>PermanentRedirect</Code><Message>m</Message><Region>r</Region></Error>");
  for (const char* location : {"https://h:443/x?y=z#f", "//h/x", "/x y", "x", "http://[::1]:9"}) {
    seeds.add("list_page_fuzz", location);
  }
  for (const char* field : {"Content-Length: 7\r\n", "Transfer-Encoding: chunked\r\n", ""}) {
    seeds.add("http_answer_fuzz",
              "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\n" + std::string(field));
  }
}

void add_npy_seeds(SeedFolder& seeds) {
  for (const char* descr : {"|b1", "|u1", "<u2", "<u4", "<u8", "|i1"}) {
    seeds.add("npy_fuzz", npy_seed(descr, "(2,)", 2 * static_cast<size_t>(descr[2] - '0')));
  }
  for (const char* descr : {"<i2", "<i4", "<i8", "<f2", "<f4", "<f8"}) {
    seeds.add("npy_fuzz", npy_seed(descr, "(2, 1)", 2 * static_cast<size_t>(descr[2] - '0')));
  }
  const std::string header =
      R"({"y": 1, "x": {"dtype": "BF16", "shape": [2, 1], "data_offsets": [1, 5]}})";
  seeds.add("npy_fuzz", std::string{static_cast<char>(header.size())} + std::string(7, '\0') +
                            header + "123456");
}

void add_run_lengths_seeds(SeedFolder& seeds) {
  const auto add = [&](int width, int height, std::string_view text) {
    seeds.add(
        "run_lengths_fuzz",
        std::string{static_cast<char>(width - 1), static_cast<char>(height - 1)}.append(text));
  };
  add(4, 3, "41202");
  add(4, 3, "<");
  add(4, 3, "0<");
  add(50, 40, "01Z6`0]J000000000^ONN22NN2d0000000000000000000000000000000000mh0");
}

void add_tar_seeds(SeedFolder& seeds) {
  const auto add = [&](char label, const std::string& tar) {
    seeds.add("tar_fuzz", std::string{label, '\1'} + tar + tar_end());
  };
  const std::string name = "n1/" + std::string(120, 'x') + ".jpg";
  const std::string sample = tar_member("./n1/a.cls", "7\n") + tar_member("n1/a.jpg", "image") +
                             tar_member("n1/a.txt", "cat") +
                             tar_member("n1/a.json", "{\"a\":{\"b\":5}}");
  const std::string array = npy_seed("<f4", "(2, 2)", 16);
  for (char choice = 6; choice < 24; ++choice) {
    add(choice, sample + tar_member("n1/a.b.npy", array) + tar_member("n1/a.npy", array));
  }
  for (char label = 0; label < 6; ++label) {
    add(label, sample + tar_member("n2/", "", '5') + tar_member("n2/b.png", "", '2'));
  }
  add(4, tar_long_name(name) + tar_member("x", "image") +
             pax_header(pax_record("size", "5") + pax_record("path", "n2/y.png")) +
             tar_member("y", "image") + pax_header(pax_record("comment", "c"), 'g'));
  TarHeader header{
      .name = "b.jpg", .prefix = "n3", .size_field = "\x80" + std::string(10, '\0') + "\x05"};
  add(4, tar_header(header) + tar_data("image"));
  add(5, tar_member("././/a.jpg", "x") + tar_member("a/..b/c..png", "x"));
  add(5, pax_header(pax_record("GNU.sparse.major", "1")) + tar_member("a.jpg", "x", 'S'));
}

void add_plan_file_seeds(SeedFolder& seeds) {
  const TempFolder folder;
  const std::string path = folder.path() + "/plans";
  for (int lines = 1; lines <= 3; ++lines) {
    add_plan_lines(path,
                   {{"a GPU; a convolution, " + std::to_string(lines) + " rows", "eng3_k2=4"}});
    seeds.add("plan_file_fuzz", file_text(path));
  }
}

void add_seek_file_seeds(SeedFolder& seeds) {
  const TempFolder folder;
  const std::string path = folder.path() + "/seek";
  for (size_t count = 0; count <= 4; ++count) {
    SeekIndexWriter writer(path);
    for (size_t i = 0; i < count; ++i) {
      const std::vector<uint8_t> index(10 * i + 1, static_cast<uint8_t>(i));
      writer.add(std::to_string(i), {{1000, 1}, index});
    }
    writer.finish();
    seeds.add("seek_file_fuzz", file_text(path));
  }
}

// Returns the header of a safetensors file, without its length.
std::string header_of(const std::string& path) {
  const std::string file = file_text(path);
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= uint64_t{static_cast<uint8_t>(file[i])} << (8 * i);
  return file.substr(8, length);
}

void add_checkpoint_seeds(SeedFolder& seeds) {
  const TempFolder folder;
  for (const char* name : {"resnet20", "airnet"}) {
    CheckpointInfo info;
    info.model.recipe.name = name;
    info.model.recipe.input = {32, 32};
    info.model.classes = 2;
    info.model.class_names = {"a", "b"};
    const NetSpec net = info.model.net();
    TrainState state;
    state.parameters.resize(static_cast<size_t>(total_count(parameter_table(net))));
    state.momenta = state.parameters;
    state.statistics.resize(static_cast<size_t>(total_count(statistics_table(net))));
    if (info.model.recipe.average.kind != AverageKind::none) {
      state.average = state.parameters;
      state.average_statistics = state.statistics;
    }
    const std::string path = save_checkpoint(folder.path() + "/" + name, info, state, 1);
    seeds.add("checkpoint_fuzz", join_fuzz_parts({file_text(path + "/trainer.json"),
                                                  header_of(path + "/model.safetensors"),
                                                  header_of(path + "/state.safetensors")}));
  }
}

void add_parquet_seeds(SeedFolder& seeds) {
  const std::string features =
      R"({"info": {"features": {"label": {"names": ["a", "b"], "_type": "ClassLabel"}}}})";
  for (const int codec : {kMadePlain, kMadeSnappy, kMadeZstd}) {
    for (int kind = 0; kind < 8; ++kind) {
      MadeColumn images{.names = {"image", "bytes"}}, labels{.names = {"label"}};
      const bool text = kind / 4 == 1;
      labels.type = text ? kMadeBytes : kMadeInt64;
      for (uint64_t row = 0; row < 9; ++row) {
        images.values.emplace_back(plain_bytes(std::string(row % 4 * 9, 'i')));
        labels.values.emplace_back(text ? plain_bytes("class") : plain_int64(row % 2));
      }
      images.codec = labels.codec = codec;
      images.dictionary = labels.dictionary = kind % 2 == 1;
      images.optional = !text;
      MadeParquet made{.columns = {images, labels}, .metadata = {{"huggingface", features}}};
      made.page_version = 1 + kind / 2 % 2;
      made.rows_per_group = made.rows_per_page = 4;
      seeds.add("parquet_fuzz", join_fuzz_parts({"", text ? "label" : "", made.bytes()}));
      made.columns.push_back(list_seed(kind / 4 == 1, labels));
      seeds.add("parquet_fuzz", join_fuzz_parts({"", text ? "none,x" : ",x,label", made.bytes()}));
    }
  }
  for (const size_t piece : {40, 400}) {
    SnappyMaker maker;
    for (int i = 0; i < 30; ++i) maker.pack("some text, " + std::to_string(i * i), piece);
    maker.copy(maker.text().size(), 20);
    seeds.add("snappy_fuzz", std::string(1, '\x05') + maker.stream());
  }
}

void add_receipt_seeds(SeedFolder& seeds) {
  for (uint32_t kind = 0; kind < 4; ++kind) {
    std::vector<StepRecord> steps;
    std::vector<RowRecord> rows;
    for (uint32_t step = 0; step < 2 + kind; ++step) {
      steps.push_back({step + kind, {step, kind}, 2, step / 3});
      for (uint32_t row = 0; row < 2; ++row) rows.push_back({2 * step + row, 7 * row + kind});
    }
    nlohmann::ordered_json json = receipt_json(kind / 2, steps.size(), rows.size());
    if (kind == 3) json["global_batch"] = 8;
    seeds.add("receipt_fuzz", join_fuzz_parts({bytes_of(steps), bytes_of(rows), json.dump()}));
  }
}

void add_train_seeds(SeedFolder& seeds) {
  const TempFolder folder;
  const std::string path = folder.path() + "/model";
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  write_safetensors(path, std::vector<TensorView>{{"a.weight", {2, 3}, values}, {"b", {6}, values}},
                    {{"format", "pt"}});
  seeds.add("safetensors_fuzz", file_text(path));
  write_safetensors(path, {}, {});
  seeds.add("safetensors_fuzz", file_text(path));

  CheckpointInfo info;
  info.model.class_names = {"a", "b"};
  seeds.add("trainer_json_fuzz", checkpoint_to_json(info).dump(1));
  for (const StageType* type : all_stages()) seeds.add("augment_fuzz", type->name);
  const std::string stages =
      "random_resized_crop(24, scale=(0.35, 1), filter=bicubic) | random_choice(flip | rotate(30), "
      "color_jitter(0.4, (0.5, 1.5)), weights=(1, 2)) | random_crop(padding=(1, 2), "
      "mode='reflect') | random_erasing(p=1, noise=True) | "
      "timm_auto_augment('rand-m9-mstd0.5-n3-t3aw')";
  seeds.add("augment_fuzz", stages);
  info.model.recipe.train.stages = StageList(stages);
  info.model.recipe.name = "resnet18";
  info.model.recipe.schedule.milestones = {30, 60};
  info.model.recipe.precision = Precision::bf16;
  seeds.add("trainer_json_fuzz", checkpoint_to_json(info).dump());
}

}  // namespace stoker
