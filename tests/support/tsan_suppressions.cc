// oneTBB's library is not instrumented, so ThreadSanitizer does not see how it passes messages
// between threads. Reports whose top frame is in its headers, or which copy a message
// (feed_graph.cc), are suppressed. Linked into every test program of a ThreadSanitizer build.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libtbb.so\nrace_top:tbb::detail\nrace_top:copy_message\n";
}
