// gpu/kernel_store.h over its disk cache: whatever the folder holds, the kernel is
// right, at worst compiled again.
#include "gpu/kernel_store.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>

#include "core/error.h"
#include "gpu/device.h"
#include "gpu/jit/object_check.h"
#include "tests/sparse/kernel_store_util.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;
using jit::KernelCache;

// The symbol table's entry for a global of this name.
Elf64_Sym* find_symbol(std::string& object, const std::string& name) {
  auto* header = reinterpret_cast<Elf64_Ehdr*>(object.data());
  auto* sections = reinterpret_cast<Elf64_Shdr*>(object.data() + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const char* names = object.data() + sections[sections[i].sh_link].sh_offset;
    auto* symbols = reinterpret_cast<Elf64_Sym*>(object.data() + sections[i].sh_offset);
    for (size_t k = 0; k < sections[i].sh_size / sizeof(Elf64_Sym); ++k) {
      if (name == names + symbols[k].st_name) return &symbols[k];
    }
  }
  return nullptr;
}
// The first section that holds no code, but data.
uint16_t data_section(const std::string& object) {
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(object.data());
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(object.data() + header->e_shoff);
  for (uint16_t i = 1; i < header->e_shnum; ++i) {
    if (sections[i].sh_type == SHT_PROGBITS && (sections[i].sh_flags & SHF_EXECINSTR) == 0 &&
        sections[i].sh_size > 0)
      return i;
  }
  return 0;
}

class KernelStoreCacheTest : public KernelStoreFolder {
 protected:
  // Puts `bytes` under the key of write_index, as another build with the same key would have, and expects
  // that they are not run but replaced.
  void expect_replaced(const char* what, const std::string& bytes) {
    SCOPED_TRACE(what);
    const std::string key = specialization_key(jit_request("write_index")).hex();
    KernelCache(folder).store(key, bytes);
    ASSERT_EQ(KernelCache(folder).load(key), bytes);
    hits_of_right_kernels(options());
    EXPECT_EQ(KernelCache(folder).load(key), object_);
    EXPECT_EQ(warnings, 0);
  }
  const std::string object_ = jit::compile_x86(jit_request("write_index"));
};

TEST_F(KernelStoreCacheTest, ReplacesWholeEntriesThatAreNoObjectOfOurs) {
  expect_replaced("no object", "no object");
  expect_replaced("nothing", "");
  expect_replaced("half an object", object_.substr(0, object_.size() / 2));
  expect_replaced("the header of an object", object_.substr(0, 64));
  expect_replaced("another kernel's object", jit::compile_x86(jit_request("add_one")));
  std::string altered = object_;
  altered[18] = static_cast<char>(183);  // e_machine: AArch64
  expect_replaced("another processor's object", altered);
  altered = object_;
  altered[16] = 2;  // e_type: executable
  expect_replaced("a program", altered);
  altered = object_;
  altered[4] = 1;  // EI_CLASS: 32 bits
  expect_replaced("an object of 32 bits", altered);
}

// ORC takes these, and running them would crash.
TEST_F(KernelStoreCacheTest, ReplacesObjectsWhoseEntryIsNoCode) {
  const std::string entry = jit_request("write_index").entry;
  std::string altered = object_;
  Elf64_Sym* symbol = find_symbol(altered, entry);
  ASSERT_NE(symbol, nullptr);
  ASSERT_NE(data_section(altered), 0);
  symbol->st_shndx = data_section(altered);
  symbol->st_value = symbol->st_size = 0;
  expect_replaced("an entry in another section", altered);
  altered = object_;
  find_symbol(altered, entry)->st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  expect_replaced("a variable", altered);
  altered = object_;
  find_symbol(altered, entry)->st_value = 1 << 20;
  expect_replaced("an entry outside of the code", altered);
}

