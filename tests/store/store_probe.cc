// Driven by the tests of stores: opens one store, then carries out what stdin says, line by line,
// and answers each line with one. All lines are JSON objects.
//
//   store_probe '{"address": "s3://bucket/", "endpoint": "http://127.0.0.1:9000", ...}'
//
//   {"do": "list", "prefix": P}            {"count": N, "objects": [[key, bytes, version], ...]}
//   {"do": "scan", "prefix": P, "most": N} the same, in the server's order
//   {"do": "count", "prefix": P}           {"count": N, "peak_kib": the process's largest memory}
//   {"do": "folder", "prefix": P}          {"objects": [[key, bytes, version], ...]}
//   {"do": "stat", "key": K}               {"object": [key, bytes, version]} or {"object": null}
//   {"do": "range", "object": O, "offset": A, "length": L, "tries": T}
//                                          {"sha256": of the bytes, "tried": n,
//                                           "carried": bytes, "first_byte_ms": ...}
//   {"do": "read", "objects": [O, ...], "length": L, "count": N}
//                                          {"sha256": of the digests of all ranges, in order,
//                                           "seconds": ..., and ObjectReader's counts}
//   anything that goes wrong               {"error": TEXT, "kind": "again", ...}
//
// Without an address it signs: {"do": "sign", ...} gives {"headers": [[name, value], ...]}.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/store/digest256.h"
#include "pipeline/store/object_reader.h"
#include "pipeline/store/object_store.h"
#include "pipeline/store/s3/signature.h"
#include "staging/mutex.h"

namespace stoker {
namespace {

using Json = nlohmann::json;

Json json_of_stats(const StoredObject& object) {
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

std::string text_of_range(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
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
      return {{"sha256", to_hex(sha256(bytes))},
              {"tried", tried},
              {"carried", answer.carried},
              {"first_byte_ms", static_cast<double>(answer.first_byte.count()) / 1e6}};
    }
    const bool goes_on =
        judgement.kind == AnswerKind::again || judgement.kind == AnswerKind::throttled;
    if (!goes_on || tried == tries) {
      return {{"error", judgement.problem}, {"kind", kind_name(judgement.kind)}, {"tried", tried}};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// Reads `count` ranges through an ObjectReader, as many at a time as it has room for: range i is of
// object i modulo their number, each further on in it than the last.
Json read_many(std::shared_ptr<const ObjectStore> store, const StoreOptions& options,
               const Json& line) {
  std::vector<StoredObject> objects;
  for (const Json& object : line.at("objects")) objects.push_back(object_of(object));
  const auto length = line.at("length").get<int64_t>();
  const auto count = line.at("count").get<size_t>();
  std::vector<Digest256> digests(count);
  Mutex mutex;
  CondVar changed;
  size_t ended = 0, started = 0;
  std::string problem;

  ObjectReader reader(std::move(store), options);
  reader.set_starving(true);
  reader.set_room_hook([&] {
    const MutexLock lock(mutex);
    changed.notify_one();
  });
  const auto begun = std::chrono::steady_clock::now();
  MutexLock lock(mutex);
  while (ended < count && problem.empty()) {
    if (started == count || reader.room() == 0) {
      changed.wait_until(lock, std::chrono::steady_clock::now() + std::chrono::milliseconds(5));
      continue;
    }
    const size_t number = started++;
    const StoredObject& object = objects[number % objects.size()];
    const auto turn = static_cast<int64_t>(number / objects.size());
    const int64_t places = std::max<int64_t>(1, object.bytes / length);
    const auto bytes =
        std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(std::min(length, object.bytes)));
    reader.read(object, turn % places * length, *bytes, false,
                [&, number, bytes](const std::exception_ptr& error) {
                  const Digest256 digest = sha256(*bytes);
                  const MutexLock inner(mutex);
                  digests[number] = digest;
                  ++ended;
                  if (error) problem = text_of_range(error);
                  changed.notify_one();
                });
  }
  lock.unlock();
  if (!problem.empty()) throw StoreError(problem);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
  const StoreStats stats = reader.stats();
  return {{"sha256", to_hex(sha256({digests[0].data(), digests[0].size() * count}))},
          {"seconds", seconds.count()},
          {"requests", stats.requests},
          {"ranges", stats.ranges},
          {"bytes", stats.bytes},
          {"retries", stats.retries},
          {"throttled", stats.throttled},
          {"second_requests", stats.second_requests},
          {"requests_wanted", stats.requests_wanted}};
}

Json answer_to(const ObjectStore& store, const Json& line) {
  const auto what = line.at("do").get<std::string>();
  if (what == "range") return read_range(store, line);
  if (what == "stat") {
    StoredObject object;
    const bool is_there = store.stat(line.at("key").get<std::string>(), object);
    return {{"object", is_there ? json_of_stats(object) : Json()}};
  }
  const auto prefix = line.at("prefix").get<std::string>();
  Json objects = Json::array();
  if (what == "folder") {
    for (const StoredObject& object : store.list_folder(prefix))
      objects.push_back(json_of_stats(object));
    return {{"objects", objects}};
  }
  int64_t count = 0;
  const int64_t most = line.value("most", INT64_MAX);
  const auto take = [&](const StoredObject& object) {
    if (what != "count") objects.push_back(json_of_stats(object));
    return ++count < most;
  };
  if (what == "scan") {
    store.scan(prefix, take);
  } else {
    store.list(prefix, take);
  }
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
      if (line.at("do") == "sign") {
        answer = sign(line);
      } else if (line.at("do") == "read") {
        answer = read_many(store, options_of(json), line);
      } else {
        answer = answer_to(*store, line);
      }
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
