// A source of samples: how many there are, their labels and names, and the bytes of each. Owner:
// the user; outlives the Loader. Threads: all const functions may run on any threads at once.
// Errors: construction throws with the path; read() returns a status.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/image.h"
#include "pipeline/annotation/annotations.h"
#include "pipeline/files/cache_folder.h"
#include "pipeline/files/read_piece.h"
#include "pipeline/store/store_options.h"
#include "pipeline/store/store_stats.h"
#include "pipeline/target.h"
#include "staging/batch_layout.h"

namespace stoker {

enum class SampleEncoding : uint8_t {
  image_file,  // the bytes of a JPEG, PNG, ... file
  raw_planar,  // (3, height, width) u8, as CIFAR's binary files
  raw_rgb,     // (height, width, 3) u8
};

struct ReadStatus {
  bool ok = true;
  std::string message;  // errno text and numbers if not ok
};

// Tells whether a file changed: its size, and the time of its last change.
struct FileStamp {
  int64_t bytes = -1;  // < 0: unknown
  int64_t modified_ns = 0;
  bool is_known() const { return bytes >= 0; }
  bool operator==(const FileStamp&) const = default;
};

// A piece of a sample's bytes, and the memory for it.
struct BytePiece {
  int64_t offset = 0;
  std::span<uint8_t> out;
};

// A note about something in a source that its user may not expect.
struct SourceNote {
  // "left_out": files that are no samples; "two_labels": files with two; "slow": samples that take
  // much longer to read than they would in another form; "not_annotated": pictures that the
  // annotations do not name; "no_picture": annotations of pictures that are not there;
  // "background": pictures that a form of annotations needs not name, which have no objects;
  // "no_pair": samples without one of their further pictures ("no_picture" is the other way round).
  std::string reason;
  int64_t files = 0;    // how many
  std::string name;     // the first of them, in the form of Source::name()
  std::string message;  // a sentence: "106 .txt files are left out (not read), as cat/1.txt"
};

// The samples that somebody will read, one after the other.
enum class NextSample : uint8_t {
  found,
  later,  // none is known now; ask again when some more have been read
  end,
};
using SampleSequence = std::function<NextSample(SampleId& id)>;

// Ends what Source::look_ahead() began when it is destroyed.
class LookAhead {
 public:
  virtual ~LookAhead() = default;
};

// A further picture that each sample has besides its own, as the control map of an image.
struct PictureInfo {
  std::string name;  // a word
  SampleEncoding encoding = SampleEncoding::image_file;
  Size raw_size{};  // of all of them, if they are raw
  bool operator==(const PictureInfo&) const = default;
};

// Facts of a source that are known before a sample is read. They are the same for the life of the
// source.
struct SourceInfo {
  int64_t size = 0;                                      // how many samples there are
  SampleEncoding encoding = SampleEncoding::image_file;  // of all samples
  Size raw_size{};                                       // of every sample, if they are raw
  std::string root{};                                    // "" if there is none
  std::vector<std::string> class_names{};
  // The columns of every sample's targets besides its label; mostly none.
  std::vector<TargetColumn> targets{};
  // The kinds of annotations that lie on the pictures; mostly none.
  AnnotationInfo annotations{};
  // The pictures of every sample besides its own; mostly none.
  std::vector<PictureInfo> pictures{};
  // Files that are left out or listed under two labels, in a fixed order.
  std::vector<SourceNote> notes{};
  // Changes when the list of samples or labels changes; not with the content of a file.
  uint64_t fingerprint = 0;
  // A digest of the columns of targets and their values, as far as they are known before the
  // samples are read; 0 if there are no columns.
  uint64_t targets_digest = 0;
  // Whether all labels are known from the start. Otherwise a label may come with its sample, and
  // is no part of any digest.
  bool knows_labels = true;
};

// Abilities that a source may have besides, because of where its bytes lie: read those that are in
// memory, or parts of a file, and fetch what comes from afar before it is read. Everything is
// optional.
class SampleStorage {
 public:
  virtual ~SampleStorage() = default;
  // As Source::read(), but only for bytes that are in memory already, so that the call takes no
  // longer than a copy; it must not wait for storage. Returns false if they are not in memory, if
  // that cannot be known, or if something is wrong with the sample, which read() will report.
  virtual bool read_cached([[maybe_unused]] SampleId id,
                           [[maybe_unused]] std::vector<uint8_t>& buffer,
                           [[maybe_unused]] std::span<const uint8_t>& bytes) const {
    return false;
  }
  // Returns the stamp of the file that holds the sample, as it is now; an unknown one if the sample
  // is in no file, or is not stored in it as read() gives it.
  virtual FileStamp stamp([[maybe_unused]] SampleId id) const { return {}; }
  // Fills the pieces, as read() would give these bytes, if the sample's file still has this stamp.
  // Returns false if it has not, if the source cannot do that, if MayWait::no and they are not in
  // memory, or if anything is wrong, which read() will report. A source that can does not take its
  // targets from the bytes: read_targets() gets none.
  virtual bool read_pieces([[maybe_unused]] SampleId id, [[maybe_unused]] const FileStamp& stamp,
                           [[maybe_unused]] std::span<const BytePiece> pieces,
                           [[maybe_unused]] MayWait may_wait) const {
    return false;
  }
  // Says which samples will be read, in about this order, to a source whose bytes come from afar:
  // it fetches them before, as far as its memory reaches. `next` is called by one thread at a time,
  // and must not wait. Returns nullptr if the source does not do that. The source outlives the
  // result.
  virtual std::unique_ptr<LookAhead> look_ahead([[maybe_unused]] SampleSequence next) const {
    return nullptr;
  }
  // Says that one of the announced samples will not be read after all, before or after the source
  // has asked for it. Any thread.
  virtual void will_not_read([[maybe_unused]] SampleId id) const {}
  // How many bytes the source keeps for look_ahead() at most.
  virtual int64_t look_ahead_bytes() const { return 0; }
  // Counts of the requests to a store; nullopt if the samples are in none.
  virtual std::optional<StoreStats> store_stats() const { return std::nullopt; }
  // How much of the data is in a store, and in a cache of it; nullopt: nothing is in one. May ask
  // for the length of every sample.
  virtual std::optional<StoredBytes> stored_bytes() const { return std::nullopt; }
};

class Source {
 public:
  virtual ~Source() = default;
  virtual const SourceInfo& info() const = 0;
  virtual int label(SampleId id) const = 0;
  // Unique, printable, stable between runs; for files: the path relative to the root.
  virtual std::string name(SampleId id) const = 0;
  // Sets `bytes` to the sample's bytes, either inside `buffer` (which is resized and reused) or in
  // memory that the source owns. `bytes` is valid until the next call with the same buffer.
  virtual ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                          std::span<const uint8_t>& bytes) const = 0;
  // Fills `out` with the label and the targets of a sample: as many columns as this source's own
  // info() has. There may be more, behind them, which a view fills in. `bytes` is what read() gave
  // for it, or empty if it gave none: a source whose targets come with the image keeps them in that
  // buffer, and fills in zeros without it. Here it takes label(id), which suits sources without
  // columns.
  virtual void read_targets(SampleId id, [[maybe_unused]] std::span<const uint8_t> bytes,
                            SampleTargets& out) const {
    out.label = label(id);
  }
  // Sets `out` to what lies on the sample's picture; `bytes` as for read_targets(). Not ok: the
  // annotation is broken, and so the sample is bad. May read a file.
  virtual ReadStatus read_annotations([[maybe_unused]] SampleId id,
                                      [[maybe_unused]] std::span<const uint8_t> bytes,
                                      Annotations& out) const {
    out.clear();
    return {};
  }
  // The size of the sample's picture as an annotation that is at hand says it; {}: none does.
  virtual Size picture_size([[maybe_unused]] SampleId id) const { return {}; }
  // As read(), for the picture that info().pictures[number] describes. MayWait::no: not ok if its
  // bytes are not in memory.
  virtual ReadStatus read_picture([[maybe_unused]] SampleId id, [[maybe_unused]] size_t number,
                                  [[maybe_unused]] MayWait may_wait,
                                  [[maybe_unused]] std::vector<uint8_t>& buffer,
                                  [[maybe_unused]] std::span<const uint8_t>& bytes) const {
    return {false, "the samples have no further pictures"};
  }
  // A digest of the labels in the order of the samples: the same in a folder, in shards or a list
  // (drawn samples have their own); the fingerprint if they are unknown. Here it asks for each.
  virtual uint64_t labels_digest() const;
  // Here there is nothing but read().
  virtual const SampleStorage& storage() const;
  // A source whose list is not complete yet may know it before the rest of info().
  virtual const std::string& root() const { return info().root; }

