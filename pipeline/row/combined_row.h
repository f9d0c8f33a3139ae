// Makes a row of several samples, where the augmentation has a stage that combines their pictures
// (mosaic, mixup, copy_paste; augment/combination.h). Everything is drawn first, from the files'
// headers and what lies on the pictures; then pixels are made, each sample's only as far as the row
// shows it, right in the canvas that it belongs to.
//
// A partner that cannot be read, drawn or decoded is replaced by the row's own sample (with the
// partner's draws): it is reported where it has its own row. Owner: RowWorker. Threads: one at a
// time. Errors: what is wrong with the own sample is a status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "decode/scratch_vector.h"
#include "pipeline/annotation/merged_annotations.h"
#include "pipeline/augment.h"
#include "pipeline/augment/program.h"
#include "pipeline/loader_types.h"
#include "pipeline/row/row_pictures.h"
#include "pipeline/row/sample_reader.h"
#include "pipeline/source.h"

namespace stoker {

class CombinedRow {
 public:
  // The source and the spec outlive it.
  CombinedRow(const Source& source, const AugmentSpec& augment, const DecodeOptions& decode,
              const AnnotationOptions& annotations);

  struct Key {
    uint64_t seed;  // repeat_seed() of the Loader's
    int64_t epoch;
    SampleId id;
  };
  // Draws the row, and makes its pixels. `own`: the bytes of the own sample. Partners are
  // note.partners; sets note.source and note.replaced. `reader`: of the partners' files.
  DecodeStatus make(Augmenter& augmenter, SampleReader& reader, const Key& key,
                    const SampleBytes& own, MutableImageView out, RowNote& note);
  // Draws only, as the note says.
  DecodeStatus draw_again(Augmenter& augmenter, const Key& key, const SampleBytes& own,
                          const RowNote& note);

  // Return what lies on the canvas that the last row's last stages work on, its labels (null:
  // none), and the steps of these stages.
  const Annotations& annotations() const { return row().annotations; }
  const LabelImage* labels() const { return has_labels_ ? &row().labels : nullptr; }
  Draws& draws() { return row().draws; }
  // A line for each picture, "sample 12: resize(...) | crop(...)", and for each canvas, behind
  // those that lie on it.
  std::string describe() const;

  static int64_t scratch_bound(const AugmentSpec& augment);

 private:
  // A picture of the row: a sample's, or a canvas with others.
  struct Picture {
    RowPicture plan;
    Annotations annotations;  // that the draws carry
    LabelImage labels;
    Draws draws;
    // A sample's.
    SampleBuffer buffer;
    SampleBytes sample;
    // A canvas's.
    const Stage* stage = nullptr;
    Combination combination;
    std::vector<Picture*> parts;
    std::vector<std::byte> cover;  // paste: bits of the pasted pixels
  };
  // The stages of one level, and the memory of its pictures.
  struct Level {
    Level(const StageLevel& level, const DecodeOptions& decode)
        : stages(level), runner(decode.pixels, decode.max_pixels) {}
    StageLevel stages;
    StepRunner runner;
    ScratchVector<uint8_t> partner;  // pixels that lie over others
  };

  Picture& row() const { return *pictures_[count_ - 1]; }
  bool is_replaced(size_t leaf) const { return (replaced_ >> leaf & 1) != 0; }

  void plan(const Key& key, const RowNote& note);
  DecodeStatus draw(Augmenter& augmenter, const Key& key, const SampleBytes& own);
  DecodeStatus draw_sample(Augmenter& augmenter, int64_t epoch, Picture& picture);
  DecodeStatus read_sample(Picture& picture);
  std::string read_annotations(Size size, Picture& picture);
  DecodeStatus draw_canvas(int64_t epoch, Picture& picture);
  DecodeStatus draw_stages(int64_t epoch, Size size, Picture& picture);
  DecodeStatus place_parts(Picture& picture);
  void merge_annotations(Picture& picture);
  void merge_pasted(Picture& picture);
  MovedAnnotations moved(Picture& picture, MaskMover& masks) const;

  DecodeStatus make_picture(Augmenter& augmenter, Picture& picture, Box part, MutableImageView out);
  DecodeStatus make_sample(Augmenter& augmenter, Picture& picture, MutableImageView out);
  DecodeStatus make_canvas(Augmenter& augmenter, Picture& picture, Box seen,
                           MutableImageView canvas);
  static std::string describe_canvas(const Picture& picture);
  DecodeStatus overlay(Augmenter& augmenter, Picture& picture, Box seen, MutableImageView canvas);

  const Source& source_;
  const AugmentSpec& augment_;
  Size output_;  // of the row
  const AnnotationInfo info_;
  const int64_t max_pixels_;
  const int32_t ignore_label_;
  const bool has_labels_;
  bool has_masks_ = false;    // somebody wants them
  std::deque<Level> levels_;  // the first is of samples' pictures, which the augmenter makes
  std::vector<RowPicture> plan_;
  std::vector<std::unique_ptr<Picture>> pictures_;  // the first `count_` are the row's, as in plan_
  size_t count_ = 0;
  std::vector<Picture*> finished_;  // that are no part yet
  SampleReader* reader_ = nullptr;  // of the partners' files; null: the row is drawn only
  uint8_t replaced_ = 0;
  size_t failed_ = 0;  // the number of the sample's picture that could not be made
  MergedAnnotations merged_;
  MaskMover masks_, pasted_masks_;
  LabelImage part_labels_;
  std::vector<int32_t> pasted_;  // places of the objects that are pasted
};

}  // namespace stoker
