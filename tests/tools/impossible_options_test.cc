// Command lines that make no sense, of every subcommand: exit code 2, one line on standard error
// that names the option as it was written, and nothing is written anywhere.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

#include "tests/tools/cli_harness.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

struct ImpossibleLine {
  std::string words;  // in a folder that has the data sets `shapes` and `cifar`, and shards
  std::string named;  // what the line must name
};

void PrintTo(const ImpossibleLine& line, std::ostream* out) { *out << "stoker " << line.words; }

const ImpossibleLine kLines[] = {
    {"nosuch", "'nosuch'"},
    {"trian", "train"},
    {"--data=shapes", "'--data=shapes'"},
    {"train", "--data"},
    {"train --data=/nonexistent --out=o", "--data"},
    {"train --data=shapes --out=o --devices=cpu:0", "--devices"},
    {"train --data=shapes --out=o --devices=cpu:-1", "--devices"},
    {"train --data=shapes --out=o --devices=tpu:1", "--devices"},
    {"train --data=shapes --out=o --devices=", "--devices"},
    {"train --data=shapes --out=o --devices=cpu:257", "--devices"},
    {"train --data=shapes --out=o --model=nosuch", "--model"},
    {"train --data=shapes --out=o --lr-factors=nolayer=0", "--lr-factors"},
    {"train --data=shapes --out=o --lr-factors=x", "--lr-factors"},
    {"train --data=shapes --out=o --init=/nonexistent", "--init"},
    {"train --data=shapes --out=o --image-from=x", "--image-from"},
    {"train --data=shapes --out=o --label-from=x", "--label-from"},
    {"train --data=shapes --out=o --target-from=x", "--target-from"},
    {"train --data=cifar --out=o --image-from=x", "--image-from"},
    {"train --data=cifar --out=o --label-from=x", "--label-from"},
    {"train --data=shapes --out=o --eval-data=/nonexistent", "--eval-data"},
    {"train --data=shapes --out=o --eval-subset=classes=nosuch", "--eval-subset"},
    {"train --data=shapes --out=o --subset=classes=nosuch", "--subset"},
    {"train --data=shapes --out=o --subset=part=0.9:0.1", "--subset"},
    {"train --data=shapes --out=o --subset=/nonexistent", "--subset"},
    {"train --data=shapes --out=o --weights=/nonexistent", "--weights"},
    {"train --data=shapes --out=o --blend=shapes=1", "--blend"},
    {"train --out=o --blend=shapes=-1", "--blend"},
    {"train --data=shapes --out=o --shuffle-blocks=0", "--shuffle-blocks"},
    {"train --data=shapes --out=o --batch=0", "--batch"},
    {"train --data=shapes --out=o --batch=x", "--batch"},
    {"train --data=shapes --out=o --batch-per-device=0", "--batch-per-device"},
    {"train --data=shapes --out=o --accumulate=0", "--accumulate"},
    {"train --data=shapes --out=o --epochs=-1", "--epochs"},
    {"train --data=shapes --out=o --lr=nan", "--lr"},
    {"train --data=shapes --out=o --momentum=1", "--momentum"},
    {"train --data=shapes --out=o --optimizer=nosuch", "--optimizer"},
    {"train --data=shapes --out=o --label-smoothing=1", "--label-smoothing"},
    {"train --data=shapes --out=o --ema=1", "--ema"},
    {"train --data=shapes --out=o --schedule=step", "--milestones"},
    {"train --data=shapes --out=o --milestones=1", "--milestones"},
    {"train --data=shapes --out=o --warmup-start=2", "--warmup-start"},
    {"train --data=shapes --out=o --size=0", "--size"},
    {"train --data=shapes --out=o --views=3", "--views"},
    {"train --data=shapes --out=o --augment=nosuch", "--augment"},
    {"train --data=shapes --out=o --augment=flip(p=2)", "--augment"},
    {"train --data=shapes --out=o --workers=-2", "--workers"},
    {"train --data=shapes --out=o --io-threads=0", "--io-threads"},
    {"train --data=shapes --out=o --max-bad=-1", "--max-bad"},
    {"train --data=shapes --out=o --on-bad=fail --max-bad=3", "--max-bad"},
    {"train --data=shapes --out=o --seek-index=/nonexistent", "--seek-index"},
    {"train --data=shapes --out=o --cache=c", "--cache"},
    {"train --data=shapes --out=o --cache-size=1G", "--cache-size"},
    {"train --data=shapes --out=o --store-region=x", "--store-region"},
    {"train --data=shapes --out=o --store-requests=0", "--store-requests"},
    {"train --data=shapes --out=o --metrics-port=70000", "--metrics-port"},
    {"train --data=shapes --out=o --reduce=nosuch", "--reduce"},
    {"train --data=shapes --out=o --grad-wire=nosuch", "--grad-wire"},
    {"train --data=shapes --out=o --keep=-1", "--keep"},
    {"train --data=shapes --out=o --eval-every=-1", "--eval-every"},
    {"train --data=shapes --out=o --resident-mib=1", "--resident-mib"},
    {"train --data=shapes --out=o --config=/nonexistent", "--config"},
    {"train --data=shapes --out=o --ring-depth=0", "--ring-depth"},
    {"train --data=shapes --out=o --slots=9", "--slots"},
    {"train --data=shapes --out=o --max-pixels=0", "--max-pixels"},
    {"train --data=shapes --out=o --pixels=nosuch", "--pixels"},
    {"train --data=shapes --out=o --exif=nosuch", "--exif"},
    {"eval --checkpoint=/nonexistent --data=shapes", "--checkpoint"},
    {"eval --checkpoint=shapes --data=shapes", "--checkpoint"},
    {"eval --data=shapes", "--checkpoint"},
    {"eval --checkpoint=shapes --data=shapes --split=nosuch", "--split"},
    {"eval --checkpoint=shapes --data=shapes --views=3", "--views"},
    {"export --checkpoint=/nonexistent --onnx=x.onnx", "--checkpoint"},
    {"export --checkpoint=shapes --onnx=x.onnx", "--checkpoint"},
    {"export --checkpoint=shapes", "--onnx"},
    {"peek --data=/nonexistent --out=s.png", "--data"},
    {"peek --data=shapes --out=s.png --count=0", "--count"},
    {"peek --data=shapes --out=s.png --split=nosuch", "--split"},
    {"peek --data=shapes --out=s.png --epoch=-1", "--epoch"},
    {"peek --data=shapes --out=s.png --label-from=x", "--label-from"},
    {"peek --data=shapes --out=s.png --view=nosuch", "--view"},
    {"dump --data=/nonexistent --out=o", "--data"},
    {"dump --data=shapes", "--out"},
    {"dump --data=shapes --out=o --rank=2 --world=2", "--rank"},
    {"dump --data=shapes --out=o --world=0", "--world"},
    {"dump --data=shapes --out=o --steps=-2", "--steps"},
    {"dump --data=shapes --out=o --batch=-1", "--batch"},
    {"dump --data=shapes --out=o --last-batch=nosuch", "--last-batch"},
    {"dump --data=shapes --out=o --target-from=x", "--target-from"},
    {"dump --data=cifar --out=o --image-from=x", "--image-from"},
    {"dump --data=shapes --out=o --no-shuffle --weights=balanced", "--no-shuffle"},
    {"dump --data=shapes --out=o --split=nosuch", "--split"},
    {"augment --augment=nosuch", "--augment"},
    {"augment --size=0", "--size"},
    {"profile", "--data"},
    {"profile --data=shapes --out=o", "--demand"},
    {"profile --data=shapes --out=o --demand=-1", "--demand"},
    {"profile --data=shard.csv --out=o --demand=-1", "--demand"},
    {"profile --data=/nonexistent --out=o --demand=9", "--data"},
    {"profile --data=shapes --out=o --demand=9 --seconds=0", "--seconds"},
    {"profile --data=shapes --out=o --demand=9 --augment=nosuch", "--augment"},
    {"profile --out=o -- train --data=/nonexistent", "--data"},
    {"profile --out=o -- train --data=shapes --devices=tpu:1", "--devices"},
    {"top /nonexistent", "/nonexistent"},
    {"top", "RUNDIR"},
    {"check --data=/nonexistent", "--data"},
    {"check --data=shapes --workers=0", "--workers"},
    {"check --data=shapes --image-from=x", "--image-from"},
    {"index --data=/nonexistent", "--data"},
    {"index --data=cifar", "--data"},
    {"index --data=shapes --granularity=3", "--granularity"},
    {"pack --data=/nonexistent --format=tar --out=o", "--data"},
    {"pack --data=shapes --format=nosuch --out=o", "--format"},
    {"pack --data=shapes --format=tar --out=o --shard-mib=0", "--shard-mib"},
    {"bench nosuch", "'nosuch'"},
    {"bench feed --data=/nonexistent", "--data"},
    {"bench feed --repeats=0", "--repeats"},
    {"bench emulate --accel=nosuch", "--accel"},
    {"bench emulate --accel=h100 --n=0", "--n"},
    {"bench depth --device=tpu:1", "--device"},
    {"bench compare /nonexistent /nonexistent", "/nonexistent"},
    {"bench links --mib=0", "--mib"},
    {"plan --gpus=0 --rate=1", "--gpus"},
    {"plan --gpus=1 --rate=-1", "--rate"},
    {"plan --gpus=1 --rate=1 --feed=/nonexistent", "--feed"},
    {"plan --machine=nosuch --model=resnet50 --rate=1", "--machine"},
    {"info --nosuch", "--nosuch"},
    {"make-shapes --out=o --count=0", "--count"},
    {"make-shapes", "--out"},
    {"receipt diff /nonexistent /nonexistent", "/nonexistent"},
    {"receipt", "subcommand"},
};

