// The files that stoker keeps on disks, as one table of stores: whatever happens to their files and
// to those who write them, what is read is right or is not there, and is made anew. How the
// sources, feeds and runs that use a store go on is in the store's own tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "decode/jpeg/seek_index.h"
#include "pipeline/cache/decoded_samples.h"
#include "pipeline/files/durable_file.h"
#include "pipeline/seek_index/file.h"
#include "pipeline/source/blob/blob_index.h"
#include "pipeline/source/blob/index_writer.h"
#include "pipeline/source/blob/sample_cache.h"
#include "pipeline/source/folder_index.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/support/stopped_process.h"
#include "tests/support/temp_folder.h"
#include "train/cuda/plan_choices.h"

namespace stoker {

// The items of a store; "": not there.
using KeptItems = std::vector<std::string>;

struct KeptStore {
  const char* name;
  KeptItems (*content)(int version);
  // Throws std::runtime_error, or keeps less.
  void (*write)(const std::string& folder, int version);
  KeptItems (*read)(const std::string& folder);

  // Its promises. A store that is replaced as a whole has one file, in which readers find all
  // that one writer wrote. Others have no versions (other data have another folder): each item is
  // there or not, whoever wrote it.
  bool is_whole = true;
  // Whoever cannot write is told by an error, and not only by items that are not there.
  bool throws = true;
  // So many items are lost by a damaged byte, at the least; 0: all.
  int sealed_together = 0;
};

void PrintTo(const KeptStore& store, std::ostream* out) { *out << store.name; }

namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kKeptItems = 12;

std::string kept_text(int version, int item) {
  std::string text = "item " + std::to_string(item) + " of " + std::to_string(version) + ":";
  for (int i = 0; i < 30 + 5 * item; ++i) text += static_cast<char>(i * 7 + item * 31 + version);
  return text;
}
KeptItems kept_texts(int version) {
  KeptItems items;
  for (int i = 0; i < kKeptItems; ++i) items.push_back(kept_text(version, i));
  return items;
}
std::span<const uint8_t> kept_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// ---- The list of a folder

// A folder of two classes and three pictures; as if it had not changed for a while.
struct ListedFolder {
  ListedFolder() {
    for (const char* name : {"a/1.jpg", "a/sub/2.jpg", "b/3.jpg"}) folder.write(name);
    scanned = scan_folder(query);
    scanned.started_ns += 10'000'000'000;
  }
  const TempFolder folder;
  const FolderQuery query{folder.path(), {""}, {""}};
  ScannedFolder scanned;
};
const ListedFolder& listed_folder() {
  static const ListedFolder folder;
  return folder;
}
KeptItems items_of_list(const FolderIndex& index) {
  KeptItems items = index.class_names;
  for (SampleId id = 0; id < index.size(); ++id) {
    items.push_back(std::string(index.folder_path(id)) + "/" + std::string(index.file_name(id)));
  }
  return items;
}
FolderIndex list_of_version(int version) {
  FolderIndex index = listed_folder().scanned.index;
  index.class_names[1] = "class of " + std::to_string(version);
  return index;
}
std::string list_path(const std::string& folder) { return folder + "/made/index.bin"; }

const KeptStore kFolderList{
    .name = "FolderList",
    .content = [](int version) { return items_of_list(list_of_version(version)); },
    .write =
        [](const std::string& folder, int version) {
          ScannedFolder scanned = listed_folder().scanned;
          scanned.index = list_of_version(version);
          save_index(list_path(folder), listed_folder().query, scanned);
        },
    .read =
        [](const std::string& folder) {
          FolderIndex index;
          const bool loads = load_index(list_path(folder), listed_folder().query, index);
          return loads ? items_of_list(index) : KeptItems(5);
        },
    .throws = false};

// ---- The index of shards

std::string blob_index_path(const std::string& folder) { return folder + "/made/blobs.idx"; }

// Segments of three samples, each with a name and targets.
const KeptStore kBlobIndex{
    .name = "BlobIndex",
    .content = kept_texts,
    .write =
        [](const std::string& folder, int version) {
          BlobIndexWriter writer(blob_index_path(folder));
          for (int first = 0; first < kKeptItems; first += 3) {
            std::string names;
            std::vector<BlobEntry> entries;
            std::vector<uint8_t> targets;
            for (int i = first; i < first + 3; ++i) {
              const std::string text = kept_text(version, i);
              // Names have no NUL: half of the text is in targets.
              entries.push_back(
                  {.place = 512 << 8, .length = 9, .first = static_cast<uint32_t>(names.size())});
              names += std::to_string(text.size()) + '\0';
              targets.insert(targets.end(), text.begin(), text.end());
              targets.resize(static_cast<size_t>(i - first + 1) * 128);
            }
            writer.add(0, first, entries, names, std::as_bytes(std::span(targets)));
          }
          writer.finish({.key = "key",
                         .blobs = {"1.tar"},
                         .stamps = {{4096, 1}},
                         .segments = {},
                         .class_names = {"cat"},
                         .notes = {},
                         .targets = {{"x", TargetType::uint8, {128}}}},
                        {});
        },
    .read =
        [](const std::string& folder) {
          KeptItems items(kKeptItems);
          const auto index = BlobIndex::open(blob_index_path(folder));
          if (!index || index->size() != kKeptItems) return items;
          for (SampleId id = 0; id < kKeptItems; ++id) {
            const auto row = index->find(id);
            if (row.segment == nullptr) continue;
            const std::string all(row.targets.begin(), row.targets.end());
            items[static_cast<size_t>(id)] =
                all.substr(0, std::stoul(std::string(index->name(row))));
          }
          return items;
        },
    .sealed_together = 3};

// ---- Seek indexes

std::string seek_path(const std::string& folder) { return folder + "/made/seek.bin"; }

// Indexes of JPEG files, whose own seals are looked at by whoever uses them, as are their stamps.
const KeptItems& seek_items(int version) {
  static const std::vector<KeptItems> versions = [] {
    std::vector<KeptItems> made(2);
    for (uint32_t i = 0; i < 2 * kKeptItems; ++i) {
      const std::vector<uint8_t> jpeg = make_jpeg({40 + static_cast<int>(i), 30}, {}, i + 1);
      std::vector<uint8_t> index;
      SeekIndexBuilder builder;
      EXPECT_TRUE(builder.build(jpeg, SeekStep::row, index));
      made[i % 2].emplace_back(index.begin(), index.end());
    }
    return made;
  }();
  return versions[static_cast<size_t>(version)];
}
FileStamp seek_stamp(size_t item) { return {1000 + static_cast<int64_t>(item), 7}; }

const KeptStore kSeekIndexes{
    .name = "SeekIndexes",
    .content = [](int version) { return seek_items(version); },
    .write =
        [](const std::string& folder, int version) {
          SeekIndexWriter writer(seek_path(folder));
          for (size_t i = 0; i < kKeptItems; ++i) {
            const auto index = kept_bytes(seek_items(version)[i]);
            writer.add("name " + std::to_string(i), {seek_stamp(i), index});
          }
          writer.finish();
        },
    .read =
        [](const std::string& folder) {
          KeptItems items(kKeptItems);
          std::string problem;
          const auto file = SeekIndexFile::open(seek_path(folder), problem);
          if (!file) {
            EXPECT_EQ(problem.empty(), !fs::exists(seek_path(folder)));
            if (!problem.empty()) {
              EXPECT_THAT(problem, AnyOf(HasSubstr("damaged"), HasSubstr("older version")));
            }
            return items;
          }
          std::vector<uint8_t> buffer;
          for (size_t i = 0; i < kKeptItems; ++i) {
            const StoredIndex stored = file->read("name " + std::to_string(i), buffer);
            SeekIndex index;
            if (!index.open(stored.index) || stored.stamp != seek_stamp(i)) continue;
            items[i].assign(stored.index.begin(), stored.index.end());
          }
          return items;
        },
    .sealed_together = 1};

// ---- Samples of a store, and decoded pictures

StoredSamples samples_in_store() {
  static const auto object =
      std::make_shared<const StoredObject>(StoredObject{"/part", 1 << 20, "\"v1\""});
  return {
      .root = "s3://bucket",
      .count = kKeptItems,
      .locate =
          [](SampleId id) {
            return SampleAddress{object, id * 1000, std::ssize(kept_text(0, static_cast<int>(id)))};
          },
      .bytes_of = [](SampleId id) { return std::ssize(kept_text(0, static_cast<int>(id))); }};
}
std::unique_ptr<SampleCache> sample_cache_in(const std::string& folder) {
  return SampleCache::open({.cache = folder + "/made", .cache_bytes = 1 << 20}, samples_in_store());
}

const KeptStore kSampleCache{.name = "SampleCache",
                             .content = [](int) { return kept_texts(0); },
                             .write =
                                 [](const std::string& folder, int) {
                                   const auto cache = sample_cache_in(folder);
                                   for (int i = 0; i < kKeptItems; ++i)
                                     cache->keep(i, kept_bytes(kept_text(0, i)));
                                 },
                             .read =
                                 [](const std::string& folder) {
                                   KeptItems items;
                                   const auto cache = sample_cache_in(folder);
                                   std::unique_ptr<uint8_t[]> buffer;
                                   for (int i = 0; i < kKeptItems; ++i) {
                                     const auto bytes = cache->read(i, MayWait::yes, buffer);
                                     items.emplace_back(bytes.begin(), bytes.end());
                                   }
                                   return items;
                                 },
                             .is_whole = false,
                             .throws = false,
                             .sealed_together = 1};

constexpr int64_t kPlaceBytes = 128;
std::string place_content(int item) {
  std::string text = kept_text(0, item);
  text.resize(kPlaceBytes);
  return text;
}
std::unique_ptr<DecodedSlots> places_in(const std::string& folder) {
  return slots_on_disk(folder + "/made", "rows of pictures", kKeptItems, kPlaceBytes);
}

const KeptStore kDecodedCache{.name = "DecodedCache",
                              .content =
                                  [](int) {
                                    KeptItems items;
                                    for (int i = 0; i < kKeptItems; ++i)
                                      items.push_back(place_content(i));
                                    return items;
                                  },
                              .write =
                                  [](const std::string& folder, int) {
                                    const auto places = places_in(folder);
                                    for (int i = 0; i < kKeptItems; ++i)
                                      places->keep(i, kept_bytes(place_content(i)));
                                  },
                              .read =
                                  [](const std::string& folder) {
                                    KeptItems items;
                                    const auto places = places_in(folder);
                                    std::vector<uint8_t> buffer;
                                    for (int i = 0; i < kKeptItems; ++i) {
                                      const auto bytes = places->read(i, MayWait::yes, buffer);
                                      items.emplace_back(bytes.begin(), bytes.end());
                                    }
                                    return items;
                                  },
                              .is_whole = false,
                              .throws = false,
                              .sealed_together = 1};

// ---- cuDNN's plans

std::string plan_path(const std::string& folder) { return folder + "/made/plans.txt"; }
PlanLine plan_line(int version, int item) {
  return {"shape " + std::to_string(item), "plan " + std::to_string(item * 2 + version)};
}

const KeptStore kPlanFile{
    .name = "PlanFile",
    .content =
        [](int version) {
          KeptItems items;
          for (int i = 0; i < kKeptItems; ++i) items.push_back(plan_line(version, i).answer);
          return items;
        },
    .write =
        [](const std::string& folder, int version) {
          std::vector<PlanLine> lines;
          for (int i = 0; i < kKeptItems; ++i) lines.push_back(plan_line(version, i));
          add_plan_lines(plan_path(folder), lines);
        },
    .read =
        [](const std::string& folder) {
          KeptItems items(kKeptItems);
          const PlanLines read = read_plan_file(plan_path(folder));
          if (!read.problem.empty()) {
            EXPECT_THAT(read.problem, AnyOf(HasSubstr("damaged"), HasSubstr("older version")));
          }
          EXPECT_EQ(read.lines.empty(), !read.problem.empty() || !fs::exists(plan_path(folder)));
          for (const PlanLine& line : read.lines) {
            items.at(std::stoul(line.question.substr(6))) = line.answer;
          }
          return items;
        }};

const KeptStore kCompiledPlan{
    .name = "CompiledPlan",
    .content = [](int version) { return KeptItems{"kernel\n\t" + kept_text(version, 7)}; },
    .write =
        [](const std::string& folder, int version) {
          write_compiled_plan(plan_path(folder), {"stem", "eng3"},
                              "kernel\n\t" + kept_text(version, 7));
        },
    .read =
        [](const std::string& folder) {
          return KeptItems{read_compiled_plan(plan_path(folder), {"stem", "eng3"}).value_or("")};
        }};

// ---- Tests of all

class KeptFiles : public ::testing::TestWithParam<KeptStore> {
 protected:
  static const KeptStore& store() { return GetParam(); }
  static KeptItems read(const TempFolder& folder) { return store().read(folder.path()); }
  static KeptItems content(int version) { return store().content(store().is_whole ? version : 0); }
  static void write(const TempFolder& folder, int version) {
    store().write(folder.path(), version);
  }
  static bool is_nothing(const KeptItems& items) {
    return std::ranges::all_of(items, [](const std::string& item) { return item.empty(); });
  }
  // Each item is right or not there.
  static bool is_part_of(const KeptItems& items, const KeptItems& whole) {
    if (items.size() != whole.size()) return false;
    for (size_t i = 0; i < items.size(); ++i) {
      if (!items[i].empty() && items[i] != whole[i]) return false;
    }
    return true;
  }
  static std::map<std::string, std::string> files_in(const TempFolder& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
      if (entry.is_regular_file()) files[entry.path()] = read_whole_file(entry.path());
    }
    return files;
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, KeptFiles,
                         ::testing::Values(kFolderList, kBlobIndex, kSeekIndexes, kSampleCache,
                                           kDecodedCache, kPlanFile, kCompiledPlan),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(KeptFiles, AreReadAsTheyWereWritten) {
  const TempFolder folder;
  EXPECT_TRUE(is_nothing(read(folder)));
  for (const int version : {0, 1, 0}) {
    write(folder, version);
    EXPECT_EQ(read(folder), content(version));
    if (store().is_whole) {
      EXPECT_EQ(files_in(folder).size(), 1u);  // no temporary file is left
    }
  }
}

TEST_P(KeptFiles, KillsAtAnyMomentLeaveThemRight) {
  for (const bool has_old : {false, true}) {
    Stopped stopped = Stopped::killed;
    int stop = 0;
    for (; stopped == Stopped::killed; ++stop) {
      const TempFolder folder;
      KeptItems before = read(folder);
      if (has_old) {
        write(folder, 0);
        before = read(folder);
      }
      stopped = stop_process(stop, [&] { write(folder, 1); });
      if (stopped == Stopped::impossible) GTEST_SKIP() << "no process may be watched here";
      const KeptItems after = read(folder);
      if (stopped == Stopped::ended) {
        EXPECT_EQ(after, content(1));
      } else if (store().is_whole) {
        EXPECT_TRUE(after == before || after == content(1)) << stop;
      } else {
        EXPECT_TRUE(is_part_of(after, content(1))) << stop;
        if (has_old) {
          EXPECT_EQ(after, before) << stop;
        }
      }
      write(folder, 1);
      EXPECT_EQ(read(folder), content(1)) << stop;
    }
    EXPECT_GT(stop, 8);
  }
}

TEST_P(KeptFiles, DamageAndCutsAreFoundAndMadeAnew) {
  const TempFolder folder;
  write(folder, 1);
  const auto files = files_in(folder);
  const KeptItems whole = content(1);
  std::ptrdiff_t least_lost = std::ssize(whole);
  const auto look = [&](const std::string& path, const std::string& bad, const std::string& what) {
    folder.write(fs::relative(path, folder.path()), bad);
    const KeptItems items = read(folder);
    EXPECT_TRUE(is_part_of(items, whole)) << path << " " << what;
    const auto lost = std::ranges::count(items, "");
    if (lost > 0) least_lost = std::min(least_lost, lost);
    // Whoever reads a damaged item may have marked it.
    for (const auto& [good_path, good] : files) {
      if (good_path != path && read_whole_file(good_path) == good) continue;
      folder.write(fs::relative(good_path, folder.path()), good);
    }
    return items;
  };
  for (const auto& [path, good] : files) {
    for (size_t at = 0; at < good.size(); at += good.size() < 1000 ? 1 : 3) {
      for (int bit = static_cast<int>(at % 8); bit < 8; bit += good.size() < 600 ? 1 : 8) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
        EXPECT_NE(look(path, bad, "at " + std::to_string(at)), whole) << path << " at " << at;
      }
    }
    for (size_t length = 0; length < good.size(); length += good.size() < 1000 ? 1 : 7) {
      EXPECT_NE(look(path, good.substr(0, length), "cut"), whole) << path << " cut at " << length;
    }
    const KeptItems longer = look(path, good + "x", "longer");
    if (store().sealed_together == 0) {
      EXPECT_TRUE(is_nothing(longer)) << path;
    }
    folder.write(fs::relative(path, folder.path()), good.substr(0, good.size() / 2));
    EXPECT_NE(read(folder), whole);
    write(folder, 1);
    EXPECT_EQ(read(folder), whole) << path;
  }
  const int together = store().sealed_together;
  EXPECT_EQ(least_lost, together > 0 ? together : std::ssize(whole));
}

// No file may grow beyond a limit, as on a disk that is full.
TEST_P(KeptFiles, FullDisksAreErrorsOrLeaveItemsOut) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  for (const bool has_old : {false, true}) {
    bool is_full = true;
    for (rlim_t most = 0; is_full; most += 97) {
      const TempFolder folder;
      if (has_old) write(folder, 0);
      const auto old_files = files_in(folder);
      const KeptItems old = read(folder);
      const rlimit limit{most, before.rlim_max};
      std::string message;
      ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
      try {
        write(folder, 1);
      } catch (const std::runtime_error& error) {
        message = error.what();
      }
      const KeptItems items = read(folder);
      ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
      is_full = items != content(1);
      EXPECT_EQ(!message.empty(), is_full && store().throws) << most << message;
      if (!message.empty()) {
        EXPECT_THAT(message, HasSubstr(folder.path()));
      }
      if (store().is_whole && is_full) {
        EXPECT_EQ(items, old) << most;
        EXPECT_EQ(files_in(folder), old_files) << most;  // nothing else is left
      }
      EXPECT_TRUE(is_part_of(items, is_full && store().is_whole ? content(0) : content(1)));
      write(folder, 1);
      EXPECT_EQ(read(folder), content(1));
    }
  }
  signal(SIGXFSZ, handler);
}

