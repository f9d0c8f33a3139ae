// A plugin named libstoker_avif.so that another build of stoker made: for codec_plugin_test.cc.
#include "decode/codec/codec_plugin.h"

extern "C" __attribute__((visibility("default"))) const stoker::CodecPlugin* stoker_codec_plugin() {
  static const stoker::CodecPlugin plugin{stoker::kCodecPluginVersion, "another build", "9",
                                          nullptr};
  return &plugin;
}
