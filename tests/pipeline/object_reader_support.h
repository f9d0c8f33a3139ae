// Shared by the tests of ObjectReader: a server, a store, objects whose bytes are known.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/store/object_reader.h"
#include "tests/support/object_server.h"
#include "tests/support/test_store.h"

namespace stoker {

class ObjectReaderTest : public ::testing::Test {
 protected:
  using Kind = Fault::Kind;

  // One range, and what became of it.
  struct Asked {
    int64_t offset = 0;
    std::vector<uint8_t> out;
    std::atomic<int> calls = 0;
    std::exception_ptr error = nullptr;
    std::promise<void> ended;

    Asked(int64_t begin, int64_t length) : offset(begin), out(static_cast<size_t>(length)) {}
    ObjectReader::Done done() {
      return [this](std::exception_ptr problem) {
        error = std::move(problem);
        if (++calls == 1) ended.set_value();
      };
    }
    // Waits for the end; returns the error's text, "" if there was none.
    std::string wait() {
      ended.get_future().get();
      try {
        if (error != nullptr) std::rethrow_exception(error);
      } catch (const StoreError& problem) {
        return problem.what();
      }
      return "";
    }
  };

  ObjectReaderTest() {
    bytes_.resize(2'000'000);
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<uint8_t>(i * 7 + i / 251);
    for (const char* key : {"/object", "/slow", "/other"}) server_.put(key, bytes_, "\"v1\"");
  }
  void open(const StoreOptions& options = {}) {
    store_ = std::make_shared<TestStore>(server_);
    reader_ = std::make_unique<ObjectReader>(store_, options);
  }
  // The first request for /object fails so; or the first `times`.
  void fail_first(Fault fault, int times = 1) {
    auto left = std::make_shared<std::atomic<int>>(times);
    server_.set_script([fault, left](const SeenRequest& request) {
      return request.path == "/object" && (*left)-- > 0 ? fault : Fault{};
    });
  }
  bool is_right(const Asked& asked) const {
    return std::equal(asked.out.begin(), asked.out.end(), bytes_.begin() + asked.offset);
  }
  // Reads a range that is expected to come.
  void read_well(const StoredObject& object, int64_t offset, int64_t length) {
    Asked asked(offset, length);
    reader_->read(object, offset, asked.out, false, asked.done());
    EXPECT_EQ(asked.wait(), "");
    EXPECT_TRUE(is_right(asked));
  }

  std::vector<uint8_t> bytes_;
  ObjectServer server_;
  const StoredObject object_{"/object", 2'000'000, "\"v1\""};
  const StoredObject slow_{"/slow", 2'000'000, "\"v1\""};
  const StoredObject other_{"/other", 2'000'000, "\"v1\""};
  std::shared_ptr<TestStore> store_;
  std::unique_ptr<ObjectReader> reader_;
};

}  // namespace stoker
