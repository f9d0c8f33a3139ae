// oneTBB's library is not instrumented: ThreadSanitizer does not see its messages go from thread to
// thread. What is top of the stack in its headers, or copies a message (feed_graph.cc), is left
// out. Linked into every test program of a ThreadSanitizer build.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libtbb.so\nrace_top:tbb::detail\nrace_top:copy_message\n";
}