TEST_F(KernelStoreCacheTest, ReplacesAnEntryThatDoesNotLink) {
  const auto request = jit_request("sine_and_cosine");
  const std::string key = specialization_key(request).hex(), object = jit::compile_x86(request);
  std::string altered = object;
  size_t at = altered.find("sincosf");
  if (at == std::string::npos) at = altered.find("sinf");  // ThreadSanitizer keeps the two calls apart
  ASSERT_NE(at, std::string::npos);
  altered[at] = 'Z';
  ASSERT_EQ(jit::why_not_loadable(altered, request.entry), "") << "only the loader can tell";
  KernelCache(folder).store(key, altered);
  KernelStore store(options());
  auto code = store.get(request);
  wait(code);
  ASSERT_FALSE(code.is_error()) << code.error().what();
  EXPECT_EQ(KernelCache(folder).load(key), object);
}

TEST_F(KernelStoreCacheTest, SurvivesEveryKindOfDamage) {
  EXPECT_EQ(hits_of_right_kernels(options()), 0u);
  EXPECT_EQ(hits_of_right_kernels(options()), 2u);
  for (const auto& path : entries()) fs::resize_file(path, fs::file_size(path) / 2);
  EXPECT_EQ(hits_of_right_kernels(options()), 0u) << "truncated";

  EXPECT_EQ(hits_of_right_kernels(options()), 2u);
  const auto files = entries();
  ASSERT_EQ(files.size(), 2u);
  fs::rename(files[0], root / "first");
  fs::rename(files[1], files[0]);
  fs::rename(root / "first", files[1]);
  EXPECT_EQ(hits_of_right_kernels(options()), 0u) << "swapped";

  for (size_t step = 1; step < 8; ++step) {
    EXPECT_EQ(hits_of_right_kernels(options()), 2u);
    for (const auto& path : entries()) {
      std::string bytes = read_file(path);
      bytes[bytes.size() * step / 8] ^= static_cast<char>(1 << step);
      write_file(path, bytes);
    }
    EXPECT_EQ(hits_of_right_kernels(options()), 0u) << "one bit altered, " << step << "/8 of the way";
  }
  EXPECT_EQ(warnings, 0);
}

TEST_F(KernelStoreCacheTest, FindsNothingThatAnotherCpuOrLlvmOrVersionLeft) {
  EXPECT_EQ(hits_of_right_kernels(options()), 0u);
  EXPECT_EQ(hits_of_right_kernels(options()), 2u);
  std::vector<KernelStore::Options> others(6, options());
  const std::byte other_intrinsics[] = {std::byte{1}};
  others[0].key.cpu += "x";
  others[1].key.features += ",+avx999";
  others[2].key.llvm = jit::llvm_identity().substr(0, jit::llvm_identity().size() - 1);
  others[3].key.pipeline = "other passes";
  others[4].key.launch_block_version += 1;
  others[5].key.intrinsics = other_intrinsics;
  size_t expected = 2;
  for (const KernelStore::Options& other : others) {
    EXPECT_EQ(hits_of_right_kernels(other), 0u) << expected / 2;
    EXPECT_EQ(hits_of_right_kernels(other), 2u) << expected / 2;
    EXPECT_EQ(entries().size(), expected += 2);
  }
  EXPECT_EQ(hits_of_right_kernels(options()), 2u) << "its own are still there";
}

// Seen to crash, since code of the emulated GPU ran outside of it, when the key did not have the option.
TEST_F(KernelStoreCacheTest, KeepsCodeForTheEmulatedGpuApart) {
  auto emulated = jit_request("write_index");
  emulated.options.simt = true;
  {
    KernelStore store(options());
    auto code = store.get(emulated);
    wait(code);
    ASSERT_FALSE(code.is_error()) << code.error().what();
  }
  EXPECT_EQ(hits_of_right_kernels(options()), 0u);
  EXPECT_EQ(entries().size(), 3u);
  KernelStore store(options());
  auto code = store.get(emulated), plain = store.get(jit_request("write_index"));
  wait(code), wait(plain);
  EXPECT_EQ(store.disk_cache().stats().hits, 2u);
  EXPECT_NE(jit::host_entry(*code.get()), jit::host_entry(*plain.get()));

  // Its intrinsics are of its code alone.
  KernelStore::Options other = options();
  const std::byte other_intrinsics[] = {std::byte{1}};
  other.key.simt_intrinsics = other_intrinsics;
  EXPECT_EQ(hits_of_right_kernels(other), 2u);
  EXPECT_NE(jit::specialization_key(emulated, other.key), jit::specialization_key(emulated));
}

