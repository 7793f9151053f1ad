// COPPICE_PERF, read back as perf reads it: each kernel's name, code and unwind table.
#include <gtest/gtest.h>

#include <utility>

#include "tests/sparse/kernel_store_util.h"

namespace coppice {
namespace {

template <class T>
T read_at(const std::string& bytes, size_t at) {
  T value{};
  EXPECT_LE(at + sizeof value, bytes.size());
  if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct PerfCode {
  std::string name, code, unwinding;
  uint64_t address = 0, index_bytes = 0;
};

// The format: tools/perf/Documentation/jitdump-specification.txt of Linux.
std::vector<PerfCode> read_dump(const std::string& bytes) {
  EXPECT_EQ(bytes.substr(0, 4), "DTiJ");
  EXPECT_EQ(read_at<uint32_t>(bytes, 4), 1u);
  EXPECT_EQ(read_at<uint32_t>(bytes, 20), static_cast<uint32_t>(getpid()));
  EXPECT_EQ(read_at<uint64_t>(bytes, 32), 0u) << "flags";
  std::vector<PerfCode> codes;
  PerfCode next;
  for (size_t at = read_at<uint32_t>(bytes, 8); at < bytes.size();) {
    const auto kind = read_at<uint32_t>(bytes, at), size = read_at<uint32_t>(bytes, at + 4);
    const std::string record = bytes.substr(at + 16, size - 16);
    if (kind == 4) {
      next.index_bytes = read_at<uint64_t>(record, 8);
      next.unwinding = record.substr(24, read_at<uint64_t>(record, 0));
    } else {
      EXPECT_EQ(kind, 0u);
      next.address = read_at<uint64_t>(record, 16);
      next.name = record.c_str() + 40;
      next.code = record.substr(40 + next.name.size() + 1);
      EXPECT_EQ(next.code.size(), read_at<uint64_t>(record, 24));
      codes.push_back(std::exchange(next, {}));
    }
    at += size;
  }
  return codes;
}

// Where the table's first function is, in the code that the table stands behind: by the index, and by the
// entry that the index leads to.
void expect_first_function_at_entry(const PerfCode& code, uint64_t entry) {
  const auto begin = static_cast<int64_t>((code.code.size() + 7) / 8 * 8);
  const size_t index = code.unwinding.size() - code.index_bytes;
  ASSERT_EQ(read_at<uint32_t>(code.unwinding, index), 0x3b031b01u);
  const int64_t index_at = begin + static_cast<int64_t>(index);
  EXPECT_EQ(index_at + 4 + read_at<int32_t>(code.unwinding, index + 4), begin);
  ASSERT_GE(read_at<uint32_t>(code.unwinding, index + 8), 1u);
  EXPECT_EQ(index_at + read_at<int32_t>(code.unwinding, index + 12),
            static_cast<int64_t>(entry - code.address));
  const int64_t described = index_at + read_at<int32_t>(code.unwinding, index + 16) - begin;
  const auto field = static_cast<size_t>(described) + 8;
  EXPECT_EQ(
      begin + static_cast<int64_t>(field) + read_at<int64_t>(code.unwinding, field),  // sdata8 of .ltext
      static_cast<int64_t>(entry - code.address));
}

// Two stores, as of two devices; a process has one such file.
TEST(PerfDump, HasEveryKernelsNameCodeAndUnwindTable) {
  std::string name = (std::filesystem::temp_directory_path() / "coppice_perf_XXXXXX").string();
  const std::filesystem::path folder = mkdtemp(name.data());
  const Environment perf("COPPICE_PERF", (folder / "made").string());
  std::vector<LoadedCodeRef> codes;
  for (int device = 0; device < 2; ++device) {
    KernelStore store(KernelStore::Options{.folder = folder / "cache"});
    for (const char* kernel : {"add_one", "write_index"}) {
      auto code = store.get(jit_request(kernel));
      wait(code);
      codes.push_back(code.get());
    }
    store.wait_compiled();
  }
  const auto dumped = read_dump(read_file(folder / "made" / ("jit-" + std::to_string(getpid()) + ".dump")));
  ASSERT_EQ(dumped.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(dumped[i].name, i % 2 == 0 ? "jit.add_one" : "jit.write_index");
    const auto entry = reinterpret_cast<uint64_t>(jit::host_entry(*codes[i]));
    ASSERT_TRUE(dumped[i].address <= entry && entry < dumped[i].address + dumped[i].code.size());
    EXPECT_EQ(std::memcmp(dumped[i].code.data(), reinterpret_cast<const void*>(dumped[i].address),
                          dumped[i].code.size()),
              0);
    expect_first_function_at_entry(dumped[i], entry);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace coppice
