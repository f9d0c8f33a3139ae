// Augmentation in two separate halves: drawing decides everything about a sample from its key, and
// running applies what was drawn to pixels. Nothing else in stoker is random about pixels.
//
// An AugmentSpec is a list of stages, in any order (augment/README.md has them all):
//
//   AugmentSpec spec("random_resized_crop(224, scale=(0.35, 1)) | random_augment(2, 9) | flip");
//
// A list may end with mix(...), which mixes rows with each other (mix.h), or be views(...) of
// several lists: several rows of one sample, of one reading and one decoding. A list that ends with
// five_crop(...) or ten_crop(...) is such views, too. pictures(...) has a list for each picture of
// a sample.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/image.h"
#include "decode/image_decoder.h"
#include "pipeline/augment/decoded_picture.h"
#include "pipeline/augment/draws.h"
#include "pipeline/augment/mix.h"
#include "pipeline/augment/pixel_operation.h"
#include "pipeline/augment/stage.h"
#include "pipeline/random/random_key.h"

namespace stoker {

// A value. Threads: reading from any.
struct AugmentSpec {
  Size output = {};
  StageList stages{};  // of the first view
  MixSpec mix{};
  std::vector<AugmentView> more_views{};  // after the first
  // "resize(256) | five_crop(224)": the list that the views are the crops of. They draw the numbers
  // of the first, so that they are of one image. "": each of the views draws its own.
  std::string crops{};

  AugmentSpec() = default;
  // Stages without a size of their own make images of `output`; if that is {}, rows have the size
  // that the list ends with. Throws as StageList, and as validate().
  explicit AugmentSpec(std::string_view stages, Size output = {});

  // Replaces everything but `output`; the text as in the constructor.
  void set_stages(std::string_view text);
  // Reads back as the same stages, without operations that no text names.
  std::string stages_text() const;
  int views() const { return 1 + static_cast<int>(more_views.size()); }
  // Whether the views after the first are of further pictures of the sample.
  bool has_pictures() const { return !more_views.empty() && !more_views[0].picture.empty(); }
  int own_views() const { return has_pictures() ? 1 : views(); }  // of the sample's own picture
  AugmentView view(int number) const;                             // with the size of its rows
  AugmentSpec with_output(Size size) const;                       // for rows of another size

  // Appends an operation to the first view. Throws std::invalid_argument for a name that is no word
  // or is there already, and for an operation without a function.
  void add(const PixelOperation& operation);

  // Throws std::invalid_argument that names the stage, the argument and its value, for what could
  // never give rows of the output's size.
  void validate() const;
  // Whether rows are made of several samples: then a Loader makes them.
  bool combines() const { return stages.combines(); }
  // The same for images of this size, or of any (none), and for further pictures, by their names.
  // Also throws if the list does not say which size the rows have.
  using PictureSizes = std::map<std::string, std::optional<Size>>;
  void validate_for(std::optional<Size> source, const PictureSizes& pictures = {}) const;
  std::string describe() const;  // one line, canonical: part of the fingerprint
};

// Draws what is done to one sample for one of its views. `source`: size of its image, sides >= 1.
// `spec` has been validated, and outlives the steps. Throws nothing but std::bad_alloc. A pure
// function: the result is the same from any thread and in any order, and view 0 is that of a spec
// without other views. `output`: the row's size, where it is not the spec's.
void draw_augmentation(const AugmentSpec& spec, Size source, uint64_t seed, int64_t epoch,
                       int64_t sample, Draws& draws, int view = 0, Size output = {});

// Draws what the stages of one level (StageList::levels()) do to an example image of this size and
// its like, as partners. `ends`: gets the number of steps after each stage, or null. For those who
// look at a list.
void draw_example(const AugmentView& view, size_t level, Size source, int64_t sample, Draws& draws,
                  std::vector<size_t>* ends = nullptr);

// Returns the part of the source image that the first crops and resizes show, as x, y, width,
// height in its pixels: what people draw a frame around. It may reach out of the image where
// padding is shown.
std::array<double, 4> shown_box(const Draws& draws);
// Returns whether the drawn steps mirror the image left to right.
bool is_mirrored(const Draws& draws);

// Returns a part of the source image that has all pixels that the views of one sample are made
// from; the whole image if it cannot be augmented so. Draws as the views do, into `draws`.
Box needed_box(const AugmentSpec& spec, Size source, uint64_t seed, int64_t epoch, int64_t sample,
               Draws& draws);

// Returns lines that say which stages the decoder does while it decodes, and which of the others
// are joined.
std::vector<std::string> explain_augmentation(const AugmentSpec& spec);

// Views that show more of an image than this together are decoded one by one, so that memory stays
// small.
inline constexpr int64_t kMaxSharedPixels = int64_t{1} << 23;

// One per worker, reused; keeps its scratch. Threads: one at a time.
class Augmenter {
 public:
  // Throws what AugmentSpec::validate() throws.
  Augmenter(const AugmentSpec& spec, const DecodeOptions& decode);
  ~Augmenter();
  Augmenter(const Augmenter&) = delete;
  Augmenter& operator=(const Augmenter&) = delete;