  int64_t size() const { return info().size; }
  const std::vector<std::string>& class_names() const { return info().class_names; }
  SampleEncoding encoding() const { return info().encoding; }
  Size raw_size() const { return info().raw_size; }
  std::span<const TargetColumn> targets() const { return info().targets; }
  const AnnotationInfo& annotations() const { return info().annotations; }
  std::span<const PictureInfo> pictures() const { return info().pictures; }
  const std::vector<SourceNote>& notes() const { return info().notes; }
  uint64_t fingerprint() const { return info().fingerprint; }
  bool knows_labels() const { return info().knows_labels; }
  uint64_t targets_digest() const { return info().targets_digest; }
};

enum class Split : uint8_t { all, train, test };

// Which part of a data set to open, and how.
struct SourceOptions {
  Split split = Split::all;
  // Which field of a sample has the image, and which its label; "": those that such data usually
  // have. A field is an extension in a tar shard (the label: cls, txt, json:FIELD, folder), a
  // column of Parquet, MDS or a list, a key of a TFRecord. label_from "none": there are no labels.
  std::string image_from{};
  std::string label_from{};
  // Which fields are targets, in this order; shards and lists have them, and of an image folder
  // "txt:text" is the text file beside each image. In a tar shard a
  // field is json:FIELD (in the key's .json), npy or NAME.npy (an array); else a column or a key,
  // as for an image. A target's name is the field (FIELD). Its numbers are one number, a vector or
  // an array, of the shape that the first sample has. A suffix, ":float32", ":float16",
  // ":bfloat16", ":int64", ":int32" or ":uint8", says the type. Without it, booleans and uint8 of
  // typed formats become uint8, other integers int64, and other numbers float32, to which they are
  // rounded; in CSV and JSON it is int64 if the first sample has integers only, else float32.
  // With "[]" behind the type each sample has a list of its own length, and with ":text" a text or
  // several (in a tar shard any extension may have one). A sample without values there is a bad
  // sample.
  std::vector<std::string> targets_from{};
  // The annotations of the pictures: a JSON file as COCO's, or a folder with a file for each
  // picture (VOC's XML, YOLO's text, label images as PNG). A picture has its annotations by its
  // name (pipeline/source/annotated/match_pictures.h). In a folder all pictures count, in whatever
  // folders, and none has a class; shards and a list are asked for no label unless label_from is
  // given.
  std::string objects{};
  // Where the records of shards have their objects, and label images (PNG, a class for each pixel):
  // pipeline/source/annotated/README.md says for each format. A suffix, ":xyxy", ":xywh" (that of
  // COCO, the default) or ":cxcywh", says what the numbers of boxes are. Shards are asked for no
  // label unless label_from is given.
  std::string objects_from{};
  std::string label_image_from{};
  // Further pictures of each sample, as "NAME=FIELD", the field as for image_from; of a folder,
  // "NAME=PATH" of another one, whose files have the same names but for their extensions. A sample
  // that lacks one is a bad sample, if the data can be opened without it. In a folder all pictures
  // count, in whatever folders, and none has a class; shards and a list are asked for no label
  // unless label_from is given.
  std::vector<std::string> pictures_from{};
  // Where lists of files and indexes of shards are kept between runs; "" keeps none.
  std::string cache_dir = default_cache_folder();
  // Called now and then, on the caller's thread, while shards are read to make their index, with
  // the bytes that have been read so far. Return false to stop: open_source() throws then.
  std::function<bool(int64_t done, int64_t total)> go_on{};
  // How to reach the data if they are in a store.
  StoreOptions store{};
};

