// Names and lines of kernels in sanitizers' reports (see sanitizer.h). Built with a sanitizer only.
//
// Code that is loaded stays on a list together with its line tables. The runtime libraries call back with
// the addresses of a report: AddressSanitizer with its text, ThreadSanitizer with its data.
#include <fmt/format.h>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "gpu/jit/sanitizer.h"

extern "C" {
#if defined(__SANITIZE_ADDRESS__)
void __asan_set_error_report_callback(void (*callback)(const char* report));
#else
int __tsan_get_report_data(void* report, const char** description, int* count, int* stack_count,
                           int* mop_count, int* loc_count, int* mutex_count, int* thread_count,
                           int* unique_tid_count, void** sleep_trace, unsigned long trace_size);
int __tsan_get_report_mop(void* report, unsigned long index, int* tid, void** address, int* size, int* write,
                          int* atomic, void** trace, unsigned long trace_size);
void __tsan_on_report(void* report);
void __tsan_ignore_thread_begin();
void __tsan_ignore_thread_end();
#endif
}

namespace coppice::jit {
namespace {

struct Image {
  std::string id;
  uintptr_t begin = 0;  // of the section that the kernel is in
  uint64_t bytes = 0;
  uint64_t section = 0;
  std::unique_ptr<llvm::MemoryBuffer> file;
  std::unique_ptr<llvm::object::ObjectFile> object;
};

struct Images {
  std::mutex mutex;
  std::map<uintptr_t, Image> by_entry;
};
Images& images() {
  static Images& all = *new Images;  // never destroyed: reports may come while a process ends
  return all;
}

void print(const std::string& text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // nowhere to tell
}

// Prints the innermost frame of the kernel file: below it is the runtime that was inlined into the kernel.
void print_place(const Image& image, uintptr_t pc) {
  auto context = llvm::DWARFContext::create(*image.object);
  const llvm::DIInliningInfo frames = context->getInliningInfoForAddress(
      {pc - image.begin, image.section},
      {llvm::DILineInfoSpecifier::FileLineInfoKind::AbsoluteFilePath, llvm::DINameKind::ShortName});
  for (uint32_t i = 0; i < frames.getNumberOfFrames(); ++i) {
    const llvm::DILineInfo& frame = frames.getFrame(i);
    if (!llvm::StringRef(frame.FileName).ends_with(".kernels.cc")) continue;
    std::string line = fmt::format("coppice: kernel {} at {}:{}", image.id, frame.FileName, frame.Line);
    if (const llvm::DILineInfo& inner = frames.getFrame(0); i > 0)
      line += fmt::format(", in {} at {}:{}", inner.FunctionName, inner.FileName, inner.Line);
    print(line + "\n");
    return;
  }
  print(fmt::format("coppice: kernel {}, at no line of its file\n", image.id));
}

// `pc` lies within the instruction, not behind it.
void print_if_kernel(uintptr_t pc) {
  const std::lock_guard lock(images().mutex);
  for (const auto& [entry, image] : images().by_entry) {
    if (image.begin <= pc && pc < image.begin + image.bytes) print_place(image, pc);
  }
}

#if defined(__SANITIZE_ADDRESS__)
// Frames stand in the text as "    #3 0x7f0123456789  (<unknown module>)".
void on_report(const char* report) {
  for (const char* at = report; (at = std::strstr(at, " 0x")) != nullptr; ++at) {
    const char* number = at;
    while (number > report && number[-1] >= '0' && number[-1] <= '9') --number;
    if (number < at && number > report && number[-1] == '#')
      print_if_kernel(std::strtoull(at + 1, nullptr, 16));
  }
}
#endif

}  // namespace

void report_lines_of(const std::string& object, const std::string& entry_name, uintptr_t entry,
                     const std::string& id) {
#if defined(__SANITIZE_ADDRESS__)
  static const bool registered = (__asan_set_error_report_callback(&on_report), true);
  static_cast<void>(registered);
#endif
  Image image;
  image.id = id;
  image.file = llvm::MemoryBuffer::getMemBufferCopy(object, id);
  image.object = llvm::cantFail(llvm::object::ObjectFile::createObjectFile(*image.file));
  for (const llvm::object::SymbolRef& symbol : image.object->symbols()) {
    if (llvm::cantFail(symbol.getName()) != entry_name) continue;
    const auto section = llvm::cantFail(symbol.getSection());
    image.begin = entry - llvm::cantFail(symbol.getValue());
    image.bytes = section->getSize();
    image.section = section->getIndex();
  }
  const std::lock_guard lock(images().mutex);
  images().by_entry[entry] = std::move(image);
}

void forget_lines_of(uintptr_t entry) {
  const std::lock_guard lock(images().mutex);
  images().by_entry.erase(entry);
}

}  // namespace coppice::jit

#if defined(__SANITIZE_THREAD__)
// The library's own definition is weak. It is called after the report was printed, in the thread that raced.
void __tsan_on_report(void* report) {
  // A race that is found in here would be reported by the thread that has the lock for reports.
  __tsan_ignore_thread_begin();
  const char* description = nullptr;
  int count, stacks, accesses = 0, locations, mutexes, threads, tids;
  void* sleep[1];
  __tsan_get_report_data(report, &description, &count, &stacks, &accesses, &locations, &mutexes, &threads,
                         &tids, sleep, 0);
  for (int i = 0; i < accesses; ++i) {
    void *address = nullptr, *trace[16] = {};
    int tid, size, write, atomic;
    __tsan_get_report_mop(report, static_cast<unsigned long>(i), &tid, &address, &size, &write, &atomic,
                          trace, 16);
    // A frame is a return address.
    for (int k = 0; k < 16 && trace[k] != nullptr; ++k)
      coppice::jit::print_if_kernel(reinterpret_cast<uintptr_t>(trace[k]) - 1);
  }
  __tsan_ignore_thread_end();
}
#endif