  // Reads the header, draws, decodes and applies. The row has the size of `out`, whatever the
  // spec's output is.
  // `seek_index`: as ImageDecoder::decode. With several views this is the first; file_views() makes
  // all of them of one decoding.
  DecodeStatus file_row(std::span<const uint8_t> bytes, uint64_t seed, int64_t epoch,
                        int64_t sample, MutableImageView out, Size& source,
                        std::span<const uint8_t> seek_index = {});
  // `outs`: one for each view of the sample's own picture; the first has any size, the others that
  // of their view.
  DecodeStatus file_views(std::span<const uint8_t> bytes, uint64_t seed, int64_t epoch,
                          int64_t sample, std::span<const MutableImageView> outs, Size& source,
                          std::span<const uint8_t> seek_index = {});
  // Makes the row of a further picture of the sample, after that of its own: the view's number says
  // of which. Where both lists have same(...), pictures that have other sizes there are a status.
  DecodeStatus file_picture_row(std::span<const uint8_t> bytes, uint64_t seed, int64_t epoch,
                                int64_t sample, int view, MutableImageView out, Size& source);
  // Does the same with those bytes of the file that its views show, by its seek index. Returns
  // false if the pieces do not do; then file_row() or file_views() of the whole file says the rest.
  bool file_pieces(const FilePieces& file, uint64_t seed, int64_t epoch, int64_t sample,
                   std::span<const MutableImageView> outs, Size& source,
                   std::span<const uint8_t> seek_index);
  // Reads the size of a file's picture from its header.
  DecodeStatus picture_size(std::span<const uint8_t> bytes, Size& size);
  // Makes the picture of steps that somebody else drew for the size of the sample's; `out` has that
  // of the last step. Raw pixels have the draws' source size.
  DecodeStatus file_picture(std::span<const uint8_t> bytes, const Draws& draws,
                            MutableImageView out, std::span<const uint8_t> seek_index);
  DecodeStatus raw_picture(std::span<const uint8_t> bytes, bool planar, const Draws& draws,
                           MutableImageView out);
  // Says what lies on the pictures of the next rows (Draws::carry). A picture of another size than
  // the annotations say is a status.
  void carry(const Annotations* annotations, int keypoints);
  // The draws of the last row, which has one view.
  Draws& draws();
  // From now on, keeps the decoded picture of each file's one row if it has this form, which
  // outlives the rows; null: of none. The rows' bytes do not depend on it.
  void keep_decoded(const DecodedForm* form);
  // Returns the picture of the last row; without pixels: none was kept.
  const DecodedPicture& decoded() const;
  // Does the same as file_row() with a picture that was kept of the file. Returns false if the row
  // shows something else; then file_row() says the rest.
  bool decoded_row(const DecodedPicture& picture, uint64_t seed, int64_t epoch, int64_t sample,
                   MutableImageView out);
  // The same as file_row() for raw pixels: planar or (height, width, 3). `next`: the bytes of the
  // row after this one, which are prefetched into the cache; may be empty.
  DecodeStatus raw_row(std::span<const uint8_t> bytes, bool planar, Size size, uint64_t seed,
                       int64_t epoch, int64_t sample, MutableImageView out,
                       std::span<const uint8_t> next = {}, int view = 0);
  // As ImageDecoder's: notes places in the files that it reads. The index is of the last row's
  // file.
  void record_places();
  std::span<const uint8_t> recorded_index() const;
  SeekUse seek_use() const;  // since construction
  int64_t scratch_bytes() const;
  // Frees what has grown with the pictures so far, and forgets the last row.
  void free_scratch();
  // For measurements: the time when the last file_row() had what the decoder does of its pixels;
  // steady clock, and the thread's CPU time.
  struct Marks {
    int64_t decoded_ns = 0, decoded_cpu_ns = 0;
  };
  void keep_marks(bool keep);
  const Marks& marks() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