TEST_F(KernelStoreCacheTest, KeepsWithinItsBoundAndWorksWithoutRoom) {
  KernelStore::Options small = options();
  small.max_bytes = object_.size() + 40 + 100;  // room for one
  hits_of_right_kernels(small);
  EXPECT_EQ(entries().size(), 1u);
  EXPECT_LE(KernelCache(folder).stats().bytes, small.max_bytes);
  small.max_bytes = 100;
  EXPECT_EQ(hits_of_right_kernels(small), 0u);
  fs::remove_all(folder);
  small.max_bytes = 0;
  EXPECT_EQ(hits_of_right_kernels(small), 0u);
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_EQ(warnings, 0);
}

TEST_F(KernelStoreCacheTest, WorksWhereNothingCanBeWritten) {
  write_file(root / "file", "");
  KernelStore::Options nowhere = options();
  nowhere.folder = root / "file" / "cache";
  EXPECT_EQ(hits_of_right_kernels(nowhere), 0u);
  EXPECT_EQ(warnings, 1);
}

TEST_F(KernelStoreCacheTest, RefusesABadBoundWhenTheDeviceIsMade) {
  const Environment bound("COPPICE_CACHE_MAX_MB", "plenty");
  try {
    Device::cpu(1);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_STREQ(e.what(),
                 "COPPICE_CACHE_MAX_MB must be a whole number of MiB from 0 to 1048576, not 'plenty'");
  }
}

// The clock stands at 0 s at the first request, at 5 s at the second, which comes while the first is
// compiled, and at 7 s when both are.
TEST_F(KernelStoreCacheTest, CountsTheTimeFromTheFirstRequest) {
  std::mutex gate;
  std::condition_variable changed;
  bool is_compiling = false, may_go_on = false;
  std::atomic<int> seconds = 0;
  std::string summary;
  set_log_sink([&](LogLevel, std::string_view line) {
    std::unique_lock lock(gate);
    if (line.find("compiled in") != line.npos) summary = line;
    if (line.rfind("kernels: compiling", 0) != 0) return;
    is_compiling = true;
    changed.notify_all();
    changed.wait(lock, [&] { return may_go_on; });
  });
  KernelStore::Options o = options();
  o.now = [&] { return std::chrono::steady_clock::time_point(std::chrono::seconds(seconds)); };
  KernelStore store(o);
  store.get(jit_request("write_index"));
  {
    std::unique_lock lock(gate);
    changed.wait(lock, [&] { return is_compiling; });
  }
  seconds = 5;
  store.get(jit_request("add_one"));
  const KernelStore::Progress under_way = KernelStore::progress();
  EXPECT_EQ(under_way.asked, 2u);
  EXPECT_EQ(under_way.done(), 0u);
  {
    const std::lock_guard lock(gate);
    seconds = 7;
    may_go_on = true;
  }
  changed.notify_all();
  store.wait_compiled();
  EXPECT_EQ(summary, "kernels: 2 compiled in 7.00 s, 0 from the cache");
  const KernelStore::Progress over = KernelStore::progress();
  EXPECT_EQ(over.asked, 2u);
  EXPECT_EQ(over.compiled, 2u);
  EXPECT_GT(over.seconds, 0);
  EXPECT_EQ(KernelStore::progress().seconds, over.seconds) << "the burst is over";
  seconds = 100;  // idle time belongs to nobody
  store.get(jit_request("powers_of_ten"));
  store.wait_compiled();
  EXPECT_EQ(summary, "kernels: 1 compiled in 0.00 s, 0 from the cache");
  EXPECT_EQ(KernelStore::progress().asked, 1u) << "of a burst of its own";
  set_log_sink({});
}