// A working folder with data, a cache and a home. The whole of it is looked at.
class ImpossibleOptions : public ::testing::TestWithParam<ImpossibleLine> {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempFolder>();
    make_small_shapes(folder_->path() + "/shapes");
    for (const char* part : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                             "data_batch_5", "test_batch"}) {
      folder_->write(std::string("cifar/") + part + ".bin", std::string(3073, '\1'));
    }
    std::string list = "path,label\n";
    for (const auto& entry : fs::recursive_directory_iterator(folder_->path() + "/shapes/train")) {
      if (entry.is_regular_file()) list += entry.path().string() + ",0\n";
    }
    folder_->write("shard.csv", list);
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::map<std::string, fs::file_time_type> all_files() {
    std::map<std::string, fs::file_time_type> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_->path())) {
      files[entry.path().string()] = entry.last_write_time();
    }
    return files;
  }

  static inline std::unique_ptr<TempFolder> folder_;
};

TEST_P(ImpossibleOptions, AreOneLineThatNamesThemAndWriteNothing) {
  std::vector<std::string> command = {"env", "--chdir=" + folder_->path(),
                                      "XDG_CACHE_HOME=" + folder_->path() + "/cache",
                                      "HOME=" + folder_->path(), STOKER_PROGRAM};
  std::istringstream words(GetParam().words);
  for (std::string word; words >> word;) command.push_back(word);
  const auto before = all_files();
  const ProgramResult result = run_program(command);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
  EXPECT_THAT(result.err, ::testing::HasSubstr(GetParam().named));
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(all_files(), before);
}

INSTANTIATE_TEST_SUITE_P(All, ImpossibleOptions, ::testing::ValuesIn(kLines));

}  // namespace
}  // namespace stoker