// Opens the data set at `path`:
//   an image folder (CLASS/IMAGE), or a folder with CIFAR-10/100's binary files;
//   tar, Parquet, TFRecord or MDS shards, or a list of files (CSV, TSV, JSONL): a file, a folder of
//   such files, a glob ("train-*.tar") or braces ("train-{000..127}.tar").
// The path may be an address in a store: "s3://bucket/prefix", or
// "https://host/train-{000..127}.tar" (such a server has no lists: name the files). "file:///data"
// is the folder "/data". With train or test, it looks for a folder of that meaning (train; test,
// val, validation), for shards whose names begin with such a word, or takes CIFAR's files for that
// split. Shards and lists get an index, made in one pass over them and kept in the cache directory
// (pipeline/source/blob/README.md).
// Throws std::runtime_error with the path and what was found there, and std::invalid_argument for
// objects that cannot be used, and for image_from, label_from or targets_from where there is
// nothing to choose. A sample whose targets have another shape than the first one's, or a value
// that their type cannot hold, is an error.
std::unique_ptr<Source> open_source(const std::string& path, const SourceOptions& options);
std::unique_ptr<Source> open_source(const std::string& path, Split split);
// Returns what open_source() recognises, for --help: "a folder of CLASS/IMAGE files, ...".
std::string data_forms();
// Returns the path of an address of this machine ("file:///data" is "/data"); other paths and
// addresses as they are. Throws std::runtime_error for a file of another machine.
std::string local_path(const std::string& path);
// Returns true if the data at `path` have parts that Split tells apart. Throws as open_source().
bool has_parts(const std::string& path, const StoreOptions& store = {});

}  // namespace stoker