class DumpTest : public KernelStoreFolder {
 protected:
  std::string stem(const std::string& kernel) const {
    return "jit." + kernel + "-" + specialization_key(jit_request(kernel)).hex().substr(0, 8);
  }
  std::string dumped(const std::string& name) const { return read_file(dump / name); }
  fs::path dump = root / "made" / "for" / "it";
};

TEST_F(DumpTest, WritesCodeBeforeAndAfterOptimisingAndAssembly) {
  const Environment variable("COPPICE_DUMP", dump.string());
  hits_of_right_kernels(options());
  for (const char* kernel : {"write_index", "add_one"}) {
    const std::string entry = std::string("coppice_kernel_") + kernel;
    EXPECT_NE(dumped(stem(kernel) + ".in.ll").find("define dso_local void @" + entry), std::string::npos);
    EXPECT_NE(dumped(stem(kernel) + ".opt.ll").find("@" + entry), std::string::npos);
    EXPECT_NE(dumped(stem(kernel) + ".opt.ll"), dumped(stem(kernel) + ".in.ll"));
    EXPECT_NE(dumped(stem(kernel) + ".s").find(entry + ":"), std::string::npos);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(dump), fs::directory_iterator()), 6);
}

TEST_F(DumpTest, WritesPtxWhereItIsMade) {
  const Environment variable("COPPICE_DUMP", dump.string());
  const std::string text = jit::compile_ptx(jit_request("write_index"), {80});
  jit::compile_ptx(jit_request("write_index"), {90});
  EXPECT_EQ(dumped(stem("write_index") + "-sm_80.ptx"), text);
  EXPECT_NE(dumped(stem("write_index") + "-sm_90.ptx").find(".target sm_90"), std::string::npos);
  EXPECT_NE(dumped(stem("write_index") + "-sm_90.in.ll"), dumped(stem("write_index") + "-sm_90.opt.ll"));
}

TEST_F(DumpTest, DumpsKernelsThatTheCacheHoldsToo) {
  EXPECT_EQ(hits_of_right_kernels(options()), 0u);
  const Environment variable("COPPICE_DUMP", dump.string());
  EXPECT_EQ(hits_of_right_kernels(options()), 0u);
  EXPECT_TRUE(fs::exists(dump / (stem("write_index") + ".s")));
  EXPECT_TRUE(fs::exists(dump / (stem("add_one") + ".s")));
}

TEST_F(DumpTest, NamesSpecializationsOfOneKernelApart) {
  const Environment variable("COPPICE_DUMP", dump.string());
  jit::SpecializeRequest request = jit_request("add_one");
  const std::byte one[4] = {std::byte{1}};
  jit::compile_x86(request);
  request.constants = {{"coppice_loop", one}};
  jit::compile_x86(request);
  EXPECT_EQ(std::distance(fs::directory_iterator(dump), fs::directory_iterator()), 6);
}

TEST_F(DumpTest, WarnsOnceWhereItCannotWriteAndTheKernelsWork) {
  write_file(root / "file", "");
  const Environment variable("COPPICE_DUMP", (root / "file" / "dump").string());
  hits_of_right_kernels(options());
  ASSERT_EQ(warnings, 1);
  const std::lock_guard lock(mutex);
  const auto is_ours = [&](const std::string& line) {
    return line.rfind("COPPICE_DUMP: cannot write to " + (root / "file" / "dump").string() + ": ", 0) == 0;
  };
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), is_ours), 1);
}

}  // namespace
}  // namespace coppice