TEST_P(KeptFiles, WhereNothingCanBeWrittenIsAnErrorOrNothing) {
  const TempFolder folder;
  folder.write("file");
  for (const std::string& place : {folder.path() + "/file", std::string("/proc/nothing")}) {
    try {
      store().write(place, 1);
      EXPECT_FALSE(store().throws) << place;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr(place));
    }
  }
}

TEST_P(KeptFiles, TwoWritersAtOnceLeaveThemRight) {
  const TempFolder folder;
  write(folder, 0);
  std::vector<pid_t> writers;
  for (const int version : {0, 1}) {
    const pid_t child = fork();
    if (child == 0) {
      end_process([&] {
        for (int i = 0; i < 30; ++i) write(folder, version);
      });
    }
    writers.push_back(child);
  }
  int wrong = 0;
  while (!writers.empty()) {
    const KeptItems items = read(folder);
    if (store().is_whole) {
      wrong += items != content(0) && items != content(1);
    } else {
      wrong += items != content(0);
    }
    std::erase_if(writers, [](pid_t child) {
      int status = 0;
      const pid_t ended = waitpid(child, &status, WNOHANG);
      if (ended == child) {
        EXPECT_EQ(status, 0);
      }
      return ended != 0;
    });
  }
  EXPECT_EQ(wrong, 0);
  const KeptItems last = read(folder);
  EXPECT_TRUE(last == content(0) || last == content(1));
  if (store().is_whole) {
    EXPECT_EQ(files_in(folder).size(), 1u);
  }
}

}  // namespace
}  // namespace stoker
