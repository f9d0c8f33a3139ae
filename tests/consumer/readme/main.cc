#include <cstdio>

#include "stoker/pipeline/loader.h"
#include "stoker/staging/device_list.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const auto source = stoker::open_source(argv[1], stoker::Split::train);
  const auto device = stoker::make_device(argc > 2 ? argv[2] : "cpu:0");  // or "cuda:0"
  const auto stream = device->make_stream();
  const stoker::AugmentSpec augment("random_resized_crop | flip", {224, 224});
  stoker::Loader loader(*source, augment, {device.get()},
                        {.batch_size = 64, .seed = 1, .epochs = 2});
  while (const stoker::DeviceBatch batch = loader.next(0, *stream)) {
    // Your step queues its work on `stream`: images (64, 224, 224, 3) u8, labels i32, weights f32.
    const void* images = batch.images();
    std::printf("step %ld: images at %p, first sample %ld\n", long{batch.header().step}, images,
                long{batch.ids()[0]});
  }
}
