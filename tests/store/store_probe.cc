// What the tests of stores drive: opens one store, then carries out what stdin says, line by line,
// and answers each line with one. All lines are JSON objects.
//
//   store_probe '{"address": "s3://bucket/", "endpoint": "http://127.0.0.1:9000", ...}'
//
//   {"do": "list", "prefix": P}            {"count": N, "objects": [[key, bytes, version], ...]}
//   {"do": "count", "prefix": P}           {"count": N, "peak_kib": the process's largest memory}
//   {"do": "folder", "prefix": P}          {"objects": [[key, bytes, version], ...]}
//   {"do": "stat", "key": K}               {"object": [key, bytes, version]} or {"object": null}
//   {"do": "range", "object": O, "offset": A, "length": L, "tries": T}
//                                          {"sha256": of the bytes, "tried": n}
//   anything that goes wrong               {"error": TEXT, "kind": "again", ...}
//
// Without an address it signs: {"do": "sign", ...} gives {"headers": [[name, value], ...]}.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "pipeline/store/digest256.h"
#include "pipeline/store/object_store.h"
#include "pipeline/store/s3/signature.h"

namespace stoker {
namespace {

using Json = nlohmann::json;

Json json_of(const StoredObject& object) {
  return Json::array({object.key, object.bytes, object.version});
}

StoredObject object_of(const Json& json) {
  return {json.at(0).get<std::string>(), json.at(1).get<int64_t>(), json.at(2).get<std::string>()};
}

StoreOptions options_of(const Json& json) {
  StoreOptions options;
  options.endpoint = json.value("endpoint", "");
  options.region = json.value("region", "");
  options.profile = json.value("profile", "");
  options.anonymous = json.value("anonymous", false);
  options.ca_file = json.value("ca_file", "");
  options.requests = json.value("requests", 8);
  options.tries = json.value("tries", 10);
  const std::string style = json.value("style", "automatic");
  if (style == "path") options.style = StoreOptions::Style::path;
  if (style == "host") options.style = StoreOptions::Style::host;
  return options;
}

const char* kind_name(AnswerKind kind) {
  switch (kind) {
    case AnswerKind::fine:
      return "fine";
    case AnswerKind::again:
      return "again";
    case AnswerKind::throttled:
      return "throttled";
    case AnswerKind::changed:
      return "changed";
    case AnswerKind::refused:
      return "refused";
  }
  return "?";
}

Json read_range(const ObjectStore& store, const Json& line) {
  const StoredObject object = object_of(line.at("object"));
  const auto offset = line.at("offset").get<int64_t>();
  std::vector<uint8_t> bytes(line.at("length").get<size_t>());
  const auto length = static_cast<int64_t>(bytes.size());
  const int tries = line.value("tries", 1);
  for (int tried = 1;; ++tried) {
    HttpRequest request = store.range_request(object, offset, length);
    request.out = bytes;
    request.stall_timeout = std::chrono::milliseconds(line.value("stall_ms", 30'000));
    const HttpAnswer answer = store.client().get(std::move(request));
    const Judgement judgement = store.judge(object, offset, length, answer);
    if (judgement.kind == AnswerKind::fine) {
      return {{"sha256", to_hex(sha256(bytes))}, {"tried", tried}, {"carried", answer.carried}};
    }
    const bool goes_on =
        judgement.kind == AnswerKind::again || judgement.kind == AnswerKind::throttled;
    if (!goes_on || tried == tries) {
      return {{"error", judgement.problem}, {"kind", kind_name(judgement.kind)}, {"tried", tried}};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Json answer_to(const ObjectStore& store, const Json& line) {
  const auto what = line.at("do").get<std::string>();
  if (what == "range") return read_range(store, line);
  if (what == "stat") {
    StoredObject object;
    const bool is_there = store.stat(line.at("key").get<std::string>(), object);
    return {{"object", is_there ? json_of(object) : Json()}};
  }
  const auto prefix = line.at("prefix").get<std::string>();
  Json objects = Json::array();
  if (what == "folder") {
    for (const StoredObject& object : store.list_folder(prefix)) objects.push_back(json_of(object));
    return {{"objects", objects}};
  }
  int64_t count = 0;
  const int64_t most = line.value("most", INT64_MAX);
  store.list(prefix, [&](const StoredObject& object) {
    if (what == "list") objects.push_back(json_of(object));
    return ++count < most;
  });
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {{"count", count}, {"objects", objects}, {"peak_kib", usage.ru_maxrss}};
}

Json sign(const Json& line) {
  HttpRequest request{.method = line.at("method"), .url = line.at("url")};
  for (const auto& header : line.at("headers")) request.headers.emplace_back(header[0], header[1]);
  const auto keys = line.at("keys");
  sign_request({keys[0], keys[1], keys[2]}, line.at("region"),
               std::chrono::sys_seconds(std::chrono::seconds(line.at("time").get<int64_t>())),
               request);
  return {{"headers", request.headers}};
}

int run(const std::string& settings) {
  const Json json = Json::parse(settings);
  std::shared_ptr<const ObjectStore> store;
  std::string problem;
  if (json.contains("address")) {
    try {
      store = open_store(parse_address(json.at("address")), options_of(json));
    } catch (const std::exception& error) {
      problem = error.what();
    }
  }
  for (std::string text; std::getline(std::cin, text);) {
    Json answer;
    try {
      const Json line = Json::parse(text);
      if (!problem.empty()) throw std::runtime_error(problem);
      answer = line.at("do") == "sign" ? sign(line) : answer_to(*store, line);
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    // Keys may have bytes that are no UTF-8.
    std::cout << answer.dump(-1, ' ', true, Json::error_handler_t::replace) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "store_probe: one argument: the settings as JSON\n");
    return 2;
  }
  return stoker::run(argv[1]);
}
