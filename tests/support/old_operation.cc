// An operation on pixels for another version of stoker; without its entry it is no operation at
// all.
#include "pipeline/augment/operation_plugin.h"

#ifdef STOKER_WITH_ENTRY
#undef STOKER_VERSION
#define STOKER_VERSION "0.0.1"

static void do_nothing(stoker::MutableImageView, const stoker::RandomKey&) {}
STOKER_PIXEL_OPERATION("nothing", do_nothing)
#endif
