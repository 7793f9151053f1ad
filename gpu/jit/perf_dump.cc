// Writes perf's jitdump (see perf_dump.h).
//
// `perf inject --jit` makes an ELF file of each record: the code, at the next multiple of 8 the unwind
// table, behind it the table's index. Addresses in an unwind table are relative to where they stand, so
// ours are made anew for that order.
#include "gpu/jit/perf_dump.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/output_target.h"

namespace coppice::jit {
namespace {

namespace fs = std::filesystem;
namespace jitlink = llvm::jitlink;
namespace orc = llvm::orc;
LLVM_ENABLE_BITMASK_ENUMS_IN_NAMESPACE();  // of orc::MemProt

struct FileHeader {
  uint32_t magic = 0x4A695444;  // "JiTD"
  uint32_t version = 1;
  uint32_t bytes = sizeof(FileHeader);
  uint32_t machine = EM_X86_64;
  uint32_t reserved = 0;
  uint32_t process = static_cast<uint32_t>(::getpid());
  uint64_t time_ns = 0;
  uint64_t flags = 0;
};
struct RecordHeader {
  uint32_t kind;
  uint32_t bytes;  // with this header
  uint64_t time_ns;
};
struct CodeRecord {
  uint32_t process, thread;
  uint64_t address, code_address, code_bytes, number;
};
struct UnwindRecord {
  uint64_t bytes, index_bytes, mapped_bytes;
};
static_assert(sizeof(FileHeader) == 40 && sizeof(RecordHeader) == 16 && sizeof(CodeRecord) == 40 &&
              sizeof(UnwindRecord) == 24);
constexpr uint32_t kCodeLoad = 0, kUnwindInfo = 4;

// perf has to be told to use this clock, by -k 1.
uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
T read_at(const std::string& bytes, size_t at) {
  T value{};
  if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Holds bytes and where they run.
struct Section {
  uint64_t address = 0;
  std::string bytes;
};

Section read_section(const jitlink::Section& section) {
  const jitlink::SectionRange range(section);
  Section out{range.getStart().getValue(), std::string(range.getSize(), '\0')};
  for (const jitlink::Block* block : section.blocks()) {
    const uint64_t at = block->getAddress().getValue() - out.address;
    if (block->isZeroFill()) continue;
    std::memcpy(out.bytes.data() + at, block->getContent().data(), block->getSize());
  }
  return out;
}

// Returns how many bytes a function's address takes, by the CIE of its entry; 0 where it is not relative
// to where it stands, as LLVM's are. A CIE is: length, 0, version, "zR", three numbers of a byte each,
// length, encoding.
size_t address_bytes(const std::string& table, size_t cie) {
  if (cie + 16 >= table.size() || table.compare(cie + 9, 3, "zR\0", 3) != 0) return 0;
  constexpr char kRelative4 = 0x1b, kRelative8 = 0x1c;
  return table[cie + 16] == kRelative4 ? 4 : table[cie + 16] == kRelative8 ? 8 : 0;
}

// Holds the unwind table as it has to be right behind the code, followed by its sorted index
// (.eh_frame_hdr). It is empty for a table of another form than LLVM's.
struct Unwinding {
  std::string table, index;
};
Unwinding unwinding_behind(const Section& code, const Section& table) {
  Unwinding out{table.bytes, {}};
  const uint64_t begin = (code.bytes.size() + 7) / 8 * 8;  // of the table, from the code's
  std::vector<std::pair<int32_t, int32_t>> functions;  // offset of the code, and of its entry in the table
  for (size_t at = 0; at + 4 <= table.bytes.size();) {
    const auto bytes = read_at<uint32_t>(table.bytes, at);
    if (bytes == 0) break;
    if (const auto to_cie = read_at<uint32_t>(table.bytes, at + 4); to_cie != 0) {
      const size_t field = at + 8, width = address_bytes(table.bytes, at + 4 - to_cie);
      if (width == 0) return {};
      const int64_t relative =
          width == 8 ? read_at<int64_t>(table.bytes, field) : read_at<int32_t>(table.bytes, field);
      const uint64_t offset = table.address + field + static_cast<uint64_t>(relative) - code.address;
      if (offset >= code.bytes.size()) return {};
      const auto moved = static_cast<int64_t>(offset - (begin + field));
      std::memcpy(out.table.data() + field, &moved, width);  // the low bytes come first
      functions.emplace_back(static_cast<int32_t>(offset), static_cast<int32_t>(begin + at));
    }
    at += 4 + bytes;
  }
  std::sort(functions.begin(), functions.end());
  const auto index_at = static_cast<int32_t>(begin + out.table.size());
  out.index = {1, 0x1b, 0x03, 0x3b};  // version; how the table's place, the count and the entries are written
  append(out.index, static_cast<int32_t>(begin) - (index_at + 4));
  append(out.index, static_cast<uint32_t>(functions.size()));
  for (const auto& [function, entry] : functions) {
    append(out.index, function - index_at);
    append(out.index, entry - index_at);
  }
  return out;
}

class PerfDump {
 public:
  // Warns and writes nothing where the file cannot be made.
  explicit PerfDump(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    const std::string path = (folder / fmt::format("jit-{}.dump", ::getpid())).string();
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    // perf notices the file by this mapping, which must be executable and stays.
    void* const mark = file_ < 0 ? MAP_FAILED
                                 : ::mmap(nullptr, static_cast<size_t>(::sysconf(_SC_PAGESIZE)),
                                          PROT_READ | PROT_EXEC, MAP_PRIVATE, file_, 0);
    if (mark == MAP_FAILED) {
      give_up(path);
      return;
    }
    std::string header;
    append(header, FileHeader{.time_ns = now_ns()});
    write(header);
  }
  bool is_open() {
    const std::lock_guard lock(mutex_);
    return file_ >= 0;
  }

  void add(const std::string& name, const Section& code, const Unwinding& unwinding) {
    const std::lock_guard lock(mutex_);
    std::string records;
    const uint64_t unwind_bytes = unwinding.table.size() + unwinding.index.size();
    if (unwind_bytes > 0) {
      const size_t padding = (8 - unwind_bytes % 8) % 8;
      append(records, RecordHeader{kUnwindInfo,
                                   static_cast<uint32_t>(sizeof(RecordHeader) + sizeof(UnwindRecord) +
                                                         unwind_bytes + padding),
                                   now_ns()});
      append(records, UnwindRecord{unwind_bytes, unwinding.index.size(), unwind_bytes});
      records += unwinding.table + unwinding.index;
      records.append(padding, '\0');
    }
    append(records, RecordHeader{kCodeLoad,
                                 static_cast<uint32_t>(sizeof(RecordHeader) + sizeof(CodeRecord) +
                                                       name.size() + 1 + code.bytes.size()),
                                 now_ns()});
    append(records,
           CodeRecord{static_cast<uint32_t>(::getpid()), static_cast<uint32_t>(::syscall(SYS_gettid)),
                      code.address, code.address, code.bytes.size(), number_++});
    records.append(name.c_str(), name.size() + 1);
    write(records + code.bytes);
  }

 private:
  void give_up(const std::string& what) {
    log_warning("COPPICE_PERF: cannot write {}: {}; kernels work, but perf does not know them", what,
                std::generic_category().message(errno));
    if (file_ >= 0) ::close(std::exchange(file_, -1));
  }
  void write(const std::string& bytes) {
    if (file_ < 0) return;
    errno = write_all(file_, bytes);
    if (errno != 0) give_up("its file");
  }

  std::mutex mutex_;
  int file_ = -1;
  uint64_t number_ = 0;
};

class PerfPlugin final : public orc::ObjectLinkingLayer::Plugin {
 public:
  explicit PerfPlugin(PerfDump& dump) : dump_(dump) {}

  void modifyPassConfig(orc::MaterializationResponsibility& responsibility, jitlink::LinkGraph&,
                        jitlink::PassConfiguration& passes) override {
    std::string id = responsibility.getTargetJITDylib().getName();
    id.resize(std::min(id.size(), id.rfind('.')));
    passes.PostFixupPasses.push_back([this, id](jitlink::LinkGraph& graph) {
      add(id, graph);
      return llvm::Error::success();
    });
  }
  llvm::Error notifyFailed(orc::MaterializationResponsibility&) override { return llvm::Error::success(); }
  llvm::Error notifyRemovingResources(orc::JITDylib&, orc::ResourceKey) override {
    return llvm::Error::success();
  }
  void notifyTransferringResources(orc::JITDylib&, orc::ResourceKey, orc::ResourceKey) override {}

 private:
  void add(const std::string& id, jitlink::LinkGraph& graph) {
    const jitlink::Section* const table = graph.findSectionByName(".eh_frame");
    for (const jitlink::Section& section : graph.sections()) {
      if (section.getMemProt() != (orc::MemProt::Read | orc::MemProt::Exec) || section.empty()) continue;
      const Section code = read_section(section);
      dump_.add(id, code, table != nullptr ? unwinding_behind(code, read_section(*table)) : Unwinding{});
    }
  }
  PerfDump& dump_;
};

}  // namespace

void show_to_perf(orc::ObjectLinkingLayer& layer) {
  const char* folder = std::getenv("COPPICE_PERF");
  if (folder == nullptr || *folder == '\0') return;
  // There is one file per process, and it is never destroyed: a kernel may be loaded while the process
  // ends.
  static auto& dump = *new PerfDump(folder);
  if (dump.is_open()) layer.addPlugin(std::make_shared<PerfPlugin>(dump));
}

}  // namespace coppice::jit
